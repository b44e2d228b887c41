//! Folders of recordings.

use super::*;
use crate::fat::Error;
use crate::fat::folder::Found;
use crate::volume::FileId;

const DIRECTORY_BLOCKS: u32 = 335;
const INDEX_BLOCKS: u32 = 250;
const RECORDING: u8 = 0x20;
pub(super) const EMPTY: [u8; 32] = {
    let mut entry = [0; 32];
    entry[0] = 0xE5;
    entry
};

/// Volumes with room for more than one folder.
pub(super) fn shapes() -> [Shape; 3] {
    let shape = |kind, clusters, cluster_blocks| Shape {
        kind,
        clusters,
        cluster_blocks,
        shift: 0,
    };
    [
        shape(FatKind::Fat16, 1300, 1),
        shape(FatKind::Fat16, 340, 4),
        shape(FatKind::Fat32, 340, 4),
    ]
}

/// A volume with a folder.
pub(super) struct WithFolder {
    pub(super) rig: Rig,
    pub(super) volume: FatVolume,
    pub(super) first: u32,
    /// Clusters of the directory, and of the folder.
    directory: u32,
    clusters: u32,
}

/// Creates the folder of recordings 3000 to 3999.
pub(super) fn with_folder(shape: Shape) -> WithFolder {
    let mut rig = Rig::new(shape);
    // Files that were deleted.
    let data = rig.layout.data as usize;
    rig.disk.blocks[data..].fill([0x77; 512]);
    if shape.kind == FatKind::Fat32 {
        (0..shape.cluster_blocks).for_each(|at| rig.disk.blocks[data + at as usize].fill(0));
    }
    let mut volume = rig.volume();
    volume.record.free = Some(shape.clusters - 7);
    volume.record.series[0] = Some(series(*b"REC", 3000));
    let first = done(volume.folder_for(&mut rig.disk, rec(3005)));
    let directory = DIRECTORY_BLOCKS.div_ceil(shape.cluster_blocks);
    let clusters = directory + INDEX_BLOCKS.div_ceil(shape.cluster_blocks);
    WithFolder {
        rig,
        volume,
        first,
        directory,
        clusters,
    }
}

impl WithFolder {
    /// Returns the blocks of the directory.
    pub(super) fn blocks(&self) -> core::ops::Range<u32> {
        let start = self.rig.layout.block_of(self.first);
        start..start + self.directory * self.rig.layout.cluster_blocks
    }

    /// Marks all entries of the directory as used, and fills the index, which is not a part of it.
    pub(super) fn fill(&mut self) {
        let blocks = self.blocks();
        let index = blocks.end..blocks.end + INDEX_BLOCKS;
        for block in index {
            self.rig.disk.blocks[block as usize].fill(0x77);
        }
        for block in blocks {
            for at in 0..16 {
                if self.rig.disk.entry(place(block, at)) == EMPTY {
                    let entry = short(&SHORT, RECORDING, 0, 0);
                    self.rig.disk.put_entry(place(block, at), entry);
                }
            }
        }
    }
}

#[test]
fn a_new_folder_has_the_documented_contents() {
    for shape in shapes() {
        let WithFolder {
            mut rig,
            mut volume,
            first,
            directory,
            clusters,
        } = with_folder(shape);
        // Its entry is the first of the root directory.
        let root = rig.disk.entry(place(rig.root_block(), 0));
        assert_eq!(root[..12], *b"REC00003   \x10");
        let index = first + directory;
        let mut table = Rig::new(shape).table();
        for cluster in first..first + clusters {
            let is_last = cluster + 1 == index || cluster + 1 == first + clusters;
            table[cluster as usize] = if is_last { rig.end() } else { cluster + 1 };
        }
        assert_eq!(rig.table(), table);
        let start = rig.layout.block_of(first);
        let of = |block: u32| rig.disk.blocks[(start + block) as usize];
        let directory_blocks = directory * shape.cluster_blocks;
        let end = clusters * shape.cluster_blocks;
        let heads = [
            (*b".          ", 0x10, first, 0),
            (*b"..         ", 0x10, 0, 0),
            (*b"CARDIOGRIDX", 0x06, index, 128_000),
        ];
        for block in 0..end {
            for (at, entry) in of(block).as_chunks::<32>().0.iter().enumerate() {
                let Some((name, attributes, first, size)) = heads.get(at).filter(|_| block == 0)
                else {
                    let due = if block < directory_blocks {
                        EMPTY
                    } else {
                        [0; 32]
                    };
                    assert_eq!(*entry, due, "block {block}");
                    continue;
                };
                let due = short(name, *attributes, *first, *size);
                assert_eq!(entry[..12], due[..12]);
                assert_eq!((&entry[20..22], &entry[26..]), (&due[20..22], &due[26..]));
            }
        }
        assert!(
            of(end) == [0x77; 512],
            "a block after the folder was written"
        );
        assert_eq!(volume.record.hint, first + clusters);
        let free = shape.clusters - 7 - clusters;
        assert_eq!(volume.record.free, Some(free));

        // All numbers of the folder, and no others, find it without the card.
        rig.disk.reads.clear();
        for number in [3000, 3005, 3999] {
            let found = done(volume.find_folder(&mut rig.disk, rec(number)));
            assert!(matches!(found, Found::Own(it) if it == first));
        }
        assert_eq!(rig.disk.reads, []);
        for number in [5, 2999, 4000, 4005] {
            let found = done(volume.find_folder(&mut rig.disk, rec(number)));
            assert!(matches!(found, Found::Nothing), "{number}");
        }
        // Without what is known, by its name.
        volume.record.series[0] = Some(series(*b"REC", 3000));
        for is_known in [false, true] {
            rig.disk.reads.clear();
            let found = done(volume.find_folder(&mut rig.disk, rec(3005)));
            assert!(matches!(found, Found::Own(it) if it == first));
            assert_eq!(rig.disk.reads.is_empty(), is_known);
        }
    }
}

#[test]
fn a_folder_that_does_not_fit_is_refused_with_the_free_length() {
    let [shape, large, _] = shapes();
    for shape in [shape, large] {
        let mut rig = Rig::new(Shape {
            clusters: 100,
            ..shape
        });
        let mut volume = rig.volume();
        let made = poll(volume.folder_for(&mut rig.disk, rec(1)));
        let longest_blocks = 100 * shape.cluster_blocks;
        assert_eq!(made, Err(Error::NoSpace { longest_blocks }));
        assert_eq!(rig.disk.writes, []);
    }
}

#[test]
fn only_an_unchanged_folder_is_the_recorders_own() {
    for shape in shapes() {
        let clean = with_folder(shape);
        let mut volume = clean.rig.volume();
        let (first, directory, clusters) = (clean.first, clean.directory, clean.clusters);
        let mut is_own = |change: &dyn Fn(&mut Rig)| {
            let mut rig = clean.rig.clone();
            change(&mut rig);
            done(volume.is_own_folder(&mut rig.disk, first))
        };
        let index = place(clean.rig.layout.block_of(first), 2);
        let bytes = |at: usize, value: u8| {
            move |rig: &mut Rig| {
                let mut entry = rig.disk.entry(index);
                entry[at] ^= value;
                rig.disk.put_entry(index, entry);
            }
        };
        assert!(is_own(&|_| ()));
        // A read-only index is still its index; a renamed, moved, shorter or deleted one is not.
        assert!(is_own(&bytes(11, 0x01)));
        for (at, value) in [(0, 1), (10, 1), (11, 0x10), (26, 1), (28, 1), (29, 1)] {
            assert!(!is_own(&bytes(at, value)), "byte {at}");
        }
        assert!(!is_own(&|rig| rig.disk.put_entry(index, EMPTY)));
        for cluster in [
            first,
            first + directory - 1,
            first + directory,
            first + clusters - 1,
        ] {
            assert!(!is_own(&|rig| rig.put(cluster, 0)), "cluster {cluster}");
        }
        let mut rig = clean.rig.clone();
        let end = rig.layout.clusters_end;
        for first in [0, 1, end - 1, end - clusters + 1, end, u32::MAX] {
            assert!(!done(volume.is_own_folder(&mut rig.disk, first)));
        }
        // An entry that is not a directory, or a directory that is not a folder, is foreign.
        let root = place(rig.root_block(), 0);
        for (attributes, begin) in [(0x20, first), (0x10, first + 1)] {
            let entry = short(b"REC00003   ", attributes, begin, 0);
            rig.disk.put_entry(root, entry);
            let found = done(volume.find_folder(&mut rig.disk, rec(3000)));
            assert!(matches!(found, Found::Foreign), "{attributes:#x}");
        }
    }
}

#[test]
fn a_name_is_at_its_own_position_or_where_there_is_room() {
    for shape in shapes() {
        let mut folder = with_folder(shape);
        let blocks = folder.blocks();
        for number in [3000, 3001, 3002, 3003, 3500, 3998, 3999] {
            let at = number % 1000;
            let due = place(blocks.start + 1 + at / 3, (at % 3 * 5) as usize);
            let WithFolder {
                rig, volume, first, ..
            } = &mut folder;
            let found = done(volume.place_for_name(&mut rig.disk, *first, rec(number), 5));
            assert_eq!(found, due, "{number}");
        }
        folder.fill();
        let WithFolder {
            rig, volume, first, ..
        } = &mut folder;
        let full = poll(volume.place_for_name(&mut rig.disk, *first, rec(3001), 5));
        assert_eq!(full, Err(Error::DirectoryFull(*b"REC00003   ")));
        // Room in one other place, at the end or at the beginning.
        for (block, index) in [(blocks.end - 1, 11), (blocks.end - 1, 0), (blocks.start, 9)] {
            for entries in 1..=5 {
                let mut rig = rig.clone();
                let index = index + 5 - entries;
                for at in 0..entries {
                    rig.disk.put_entry(place(block, index + at), EMPTY);
                }
                let mut find = |entries| {
                    let place = volume.place_for_name(&mut rig.disk, *first, rec(3001), entries);
                    poll(place)
                };
                assert_eq!(find(entries), Ok(place(block, index)));
                assert!(find(entries + 1).is_err(), "{entries}");
            }
        }
        // A computer may have put the name itself anywhere, but the index does not count.
        let name = short(b"REC03001CSV", RECORDING, 0, 0);
        for (block, is_taken) in [
            (blocks.start, true),
            (blocks.end - 1, true),
            (blocks.end, false),
        ] {
            let mut rig = rig.clone();
            rig.disk.put_entry(place(block, 15), name);
            let checked = poll(volume.check_name(&mut rig.disk, rec(3001)));
            let due = match is_taken {
                true => Err(Error::NameTaken(*b"REC03001CSV")),
                false => Ok(()),
            };
            assert_eq!(checked, due);
            assert_eq!(poll(volume.check_name(&mut rig.disk, rec(3002))), Ok(()));
        }
    }
}

#[test]
fn a_folder_is_removed_if_it_contains_only_its_index() {
    for shape in shapes() {
        let clean = with_folder(shape);
        let blocks = clean.blocks();
        let entry = short(b"OTHER   TXT", 0x20, 0, 0);
        let is_removed = |change: &dyn Fn(&mut Rig)| {
            let mut rig = clean.rig.clone();
            // Its index lists recordings that were removed.
            for block in blocks.end..blocks.end + INDEX_BLOCKS {
                rig.disk.blocks[block as usize].fill(0x77);
            }
            change(&mut rig);
            let mut volume = rig.volume();
            volume.record.free = Some(9);
            volume.record.series[0] = Some(series(*b"REC", 3000));
            let before = rig.disk.blocks.clone();
            let is_removed = done(volume.remove_folder(&mut rig.disk, rec(3000)));
            if !is_removed {
                assert!(rig.disk.blocks == before);
                return false;
            }
            assert_eq!(rig.table(), Rig::new(shape).table());
            assert_eq!(rig.disk.entry(place(rig.root_block(), 0))[0], 0xE5);
            assert_eq!(volume.record.free, Some(9 + clean.clusters));
            true
        };
        assert!(is_removed(&|_| ()));
        for (block, index) in [
            (blocks.start, 3),
            (blocks.start + 1, 0),
            (blocks.end - 1, 15),
        ] {
            let put = |rig: &mut Rig| rig.disk.put_entry(place(block, index), entry);
            assert!(!is_removed(&put), "{block} {index}");
        }
        assert!(!is_removed(&|rig| rig.put(clean.first, 0)));
        let root = place(clean.rig.root_block(), 0);
        assert!(!is_removed(&|rig| rig.disk.put_entry(root, EMPTY)));
    }
}

#[test]
fn the_highest_number_is_that_of_a_recording_in_its_folder() {
    for shape in shapes() {
        let clean = with_folder(shape);
        let blocks = clean.blocks();
        let mut volume = clean.rig.volume();
        let mut highest = |entries: &[(&[u8; 11], u8, u32)]| {
            let mut rig = clean.rig.clone();
            // A name in the index is not one of the directory.
            let name = short(b"REC03999CSV", RECORDING, 0, 0);
            rig.disk.put_entry(place(blocks.end, 0), name);
            for (at, (name, attributes, block)) in entries.iter().enumerate() {
                let entry = short(name, *attributes, 0, 0);
                rig.disk.put_entry(place(*block, 3 + at), entry);
            }
            done(volume.highest_in(&mut rig.disk, *b"REC", 3, clean.first))
        };
        assert_eq!(highest(&[]), None);
        let last = blocks.end - 1;
        for block in [blocks.start, last] {
            assert_eq!(highest(&[(b"REC03007TXT", 0x20, block)]), Some(3007));
        }
        // Directories, and names of other prefixes, folders and patterns, are not recordings.
        let others = [
            (b"REC03500CSV", 0x10, last),
            (b"ABC03600CSV", 0x20, last),
            (b"REC02999CSV", 0x20, last),
            (b"REC13700CSV", 0x20, last),
            (b"RECORDS CSV", 0x20, last),
            (b"REC03800CSV", 0x08, last),
        ];
        assert_eq!(highest(&others), None);
        let own = [(b"REC03009CSV", 0x20, last), (b"REC03008CSV", 0x21, last)];
        assert_eq!(highest(&[&own[..], &others].concat()), Some(3009));
        assert_eq!(highest(&[(b"REC03000CSV", 0x20, last)]), Some(3000));
    }
}

/// Identity of a recording with the prefix REC.
pub(super) fn rec(number: u32) -> FileId {
    FileId {
        prefix: *b"REC",
        extension: *b"CSV",
        number,
    }
}
