//! Power cuts after which another program, such as a repair tool, has changed the card.

use super::journal::put_fs_info;
use super::recordings::*;
use super::*;
use crate::fat::record::{File, Kind, Record};

/// A change by another program, of a cluster that the interrupted operation uses.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Foreign {
    /// A file begins at the cluster.
    File,
    /// The cluster is a part of another chain.
    Link,
}

/// Returns the last cluster of the interrupted operation's file.
fn last_of(record: &Record) -> Option<u32> {
    let last = |file: File| file.first + file.clusters - 1;
    match record.intent {
        Intent::Reserve(file) | Intent::Remove(file) | Intent::MakeFolder(file) => Some(last(file)),
        Intent::Close { slot, .. } | Intent::Discard { slot } => record.file(slot).map(last),
        Intent::ExtendDirectory { new, .. } => Some(new),
        _ => None,
    }
}

/// Returns the FATs and the first block of the root directory.
fn state(rig: &Rig) -> Vec<Block> {
    rig.disk.blocks[1..=rig.root_block() as usize].to_vec()
}

/// Nothing is freed or linked if another program uses any cluster, and the count of FSInfo is used.
#[test]
fn clusters_of_other_programs_are_left_alone() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        for operation in &OPERATIONS {
            let title = operation.title;
            let clean = prepared(kind, operation);
            let mut rig = clean.rig.clone();
            for blocks in cuts(clean.writes) {
                restore(&mut rig, &clean.rig);
                cut_after(&mut rig, operation, blocks);
                let record = newest(&rig).unwrap_or(Record::NEW);
                let Some(last) = last_of(&record) else {
                    continue;
                };
                for foreign in [Foreign::File, Foreign::Link] {
                    if foreign == Foreign::Link && is_in_root(&rig, last) {
                        continue;
                    }
                    let mut rig = rig.clone();
                    let root = rig.root_block();
                    match foreign {
                        Foreign::File => {
                            let file = short(b"FILE0000CHK", 0x20, last, 5);
                            let free = (0..16).map(|at| place(root, at));
                            let mut free =
                                free.filter(|at| matches!(rig.disk.entry(*at)[0], 0 | 0xE5 | b'N'));
                            let free = free.next().unwrap();
                            rig.disk.put_entry(free, file);
                        }
                        Foreign::Link => rig.put(last, 3),
                    }
                    let before = state(&rig);
                    let is_folder = tree_has_folder(&rig);
                    let free = free_of(&rig);
                    let volume = mount(&mut rig).unwrap();
                    let what = (title, blocks, foreign);
                    assert!(state(&rig) == before, "{what:?}");
                    match record.intent {
                        Intent::Close { slot, .. } | Intent::Discard { slot } => {
                            assert_eq!(volume.record.file(slot), None, "{what:?}");
                        }
                        // The folder is complete.
                        Intent::MakeFolder(_) if is_folder => continue,
                        _ => (),
                    }
                    assert_eq!(volume.record.free, Some(free), "{what:?}");
                    assert_eq!(free_of(&rig), free, "{what:?}");
                }
            }
        }
    }
}

fn tree_has_folder(rig: &Rig) -> bool {
    rig.disk.entry(place(rig.root_block(), 0))[..11] == *b"REC00003   "
}

/// Returns true if the root directory has the cluster.
fn is_in_root(rig: &Rig, cluster: u32) -> bool {
    matches!(rig.layout.root, Root::Cluster(root) if rig.get(root) == cluster)
}

/// A count that the operation does not leave was written by a system that does not know of it.
#[test]
fn a_foreign_count_of_free_clusters_is_not_used() {
    for operation in &OPERATIONS {
        let clean = prepared(FatKind::Fat32, operation);
        let mut rig = clean.rig.clone();
        for blocks in cuts(clean.writes) {
            restore(&mut rig, &clean.rig);
            cut_after(&mut rig, operation, blocks);
            let is_begun = newest(&rig).is_some_and(|it| it.intent != Intent::Nothing);
            let mut rig = rig.clone();
            put_fs_info(&mut rig, 2);
            let volume = mount(&mut rig).unwrap();
            let due = if is_begun { None } else { Some(2) };
            assert_eq!(volume.record.free, due, "{} {blocks}", operation.title);
            assert_eq!(free_of(&rig), due.unwrap_or(u32::MAX));
        }
    }
}

fn naming() -> &'static Operation {
    let mut all = OPERATIONS.iter();
    all.find(|it| it.title == "name").unwrap()
}

/// Returns all places of the volume's directories that have an entry with this name.
fn place_of(rig: &Rig, name: &[u8; 11]) -> Option<Place> {
    let blocks = rig.root_block()..rig.journal();
    let mut places = blocks.flat_map(|block| (0..16).map(move |at| place(block, at)));
    places.find(|at| rig.disk.entry(*at)[..11] == *name)
}

/// While a file has two entries, a repair tool may truncate either to length 0.
#[test]
fn a_truncated_entry_of_two_is_deleted() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let clean = prepared(kind, naming());
        let mut rig = clean.rig.clone();
        let mut count = 0;
        for blocks in 0..=clean.writes {
            restore(&mut rig, &clean.rig);
            cut_after(&mut rig, naming(), blocks);
            let places = [b"CARDIOGRR00", b"REC03000CSV"].map(|name| place_of(&rig, name));
            let [Some(hidden), Some(named)] = places else {
                continue;
            };
            count += 1;
            for (place, due) in [(hidden, &clean.after), (named, &clean.before)] {
                let mut rig = rig.clone();
                let mut entry = rig.disk.entry(place);
                entry[20..22].fill(0);
                entry[26..].fill(0);
                rig.disk.put_entry(place, entry);
                let volume = mount(&mut rig).unwrap();
                assert_eq!(outcome(&rig, &volume), *due);
            }
            // Entries with contents, and files with another chain, are left as they are.
            let mut rig = rig.clone();
            rig.put(newest(&rig).unwrap().file(0).unwrap().first, 0);
            let entries = [hidden, named].map(|place| rig.disk.entry(place));
            mount(&mut rig).unwrap();
            assert_eq!([hidden, named].map(|place| rig.disk.entry(place)), entries);
        }
        assert!(count > 0);
    }
}

/// A record of a name for a file with other clusters, or for a file that has one, changes nothing.
#[test]
fn a_name_is_completed_for_its_own_clusters_only() {
    let clean = prepared(FatKind::Fat16, naming());
    let hidden = newest(&clean.rig).unwrap().file(0).unwrap();
    let (folder, _) = clean.before.tree["rec00003.___"];
    for (kind, first, clusters) in [
        (Kind::Prepared, 1, 0),
        (Kind::Prepared, 0, 1),
        (Kind::Version0_1, 0, 0),
        (Kind::Prepared, 0, 0),
    ] {
        let mut rig = clean.rig.clone();
        let mut volume = mount(&mut rig).unwrap();
        let at = place(rig.layout.block_of(folder) + 2, 0);
        rig.disk.put_entry(at, short(b"REC03003CSV", 0x24, 0, 0));
        volume.record.reserved[0] = Some(File { kind, ..hidden });
        let file = File {
            kind: Kind::Named,
            number: 3003,
            place: at,
            first: hidden.first + first,
            clusters: hidden.clusters + clusters,
            ..hidden
        };
        volume.record.intent = Intent::Name { slot: 0, file };
        done(volume.recover(&mut rig.disk));
        let is_deleted = rig.disk.entry(at)[0] == 0xE5;
        assert_eq!(
            is_deleted,
            (kind, first, clusters) == (Kind::Prepared, 0, 0)
        );
    }
}

/// The entry, and both ends of the chain, show whether a file is still the one that was reserved.
#[test]
fn a_changed_file_is_not_unfinished() {
    const CLUSTERS: u32 = 600;
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut clean = Rig::new(Shape {
            kind,
            clusters: 700,
            cluster_blocks: 1,
            shift: 0,
        });
        let chain: Vec<u32> = (50..50 + CLUSTERS).collect();
        clean.chain(&chain);
        let at = place(clean.root_block(), 3);
        (0..3).for_each(|index| clean.disk.put_entry(place(at.block, index), [0xE5; 32]));
        let entry = short(b"CARDIOGRR00", 0x26, 50, CLUSTERS * 512);
        clean.disk.put_entry(at, entry);
        let file = File {
            kind: Kind::Prepared,
            prefix: *b"REC",
            extension: *b"CSV",
            number: 0,
            place: at,
            first: 50,
            clusters: CLUSTERS,
            epoch: 0,
            note: 0,
        };
        let is_kept = |change: &dyn Fn(&mut Rig)| {
            let mut rig = clean.clone();
            change(&mut rig);
            let mut volume = rig.volume();
            volume.record.reserved[4] = Some(file);
            done(volume.forget_changed(&mut rig.disk));
            // The table is stored if it has changed.
            let is_kept = volume.record.file(4).is_some();
            assert_eq!(rig.disk.writes.is_empty(), is_kept);
            is_kept
        };
        assert!(is_kept(&|_| ()));
        // Its name, its system attribute, its first cluster and its length.
        for (byte, mask) in [(0, 1), (10, 1), (11, 4), (26, 1), (28, 1), (31, 1)] {
            let put = |rig: &mut Rig| {
                let mut entry = entry;
                entry[byte] ^= mask;
                rig.disk.put_entry(at, entry);
            };
            assert!(!is_kept(&put), "byte {byte}");
        }
        let per_block = if kind == FatKind::Fat32 { 128 } else { 256 };
        for index in [
            0,
            1,
            per_block - 2,
            CLUSTERS - per_block,
            CLUSTERS - 2,
            CLUSTERS - 1,
        ] {
            assert!(!is_kept(&|rig| rig.put(50 + index, 0)), "{index}");
        }
        assert!(is_kept(&|rig| rig.put(50 + 300, 0)));
    }
}
