//! The index of a folder: one record of 128 bytes for each number, in the blocks after the directory.

use super::folder::{WithFolder, rec, shapes, with_folder};
use super::*;
use crate::fat::record::{File, Kind};
use crate::fat::{INDEX_RECORD_BYTES, IndexRecord};
use crate::volume::FileRecord;

/// Numbers around the ends of blocks.
const NUMBERS: [u32; 9] = [3000, 3001, 3003, 3004, 3006, 3500, 3501, 3998, 3999];

fn listed(number: u32, is_recovered: bool) -> IndexRecord {
    IndexRecord {
        record: FileRecord {
            is_recovered,
            ..FileRecord::of_length(rec(number), number.into())
        },
        created: None,
        first: 100,
        place: 5,
        order: number,
    }
}

/// Returns the bytes of a number's record on the card.
fn bytes_of(folder: &WithFolder, number: u32) -> [u8; INDEX_RECORD_BYTES] {
    let (block, at) = (number % 1000 / 4, number % 1000 % 4);
    let block = folder.blocks().end + block;
    let mut bytes = [0; INDEX_RECORD_BYTES];
    let at = at as usize * INDEX_RECORD_BYTES;
    bytes.copy_from_slice(&folder.rig.disk.blocks[block as usize][at..][..INDEX_RECORD_BYTES]);
    bytes
}

/// Returns the numbers in the index, from the given one on.
fn numbers(folder: &mut WithFolder, from: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let mut from = from;
    let WithFolder { rig, volume, .. } = folder;
    while let Some(next) = done(volume.next_indexed(&mut rig.disk, *b"REC", from..4000)) {
        from = next.record.id.number + 1;
        found.push(next.record.id.number);
    }
    found
}

#[test]
fn records_are_in_the_order_of_their_numbers() {
    for shape in shapes() {
        let mut folder = with_folder(shape);
        for number in NUMBERS {
            let WithFolder { rig, volume, .. } = &mut folder;
            let record = listed(number, number % 2 == 0);
            done(volume.write_index(&mut rig.disk, rec(number), Some(&record)));
        }
        for number in 3000..4000 {
            let read = IndexRecord::decode(&bytes_of(&folder, number));
            let is_listed = NUMBERS.contains(&number);
            let expected = is_listed.then(|| listed(number, number % 2 == 0));
            assert_eq!(read, expected, "{number}");
        }
        for from in [3000, 3001, 3002, 3005, 3502, 3999] {
            let later: Vec<u32> = NUMBERS.into_iter().filter(|it| *it >= from).collect();
            assert_eq!(numbers(&mut folder, from), later);
        }
    }
}

/// A recording that was listed when power failed, before it was closed, is not finished.
#[test]
fn named_files_that_are_unfinished_are_not_listed() {
    let mut folder = with_folder(shapes()[0]);
    let WithFolder { rig, volume, .. } = &mut folder;
    for number in NUMBERS {
        done(volume.write_index(&mut rig.disk, rec(number), Some(&listed(number, false))));
    }
    let kinds = [
        (Kind::Named, 3003),
        (Kind::Version0_1, 3004),
        (Kind::Prepared, 3006),
        (Kind::Named, 3998),
        (Kind::Named, 3997),
    ];
    for (slot, (kind, number)) in kinds.into_iter().enumerate() {
        volume.record.reserved[slot] = Some(File {
            kind,
            prefix: *b"REC",
            extension: *b"CSV",
            number,
            place: place(60, 0),
            first: 100,
            clusters: 1,
            epoch: 0,
            note: 0,
        });
    }
    done(volume.clear_unfinished(&mut rig.disk));
    let left = NUMBERS.into_iter().filter(|it| ![3003, 3998].contains(it));
    assert_eq!(numbers(&mut folder, 3000), left.collect::<Vec<_>>());
}
