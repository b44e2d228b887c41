//! The root directory, entry by entry.

use super::*;
use crate::fat::Error;
use crate::fat::names::{hidden_name, upload_name};
use crate::fat::record::{File, Kind};
use crate::fat::root::{is_file, is_free};
use cardiograph_sim_world::Seed;
use hadris_fat_raw::{ShortEntry, Slot};

const SMALL: Shape = Shape {
    kind: FatKind::Fat16,
    clusters: 24,
    cluster_blocks: 1,
    shift: 0,
};
const BOTH: [FatKind; 2] = [FatKind::Fat16, FatKind::Fat32];

fn parsed(raw: &[u8; 32]) -> ShortEntry {
    match Slot::parse(raw) {
        Slot::Short(entry) => entry,
        _ => panic!("not a short entry"),
    }
}

#[test]
fn a_scan_ends_where_it_is_told_or_at_the_end_mark() {
    for kind in BOTH {
        let mut rig = Rig::new(Shape { kind, ..SMALL });
        let start = rig.root_block();
        for index in 0..6 {
            let entry = short(&SHORT, 0x20, 0, index);
            rig.disk.put_entry(place(start, index as usize), entry);
        }
        let mut volume = rig.volume();
        for last in 0..9 {
            let mut seen = Vec::new();
            let mut pass = |place: Place, _| {
                seen.push(place.index);
                place.index < last
            };
            let end = done(volume.scan_root(&mut rig.disk, &mut pass));
            assert!(end.is_none());
            assert_eq!(seen, (0..=last.min(6)).collect::<Vec<u8>>());
        }
    }
}

/// A directory has at most 65,536 entries (FAT specification, section 6.1).
#[test]
fn the_longest_root_directory_has_65536_entries() {
    const CLUSTER_BLOCKS: u32 = 128;
    const MOST: u32 = 65_536 / 16 / CLUSTER_BLOCKS;
    let mut rig = Rig::new(Shape {
        kind: FatKind::Fat32,
        clusters: MOST + 2,
        cluster_blocks: CLUSTER_BLOCKS,
        shift: 0,
    });
    rig.disk.blocks[rig.layout.data as usize..].fill([0xE5; 512]);
    let mut volume = rig.volume();
    for count in [1, MOST - 1, MOST, MOST + 1] {
        let clusters: Vec<u32> = (2..2 + count).collect();
        rig.chain(&clusters);
        let mut seen = 0;
        let mut pass = |_, _| {
            seen += 1;
            true
        };
        let end = poll(volume.scan_root(&mut rig.disk, &mut pass));
        if count > MOST {
            assert!(matches!(end, Err(Error::DamagedRoot)));
            continue;
        }
        let end = end.unwrap().unwrap();
        assert_eq!((end.last, end.is_longest), (1 + count, count == MOST));
        assert_eq!(seen, count * CLUSTER_BLOCKS * 16);
    }
    // Links to clusters that do not exist.
    for next in [rig.layout.clusters_end, rig.layout.clusters_end + 1] {
        rig.put(2, next);
        let end = poll(volume.scan_root(&mut rig.disk, &mut |_, _| true));
        assert!(matches!(end, Err(Error::DamagedRoot)), "{next}");
    }
}

#[test]
fn uploads_are_noticed_among_other_entries() {
    for (at, number) in [
        (None, 0),
        (Some(0), 0),
        (Some(2), 1),
        (Some(4), 0),
        (Some(4), 2),
    ] {
        let mut rig = Rig::new(SMALL);
        for index in 0..5 {
            let name = if at == Some(index) {
                upload_name(number)
            } else {
                SHORT
            };
            let place = place(rig.root_block(), index);
            rig.disk.put_entry(place, short(&name, 0x26, 0, 0));
        }
        let mut volume = rig.volume();
        let seen = done(volume.survey_root(&mut rig.disk));
        assert_eq!(seen.has_uploads, at.is_some() && number < 2);
    }
}

#[test]
fn a_hidden_name_is_the_first_of_its_slot_that_is_free() {
    let mut random = Seed::new(20_261_126).stream("names");
    for slot in 0..8 {
        for full in [false, true] {
            let mut rig = Rig::new(SMALL);
            let taken: Vec<u32> = match full {
                true => (0..100).filter(|it| it % 8 == slot as u32).collect(),
                false => (0..60).map(|_| random.below(100) as u32).collect(),
            };
            for (at, number) in taken.iter().enumerate() {
                let place = place(rig.root_block() + at as u32 / 16, at % 16);
                rig.disk
                    .put_entry(place, short(&hidden_name(*number), 0x26, 0, 0));
            }
            let mut free = (0..100).filter(|it| it % 8 == slot as u32 && !taken.contains(it));
            let due = free
                .next()
                .ok_or(Error::NameTaken(hidden_name(slot as u32)));
            let mut volume = rig.volume();
            let number = poll(volume.hidden_name_for(&mut rig.disk, slot));
            assert_eq!(number, due);
        }
    }
}

#[test]
fn clusters_are_claimed_by_an_entry_with_another_name() {
    let mut rig = Rig::new(SMALL);
    let start = rig.root_block();
    for first in 6..14 {
        for at in 0..4 {
            for is_own in [false, true] {
                for index in 0..4 {
                    rig.disk
                        .put_entry(place(start, index), short(&SHORT, 0x20, 3, 1));
                }
                let name = if is_own { *b"OWN        " } else { SHORT };
                rig.disk
                    .put_entry(place(start, at), short(&name, 0x20, first, 1));
                let mut volume = rig.volume();
                let own = b"OWN        ";
                let is_claimed = done(volume.is_claimed(&mut rig.disk, 8, 4, own));
                assert_eq!(is_claimed, (8..12).contains(&first) && !is_own, "{first}");
            }
        }
    }
}

#[test]
fn a_file_is_recognised_by_name_kind_and_cluster() {
    let mut rig = Rig::new(SMALL);
    let at = place(rig.root_block(), 2);
    for kind in [Kind::Named, Kind::Folder] {
        let file = File {
            kind,
            prefix: *b"REC",
            extension: *b"CSV",
            number: 7,
            place: at,
            first: 9,
            clusters: 1,
            epoch: 0,
            note: 0,
        };
        let (due, attribute) = match kind {
            Kind::Folder => (*b"REC00007   ", 0x10),
            _ => (*b"REC00007CSV", 0x20),
        };
        for name in [due, SHORT] {
            for attributes in [0x00, 0x20, 0x10, 0x08, 0x26] {
                for first in [9, 8] {
                    rig.disk.put_entry(at, short(&name, attributes, first, 5));
                    let is_kind =
                        (attributes & 0x10 != 0) == (attribute == 0x10) && attributes != 0x08;
                    let mut volume = rig.volume();
                    let entry = done(volume.entry_of(&mut rig.disk, &file, 9));
                    let is_it = name == due && is_kind && first == 9;
                    assert_eq!(entry.is_some(), is_it, "{attributes:#x} {first}");
                    let is_plain = attributes & 0x18 == 0;
                    assert_eq!(is_file(&parsed(&rig.disk.entry(at))), is_plain);
                }
            }
        }
    }
    for byte in 0..=255 {
        let mut raw = short(&SHORT, 0x20, 0, 0);
        raw[0] = byte;
        assert_eq!(is_free(&raw), matches!(byte, 0 | 0xE5));
    }
}

#[test]
fn an_entry_is_deleted_with_its_own_long_name() {
    let sum = sum_of(&SHORT);
    let clean = Rig::new(SMALL);
    let start = clean.root_block();
    for parts in 0..5 {
        let mut rig = clean.clone();
        // Parts of its name after parts of another.
        for index in 0..6 {
            let is_own = index >= 6 - parts;
            let entry = long(1, if is_own { sum } else { sum ^ 1 }, &[65]);
            rig.disk.put_entry(place(start, index), entry);
        }
        rig.disk
            .put_entry(place(start, 6), short(&SHORT, 0x20, 0, 0));
        rig.disk.put_entry(place(start, 7), long(1, sum, &[66]));
        let mut volume = rig.volume();
        done(volume.slot(&mut rig.disk, place(start, 6)));
        done(volume.delete_entry(&mut rig.disk, place(start, 6)));
        for index in 0..8 {
            let is_deleted = rig.disk.entry(place(start, index))[0] == 0xE5;
            assert_eq!(
                is_deleted,
                (6 - parts..=6).contains(&index),
                "{parts} {index}"
            );
        }
    }
}

#[test]
fn a_new_directory_is_empty_except_for_its_first_entry() {
    for cluster_blocks in [1, 2, 8, 16, 32, 128] {
        let clean = Rig::new(Shape {
            clusters: 3,
            cluster_blocks,
            ..SMALL
        });
        let raw = short(&SHORT, 0x10, 5, 0);
        for entry in [None, Some(parsed(&raw))] {
            let mut rig = clean.clone();
            let start = rig.layout.data + cluster_blocks;
            rig.disk.blocks.fill([0x77; 512]);
            let mut due = rig.disk.blocks.clone();
            due[start as usize..(start + cluster_blocks) as usize].fill([0; 512]);
            if entry.is_some() {
                due[start as usize][..32].copy_from_slice(&raw);
            }
            let mut volume = rig.volume();
            done(volume.write_directory(&mut rig.disk, 3, entry));
            assert!(rig.disk.blocks == due, "{cluster_blocks}");
            assert!(rig.disk.writes.iter().all(|it| it.1 <= 16));
        }
    }
}
