//! What each strike shows on the wire, byte by byte, and what it leaves.

mod reference;
mod rig;

use cardiograph_sim_card::wire::{Strike, Wire};
use cardiograph_sim_card::{Counterfeit, Defects};

use embedded_sdmmc::{Block, BlockDevice, BlockIdx, SdCardError as Error};
use reference::Failure;
use rig::{data, held};
use std::num::NonZeroU64;

const CLOCK_HZ: u32 = 25_000_000;
const BYTE_NS: u64 = 320;
/// Data responses.
const ACCEPTED: u8 = 0xE5;
const CRC_ERROR: u8 = 0b01011;
/// CMD13 with its checksum.
const STATUS: [u8; 6] = [0x4D, 0, 0, 0, 0, 0x0D];
/// CMD17 of block 5, checksums off.
const READ_5: [u8; 6] = [0x51, 0, 0, 0, 5, 0xFF];

/// A card that a driver of ours has initialised, selected.
fn ready(crc: bool) -> Wire {
    let wire = rig::wire(CLOCK_HZ);
    rig::driver(&wire, crc).init().unwrap();
    wire.card().select(true);
    wire
}

fn bytes(wire: &Wire) -> u64 {
    wire.card().count().bytes
}

/// A strike so many bytes from now.
fn strike(wire: &Wire, after: u64, strike: Strike) {
    let byte = bytes(wire) + after;
    wire.card().strike(byte, strike);
}

/// Sends bytes and so many of silence; what comes back.
fn line(wire: &Wire, sent: &[u8], silence: usize) -> Vec<u8> {
    let mut line = [sent, &vec![0xFF; silence]].concat();
    wire.card().exchange_in_place(&mut line);
    line
}

/// CMD24 of block 5 with its block, checksums off; the data response is the last byte.
fn write_5(version: u8) -> Vec<u8> {
    let command = [0x58, 0, 0, 0, 5, 0xFF];
    let block = data(version, 5);
    [&command[..], &[0xFF; 3], &[0xFE], &block, &[0, 0, 0xFF]].concat()
}

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
    line(&wire, &[], 2);
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

#[test]
fn a_command_lost_is_not_answered_and_the_next_is() {
    let wire = ready(false);
    strike(&wire, 3, Strike::LoseCommand);
    assert_eq!(line(&wire, &STATUS, 9), [0xFF; 15]);
    assert_eq!(line(&wire, &STATUS, 3)[6..], [0xFF, 0, 0]);
    // What a busy card does not hear is not lost.
    line(&wire, &write_5(1), 0);
    strike(&wire, 0, Strike::LoseCommand);
    assert_eq!(line(&wire, &STATUS, 0), [0; 6]);
    rig::driver(&wire, false).wait();
    assert_eq!(line(&wire, &STATUS, 9), [0xFF; 15]);
    assert_eq!(line(&wire, &STATUS, 3)[6..], [0xFF, 0, 0]);
}

#[test]
fn drivers_try_again_after_a_command_is_lost() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    strike(&wire, 0, Strike::LoseCommand);
    assert_eq!(driver.write(5, &[data(1, 5)]), Err(Failure::Silence));
    driver.write(5, &[data(1, 5)]).unwrap();

    let card = rig::embedded_sdmmc(&wire, true);
    card.num_blocks().unwrap();
    let contents = data(2, 5);
    let write = || card.write(&[Block { contents }], BlockIdx(5));
    strike(&wire, 0, Strike::LoseCommand);
    assert!(matches!(write(), Err(Error::TimeoutCommand(_))));
    assert_eq!(held(&wire, 5), data(1, 5));
    write().unwrap();
    assert_eq!(held(&wire, 5), data(2, 5));
}

#[test]
fn a_bit_flipped_to_the_card_is_one_bit() {
    for bit in 0..8 {
        let wire = ready(false);
        // Six bytes of command, three of silence, a token; then the data.
        strike(&wire, 10 + 100, Strike::FlipToCard { bit });
        let said = line(&wire, &write_5(1), 0);
        assert_eq!(said.last(), Some(&ACCEPTED));
        rig::driver(&wire, false).wait();
        let mut expected = data(1, 5);
        expected[100] ^= 1 << bit;
        assert_eq!(held(&wire, 5), expected);
    }
}

#[test]
fn with_checksums_on_the_card_refuses_a_flipped_bit() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    strike(&wire, 3, Strike::FlipToCard { bit: 0 });
    assert_eq!(driver.write(5, &[data(1, 5)]), Err(Failure::Refused(8)));
    // Command, NCR, R1, NWR, token.
    strike(&wire, 10 + 511, Strike::FlipToCard { bit: 7 });
    let refused = Err(Failure::Block(CRC_ERROR));
    assert_eq!(driver.write(5, &[data(1, 5)]), refused);
    assert_eq!(held(&wire, 5), [0; 512]);
    driver.write(5, &[data(1, 5)]).unwrap();
}

#[test]
fn a_bit_flipped_to_the_host_is_one_bit_and_the_card_does_not_know() {
    let read = |place| {
        let wire = ready(false);
        line(&wire, &write_5(1), 10_000);
        if let Some(place) = place {
            strike(&wire, place, Strike::FlipToHost { bit: 3 });
        }
        (line(&wire, &READ_5, 1_000), held(&wire, 5))
    };
    let (sound, _) = read(None);
    for place in [0, 7, 8, 300, 999] {
        let mut expected = sound.clone();
        expected[place as usize] ^= 8;
        let (said, held) = read(Some(place));
        assert!(said == expected && held == data(1, 5), "byte {place}");
    }
}

#[test]
fn busy_lasts_longer_by_what_was_asked_for_and_only_once() {
    let busy = |extra_ns| {
        let wire = ready(false);
        strike(&wire, 0, Strike::Busy { extra_ns });
        let busy = |version| {
            wire.card().select(true);
            line(&wire, &write_5(version), 0);
            let before = wire.card().count().busy;
            rig::driver(&wire, false).wait();
            wire.card().count().busy - before
        };
        [busy(1), busy(2)]
    };
    let [first, second] = busy(0);
    // 100 bytes of busy are 32 us.
    assert_eq!(busy(100 * BYTE_NS), [first + 100, second]);
    let wire = ready(false);
    strike(&wire, 0, Strike::Busy { extra_ns: u64::MAX });
    line(&wire, &write_5(1), 0);
    assert_eq!(wire.card().busy_until_ns(), u64::MAX);
}

#[test]
fn a_block_refused_leaves_the_long_busy_to_the_next() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    strike(&wire, 0, Strike::Busy { extra_ns: 1 << 40 });
    strike(&wire, 300, Strike::FlipToCard { bit: 0 });
    let refused = Err(Failure::Block(CRC_ERROR));
    assert_eq!(driver.write(5, &[data(1, 5)]), refused);
    assert!(wire.card().busy_until_ns() < 1 << 40);
    driver.begin_write(5, &data(1, 5)).unwrap();
    assert!(wire.card().busy_until_ns() > 1 << 40);
}

#[test]
fn data_are_in_flight_for_as_long_as_busy_lasts() {
    for (left_ns, version) in [(1, 0), (0, 1)] {
        let wire = ready(false);
        let extra_ns = 2_000_000_000;
        strike(&wire, 0, Strike::Busy { extra_ns });
        line(&wire, &write_5(1), 0);
        let until_ns = wire.card().busy_until_ns();
        wire.card().clock().advance_to_ns(until_ns - left_ns);
        wire.card().power_cut();
        let expected = if version == 1 { data(1, 5) } else { [0; 512] };
        assert_eq!(held(&wire, 5), expected);
    }
}

#[test]
fn a_busy_of_a_block_in_ram_does_not_unsettle_the_page_before_it() {
    let wire = ready(false);
    let mut driver = rig::driver(&wire, false);
    driver.init().unwrap();
    driver.write(5, &[data(1, 5)]).unwrap();
    // CMD25, R1, and a block that waits in RAM for its page.
    wire.card().select(true);
    strike(&wire, 0, Strike::Busy { extra_ns: 1 << 40 });
    line(&wire, &[0x59, 0, 0, 0, 8, 0xFF], 3);
    line(&wire, &[0xFC], 515);
    assert!(wire.card().busy_until_ns() > 1 << 40);
    wire.card().power_cut();
    assert_eq!(held(&wire, 5), data(1, 5));
}

#[test]
fn two_seconds_of_busy_are_too_long_for_embedded_sdmmc() {
    let extra_ns = 2_000_000_000;
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    strike(&wire, 0, Strike::Busy { extra_ns });
    driver.write(5, &[data(1, 5)]).unwrap();
    assert!(wire.card().clock().now_ns() > extra_ns);

    let card = rig::embedded_sdmmc(&wire, true);
    card.num_blocks().unwrap();
    strike(&wire, 0, Strike::Busy { extra_ns });
    let contents = data(2, 5);
    let written = card.write(&[Block { contents }], BlockIdx(5));
    assert!(matches!(written, Err(Error::TimeoutWaitNotBusy)));
    // The card goes on with its work.
    wire.card().clock().advance_ns(extra_ns);
    wire.card().power_cut();
    assert_eq!(held(&wire, 5), data(2, 5));
}

#[test]
fn a_strike_at_a_byte_that_has_passed_comes_with_the_next() {
    let wire = ready(false);
    wire.card().strike(0, Strike::FlipToHost { bit: 0 });
    assert_eq!(line(&wire, &[], 2), [0xFE, 0xFF]);
}

#[test]
fn a_block_that_cannot_be_read_is_an_error_token_and_a_bit_of_r2() {
    let mut card = rig::card(Defects::default());
    card.store(0, &[data(1, 0), data(1, 1), data(1, 2)]);
    card.make_unreadable(1);
    let wire = rig::wire_of(card, CLOCK_HZ);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    let mut back = [[0; 512]; 3];
    assert_eq!(driver.read(1, &mut back[..1]), Err(Failure::Token(4)));
    assert_eq!(driver.check(), Err(Failure::Status(0x10)));
    // The status is clear once it is read.
    driver.check().unwrap();
    // A read of many stops there and can be ended.
    assert_eq!(driver.read(0, &mut back), Err(Failure::Token(4)));
    assert_eq!(back[..2], [data(1, 0), [0; 512]]);
    assert_eq!(driver.check(), Err(Failure::Status(0x10)));
    let card = rig::embedded_sdmmc(&wire, true);
    let read = card.read(&mut [Block::new()], BlockIdx(1));
    assert!(matches!(read, Err(Error::ReadError)));
    // Written anew it can be read.
    driver.init().unwrap();
    driver.write(1, &[data(2, 1)]).unwrap();
    driver.read(0, &mut back).unwrap();
    assert_eq!(back, [data(1, 0), data(2, 1), data(1, 2)]);
}

#[test]
fn a_counterfeit_tells_of_its_forged_capacity() {
    let real_blocks = NonZeroU64::new(1_000).unwrap();
    let card = rig::card(Defects {
        counterfeit: Some(Counterfeit::Wraps { real_blocks }),
        ..Defects::default()
    });
    let wire = rig::wire_of(card, CLOCK_HZ);
    let card = rig::embedded_sdmmc(&wire, true);
    assert_eq!(card.num_bytes().unwrap(), 16 << 20);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    let csd: [u8; 16] = driver.register(9).unwrap();
    // C_SIZE of a CSD of version 2, in units of 512 KiB (5.3.3).
    assert_eq!(csd[7..10], [0, 0, 31]);
    driver.write(5, &[data(1, 5)]).unwrap();
    driver.write(1_005, &[data(2, 5)]).unwrap();
    let mut back = [[0; 512]];
    driver.read(5, &mut back).unwrap();
    assert!(back[0] == data(2, 5));
    assert!(rig::promised(&wire, 5) == data(1, 5));
}
