//! Power that fails, and a card pulled and put back, as the wire shows them.

mod reference;
mod rig;

use cardiograph_sim_card::wire::Strike;
use reference::Failure;
use rig::{BYTE_NS, STATUS, bytes, data, held, line, ready, strike, write_5};

#[test]
fn without_power_the_line_is_high_and_time_goes_on() {
    let wire = ready(false);
    let clock = wire.card().clock().clone();
    assert_eq!(line(&wire, &STATUS, 3)[6..], [0xFF, 0, 0]);
    // R1 comes; the second byte of R2 no longer does.
    strike(&wire, 8, Strike::PowerCut);
    let (before, before_ns) = (bytes(&wire), clock.now_ns());
    assert_eq!(line(&wire, &STATUS, 3)[6..], [0xFF, 0, 0xFF]);
    assert!(!wire.card().is_powered());
    wire.card().select(false);
    wire.card().select(true);
    assert_eq!(line(&wire, &write_5(1), 100), [0xFF; 625]);
    assert_eq!(bytes(&wire) - before, 634);
    assert_eq!(clock.now_ns() - before_ns, 634 * BYTE_NS);
    assert_eq!(held(&wire, 5), [0; 512]);
}

#[test]
fn power_comes_back_to_a_card_that_knows_nothing() {
    let wire = ready(true);
    wire.card().power_cut();
    // Clocks without power are none.
    wire.power_up();
    wire.card().power_on();
    assert!(wire.card().is_powered());
    let reset = [0x40, 0, 0, 0, 0, 0x95];
    wire.card().select(true);
    assert_eq!(line(&wire, &reset, 2), [0xFF; 8]);
    wire.power_up();
    wire.card().select(true);
    // Nor does it speak SPI before CMD0, and it is idle after it.
    assert_eq!(line(&wire, &STATUS, 2), [0xFF; 8]);
    assert_eq!(line(&wire, &reset, 2)[6..], [0xFF, 1]);
    // Checksums are off: CMD58 with a wrong one is obeyed.
    assert_eq!(line(&wire, &[0x7A, 0, 0, 0, 0, 0], 2)[6..], [0xFF, 1]);
    // To a card with power this is nothing.
    wire.card().power_on();
    assert_eq!(line(&wire, &[], 4).len(), 4);
    assert_eq!(line(&wire, &STATUS, 3)[7] & 1, 1);
}

#[test]
fn a_card_pulled_comes_back_by_itself() {
    let wire = ready(false);
    let out_ns = 1_000_000;
    strike(&wire, 0, Strike::Pull { out_ns });
    assert_eq!(line(&wire, &STATUS, 3), [0xFF; 9]);
    let clock = wire.card().clock().clone();
    clock.advance_ns(out_ns - 9 * BYTE_NS - 1);
    assert!(!wire.card().is_powered());
    clock.advance_ns(1);
    assert!(wire.card().is_powered());
    assert_eq!(line(&wire, &STATUS, 3), [0xFF; 9]);
    let mut driver = rig::driver(&wire, false);
    driver.init().unwrap();
    driver.check().unwrap();
}

#[test]
fn a_card_pulled_is_put_back_sooner_or_after_a_power_cut_not_at_all() {
    let wire = ready(false);
    let out_ns = 1_000_000;
    strike(&wire, 0, Strike::Pull { out_ns });
    line(&wire, &[], 1);
    wire.card().power_on();
    rig::driver(&wire, false).init().unwrap();

    strike(&wire, 0, Strike::Pull { out_ns });
    strike(&wire, 1, Strike::PowerCut);
    // Nobody can pull a card without power and bring power back by it.
    strike(&wire, 2, Strike::Pull { out_ns });
    line(&wire, &[], 3);
    wire.card().clock().advance_ns(10 * out_ns);
    assert_eq!(rig::driver(&wire, false).init(), Err(Failure::Silence));
    wire.card().power_on();
    rig::driver(&wire, false).init().unwrap();
}

#[test]
fn the_shortest_pull_resets_the_card() {
    let wire = ready(false);
    strike(&wire, 0, Strike::Pull { out_ns: 0 });
    assert_eq!(line(&wire, &STATUS, 3), [0xFF; 9]);
    rig::driver(&wire, false).init().unwrap();
}

#[test]
fn a_card_pulled_in_a_write_and_put_back_takes_the_write_again() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    driver.write(5, &[data(1, 5)]).unwrap();
    strike(&wire, 200, Strike::Pull { out_ns: 0 });
    assert_eq!(driver.write(5, &[data(2, 5)]), Err(Failure::Block(0x1F)));
    assert_eq!(held(&wire, 5), data(1, 5));
    driver.init().unwrap();
    driver.write(5, &[data(2, 5)]).unwrap();
    assert_eq!(held(&wire, 5), data(2, 5));
}
