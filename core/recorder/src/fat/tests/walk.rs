//! Directories and chains as other programs may have written them.

use super::*;
use crate::fat::entry::{ChainPosition, is_short_name};
use crate::fat::{DirEntry, ENTRY_NAME_BYTES_MAX, Error, Node, Walk};
use crate::recover::Reader;
use cardiograph_sim_world::{Random, Seed};
use core::cell::RefCell;
use core::ops::Deref;

const SMALL: Shape = Shape {
    kind: FatKind::Fat16,
    clusters: 40,
    cluster_blocks: 1,
    shift: 0,
};

/// A long name before a short entry: its parts as they are stored.
struct Parts {
    sum: u8,
    units: Vec<u16>,
}

impl Parts {
    /// Returns units of which several are halves of pairs.
    fn random(sum: u8, count: usize, random: &mut Random) -> Parts {
        const UNITS: [u16; 6] = [0x61, 0x62, 0x6F22, 0xD83D, 0xDE00, 0x7A];
        let units = (0..count).map(|_| UNITS[random.below(6) as usize]);
        let units = units.collect();
        Parts { sum, units }
    }

    fn entries(&self) -> Vec<[u8; 32]> {
        let parts = self.units.chunks(13).enumerate();
        let count = self.units.len().div_ceil(13);
        let parts = parts.map(|(at, units)| {
            let last = if at + 1 == count { 0x40 } else { 0 };
            long((at as u8 + 1) | last, self.sum, units)
        });
        let mut entries: Vec<[u8; 32]> = parts.collect();
        entries.reverse();
        entries
    }
}

/// Changes one of the parts of a name.
fn corrupt(parts: &mut Vec<[u8; 32]>, random: &mut Random) {
    if parts.is_empty() {
        return;
    }
    let at = random.below(parts.len() as u64) as usize;
    match random.below(8) {
        0 => parts[at][0] ^= 0x40,
        1 => parts[at][0] ^= 1,
        2 => parts[at][0] = parts[at][0].wrapping_add(1),
        3 => parts[at][13] ^= 0x10,
        4 => parts[at][0] = 0xE5,
        5 => drop(parts.remove(at)),
        6 => parts.insert(at, parts[at]),
        _ => {
            // A part with number 0, after which nothing is expected.
            parts[at][0] = 0x40;
            parts[at][13] = 0;
        }
    }
    // 0 would end the directory.
    parts.retain(|part| part[0] != 0);
}

fn as_found(entry: &DirEntry, name: &str) -> Found {
    Found {
        name: name.into(),
        place: entry.place,
        long_entries: entry.long_entries,
        before: entry.before,
    }
}

#[test]
fn names_are_those_of_the_specification_also_if_parts_are_wrong() {
    let mut random = Seed::new(20_261_126).stream("names");
    for number in 0..400 {
        let mut entries: Vec<[u8; 32]> = Vec::new();
        let mut names = Vec::new();
        while entries.len() < 64 {
            let name = format!("N{:07}TXT", entries.len());
            let mut raw = [0; 11];
            raw.copy_from_slice(name.as_bytes());
            let counts = [0, 1, 13, 14, 26, 30, 240, 255];
            let count = counts[random.below(8) as usize];
            let long = Parts::random(sum_of(&raw), count, &mut random);
            let mut parts = long.entries();
            if random.below(2) == 0 {
                corrupt(&mut parts, &mut random);
            }
            names.extend(String::from_utf16(&long.units).ok());
            names.push(format!("{}.TXT", &name[..8]));
            entries.append(&mut parts);
            // A volume label has no long name.
            let attributes = if random.below(9) == 0 { 0x08 } else { 0x20 };
            entries.push(short(&raw, attributes, 0, 0));
        }
        let mut rig = Rig::new(SMALL);
        let start = rig.root_block();
        let slots = entries.into_iter().take(64).enumerate();
        let slots = slots.map(|(at, entry)| (place(start + at as u32 / 16, at % 16), entry));
        let slots: Vec<_> = slots.collect();
        for (place, entry) in &slots {
            rig.disk.put_entry(*place, *entry);
        }
        let due = found(&slots);
        let mut volume = rig.volume();
        let mut walk = volume.walk(&mut rig.disk);
        let mut cursor = walk.open(&Node::Root).unwrap();
        let mut text = [0; ENTRY_NAME_BYTES_MAX];
        let mut all = Vec::new();
        while let Some((entry, range)) = done(walk.next(&mut cursor, &mut text)) {
            let name = core::str::from_utf8(&text[range]).unwrap();
            all.push(as_found(&entry, name));
        }
        assert_eq!(all, due, "{number}");
        for name in names.iter().filter(|name| !name.is_empty()) {
            let short_of = |it: &Found| rig_name(&slots, it.place);
            let due = due
                .iter()
                .find(|it| it.name == *name || short_of(it) == *name);
            let entry = done(walk.find_in(&Node::Root, name));
            let place = entry.map(|entry| entry.place);
            assert_eq!(place, due.map(|due| due.place), "{number}: {name}");
        }
    }
}

/// Returns the short name at this place with its dot.
fn rig_name(slots: &[(Place, [u8; 32])], place: Place) -> String {
    let (_, entry) = slots.iter().find(|slot| slot.0 == place).unwrap();
    let text = core::str::from_utf8(&entry[..11]).unwrap();
    format!("{}.{}", &text[..8], &text[8..])
}

#[test]
fn short_names_with_control_characters_are_not_shown() {
    for at in 0..11 {
        for byte in 0..=255 {
            let mut name = SHORT;
            name[at] = byte;
            // 05 stands for E5 in the first byte, which is not a space.
            let is_valid = match (at, byte) {
                (0, 0x05) => true,
                (0, 0x20) | (_, 0..0x20 | 0x7F) => false,
                _ => true,
            };
            assert_eq!(is_short_name(&name), is_valid, "{byte:#x} at {at}");
        }
    }
}

/// Logs the blocks that are read, and the number announced with each.
struct Log<'a> {
    disk: &'a Disk,
    block: Block,
    reads: &'a RefCell<Vec<(u32, u32)>>,
}

impl Reader for Log<'_> {
    type Error = NoPower;

    async fn read(&mut self, block: u32) -> Result<(), NoPower> {
        self.read_ahead(block, 1).await
    }

    async fn read_ahead(&mut self, block: u32, blocks: u32) -> Result<(), NoPower> {
        self.block = self.disk.blocks[block as usize];
        self.reads.borrow_mut().push((block, blocks));
        Ok(())
    }

    fn block(&self) -> impl Deref<Target = Block> {
        &self.block
    }
}

#[test]
fn a_directory_is_read_once_and_its_consecutive_blocks_are_announced() {
    const CLUSTER_BLOCKS: u32 = 4;
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut rig = Rig::new(Shape {
            kind,
            cluster_blocks: CLUSTER_BLOCKS,
            ..SMALL
        });
        // Runs of blocks, all entries of which are deleted.
        let root = match kind {
            FatKind::Fat32 => {
                rig.chain(&[2, 9, 5]);
                [2, 9, 5].map(|it| (rig.layout.block_of(it), CLUSTER_BLOCKS))
            }
            _ => [(rig.root_block(), ROOT_BLOCKS), (0, 0), (0, 0)],
        };
        let (mut due, mut places) = (Vec::new(), Vec::new());
        for (start, blocks) in root {
            for at in 0..blocks {
                due.push((start + at, blocks - at));
                for index in 0..16 {
                    places.push(place(start + at, index));
                    rig.disk.put_entry(place(start + at, index), [0xE5; 32]);
                }
            }
        }
        let reads = RefCell::new(Vec::new());
        let log = Log {
            disk: &rig.disk,
            block: [0; 512],
            reads: &reads,
        };
        let mut walk = Walk::new(log, &rig.layout);
        let mut cursor = walk.open(&Node::Root).unwrap();
        for place in &places {
            let slot = done(walk.next_slot(&mut cursor));
            assert_eq!(slot.map(|it| it.0), Some(*place));
        }
        assert!(done(walk.next_slot(&mut cursor)).is_none());
        let is_data = |it: &(u32, u32)| it.0 > rig.layout.fat;
        let read: Vec<_> = reads.borrow().iter().copied().filter(is_data).collect();
        assert_eq!(read, due);
    }
}

#[test]
fn every_piece_of_a_file_is_found_from_any_position() {
    let mut random = Seed::new(20_261_126).stream("pieces");
    for number in 0..200 {
        let cluster_blocks = [1, 4][number % 2];
        let mut rig = Rig::new(Shape {
            kind: FatKind::Fat32,
            clusters: 300,
            cluster_blocks,
            shift: 0,
        });
        // Runs in up to three blocks of the FAT.
        let mut clusters: Vec<u32> = Vec::new();
        for _ in 0..1 + random.below(6) {
            let first = 3 + random.below(290) as u32;
            let run = first..first + 1 + random.below(5) as u32;
            if run.clone().all(|it| !clusters.contains(&it)) {
                clusters.extend(run);
            }
        }
        rig.chain(&clusters);
        let first_block = |cluster: &u32| rig.layout.data + (cluster - 2) * cluster_blocks;
        let blocks = clusters.iter().map(first_block);
        let blocks = blocks.flat_map(|it| it..it + cluster_blocks);
        let blocks: Vec<u32> = blocks.collect();
        let layout = rig.layout;
        let reads = RefCell::new(Vec::new());
        let mut position = ChainPosition::of(clusters[0]);
        for _ in 0..30 {
            let block = random.below(blocks.len() as u64 + 4) as usize;
            let most = 1 + random.below(20) as u32;
            // Each time without a block in the buffer.
            let log = || Log {
                disk: &rig.disk,
                block: [0; 512],
                reads: &reads,
            };
            let found =
                poll(Walk::new(log(), &layout).extent_at(&mut position, block as u32, most));
            let Some(rest) = blocks.get(block..).filter(|rest| !rest.is_empty()) else {
                assert_eq!(found, Err(Error::DamagedChain));
                continue;
            };
            let is_next = |(at, it): &(usize, &u32)| **it == rest[0] + *at as u32;
            let length = rest.iter().enumerate().take_while(is_next).count() as u32;
            let extent = found.unwrap();
            let what = format!("{number}: {block}, {most} of {clusters:?}");
            assert_eq!(
                (extent.start, extent.blocks),
                (rest[0], length.min(most)),
                "{what}"
            );
            // From a position in this cluster or before it, a piece of this cluster is found without the whole chain.
            let within = block as u32 % cluster_blocks;
            let mut here = ChainPosition {
                first: clusters[0],
                index: block as u32 / cluster_blocks,
                cluster: clusters[block / cluster_blocks as usize],
            };
            let due = here;
            reads.borrow_mut().clear();
            let most = cluster_blocks - within;
            done(Walk::new(log(), &layout).extent_at(&mut here, block as u32, most));
            assert_eq!((reads.borrow().len(), here), (0, due), "{what}");
        }
    }
}

#[test]
fn a_chain_does_not_leave_the_volume() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut rig = Rig::new(Shape { kind, ..SMALL });
        let end = rig.layout.clusters_end;
        for next in [0, 1, end - 1, end, end + 1, rig.end() - 8] {
            rig.put(7, next);
            rig.put(end - 1, rig.end());
            let mut volume = rig.volume();
            let found = poll(volume.walk(&mut rig.disk).next_cluster(7));
            let due = match next == end - 1 {
                true => Ok(Some(next)),
                false => Err(Error::DamagedChain),
            };
            assert_eq!(found, due, "{next:#x}");
        }
    }
}
