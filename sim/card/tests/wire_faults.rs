//! Effects of faults and bad blocks on the bus traffic, byte by byte, and on the contents of the card.
//! `wire_power.rs` tests power faults.

use crate::reference::Failure;
use crate::rig::{self, BYTE_NS, CLOCK_HZ, STATUS, data, exchange, inject, ready, stored, write_5};
use cardiograph_sim_card::wire::Fault;
use cardiograph_sim_card::{Card, Counterfeit, Defects, Seed};
use embedded_sdmmc::{Block, BlockDevice, BlockIdx, SdCardError as Error};
use std::num::NonZeroU64;

/// Data responses to a block (7.3.3.1).
const ACCEPTED: u8 = 0xE5;
const CRC_ERROR: u8 = 0b01011;
/// CMD17 that reads block 5, without a valid checksum.
const READ_5: [u8; 6] = [0x51, 0, 0, 0, 5, 0xFF];

#[test]
fn a_lost_command_gets_no_response_and_the_next_one_does() {
    let wire = ready(false);
    inject(&wire, 3, Fault::LoseCommand);
    assert_eq!(exchange(&wire, &STATUS, 9), [0xFF; 15]);
    assert_eq!(exchange(&wire, &STATUS, 3)[6..], [0xFF, 0, 0]);
    // A command that a busy card ignores anyway does not use up the fault.
    exchange(&wire, &write_5(1), 0);
    inject(&wire, 0, Fault::LoseCommand);
    assert_eq!(exchange(&wire, &STATUS, 0), [0; 6]);
    rig::driver(&wire, false).wait();
    assert_eq!(exchange(&wire, &STATUS, 9), [0xFF; 15]);
    assert_eq!(exchange(&wire, &STATUS, 3)[6..], [0xFF, 0, 0]);
}

#[test]
fn drivers_retry_after_a_lost_command() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    inject(&wire, 0, Fault::LoseCommand);
    assert_eq!(driver.write(5, &[data(1, 5)]), Err(Failure::NoResponse));
    driver.write(5, &[data(1, 5)]).unwrap();

    let card = rig::embedded_sdmmc(&wire, true);
    card.num_blocks().unwrap();
    let contents = data(2, 5);
    let write = || card.write(&[Block { contents }], BlockIdx(5));
    inject(&wire, 0, Fault::LoseCommand);
    assert!(matches!(write(), Err(Error::TimeoutCommand(_))));
    assert_eq!(stored(&wire, 5), data(1, 5));
    write().unwrap();
    assert_eq!(stored(&wire, 5), data(2, 5));
}

#[test]
fn a_bit_flipped_to_the_card_changes_one_bit() {
    for bit in 0..8 {
        let wire = ready(false);
        // The data follows six bytes of command, three filler bytes and a token.
        inject(&wire, 10 + 100, Fault::FlipToCard { bit });
        let received = exchange(&wire, &write_5(1), 0);
        assert_eq!(received.last(), Some(&ACCEPTED));
        rig::driver(&wire, false).wait();
        let mut expected = data(1, 5);
        expected[100] ^= 1 << bit;
        assert_eq!(stored(&wire, 5), expected);
    }
}

#[test]
fn with_checksums_on_the_card_rejects_a_flipped_bit() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    inject(&wire, 3, Fault::FlipToCard { bit: 0 });
    assert_eq!(driver.write(5, &[data(1, 5)]), Err(Failure::Rejected(8)));
    // The first ten bytes are command, NCR, R1, NWR and token.
    inject(&wire, 10 + 511, Fault::FlipToCard { bit: 7 });
    let refused = Err(Failure::Block(CRC_ERROR));
    assert_eq!(driver.write(5, &[data(1, 5)]), refused);
    assert_eq!(stored(&wire, 5), [0; 512]);
    driver.write(5, &[data(1, 5)]).unwrap();
}

#[test]
fn a_bit_flipped_to_the_host_changes_one_bit_and_not_the_card() {
    let read = |byte| {
        let wire = ready(false);
        exchange(&wire, &write_5(1), 10_000);
        if let Some(byte) = byte {
            inject(&wire, byte, Fault::FlipToHost { bit: 3 });
        }
        (exchange(&wire, &READ_5, 1_000), stored(&wire, 5))
    };
    let (sound, _) = read(None);
    for byte in [0, 7, 8, 300, 999] {
        let mut expected = sound.clone();
        expected[byte as usize] ^= 8;
        let (received, stored) = read(Some(byte));
        assert!(received == expected && stored == data(1, 5), "byte {byte}");
    }
}

#[test]
fn busy_is_extended_by_the_requested_time_and_only_once() {
    let busy = |extra_ns| {
        let wire = ready(false);
        inject(&wire, 0, Fault::Busy { extra_ns });
        let busy = |version| {
            wire.card().select(true);
            exchange(&wire, &write_5(version), 0);
            let before = wire.card().count().busy;
            rig::driver(&wire, false).wait();
            wire.card().count().busy - before
        };
        [busy(1), busy(2)]
    };
    let [first, second] = busy(0);
    // 100 bytes during a busy time take 32 us.
    assert_eq!(busy(100 * BYTE_NS), [first + 100, second]);
    let wire = ready(false);
    inject(&wire, 0, Fault::Busy { extra_ns: u64::MAX });
    exchange(&wire, &write_5(1), 0);
    assert_eq!(wire.card().busy_until_ns(), u64::MAX);
}

#[test]
fn a_rejected_block_leaves_the_long_busy_to_the_next_one() {
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    inject(&wire, 0, Fault::Busy { extra_ns: 1 << 40 });
    inject(&wire, 300, Fault::FlipToCard { bit: 0 });
    let refused = Err(Failure::Block(CRC_ERROR));
    assert_eq!(driver.write(5, &[data(1, 5)]), refused);
    assert!(wire.card().busy_until_ns() < 1 << 40);
    driver.begin_write(5, &data(1, 5)).unwrap();
    assert!(wire.card().busy_until_ns() > 1 << 40);
}

#[test]
fn data_are_in_flight_for_the_whole_extended_busy_time() {
    for (left_ns, version) in [(1, 0), (0, 1)] {
        let wire = ready(false);
        let extra_ns = 2_000_000_000;
        inject(&wire, 0, Fault::Busy { extra_ns });
        exchange(&wire, &write_5(1), 0);
        let until_ns = wire.card().busy_until_ns();
        wire.card().clock().advance_to_ns(until_ns - left_ns);
        wire.card().power_cut();
        let expected = if version == 1 { data(1, 5) } else { [0; 512] };
        assert_eq!(stored(&wire, 5), expected);
    }
}

#[test]
fn busy_after_a_block_in_ram_does_not_affect_the_page_before_it() {
    let wire = ready(false);
    let mut driver = rig::driver(&wire, false);
    driver.init().unwrap();
    driver.write(5, &[data(1, 5)]).unwrap();
    // Sends CMD25, receives R1, and sends a block that stays in RAM until its page is complete.
    wire.card().select(true);
    inject(&wire, 0, Fault::Busy { extra_ns: 1 << 40 });
    exchange(&wire, &[0x59, 0, 0, 0, 8, 0xFF], 3);
    exchange(&wire, &[0xFC], 515);
    assert!(wire.card().busy_until_ns() > 1 << 40);
    wire.card().power_cut();
    assert_eq!(stored(&wire, 5), data(1, 5));
}

#[test]
fn two_seconds_of_busy_exceed_the_timeout_of_embedded_sdmmc() {
    let extra_ns = 2_000_000_000;
    let wire = ready(true);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    inject(&wire, 0, Fault::Busy { extra_ns });
    driver.write(5, &[data(1, 5)]).unwrap();
    assert!(wire.card().clock().now_ns() > extra_ns);

    let card = rig::embedded_sdmmc(&wire, true);
    card.num_blocks().unwrap();
    inject(&wire, 0, Fault::Busy { extra_ns });
    let contents = data(2, 5);
    let written = card.write(&[Block { contents }], BlockIdx(5));
    assert!(matches!(written, Err(Error::TimeoutWaitNotBusy)));
    // The card continues its work while the host waits.
    wire.card().clock().advance_ns(extra_ns);
    wire.card().power_cut();
    assert_eq!(stored(&wire, 5), data(2, 5));
}

#[test]
fn a_fault_at_a_byte_that_has_passed_happens_at_the_next() {
    let wire = ready(false);
    wire.card().inject(0, Fault::FlipToHost { bit: 0 });
    assert_eq!(exchange(&wire, &[], 2), [0xFE, 0xFF]);
}

#[test]
fn an_unreadable_block_gives_an_error_token_and_a_bit_of_r2() {
    let mut card = rig::card(Defects::default());
    card.store(0, &[data(1, 0), data(1, 1), data(1, 2)]);
    card.make_unreadable(1);
    let wire = rig::wire_of(card, CLOCK_HZ);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    let mut back = [[0; 512]; 3];
    assert_eq!(driver.read(1, &mut back[..1]), Err(Failure::Token(4)));
    assert_eq!(driver.check(), Err(Failure::Status(0x10)));
    // Reading the status has cleared it.
    driver.check().unwrap();
    // CMD18 stops at the unreadable block, and CMD12 can end it.
    assert_eq!(driver.read(0, &mut back), Err(Failure::Token(4)));
    assert_eq!(back[..2], [data(1, 0), [0; 512]]);
    assert_eq!(driver.check(), Err(Failure::Status(0x10)));
    let card = rig::embedded_sdmmc(&wire, true);
    let read = card.read(&mut [Block::new()], BlockIdx(1));
    assert!(matches!(read, Err(Error::ReadError)));
    // After the block has been rewritten, it can be read.
    driver.init().unwrap();
    driver.write(1, &[data(2, 1)]).unwrap();
    driver.read(0, &mut back).unwrap();
    assert_eq!(back, [data(1, 0), data(2, 1), data(1, 2)]);
}

#[test]
fn a_counterfeit_card_reports_its_forged_capacity() {
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
    // These bytes are C_SIZE of a version 2 CSD, in units of 512 KiB (5.3.3).
    assert_eq!(csd[7..10], [0, 0, 31]);
    driver.write(5, &[data(1, 5)]).unwrap();
    driver.write(1_005, &[data(2, 5)]).unwrap();
    let mut back = [[0; 512]];
    driver.read(5, &mut back).unwrap();
    assert!(back[0] == data(2, 5));
    assert!(rig::ideal(&wire, 5) == data(1, 5));
}

#[test]
fn a_worn_out_card_rejects_writes_and_can_still_be_read() {
    let mut profile = rig::PROFILE.clone();
    profile.flash.endurance_cycles = 1;
    profile.flash.endurance_spread_percent = 0;
    profile.flash.spare_blocks = 0;
    let card = Card::new(&profile, Seed::new(1));
    let wire = rig::wire_of(card, CLOCK_HZ);
    let mut driver = rig::driver(&wire, true);
    driver.init().unwrap();
    // Writes complete units in order: each write erases the flash block that held the unit before.
    let unit = vec![[1; 512]; 1024];
    let refused = (0..100).find_map(|at| driver.write(at % 32 * 1024, &unit).err());
    assert_eq!(refused, Some(Failure::Block(0x0D)));
    let mut back = [[0; 512]];
    driver.read(5, &mut back).unwrap();
    assert_eq!(back, [[1; 512]]);
}
