//! What strikes and bad blocks show on the wire, byte by byte, and what they leave. Power is in
//! `wire_power.rs`.

mod reference;
mod rig;

use cardiograph_sim_card::wire::Strike;
use cardiograph_sim_card::{Card, Counterfeit, Defects, Seed};
use embedded_sdmmc::{Block, BlockDevice, BlockIdx, SdCardError as Error};
use reference::Failure;
use rig::{BYTE_NS, CLOCK_HZ, STATUS, data, held, line, ready, strike, write_5};
use std::num::NonZeroU64;

/// Data responses.
const ACCEPTED: u8 = 0xE5;
const CRC_ERROR: u8 = 0b01011;
/// CMD17 of block 5, checksums off.
const READ_5: [u8; 6] = [0x51, 0, 0, 0, 5, 0xFF];

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

#[test]
fn a_worn_out_card_refuses_blocks_and_goes_on_reading() {
    let mut profile = rig::PROFILE.clone();
    profile.flash.endurance_cycles = 1;
    profile.flash.endurance_spread_percent = 0;
    profile.flash.spare_blocks = 0;
    let card = Card::new(&profile, Seed::new(1));
    let wire = rig::wire_of(card, CLOCK_HZ);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    // Whole units in order: each erases the block that held it before.
    let unit = vec![[1; 512]; 1024];
    let refused = (0..100).find_map(|at| driver.write(at % 32 * 1024, &unit).err());
    assert_eq!(refused, Some(Failure::Block(0x0D)));
    let mut back = [[0; 512]];
    driver.read(5, &mut back).unwrap();
    assert_eq!(back, [[1; 512]]);
}
