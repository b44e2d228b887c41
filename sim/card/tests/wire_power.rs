//! Power failures, and a card pulled and reinserted, as seen on the bus.

use crate::reference::Failure;
use crate::rig::{self, BYTE_NS, STATUS, bytes, data, exchange, inject, ready, stored, write_5};
use cardiograph_sim_card::wire::Fault;

#[test]
fn without_power_the_line_is_high_and_time_passes() {
    let wire = ready(false);
    let clock = wire.card().clock().clone();
    assert_eq!(exchange(&wire, &STATUS, 3)[6..], [0xFF, 0, 0]);
    // The host receives R1, but not the second byte of R2.
    inject(&wire, 8, Fault::PowerCut);
    let (before, before_ns) = (bytes(&wire), clock.now_ns());
    assert_eq!(exchange(&wire, &STATUS, 3)[6..], [0xFF, 0, 0xFF]);
    assert!(!wire.card().is_powered());
    wire.card().select(false);
    wire.card().select(true);
    assert_eq!(exchange(&wire, &write_5(1), 100), [0xFF; 625]);
    assert_eq!(bytes(&wire) - before, 634);
    assert_eq!(clock.now_ns() - before_ns, 634 * BYTE_NS);
    assert_eq!(stored(&wire, 5), [0; 512]);
}

#[test]
fn after_power_on_a_card_is_uninitialised() {
    let wire = ready(true);
    wire.card().power_cut();
    // Clocks that a card without power receives do not count.
    wire.power_up();
    wire.card().power_on();
    assert!(wire.card().is_powered());
    let reset = [0x40, 0, 0, 0, 0, 0x95];
    wire.card().select(true);
    assert_eq!(exchange(&wire, &reset, 2), [0xFF; 8]);
    wire.power_up();
    wire.card().select(true);
    // The card is in SD mode until CMD0, and idle afterwards.
    assert_eq!(exchange(&wire, &STATUS, 2), [0xFF; 8]);
    assert_eq!(exchange(&wire, &reset, 2)[6..], [0xFF, 1]);
    // After the reset checksums are off: the card accepts CMD58 with a wrong checksum.
    assert_eq!(exchange(&wire, &[0x7A, 0, 0, 0, 0, 0], 2)[6..], [0xFF, 1]);
    // Powering on a powered card has no effect.
    wire.card().power_on();
    assert_eq!(exchange(&wire, &[], 4).len(), 4);
    assert_eq!(exchange(&wire, &STATUS, 3)[7] & 1, 1);
}

#[test]
fn a_pulled_card_returns_on_its_own() {
    let wire = ready(false);
    let out_ns = 1_000_000;
    inject(&wire, 0, Fault::Pull { out_ns });
    assert_eq!(exchange(&wire, &STATUS, 3), [0xFF; 9]);
    let clock = wire.card().clock().clone();
    clock.advance_ns(out_ns - 9 * BYTE_NS - 1);
    assert!(!wire.card().is_powered());
    clock.advance_ns(1);
    assert!(wire.card().is_powered());
    assert_eq!(exchange(&wire, &STATUS, 3), [0xFF; 9]);
    let mut driver = rig::driver(&wire, false);
    driver.init().unwrap();
    driver.check().unwrap();
}

#[test]
fn a_pulled_card_returns_early_on_power_on_and_not_at_all_after_a_power_cut() {
    let wire = ready(false);
    let out_ns = 1_000_000;
    inject(&wire, 0, Fault::Pull { out_ns });
    exchange(&wire, &[], 1);
    wire.card().power_on();
    rig::driver(&wire, false).init().unwrap();

    inject(&wire, 0, Fault::Pull { out_ns });
    inject(&wire, 1, Fault::PowerCut);
    // Pulling a card without power does not restore the power.
    inject(&wire, 2, Fault::Pull { out_ns });
    exchange(&wire, &[], 3);
    wire.card().clock().advance_ns(10 * out_ns);
    assert_eq!(rig::driver(&wire, false).init(), Err(Failure::NoResponse));
    wire.card().power_on();
    rig::driver(&wire, false).init().unwrap();
}

#[test]
fn the_shortest_pull_resets_the_card() {
    let wire = ready(false);
    inject(&wire, 0, Fault::Pull { out_ns: 0 });
    assert_eq!(exchange(&wire, &STATUS, 3), [0xFF; 9]);
    rig::driver(&wire, false).init().unwrap();
}

#[test]
fn after_a_pull_during_a_write_the_write_can_be_repeated() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    driver.write(5, &[data(1, 5)]).unwrap();
    inject(&wire, 200, Fault::Pull { out_ns: 0 });
    assert_eq!(driver.write(5, &[data(2, 5)]), Err(Failure::Block(0x1F)));
    assert_eq!(stored(&wire, 5), data(1, 5));
    driver.init().unwrap();
    driver.write(5, &[data(2, 5)]).unwrap();
    assert_eq!(stored(&wire, 5), data(2, 5));
}
