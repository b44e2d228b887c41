//! Writes of a file system that is not simulated, as Linux sent them to a disk; `studies/ext2/capture.py` records them.
//!
//! ```text
//!   capture.py: dd and sync on a real ext2 ──> extents of each pass ──> driver ──> simulated card
//! ```

use crate::Operations;
use cardiograph_sim_card::{BLOCK_BYTES, Board, Card};
use cardiograph_store::RawCard;
use cardiograph_workload::{Operation, OperationKind};
use serde::Deserialize;

/// Name and text of each recording.
const RECORDINGS: [(&str, &str); 3] = [
    (
        "ext2/file-size",
        include_str!("../../../studies/ext2/file-size.toml"),
    ),
    (
        "ext2/fs-block-4096",
        include_str!("../../../studies/ext2/fs-block-4096.toml"),
    ),
    (
        "ext2/fs-block-1024",
        include_str!("../../../studies/ext2/fs-block-1024.toml"),
    ),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    /// Block size of the file system.
    block_bytes: u32,
    #[serde(rename = "pass")]
    passes: Vec<Pass>,
}

/// A file written with `dd`, and the `sync` after it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pass {
    /// Phase of the workload, counted from 1.
    phase: usize,
    bytes_per_call: u64,
    calls: u64,
    /// First block and number of blocks of each write, in order of time. Adjacent writes are joined.
    extents: Vec<[u32; 2]>,
}

impl Pass {
    fn bytes(&self) -> u64 {
        self.bytes_per_call * self.calls
    }
}

fn recorded(name: &str) -> Result<Recorded, String> {
    let known = RECORDINGS.iter().find(|(known, _)| *known == name);
    let (_, text) = known.ok_or_else(|| format!("no recorded writes named {name}"))?;
    toml::from_str(text).map_err(|error| format!("studies/{name}.toml: {error}"))
}

/// Sends recorded writes to a card on a board; each pass is one operation. Returns the number of time-outs of the
/// driver, and the card.
///
/// # Errors
/// If there is no such recording, or if the card fails.
pub(crate) fn run(
    name: &str,
    card: Card,
    board: &Board,
    operations: &mut Operations,
) -> Result<(u64, Card), String> {
    let Recorded {
        block_bytes,
        passes,
    } = recorded(name)?;
    let blocks = block_bytes / BLOCK_BYTES as u32;
    let mut card = RawCard::new(card, board).map_err(|error| error.to_string())?;
    for pass in passes {
        let start_ns = card.clock().now_ns();
        // The system calls: open, the writes, close and sync. The data are in the page cache when the sync begins.
        let calls_ns = pass.calls * board.write_call_ns(pass.bytes_per_call) + 3 * board.call_ns();
        card.clock().advance_ns(calls_ns);
        for [start, count] in &pass.extents {
            card.write(start * blocks, count * blocks)
                .map_err(|error| error.to_string())?;
        }
        operations.all.push(Operation {
            kind: OperationKind::Write,
            file: operations.files_of(pass.phase - 1).start,
            offset_bytes: 0,
            length_bytes: pass.bytes(),
            start_ns,
            end_ns: card.clock().now_ns(),
        });
    }
    Ok((card.timeouts(), card.into_card()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::Profile;
    use cardiograph_workload::workload;
    use std::collections::BTreeSet;

    /// Returns the number of indirect blocks of a file of ext2: an inode has 12 addresses of data blocks, and one each of
    /// an indirect, a doubly and a triply indirect block.
    fn indirect_blocks(data_blocks: u64, block_bytes: u64) -> u64 {
        let addresses = block_bytes / 4;
        let (mut left, mut sum) = (data_blocks.saturating_sub(12), 0);
        for level in 1..=3 {
            let here = left.min(addresses.pow(level));
            left -= here;
            // Each level needs a block for every `addresses` blocks of the level below it.
            let mut below = here;
            for _ in 0..level {
                below = below.div_ceil(addresses);
                sum += below;
            }
        }
        sum
    }

    #[test]
    fn indirect_blocks_are_those_of_e2fsprogs() {
        // `debugfs -R "stat FILE"`, after debugfs had written a file of this length: all blocks, from which the data are
        // subtracted here.
        for (bytes, block_bytes, total) in [
            (1_000_000_u64, 1024, 982),
            (10_000_000, 1024, 9806),
            (104_857_600, 1024, 102_803),
            (1_000_000, 4096, 246),
            (10_000_000, 4096, 2446),
            (104_857_600, 4096, 25_626),
        ] {
            let data = bytes.div_ceil(block_bytes);
            assert_eq!(data + indirect_blocks(data, block_bytes), total);
        }
        assert_eq!(indirect_blocks(12, 1024), 0);
    }

    /// The blocks that ext2 must write are known from its format, independently of the recording.
    #[test]
    fn each_pass_writes_the_file_its_indirect_blocks_and_little_else() {
        for (name, _) in RECORDINGS {
            let Recorded {
                block_bytes,
                passes,
            } = recorded(name).unwrap();
            for pass in passes {
                let extents = pass.extents.iter();
                let written: BTreeSet<u32> = extents
                    .flat_map(|[start, count]| *start..start + count)
                    .collect();
                let data = pass.bytes().div_ceil(block_bytes.into());
                let file = data + indirect_blocks(data, block_bytes.into());
                // A group has a bitmap of one block, so that its size is 8 blocks per byte of a block. Group 0 starts with
                // the superblock, at 1024 B.
                let groups: BTreeSet<u32> = written
                    .iter()
                    .map(|block| (block - u32::from(block_bytes == 1024)) / (block_bytes * 8))
                    .collect();
                // Superblock, group descriptors, inode bitmap, inodes of folder and file, the folder itself; and the bitmap
                // of each group.
                let most = 6 + groups.len() as u64;
                let other = written.len() as u64 - file;
                assert!((4..=most).contains(&other), "{name}: {other} of {most}");
            }
        }
    }

    #[test]
    fn recordings_have_the_passes_of_the_workloads_and_fit_the_card() {
        let card = Profile::named("sandisk-extreme-ii-2g").unwrap();
        for (name, _) in RECORDINGS {
            let Recorded {
                block_bytes,
                passes,
            } = recorded(name).unwrap();
            let workload = workload(match name {
                "ext2/file-size" => "file-size",
                _ => "fs-block",
            });
            let phases = workload.unwrap().phases;
            for pass in &passes {
                let phase = &phases[pass.phase - 1];
                assert_eq!(pass.bytes(), phase.bytes_per_pass());
                assert_eq!(pass.bytes_per_call, u64::from(phase.bytes_per_call));
                let same = passes.iter().filter(|other| other.phase == pass.phase);
                assert_eq!(same.count(), phase.passes as usize);
                let end = pass.extents.iter().map(|[start, count]| start + count);
                let end_bytes = u64::from(end.max().unwrap()) * u64::from(block_bytes);
                assert!(end_bytes <= card.capacity_bytes);
            }
        }
    }

    #[test]
    fn an_unknown_recording_is_named() {
        let error = recorded("ext2/none").err().unwrap();
        assert!(error.contains("ext2/none"), "{error}");
    }
}
