//! Guests' changes of recordings, and moves after which a repair tool has changed the card.

use super::folder::{EMPTY, rec, shapes};
use super::guests::{CHANGES, LONG, made, mounted, recover, tree};
use super::operations::{numbered, record};
use super::recordings::newest;
use super::*;
use crate::fat::guest_record::Target;
use crate::fat::{Error, Node, Refusal};

/// Returns the numbers in the index.
fn listed(rig: &mut Rig, volume: &mut FatVolume) -> Vec<u32> {
    let mut all = Vec::new();
    let show = |it: &crate::fat::IndexRecord| all.push(it.record.id.number);
    done(volume.list_folder(&mut rig.disk, *b"REC", 3, show));
    all
}

#[test]
fn a_changed_recording_leaves_the_index() {
    for shape in shapes() {
        let (mut rig, mut volume) = numbered(shape, 3000);
        (0..3).for_each(|_| record(&mut rig, &mut volume, 600));
        assert_eq!(listed(&mut rig, &mut volume), [3000, 3001, 3002]);
        done(volume.remove(&mut rig.disk, "REC00003/REC03001.CSV"));
        assert_eq!(listed(&mut rig, &mut volume), [3000, 3002]);
        let disk = &mut rig.disk;
        done(volume.rename(disk, "REC00003/REC03000.CSV", "x.csv", false));
        assert_eq!(listed(&mut rig, &mut volume), [3002]);
        let disk = &mut rig.disk;
        done(volume.rename(disk, "x.csv", "REC00003/REC03002.CSV", true));
        assert_eq!(listed(&mut rig, &mut volume), []);

        // The recorder uses the folder, then it is not empty.
        let mut remove = |volume: &mut FatVolume, path| poll(volume.remove(&mut rig.disk, path));
        let used = Err(Error::Forbidden(Refusal::Recordings));
        assert_eq!(remove(&mut volume, "REC00003"), used);
        volume.record.series[0] = Some(series(*b"REC", 4000));
        assert_eq!(remove(&mut volume, "REC00003"), Err(Error::NotEmpty));
        assert_eq!(remove(&mut volume, "REC00003/REC03002.CSV"), Ok(()));
        assert_eq!(remove(&mut volume, "REC00003"), Ok(()));
        assert_eq!(rig.table(), Rig::new(shape).table());
    }
}

/// Returns a volume with recording 3000, and the first block of its folder, in which the recording's entry is the first of
/// block 1.
fn with_recording(shape: Shape) -> (Rig, FatVolume, u32) {
    let (mut rig, mut volume) = numbered(shape, 3000);
    record(&mut rig, &mut volume, 600);
    let Node::Entry(folder) = done(volume.lookup(&mut rig.disk, "REC00003")) else {
        panic!("the folder has an entry");
    };
    let start = rig.layout.block_of(folder.first);
    assert_eq!(rig.disk.entry(place(start + 1, 0))[..11], *b"REC03000CSV");
    (rig, volume, start)
}

/// The index states which of two files with the name of a recording is the recording.
#[test]
fn a_file_with_the_name_of_a_recording_is_removed_alone() {
    for shape in shapes() {
        let (mut rig, mut volume, start) = with_recording(shape);
        let [other, recording] = [place(start, 3), place(start + 1, 0)];
        let table = rig.table();
        let last = shape.clusters + 1;
        rig.chain(&[last]);
        rig.disk
            .put_entry(other, short(b"REC03000CSV", 0x20, last, 100));
        let entry = rig.disk.entry(recording);
        done(volume.remove(&mut rig.disk, "REC00003/REC03000.CSV"));
        assert_eq!(rig.disk.entry(other)[0], 0xE5);
        assert_eq!(rig.disk.entry(recording), entry);
        assert_eq!(listed(&mut rig, &mut volume), [3000]);
        assert_eq!(rig.table(), table);
        done(volume.remove(&mut rig.disk, "REC00003/REC03000.CSV"));
        assert_eq!(rig.disk.entry(recording)[0], 0xE5);
        assert_eq!(listed(&mut rig, &mut volume), []);
    }
}

/// Another program may have given a recording a name that extends over two blocks.
#[test]
fn a_recording_is_removed_with_its_whole_name() {
    for shape in shapes() {
        let (mut rig, mut volume, start) = with_recording(shape);
        let entry = rig.disk.entry(place(start + 1, 0));
        rig.disk.put_entry(place(start + 1, 0), EMPTY);
        let units: Vec<u16> = "REC03000 flight.CSV".encode_utf16().collect();
        let sum = sum_of(b"REC03000CSV");
        let name = [
            (place(start + 2, 14), long(0x42, sum, &units[13..])),
            (place(start + 2, 15), long(1, sum, &units[..13])),
            (place(start + 3, 0), entry),
        ];
        for (place, entry) in name {
            rig.disk.put_entry(place, entry);
        }
        let mut records = Vec::new();
        let show = |it: &crate::fat::IndexRecord| records.push(*it);
        done(volume.list_folder(&mut rig.disk, *b"REC", 3, show));
        records[0].place = 3 * 16;
        done(volume.write_index(&mut rig.disk, rec(3000), Some(&records[0])));
        done(volume.remove(&mut rig.disk, "REC00003/REC03000 flight.CSV"));
        for (place, _) in name {
            assert_eq!(rig.disk.entry(place)[0], 0xE5, "{place:?}");
        }
        assert_eq!(listed(&mut rig, &mut volume), []);
    }
}

/// Entries after the end mark mean nothing.
#[test]
fn a_directory_with_stale_entries_is_empty() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut rig = made(kind);
        let stale = place(rig.layout.block_of(35), 3);
        rig.disk
            .put_entry(stale, short(b"STALE   TXT", 0x20, 30, 500));
        let mut volume = mounted(&rig);
        done(volume.remove(&mut rig.disk, "e"));
        assert_eq!(rig.get(35), 0);
        assert!(poll(volume.lookup(&mut rig.disk, "e")).is_err());
    }
}

#[test]
fn the_next_search_begins_after_a_new_directory() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut rig = made(kind);
        let mut volume = mounted(&rig);
        done(volume.make_directory(&mut rig.disk, "x"));
        assert_eq!((rig.get(14), volume.record.hint), (rig.end(), 15));
    }
}

/// The number of free clusters does not change.
#[test]
fn a_move_that_replaces_nothing_writes_two_entries_and_the_journal() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut rig = made(kind);
        let mut volume = mounted(&rig);
        done(volume.rename(&mut rig.disk, "b.txt", "c.txt", false));
        let ([one, other], root) = (volume.copies, rig.root_block());
        let writes = [other, root, root, one].map(|block| (block, 1));
        assert_eq!(rig.disk.writes, writes);
    }
}

/// A cluster that is linked already may contain entries of another program, which may also have extended the directory
/// with another cluster.
#[test]
fn an_interrupted_extension_keeps_entries_of_other_programs() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let clean = made(kind);
        let [mut linked, mut foreign] = [0; 2];
        for cut in 0.. {
            let mut rig = clean.clone();
            rig.disk.left = cut;
            if CHANGES[0](&mut mounted(&rig), &mut rig.disk).is_ok() {
                break;
            }
            rig.disk.left = u32::MAX;
            let Some(Intent::ExtendDirectory { last, new }) = newest(&rig).map(|it| it.intent)
            else {
                continue;
            };
            if rig.get(last) == new {
                linked += 1;
                let entry = short(b"OTHER   TXT", 0x20, 0, 0);
                let place = place(rig.layout.block_of(new), 0);
                rig.disk.put_entry(place, entry);
                recover(&mut rig).unwrap();
                assert_eq!(rig.disk.entry(place), entry, "after {cut}");
                assert!(tree(&rig).contains_key("d_______.___/other___.txt"));
            } else {
                foreign += 1;
                rig.chain(&[last, 38]);
                let links = |rig: &Rig| [last, 38, new].map(|it| rig.get(it));
                let before = links(&rig);
                recover(&mut rig).unwrap();
                assert_eq!(links(&rig), before, "after {cut}");
            }
        }
        assert!(linked > 0 && foreign > 0);
    }
}

/// Returns the move in progress: its target and its first cluster.
fn move_of(rig: &Rig) -> Option<(Target, Option<Place>, u32)> {
    match newest(rig)?.intent {
        Intent::Move {
            from, to, first, ..
        } => Some((to, from.map(|it| it.place()), first)),
        _ => None,
    }
}

/// While a file has two entries, a repair tool may truncate the new one, which is restored from the old one.
#[test]
fn a_truncated_entry_is_restored() {
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let clean = made(kind);
        let mut count = 0;
        // Renames of files, and uploads.
        for change in [&CHANGES[2..6], &CHANGES[10..12]].concat() {
            let mut whole = clean.clone();
            let mut volume = mounted(&whole);
            change(&mut volume, &mut whole.disk).unwrap();
            let writes: u32 = whole.disk.writes.iter().map(|it| it.1).sum();
            for cut in 0..writes {
                let mut rig = clean.clone();
                rig.disk.left = cut;
                let mut volume = mounted(&rig);
                assert!(change(&mut volume, &mut rig.disk).is_err());
                rig.disk.left = u32::MAX;
                let Some((to, Some(from), first)) = move_of(&rig) else {
                    continue;
                };
                let mut entry = rig.disk.entry(to.place());
                let begin = u32::from(u16::from_le_bytes([entry[26], entry[27]]));
                if begin != first || rig.disk.entry(from)[0] == 0xE5 {
                    continue;
                }
                count += 1;
                entry[26..].fill(0);
                rig.disk.put_entry(to.place(), entry);
                // Not if the old entry has changed too.
                for byte in [0, 26] {
                    let mut rig = rig.clone();
                    let mut old = rig.disk.entry(from);
                    old[byte] ^= 1;
                    rig.disk.put_entry(from, old);
                    recover(&mut rig).unwrap();
                    assert_eq!(rig.disk.entry(to.place()), entry);
                }
                recover(&mut rig).unwrap();
                assert_eq!(tree(&rig), tree(&whole));
                assert_eq!(rig.disk.entry(to.place())[11] & 0x06, 0);
            }
        }
        assert_eq!(count, 6, "one state of each change");
    }
}

/// The contents of a file may look like those of a directory.
#[test]
fn a_move_changes_no_contents() {
    let mut rig = made(FatKind::Fat16);
    let block = rig.layout.block_of(20);
    let entry = short(b"..         ", 0x10, 7, 0);
    rig.disk.put_entry(place(block, 1), entry);
    let before = rig.disk.blocks[block as usize];
    let mut volume = rig.volume();
    done(volume.rename(&mut rig.disk, LONG, "e/Other name.txt", false));
    assert!(rig.disk.blocks[block as usize] == before);
}
