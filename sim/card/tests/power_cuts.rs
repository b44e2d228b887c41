//! Power cuts at every byte: each block is entirely old or entirely new, and new if it was durable.

use crate::reference::{Driver, Failure};
use crate::rig::{self, data, ideal, stored};
use cardiograph_sim_card::wire::{ChipSelect, Fault, SpiBus, Wire, crc};
use cardiograph_sim_card::{BitErrors, Block, Counterfeit, Defects, TornPage};
use embedded_sdmmc::{BlockDevice, BlockIdx};
use std::num::NonZeroU64;

/// Clock of the bus: slow, so that busy times last only a few bytes.
const CLOCK_HZ: u32 = 1_000_000;
/// Number of blocks to check: two whole pages, which include blocks that the workload does not write.
const BLOCKS: u64 = 16;

/// Returns a card that holds version 0 of all blocks.
fn wire(defects: Defects) -> Wire {
    let mut card = rig::card(defects);
    let first: Vec<Block> = (0..BLOCKS).map(|block| data(0, block)).collect();
    card.store(0, &first);
    rig::wire_of(card, CLOCK_HZ)
}

/// Returns the version of a block after the given number of writes in the workload.
fn version(writes: u8, block: u64) -> u8 {
    match (writes, block) {
        (1 | 2, 5) => writes,
        (3, 3..13) => 3,
        _ => 0,
    }
}

/// Writes a block twice, then ten blocks in a stream that begins and ends within a page; then reads.
fn workload(driver: &mut Driver<SpiBus, ChipSelect>, writes: &mut u8) -> Result<(), Failure> {
    driver.init()?;
    for number in 1..3 {
        driver.write(5, &[data(number, 5)])?;
        *writes += 1;
    }
    let stream: Vec<Block> = (3..13).map(|block| data(3, block)).collect();
    driver.write(3, &stream)?;
    *writes += 1;
    driver.read(11, &mut [[0; 512]; 3])?;
    driver.read(5, &mut [[0; 512]])
}

/// Runs the workload with a power cut at a byte; returns the number of completed writes.
fn cut_at(byte: u64, defects: Defects) -> (Wire, u8) {
    let wire = wire(defects);
    wire.card().inject(byte, Fault::PowerCut);
    let mut writes = 0;
    let result = workload(&mut rig::driver(&wire, false), &mut writes);
    assert!(result.is_err() || writes == 3);
    assert!(!wire.card().is_powered());
    wire.card().power_on();
    (wire, writes)
}

fn bytes_of_workload() -> u64 {
    let wire = wire(Defects::default());
    workload(&mut rig::driver(&wire, false), &mut 0).unwrap();
    wire.card().count().bytes
}

/// Checks, for a power cut at each byte, that a host then reads the last version written, or the version
/// being written.
fn check_each_cut(read: impl Fn(&Wire) -> Vec<Block>) {
    let bytes = bytes_of_workload();
    assert!(bytes > 8_000);
    let mut seen = [false; 4];
    for byte in 0..bytes {
        let (wire, writes) = cut_at(byte, Defects::default());
        let mut back = read(&wire);
        for (block, back) in (0..).zip(&back) {
            let version = |writes| data(version(writes, block), block);
            let is_whole = *back == version(writes) || *back == version(3.min(writes + 1));
            assert!(is_whole, "cut at byte {byte}: block {block}");
        }
        wire.card().card().load_ideal(0, &mut back);
        assert!(
            (0..)
                .zip(&back)
                .all(|(block, data)| stored(&wire, block) == *data)
        );
        seen[usize::from(writes)] = true;
    }
    assert_eq!(seen, [true; 4]);
}

#[test]
fn after_a_cut_at_any_byte_the_reference_driver_reads_whole_blocks() {
    check_each_cut(|wire| {
        let mut back = vec![[0; 512]; BLOCKS as usize];
        let mut driver = rig::driver(wire, false);
        driver.init().unwrap();
        driver.read(0, &mut back).unwrap();
        back
    });
}

#[test]
fn after_a_cut_at_any_byte_embedded_sdmmc_reads_whole_blocks() {
    check_each_cut(|wire| {
        let mut back = vec![embedded_sdmmc::Block::new(); BLOCKS as usize];
        let card = rig::embedded_sdmmc(wire, false);
        card.read(&mut back, BlockIdx(0)).unwrap();
        back.iter().map(|block| block.contents).collect()
    });
}

/// Returns the bytes sent by a host that does not poll: a single block, then a stream, each followed by
/// filler for its busy time.
fn blind_host() -> Vec<u8> {
    let command = |index: u8, argument: u8| {
        let mut frame = [0x40 | index, 0, 0, 0, argument, 0];
        frame[5] = crc::crc7(&frame[..5]) << 1 | 1;
        [&frame[..], &[0xFF; 3]].concat()
    };
    let block = |token, version, block| {
        [&[token], &data(version, block)[..], &[0, 0], &[0xFF; 100]].concat()
    };
    let mut bytes = [command(24, 5), block(0xFE, 1, 5), command(25, 3)].concat();
    (3..13).for_each(|number| bytes.extend(block(0xFC, 3, number)));
    bytes.push(0xFD);
    bytes.extend([0xFF; 100]);
    bytes
}

/// Checks the tables in `docs/faults.md`: the bus traffic determines which blocks are new after each power
/// cut.
#[test]
fn blocks_are_new_from_the_byte_that_shows_the_end_of_busy() {
    let play = |cut: Option<usize>| {
        let wire = wire(Defects::default());
        rig::driver(&wire, false).init().unwrap();
        let mut card = wire.card();
        card.select(true);
        if let Some(cut) = cut {
            let byte = card.count().bytes + cut as u64;
            card.inject(byte, Fault::PowerCut);
        }
        let mut traffic = blind_host();
        card.exchange_in_place(&mut traffic);
        drop(card);
        (wire, traffic)
    };
    let (_, traffic) = play(None);
    let ends = |at: &usize| traffic[at - 1] == 0 && traffic[*at] == 0xFF;
    // R1 is 0x00 like a busy byte, but every busy time is longer than one byte.
    let ends: Vec<usize> = (20..traffic.len())
        .filter(|at| ends(at) && traffic[at - 20..*at].iter().all(|byte| *byte == 0))
        .collect();
    let [single, first_page, second_page] = ends[..] else {
        panic!("expected three busy times, found ends at {ends:?}");
    };
    for cut in 0..traffic.len() {
        let (wire, _) = play(Some(cut));
        for block in 0..BLOCKS {
            let version = match block {
                3..8 if cut >= first_page => 3,
                8..13 if cut >= second_page => 3,
                5 if cut >= single => 1,
                _ => 0,
            };
            assert!(
                stored(&wire, block) == data(version, block),
                "cut {cut}: {block}"
            );
        }
    }
}

#[test]
fn a_cut_during_busy_leaves_the_block_old() {
    for sixteenths in 0..=16 {
        let wire = wire(Defects::default());
        let mut driver = rig::driver(&wire, true);
        driver.init().unwrap();
        driver.begin_write(5, &data(1, 5)).unwrap();
        let clock = wire.card().clock().clone();
        let left_ns = wire.card().busy_until_ns() - clock.now_ns();
        clock.advance_ns(left_ns * sixteenths / 16);
        wire.card().power_cut();
        let version = u8::from(sixteenths == 16);
        assert_eq!(
            stored(&wire, 5),
            data(version, 5),
            "{sixteenths}/16 of busy"
        );
    }
}

#[test]
fn embedded_sdmmc_reports_a_burst_as_written_before_it_is_durable() {
    for waits in [false, true] {
        let wire = wire(Defects::default());
        let card = rig::embedded_sdmmc(&wire, false);
        let contents = (3..13).map(|block| data(3, block));
        let burst: Vec<_> = contents
            .map(|contents| embedded_sdmmc::Block { contents })
            .collect();
        card.write(&burst, BlockIdx(3)).unwrap();
        if waits {
            let until_ns = wire.card().busy_until_ns();
            wire.card().clock().advance_to_ns(until_ns);
        }
        wire.card().power_cut();
        assert!(stored(&wire, 7) == data(3, 7));
        let version = if waits { 3 } else { 0 };
        assert!((8..13).all(|block| stored(&wire, block) == data(version, block)));
    }
}

/// Returns the number of power cuts after which the contents differ from those of a card without defects.
fn damaged_cuts(defects: Defects) -> usize {
    let is_damaged = |byte: &u64| {
        let (wire, _) = cut_at(*byte, defects);
        let mut driver = rig::driver(&wire, true);
        driver.init().unwrap();
        (0..BLOCKS).any(|block| {
            let mut back = [[0; 512]];
            let read = driver.read(block as u32, &mut back);
            read.is_err() || back[0] != ideal(&wire, block)
        })
    };
    // The busy time lasts for about 75 bytes.
    (0..bytes_of_workload())
        .step_by(23)
        .filter(is_damaged)
        .count()
}

#[test]
fn each_defect_causes_detectable_damage_and_a_card_without_defects_has_none() {
    let none = Defects::default();
    assert_eq!(damaged_cuts(none), 0);
    let real_blocks = NonZeroU64::new(8).unwrap();
    let torn = |torn_page| Defects { torn_page, ..none };
    let counterfeit = |counterfeit| Defects {
        counterfeit: Some(counterfeit),
        ..none
    };
    let silent_ppm = 100_000;
    for defects in [
        torn(TornPage::Mixed),
        torn(TornPage::Garbage),
        torn(TornPage::Unreadable),
        Defects {
            volatile_blocks: 3,
            ..none
        },
        counterfeit(Counterfeit::Wraps { real_blocks }),
        counterfeit(Counterfeit::Vanishes { real_blocks }),
        Defects {
            bit_errors: BitErrors {
                silent_ppm,
                ..BitErrors::default()
            },
            ..none
        },
    ] {
        let damaged = damaged_cuts(defects);
        println!("{damaged} cuts with damage: {defects:?}");
        assert!(damaged > 0, "{defects:?}");
    }
}
