//! Guests' changes of recordings, and moves after which a repair tool has changed the card.

use super::folder::shapes;
use super::guests::{CHANGES, LONG, made, recover, tree};
use super::operations::{numbered, record};
use super::recordings::newest;
use super::*;
use crate::fat::guest_record::Target;
use crate::fat::{Error, Refusal};

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
            let mut volume = whole.volume();
            volume.record.hint = 14;
            change(&mut volume, &mut whole.disk).unwrap();
            let writes: u32 = whole.disk.writes.iter().map(|it| it.1).sum();
            for cut in 0..writes {
                let mut rig = clean.clone();
                rig.disk.left = cut;
                let mut volume = rig.volume();
                volume.record.hint = 14;
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
