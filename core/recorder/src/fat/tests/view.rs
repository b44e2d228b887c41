//! Entries that readers found earlier, compared with changed cards.

use super::folder::{shapes, with_folder};
use super::*;
use crate::fat::{DirEntry, Node};

fn entry_at(rig: &mut Rig, path: &str) -> DirEntry {
    match done(rig.volume().lookup(&mut rig.disk, path)) {
        Node::Entry(entry) => entry,
        Node::Root => panic!("{path} is the root directory"),
    }
}

#[test]
fn readers_know_the_clusters_of_the_mounted_volume() {
    for shape in shapes() {
        let mut volume = Rig::new(shape).volume();
        let layout = volume.layout;
        let (count, blocks) = (shape.clusters, shape.cluster_blocks);
        for cluster in [0, 1, 2, 3, count, count + 1, count + 2, u32::MAX] {
            let is_cluster = (2..count + 2).contains(&cluster);
            assert_eq!(layout.is_cluster(cluster), is_cluster, "{cluster}");
            if is_cluster {
                let due = layout.data + (cluster - 2) * blocks;
                assert_eq!(layout.first_block(cluster), due);
            }
        }
        assert_eq!(layout.data_blocks(), count * blocks);
        for (clusters, is_mounted) in [(2, false), (3, true), (count + 2, true)] {
            volume.layout.clusters_end = clusters;
            assert_eq!(volume.file_system_here().is_some(), is_mounted);
        }
    }
    let volume = FatVolume::new(|| DosTime::NO_CLOCK, 0);
    assert!(volume.file_system_here().is_none());
}

/// Any change of the name, the first cluster, the length or the kind makes it another entry.
#[test]
fn an_entry_is_recognised_until_it_changes() {
    for shape in shapes() {
        for attributes in [0x20, 0x10, 0x16] {
            let mut rig = Rig::new(shape);
            let at = place(rig.root_block(), 3);
            let raw = short(&SHORT, attributes, 7, 0x0102_0304);
            for index in 0..3 {
                rig.disk.put_entry(place(at.block, index), [0xE5; 32]);
            }
            rig.disk.put_entry(at, raw);
            let entry = entry_at(&mut rig, "short.txt");
            assert_eq!(entry.short_name(), SHORT);
            for bit in 0..32 * 8 {
                let (byte, mask) = (bit / 8, 1 << (bit % 8));
                let mut other = raw;
                other[byte] ^= mask;
                let is_same = match byte {
                    0..11 | 26.. => false,
                    11 => mask != 0x10,
                    // The upper half of the first cluster, which has 28 bits.
                    20 => shape.kind == FatKind::Fat16,
                    21 => shape.kind == FatKind::Fat16 || mask >= 0x10,
                    _ => true,
                };
                rig.disk.put_entry(at, other);
                let mut volume = rig.volume();
                let found = done(volume.walk(&mut rig.disk).is_entry(&entry));
                assert_eq!(found, is_same, "byte {byte}, mask {mask:#x}");
            }
        }
    }
}

#[test]
fn only_a_folder_of_recordings_has_an_index() {
    for shape in shapes() {
        let mut folder = with_folder(shape);
        let rig = &mut folder.rig;
        let entry = entry_at(rig, "REC00003");
        let directory = 335_u32.div_ceil(shape.cluster_blocks);
        let index = rig.layout.block_of(folder.first) + directory * shape.cluster_blocks;
        let head = place(rig.layout.block_of(folder.first), 2);
        let raw = rig.disk.entry(head);
        let mut index_of = |entry: &DirEntry, raw: [u8; 32]| {
            rig.disk.put_entry(head, raw);
            let mut volume = rig.volume();
            done(volume.walk(&mut rig.disk).index_of(entry))
        };
        assert_eq!(index_of(&entry, raw), Some(index));
        // Its name, its kind, its first cluster and its length.
        for at in [0, 10, 26, 27, 28, 29, 30, 31] {
            let mut other = raw;
            other[at] ^= 1;
            assert_eq!(index_of(&entry, other), None, "byte {at}");
        }
        let mut other = raw;
        other[11] ^= 0x10;
        assert_eq!(index_of(&entry, other), None);
        assert_eq!(index_of(&entry, [0xE5; 32]), None);
        let file = DirEntry {
            attributes: 0x20,
            ..entry
        };
        assert_eq!(index_of(&file, raw), None);
        // A folder would end after the last cluster.
        let end = shape.clusters + 2;
        for first in [0, 1, end - directory, end, u32::MAX] {
            let outside = DirEntry { first, ..entry };
            assert_eq!(index_of(&outside, raw), None, "{first}");
        }
    }
}
