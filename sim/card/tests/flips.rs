//! Every bit on the bus flipped in turn: with checksums on, no driver accepts wrong data.

use crate::rig::{self, bytes, data, stored};
use cardiograph_sim_card::wire::{Fault, Wire};
use cardiograph_sim_card::{Block, Defects};
use embedded_sdmmc::{BlockDevice, BlockIdx};

/// Clock of the bus: slow, so that busy times last only a few bytes.
const CLOCK_HZ: u32 = 1_000_000;
const BLOCK: u32 = 5;
const BLOCKS: u64 = 8;

/// Result of a driver that writes a block and reads it back.
struct Driven {
    wire: Wire,
    /// Number of bytes exchanged after initialisation.
    bytes: u64,
    is_written: bool,
    back: Option<Block>,
}

/// A fault, with the number of bytes after initialisation at which it happens; `None` for no fault.
type Flip = Option<(u64, Fault)>;
type Drive = fn(crc: bool, flip: Flip) -> Driven;

fn wire() -> Wire {
    let mut card = rig::card(Defects::default());
    let first: Vec<Block> = (0..BLOCKS).map(|block| data(0, block)).collect();
    card.store(0, &first);
    rig::wire_of(card, CLOCK_HZ)
}

/// Injects the fault; returns the number of bytes exchanged so far.
fn begin(wire: &Wire, flip: Flip) -> u64 {
    let bytes = bytes(wire);
    if let Some((after, fault)) = flip {
        wire.card().inject(bytes + after, fault);
    }
    bytes
}

fn by_ours(crc: bool, flip: Flip) -> Driven {
    let wire = wire();
    let mut driver = rig::driver(&wire, crc);
    driver.init().unwrap();
    let before = begin(&wire, flip);
    let is_written = driver.write(BLOCK, &[data(1, BLOCK.into())]).is_ok();
    let mut back = [[0; 512]];
    let read = driver.read(BLOCK, &mut back);
    Driven {
        bytes: bytes(&wire) - before,
        is_written,
        back: read.ok().map(|()| back[0]),
        wire,
    }
}

fn by_embedded_sdmmc(crc: bool, flip: Flip) -> Driven {
    let wire = wire();
    let card = rig::embedded_sdmmc(&wire, crc);
    card.num_blocks().unwrap();
    let before = begin(&wire, flip);
    let contents = data(1, BLOCK.into());
    let written = card.write(&[embedded_sdmmc::Block { contents }], BlockIdx(BLOCK));
    let mut back = [embedded_sdmmc::Block::new()];
    let read = card.read(&mut back, BlockIdx(BLOCK));
    Driven {
        bytes: bytes(&wire) - before,
        is_written: written.is_ok(),
        back: read.ok().map(|()| back[0].contents),
        wire,
    }
}

/// Number of flips, and how many of them left wrong data although the driver reported success.
#[derive(Debug, Default)]
struct Outcome {
    flips: u32,
    noticed: u32,
    /// Flips after which the write succeeded, but the card does not hold the data written.
    wrong_on_card: u32,
    /// Flips after which the read succeeded, but did not return the data on the card.
    wrong_at_host: u32,
    /// Flips after which a block that the driver did not write has changed.
    neighbours: u32,
}

fn flip_each_bit(drive: Drive, crc: bool) -> Outcome {
    let mut outcome = Outcome::default();
    for byte in 0..drive(crc, None).bytes {
        for bit in 0..8 {
            for fault in [Fault::FlipToCard { bit }, Fault::FlipToHost { bit }] {
                let driven = drive(crc, Some((byte, fault)));
                let new = stored(&driven.wire, BLOCK.into());
                let is_new = new == data(1, BLOCK.into());
                let others = (0..BLOCKS).filter(|block| *block != BLOCK.into());
                let is_apart = |block| stored(&driven.wire, block) == data(0, block);
                outcome.flips += 1;
                outcome.noticed += u32::from(!driven.is_written || driven.back.is_none());
                outcome.wrong_on_card += u32::from(driven.is_written && !is_new);
                outcome.wrong_at_host += u32::from(driven.back.is_some_and(|back| back != new));
                outcome.neighbours += u32::from(!others.into_iter().all(is_apart));
            }
        }
    }
    outcome
}

/// Number of flips in the 514 bytes of data and checksum, in both directions.
const FLIPS_OF_DATA: u32 = 2 * 8 * 514;

fn check_with_checksums(drive: Drive) {
    let outcome = flip_each_bit(drive, true);
    println!("{outcome:?}");
    assert!(outcome.noticed >= FLIPS_OF_DATA && outcome.noticed < outcome.flips);
    assert_eq!(outcome.wrong_on_card, 0);
    assert_eq!(outcome.wrong_at_host, 0);
    assert_eq!(outcome.neighbours, 0);
}

#[test]
fn with_checksums_the_reference_driver_detects_each_relevant_flip() {
    check_with_checksums(by_ours);
}

#[test]
fn with_checksums_embedded_sdmmc_detects_each_relevant_flip() {
    check_with_checksums(by_embedded_sdmmc);
}

/// Shows why drivers must keep checksums on.
#[test]
fn without_checksums_flips_of_data_are_not_detected() {
    for drive in [by_ours as Drive, by_embedded_sdmmc] {
        let outcome = flip_each_bit(drive, false);
        println!("{outcome:?}");
        assert!(outcome.wrong_on_card >= 8 * 512);
        assert!(outcome.wrong_at_host >= 8 * 512);
        // A flip in a block address makes the card write another block.
        assert!(outcome.neighbours > 0);
    }
}
