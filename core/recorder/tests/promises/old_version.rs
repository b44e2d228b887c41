//! A card with unfinished files of version 0.1.

use crate::fat_rig::{Disk, fsck};
use crate::logger_rig::{Case, Input, line, lines, record};
use crate::promise::*;
use cardiograph_recorder::Control;

/// The nonzero blocks of the card: block address, little endian, and contents. Version 0.1 (786a145) recorded
/// lines of 60 bytes to it, one every 10 ms, in files of 64 KiB and 1 s, until its power was cut.
const CARD: &[u8] = include_bytes!("../data/unfinished-0.1.blocks");

/// Number of durable lines, the last of which are in an unfinished file.
const LINES: u64 = 378;

fn old_card() -> Disk {
    let mut disk = Disk::new(Vec::new(), SMALL_BLOCKS);
    let (blocks, rest) = CARD.as_chunks::<516>();
    assert!(rest.is_empty());
    for bytes in blocks {
        let (number, block) = bytes.split_first_chunk().unwrap();
        disk.put(u32::from_le_bytes(*number), block.try_into().unwrap());
    }
    disk
}

#[test]
fn files_of_version_0_1_are_kept_next_to_a_new_recording() {
    let left = files(&after_cut(&old_card()), 0);
    assert!((0..LINES).all(|index| left.samples.contains(&index)));
    let control = Control::new();
    let case = Case {
        disk: Some(old_card()),
        ..case(&control, 64 << 10, SMALL_BLOCKS)
    };
    const NEW: u64 = 1_000_000;
    let input = Input {
        make: Box::new(|index| line(NEW + index, LINE_BYTES.into())),
        ..lines(16_384, LINE_BYTES, 1_000, 5_000)
    };
    let outcome = record(case, [input], |_| ());
    let [summary] = outcome.summaries.unwrap();
    assert_eq!((summary.written, summary.lost), (5_000, 0));
    fsck(&outcome.disk, 0).unwrap();
    let samples = files(&outcome.disk, 0).samples;
    let old = samples.iter().filter(|index| **index < NEW);
    assert!((0..LINES).eq(old.copied()));
    let new = samples.iter().filter(|index| **index >= NEW);
    assert!((NEW..NEW + 5_000).eq(new.copied()));
}
