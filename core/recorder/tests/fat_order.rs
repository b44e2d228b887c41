//! The order of writes: after a power cut, and before the next mount, no entry has clusters that are free or
//! belong to another file.

use crate::fat_rig;

use cardiograph_recorder::{FileRecord, Request};
use cardiograph_sim_world::Seed;
use fat_rig::*;
use std::collections::HashMap;

/// FAT16 entries per block.
const PER_BLOCK: u32 = 256;
/// First cluster of a FAT.
const FIRST: u32 = 2;
/// Lowest FAT entry that ends a chain.
const END: u32 = 0xFFF8;

fn get16(bytes: &[u8], at: usize) -> u32 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]]).into()
}

/// A FAT16 volume with one block per cluster, at block 0.
struct Volume<'a> {
    disk: &'a Disk,
    fat: u32,
    root: u32,
    data: u32,
}

impl Volume<'_> {
    fn of(disk: &Disk) -> Volume<'_> {
        let boot = disk.block(0);
        let fat = get16(boot, 14);
        let root = fat + 2 * get16(boot, 22);
        let data = root + get16(boot, 17) / 16;
        Volume {
            disk,
            fat,
            root,
            data,
        }
    }

    /// Returns the allocated clusters of a chain, from its first one on.
    fn chain(&self, first: u32) -> Vec<u32> {
        let (mut chain, mut at) = (Vec::new(), first);
        while (FIRST..END).contains(&at) {
            let block = self.disk.block(self.fat + at / PER_BLOCK);
            let next = get16(block, (at % PER_BLOCK) as usize * 2);
            if next != 0 {
                chain.push(at);
            }
            at = next;
        }
        chain
    }

    fn blocks_of(&self, first: u32) -> Vec<u32> {
        let chain = self.chain(first);
        chain.iter().map(|at| self.data + at - FIRST).collect()
    }

    /// Returns name, first cluster and number of clusters of all entries.
    fn entries(&self) -> Vec<(String, u32, usize)> {
        let mut entries = Vec::new();
        let mut folders = vec![(self.root..self.data).collect::<Vec<_>>()];
        while let Some(folder) = folders.pop() {
            let blocks = folder.iter().map(|block| self.disk.block(*block));
            let raw = blocks.flat_map(|block| block.as_chunks::<32>().0);
            for entry in raw.take_while(|entry| entry[0] != 0) {
                // Deleted entries, `.` and `..`, labels and long names.
                if matches!(entry[0], 0xE5 | b'.') || entry[11] & 0x08 != 0 {
                    continue;
                }
                let (name, first) = (String::from_utf8_lossy(&entry[..11]), get16(entry, 26));
                let is_folder = entry[11] & 0x10 != 0;
                let bytes = (get16(entry, 28) | get16(entry, 30) << 16) as usize;
                let clusters = if is_folder { 1 } else { bytes.div_ceil(512) };
                entries.push((name.into_owned(), first, clusters));
                if is_folder {
                    folders.push(self.blocks_of(first));
                }
            }
        }
        entries
    }

    /// Checks that every entry has all its clusters. Two names of one file share theirs.
    fn check(&self) -> Result<(), String> {
        let mut owners = HashMap::new();
        for (name, first, clusters) in self.entries() {
            let chain = self.chain(first);
            if chain.len() < clusters {
                let len = chain.len();
                return Err(format!("{name} has {len} clusters, expected {clusters}"));
            }
            for cluster in chain {
                if *owners.entry(cluster).or_insert(first) != first {
                    return Err(format!("{name} shares cluster {cluster}"));
                }
            }
        }
        Ok(())
    }
}

/// An operation on [`mounted`]'s card.
type Operation = fn(&mut Rig) -> Result<(), Error>;

const OPERATIONS: [(&str, Operation); 5] = [
    ("reserve", |rig| {
        let request = Request {
            blocks: 600,
            ..REQUEST
        };
        rig.reserve(request).map(drop)
    }),
    ("name", |rig| rig.name(1, rec(3), "a-session")),
    ("close", |rig| {
        rig.close(0, FileRecord::of_length(rec(2), 50 * 512))
    }),
    ("discard", |rig| rig.discard(1)),
    ("remove", |rig| rig.remove_oldest().map(drop)),
];

/// Returns a card with a recording, a named unfinished file in slot 0, and a prepared one in slot 1.
fn mounted() -> Rig {
    let spec = Spec {
        blocks: 6_000,
        fat_bits: 16,
        fats: 2,
        cluster_blocks: 1,
        has_table: false,
        has_files: true,
    };
    let mut image = spec.make();
    image.add_stale_data();
    let mut rig = Rig::mounted(image.disk);
    rig.record(300, 270 * 512);
    // Chains over more than one block of the FAT.
    for blocks in [600, 700] {
        let request = Request { blocks, ..REQUEST };
        rig.reserve(request).unwrap();
    }
    rig.name(0, rec(2), "").unwrap();
    rig
}

#[test]
fn every_cut_leaves_entries_with_all_their_clusters() {
    for (name, operation) in OPERATIONS {
        for torn in [Torn::Prefix, Torn::Any(Seed::new(20_261_123))] {
            let mut cuts = 0;
            loop {
                let mut rig = mounted();
                rig.disk = rig.disk.cut_after(cuts, torn);
                let is_whole = operation(&mut rig).is_ok();
                if let Err(text) = Volume::of(&rig.disk).check() {
                    panic!("{name}, {torn:?} after {cuts} blocks: {text}");
                }
                if is_whole {
                    break;
                }
                cuts += 1;
            }
            assert!(cuts >= 4, "{name}: only {cuts} cuts");
        }
    }
}
