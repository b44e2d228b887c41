//! Decisions of the recorder's operations, and of uploads.

use super::folder::{rec, shapes};
use super::*;
use crate::fat::record::{File, Kind};
use crate::fat::{DirEntry, Error, Node};
use crate::guest::FileError;
use crate::volume::{ErrorKind, FileId, FileRecord, Removed, Request, Volume};

const REQUEST: Request = Request {
    prefix: *b"REC",
    extension: *b"CSV",
    blocks: 8,
    blocks_min: 1,
    shares: 1,
    note: 0,
};

/// Longer than any free run.
const LONGEST: Request = Request {
    blocks_min: 60_000,
    ..REQUEST
};

const NOW: DosTime = DosTime {
    date: 46 << 9 | 11 << 5 | 26,
    time: 9 << 11,
};

/// A volume whose next recording has this number.
pub(super) fn numbered(shape: Shape, next: u32) -> (Rig, FatVolume) {
    let rig = Rig::new(shape);
    let mut volume = rig.volume();
    volume.record.series[0] = Some(series(*b"REC", next));
    (rig, volume)
}

/// Records a file of this length under the next number.
pub(super) fn record(rig: &mut Rig, volume: &mut FatVolume, bytes: u64) {
    let slot = done(volume.reserve(&mut rig.disk, REQUEST)).slot;
    let id = rec(volume.series(*b"REC").unwrap().next);
    let file = FileRecord::of_length(id, bytes);
    done(volume.close(&mut rig.disk, slot, &file));
}

fn removed(rig: &mut Rig, volume: &mut FatVolume) -> Option<u32> {
    let removed = done(volume.remove_oldest(&mut rig.disk));
    removed.map(|removed| removed.id.number)
}

#[test]
fn the_oldest_recordings_and_their_empty_folders_are_removed() {
    let (mut clean, mut volume) = numbered(shapes()[0], 3998);
    (0..4).for_each(|_| record(&mut clean, &mut volume, 600));
    for is_protected in [false, true] {
        let mut rig = clean.clone();
        let mut own = rig.volume();
        own.record = volume.record;
        if is_protected {
            let Node::Entry(entry) = done(own.lookup(&mut rig.disk, "REC00003/REC03999.CSV"))
            else {
                panic!("not a file");
            };
            let mut raw = rig.disk.entry(entry.place);
            raw[11] |= 0x01;
            rig.disk.put_entry(entry.place, raw);
        }
        let numbers = [Some(3998), Some(3999), Some(4000), Some(4001), None, None];
        for number in numbers {
            if number == Some(3999) && is_protected {
                continue;
            }
            assert_eq!(removed(&mut rig, &mut own), number);
            let low = own.series(*b"REC").unwrap().low;
            assert_eq!(low, number.unwrap_or(4001));
            let folder = poll(own.lookup(&mut rig.disk, "REC00003"));
            let is_there = is_protected || number.is_some_and(|it| it < 4000);
            assert_eq!(folder.is_ok(), is_there, "{number:?}");
        }
        // The folder of the next recording stays.
        assert!(done(own.lookup(&mut rig.disk, "REC00004")) != Node::Root);
    }
}

/// Of all prefixes, in the order in which they were closed.
#[test]
fn the_recording_that_was_closed_first_is_removed_first() {
    let (mut rig, mut volume) = numbered(shapes()[0], 3000);
    volume.record.series[1] = Some(series(*b"ABC", 10));
    let order = [
        (*b"REC", 3000),
        (*b"ABC", 10),
        (*b"ABC", 11),
        (*b"REC", 3001),
    ];
    for (prefix, number) in order {
        let request = Request { prefix, ..REQUEST };
        let slot = done(volume.reserve(&mut rig.disk, request)).slot;
        let id = FileId {
            prefix,
            ..rec(number)
        };
        let file = FileRecord::of_length(id, 600);
        done(volume.close(&mut rig.disk, slot, &file));
    }
    for (prefix, number) in order {
        let Removed { id, blocks } = done(volume.remove_oldest(&mut rig.disk)).unwrap();
        let cluster_blocks = rig.layout.cluster_blocks;
        assert_eq!(blocks, 2_u32.next_multiple_of(cluster_blocks), "600 B");
        assert_eq!((id.prefix, id.number), (prefix, number));
    }
}

#[test]
fn a_recording_is_removed_from_any_block_of_its_folder() {
    for shape in shapes() {
        for number in [3000, 3500, 3999] {
            let (mut rig, mut volume) = numbered(shape, number);
            record(&mut rig, &mut volume, 600);
            // A recording of version 0.1 with the same number is not listed.
            let old = File {
                kind: Kind::Version0_1,
                prefix: *b"REC",
                extension: *b"CSV",
                number,
                place: place(rig.root_block(), 9),
                first: 2,
                clusters: 1,
                epoch: 0,
                note: 0,
            };
            done(volume.unlist(&mut rig.disk, old));
            assert_eq!(removed(&mut rig, &mut volume), Some(number));
            assert_eq!(removed(&mut rig, &mut volume), None);
        }
    }
}

#[test]
fn a_folder_is_used_up_to_its_last_recording() {
    let (_, mut volume) = numbered(shapes()[0], 0);
    let mut file = File {
        kind: Kind::Named,
        prefix: *b"REC",
        extension: *b"CSV",
        number: 0,
        place: place(1, 0),
        first: 2,
        clusters: 1,
        epoch: 0,
        note: 0,
    };
    for next in [0, 1, 999, 1000, 2999, 3000, 3001, 3999, 4000, 5000] {
        for (number, prefix) in [(2999, *b"REC"), (3000, *b"REC"), (3999, *b"ABC")] {
            (file.number, file.prefix) = (number, prefix);
            volume.record.reserved[2] = Some(file);
            volume.record.series[0] = Some(series(*b"REC", next));
            for folder in 0..6 {
                let has_file = prefix == *b"REC" && number / 1000 == folder;
                let is_used = has_file || next < (folder + 1) * 1000;
                assert_eq!(volume.is_folder_used(*b"REC", folder), is_used);
            }
        }
    }
}

#[test]
fn a_request_is_met_by_a_run_of_at_least_half_of_its_length() {
    for (clusters, cluster_blocks) in [(120, 1), (60, 4)] {
        let shape = Shape {
            kind: FatKind::Fat16,
            clusters,
            cluster_blocks,
            shift: 0,
        };
        // Two free runs, of which the second is longer.
        for (one, other) in [(4, 9), (5, 9), (9, 20), (1, 2)] {
            let mut rig = Rig::new(shape);
            let used = (2..clusters + 2)
                .filter(|it| !(10..10 + one).contains(it) && !(20..20 + other).contains(it));
            let used: Vec<u32> = used.collect();
            rig.chain(&used);
            // Longer runs begin at a multiple of an allocation unit.
            for blocks in 0..16 * cluster_blocks {
                for blocks_min in [0, 1, 2, 4, 5, 12, 40] {
                    let request = Request {
                        blocks,
                        blocks_min,
                        ..REQUEST
                    };
                    let least = blocks_min.div_ceil(cluster_blocks).max(1);
                    let wanted = blocks.div_ceil(cluster_blocks).max(least);
                    let enough = least.max(wanted / 2);
                    let due = match () {
                        () if one >= enough => Ok((10, one.min(wanted))),
                        () if other >= least => Ok((20, other.min(wanted))),
                        () => Err(Error::NoSpace {
                            longest_blocks: other * cluster_blocks,
                        }),
                    };
                    let mut volume = rig.volume();
                    let found = poll(volume.run_for(&mut rig.disk, &request));
                    assert_eq!(found, due, "{request:?} {one} {other}");
                }
            }
        }
        // A file is shorter than 4 GiB.
        let most = (u32::MAX / 512 / cluster_blocks) * cluster_blocks;
        for (blocks_min, is_long) in [(most, false), (most + 1, true)] {
            let mut rig = Rig::new(shape);
            let request = Request {
                blocks_min,
                ..REQUEST
            };
            let found = poll(rig.volume().run_for(&mut rig.disk, &request));
            assert_eq!(found == Err(Error::TooLong), is_long);
        }
    }
}

/// A recorder asks a full card for room every second, and each search reads the whole FAT.
#[test]
fn a_full_card_is_searched_again_only_after_something_was_freed() {
    for shape in shapes() {
        let (mut rig, mut volume) = numbered(shape, 3000);
        let file = done(volume.reserve(&mut rig.disk, REQUEST));
        let longest_blocks = match poll(volume.run_for(&mut rig.disk, &LONGEST)) {
            Err(Error::NoSpace { longest_blocks }) => longest_blocks,
            other => panic!("{other:?}"),
        };
        rig.disk.reads.clear();
        for blocks_min in [longest_blocks + 1, LONGEST.blocks_min] {
            let request = Request {
                blocks_min,
                ..REQUEST
            };
            let found = poll(volume.run_for(&mut rig.disk, &request));
            assert_eq!(found, Err(Error::NoSpace { longest_blocks }));
            assert!(rig.disk.reads.is_empty());
        }
        // A shorter file is still possible.
        let request = Request {
            blocks_min: longest_blocks,
            ..REQUEST
        };
        assert!(poll(volume.run_for(&mut rig.disk, &request)).is_ok());
        done(volume.discard(&mut rig.disk, file.slot));
        let after = poll(volume.run_for(&mut rig.disk, &LONGEST));
        let fresh = poll(rig.volume().run_for(&mut rig.disk, &LONGEST));
        assert_eq!(after, fresh);
        assert_ne!(after, Err(Error::NoSpace { longest_blocks }));
    }
}

/// Before sampling begins, the file of one stream must not take the room of the others.
#[test]
fn the_first_files_share_a_run_that_is_too_short_for_all() {
    const LEAST: u32 = 8;
    const WANTED: u32 = 1000;
    for shape in shapes() {
        let cluster_blocks = shape.cluster_blocks;
        let clusters = match shape.kind {
            FatKind::Fat32 => 70_000,
            _ => 5000,
        };
        for free in [4100, 4000, 3999, 2000, 1100, 999, 40, 32, 31, 7] {
            let mut rig = Rig::new(Shape { clusters, ..shape });
            let run = 500..500 + free;
            let used = (2..clusters + 2).filter(|it| !run.contains(it));
            rig.chain(&used.collect::<Vec<u32>>());
            let mut volume = rig.volume();
            let mut found = Vec::new();
            for shares in [4, 3, 2, 1] {
                let request = Request {
                    blocks: WANTED * cluster_blocks,
                    blocks_min: LEAST * cluster_blocks,
                    shares,
                    ..REQUEST
                };
                let (first, length) =
                    poll(volume.run_for(&mut rig.disk, &request)).unwrap_or((0, 0));
                for cluster in first..first + length {
                    rig.put(cluster, cluster + 1);
                }
                found.push(length);
            }
            // Some room is left unused, because files begin and end with units of flash.
            let due = (free / 4).min(WANTED) / 2;
            let is_fair = |length: &u32| (due.max(LEAST)..=WANTED).contains(length);
            let count = (free / LEAST).min(4) as usize;
            assert!(found[..count].iter().all(is_fair), "{free}: {found:?}");
            assert_eq!(found[count..], [0; 4][count..], "{free}");
        }
    }
}

#[test]
fn clusters_freed_last_are_used_next() {
    for is_last in [true, false] {
        for bytes in [0, 1, 600, 8 * 512] {
            let (mut rig, mut volume) = numbered(shapes()[0], 3000);
            let file = done(volume.reserve(&mut rig.disk, REQUEST));
            let slot = usize::from(file.slot);
            let first = volume.record.reserved[slot].unwrap().first;
            if !is_last {
                volume.record.hint = 5;
            }
            let record = FileRecord::of_length(rec(3000), bytes);
            rig.disk.writes.clear();
            done(volume.close(&mut rig.disk, file.slot, &record));
            let kept = bytes.div_ceil(512) as u32;
            let due = if is_last { first + kept } else { 5 };
            assert_eq!(volume.record.hint, due);
            // The FAT is written only if clusters are freed.
            let mut writes = rig.disk.writes.iter();
            let is_written = writes.any(|(start, _)| *start < rig.layout.fat * 2 - 1);
            assert_eq!(is_written, kept < 8);
        }
    }
}

#[test]
fn a_recording_is_dated_unless_recovery_names_it() {
    for (is_named, is_recovered) in [(false, false), (true, false), (false, true), (true, true)] {
        let (mut rig, mut volume) = numbered(shapes()[0], 3000);
        volume.clock = || NOW;
        let slot = done(volume.reserve(&mut rig.disk, REQUEST)).slot;
        if is_named {
            done(volume.name(&mut rig.disk, slot, rec(3000), "session"));
        }
        let record = FileRecord {
            is_recovered,
            ..FileRecord::of_length(rec(3000), 700)
        };
        done(volume.close(&mut rig.disk, slot, &record));
        let mut dated = Vec::new();
        done(volume.list_folder(&mut rig.disk, *b"REC", 3, |it| {
            dated.push(it.created == Some(NOW));
        }));
        assert_eq!(dated, [is_named || !is_recovered]);
    }
}

#[test]
fn a_file_is_named_once() {
    let (mut rig, mut volume) = numbered(shapes()[0], 3000);
    let slot = done(volume.reserve(&mut rig.disk, REQUEST)).slot;
    let other = FileId {
        extension: *b"TXT",
        ..rec(3000)
    };
    let mut name = |volume: &mut FatVolume, id| {
        rig.disk.writes.clear();
        let named = poll(volume.name(&mut rig.disk, slot, id, ""));
        (named, rig.disk.writes.is_empty())
    };
    assert_eq!(name(&mut volume, other), (Err(Error::BadName), true));
    assert_eq!(name(&mut volume, rec(3000)), (Ok(()), false));
    assert_eq!(name(&mut volume, rec(3000)), (Ok(()), true));
    let refused = Err(Error::AlreadyNamed(rec(3000)));
    assert_eq!(name(&mut volume, rec(3001)), (refused, true));
    // A file of version 0.1 keeps its name.
    let file = volume.record.reserved[usize::from(slot)].as_mut();
    file.unwrap().kind = Kind::Version0_1;
    assert_eq!(name(&mut volume, rec(3001)), (Ok(()), true));
}

#[test]
fn consecutive_clusters_exist_and_are_linked() {
    let mut rig = Rig::new(shapes()[0]);
    rig.chain(&[5, 6, 7]);
    rig.chain(&[9, 11]);
    let mut is_consecutive = |first, clusters| {
        let file = File {
            kind: Kind::Named,
            prefix: *b"REC",
            extension: *b"CSV",
            number: 0,
            place: place(1, 0),
            first,
            clusters,
            epoch: 0,
            note: 0,
        };
        done(rig.volume().is_consecutive(&mut rig.disk, file))
    };
    for (first, clusters, due) in [
        (0, 0, true),
        (5, 0, false),
        (5, 3, true),
        (5, 2, false),
        (6, 2, true),
        (9, 2, false),
        (20, 1, false),
        (1301, 2, false),
    ] {
        assert_eq!(is_consecutive(first, clusters), due, "{first} {clusters}");
    }
}

/// Returns the clusters of a file.
fn chain_of(rig: &Rig, entry: &DirEntry) -> Vec<u32> {
    let mut clusters = Vec::new();
    let mut cluster = entry.first;
    while cluster != rig.end() && cluster != 0 {
        clusters.push(cluster);
        cluster = rig.get(cluster);
    }
    clusters
}

fn file_at(rig: &mut Rig, path: &str) -> DirEntry {
    match done(rig.volume().lookup(&mut rig.disk, path)) {
        Node::Entry(entry) => entry,
        Node::Root => panic!("{path} is the root directory"),
    }
}

#[test]
fn an_upload_has_the_clusters_that_its_length_needs() {
    let shape = Shape {
        kind: FatKind::Fat16,
        clusters: 40,
        cluster_blocks: 2,
        shift: 0,
    };
    for reserved in [0, 1, 1024, 1025, 3000, 9000, 20_000] {
        for grown in [0, 5000, 12_000, 25_000] {
            for bytes in [0, 1, 1024, 1025, 4000, 9000, 12_000] {
                let mut rig = Rig::new(shape);
                // Free runs of 1, 3 and more clusters.
                rig.chain(&[3, 5, 9, 14, 22]);
                let mut volume = rig.volume();
                let free = 35;
                volume.record.free = Some(free);
                let mut upload = done(volume.begin_upload(&mut rig.disk, reserved));
                done(volume.grow_upload(&mut rig.disk, &mut upload, grown));
                let clusters = reserved.max(grown).div_ceil(1024).max(1) as u32;
                let hidden = file_at(&mut rig, "CARDIOGR.U00");
                let chain = chain_of(&rig, &hidden);
                assert_eq!(chain.len(), clusters as usize, "{reserved} {grown}");
                assert_eq!(hidden.bytes, clusters * 1024);
                assert_eq!(volume.record.hint, chain.last().unwrap() + 1);
                assert_eq!(volume.record.free, Some(free - clusters));
                let kept = u64::from(bytes).div_ceil(1024) as usize;
                let time = DosTime::NO_CLOCK;
                let disk = &mut rig.disk;
                let committed =
                    poll(volume.commit_upload(disk, &mut upload, "a.txt", bytes, time, false));
                if kept > chain.len() {
                    assert_eq!(committed, Err(Error::TooLong));
                    continue;
                }
                assert_eq!(committed, Ok(()));
                let named = file_at(&mut rig, "a.txt");
                assert_eq!((named.bytes, named.attributes), (bytes, 0x20));
                assert_eq!(chain_of(&rig, &named), chain[..kept]);
                let zeros = rig.table().iter().filter(|it| **it == 0).count();
                assert_eq!(zeros, 35 - kept);
                assert_eq!(volume.record.free, Some(35 - kept as u32));
                let again = poll(volume.grow_upload(&mut rig.disk, &mut upload, 1));
                assert_eq!(again, Err(Error::NoSuchUpload));
            }
        }
    }
}

/// The next run has at least half of the missing length.
#[test]
fn an_upload_grows_by_what_it_lacks() {
    let mut rig = Rig::new(Shape {
        kind: FatKind::Fat16,
        clusters: 40,
        cluster_blocks: 1,
        shift: 0,
    });
    let is_free = |it: &u32| matches!(it, 10 | 11 | 13 | 20..30);
    let used: Vec<u32> = (2..42).filter(|it| !is_free(it)).collect();
    rig.chain(&used);
    let mut volume = rig.volume();
    let mut upload = done(volume.begin_upload(&mut rig.disk, 2 * 512));
    done(volume.grow_upload(&mut rig.disk, &mut upload, 7 * 512));
    let hidden = file_at(&mut rig, "CARDIOGR.U00");
    assert_eq!(chain_of(&rig, &hidden), [10, 11, 20, 21, 22, 23, 24]);
}

/// A long name in three entries, of which one is taken at the recording's own position.
#[test]
fn a_name_leaves_other_entries_as_they_are() {
    for shape in shapes() {
        for taken in 0..3 {
            let (mut rig, mut volume) = numbered(shape, 3000);
            let slot = done(volume.reserve(&mut rig.disk, REQUEST)).slot;
            let folder = file_at(&mut rig, "REC00003").first;
            let other = place(rig.layout.block_of(folder) + 1, taken);
            let entry = short(b"NOTES   TXT", 0x20, 0, 0);
            rig.disk.put_entry(other, entry);
            done(volume.name(&mut rig.disk, slot, rec(3000), "a"));
            assert_eq!(rig.disk.entry(other), entry);
            let named = file_at(&mut rig, "REC00003/REC03000 a.CSV");
            assert_eq!(named.short_name(), *b"REC03000CSV");
        }
    }
}

#[test]
fn an_upload_that_is_longer_than_the_free_space_is_refused() {
    let shape = Shape {
        kind: FatKind::Fat16,
        clusters: 20,
        cluster_blocks: 2,
        shift: 0,
    };
    for clusters in 1..=24 {
        for is_known in [true, false] {
            let mut rig = Rig::new(shape);
            let mut volume = rig.volume();
            volume.record.free = is_known.then_some(20);
            let begun = poll(volume.begin_upload(&mut rig.disk, clusters * 1024));
            match clusters {
                ..=20 => assert_eq!(begun.map(|it| it.number()), Ok(0)),
                _ => {
                    let longest_blocks = if is_known { 40 } else { 0 };
                    assert_eq!(begun, Err(Error::NoSpace { longest_blocks }));
                    assert_eq!(rig.table(), Rig::new(shape).table());
                    // Nothing is written if the number is known.
                    assert_eq!(rig.disk.writes.is_empty(), is_known);
                }
            }
        }
    }
}

#[test]
fn a_volume_that_is_not_mounted_refuses_operations() {
    let mut rig = Rig::new(shapes()[0]);
    let mut volume = rig.volume();
    let full = Error::DirectoryFull(SHORT);
    assert_eq!(
        Volume::<Disk>::refusal(&volume, &full),
        Some(FileError::Full)
    );
    volume.is_ready = false;
    assert_eq!(Volume::<Disk>::refusal(&volume, &full), None);
    let disk = &mut rig.disk;
    assert_eq!(poll(volume.reserve(disk, REQUEST)), Err(Error::NotMounted));
    assert_eq!(poll(volume.remove_oldest(disk)), Err(Error::NotMounted));
    assert_eq!(poll(volume.discard(disk, 0)), Err(Error::NotMounted));
    for (error, kind) in [
        (Error::NoSpace { longest_blocks: 0 }, ErrorKind::NoRoom),
        (Error::DirectoryFull(SHORT), ErrorKind::DirectoryFull),
        (Error::NameTaken(SHORT), ErrorKind::NameTaken),
        (Error::Card(NoPower), ErrorKind::Card),
        (Error::NotMounted, ErrorKind::Volume),
    ] {
        assert_eq!(<FatVolume as Volume<Disk>>::error_kind(&error), kind);
    }
}

#[test]
fn epochs_differ_between_volumes_and_loggers() {
    let rig = Rig::new(shapes()[0]);
    let mut epochs = std::collections::BTreeSet::new();
    let numbers = [0, 1, 0x00FF_FF00, u32::MAX];
    for serial in numbers {
        for entropy in numbers {
            for count in [1, 2, u32::MAX] {
                let mut volume = rig.volume();
                (volume.layout.serial, volume.entropy) = (serial, entropy);
                volume.record.epochs = count;
                epochs.insert(volume.epoch());
            }
        }
    }
    assert_eq!(epochs.len(), 4 * 4 * 3);
    let mut volume = rig.volume();
    for (known, now, is_changed) in [
        (Some(7), Some(7), false),
        (Some(7), Some(8), true),
        (None, Some(7), true),
        (Some(7), None, true),
        (None, None, true),
    ] {
        volume.record.free = known;
        assert_eq!(volume.is_changed(now), is_changed);
    }
}
