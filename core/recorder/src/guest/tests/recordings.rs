//! The list of finished recordings, from indices that the tests have written as docs/formats.md describes them.

use super::*;
use crate::crc32::crc32;
use crate::volume::{FileId, FileRecord};
use std::format;

/// Blocks of a folder's directory, and of its index.
const DIRECTORY_BLOCKS: u32 = 335;
const INDEX_BLOCKS: u32 = 250;
const RECORD_BYTES: usize = 128;

/// Numbers of the recordings in each folder: the first and the last ones, and those around the ends of blocks and of
/// reads of eight blocks.
const FOLDERS: [(u32, &[u32]); 2] = [
    (3, &[0, 1, 3, 4, 31, 32, 35, 500, 501, 991, 992, 998, 999]),
    (70, &[2, 63, 64]),
];

fn record(folder: u32, number: u32) -> FileRecord {
    let id = FileId {
        prefix: *b"REC",
        extension: *b"CSV",
        number: folder * 1000 + number,
    };
    FileRecord::of_length(id, 10_000 + u64::from(number))
}

fn encoded(record: &FileRecord) -> [u8; RECORD_BYTES] {
    let mut bytes = [0; RECORD_BYTES];
    bytes[4] = 2;
    bytes[8..11].copy_from_slice(&record.id.prefix);
    bytes[11..14].copy_from_slice(&record.id.extension);
    bytes[16..20].copy_from_slice(&record.id.number.to_le_bytes());
    bytes[32..40].copy_from_slice(&record.bytes.to_le_bytes());
    let crc = crc32(0, &bytes[4..]);
    bytes[..4].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Returns a card with two folders, and the first blocks of their indices.
fn made(shape: Shape) -> (Card, [u32; 2]) {
    let mut card = Card::new(shape);
    let of = |blocks: u32| blocks.div_ceil(shape.cluster_blocks);
    let clusters = of(DIRECTORY_BLOCKS) + of(INDEX_BLOCKS);
    let mut starts = [0; 2];
    let mut entries = vec![
        short(b"CARD       ", 0x08, 0, 0),
        short(b"A       TXT", FILE, 0, 0),
    ];
    for (at, (folder, numbers)) in FOLDERS.into_iter().enumerate() {
        let first = 10 + at as u32 * clusters;
        let index = first + of(DIRECTORY_BLOCKS);
        let name = format!("REC{folder:05}   ");
        let name = name.as_bytes().try_into().unwrap();
        // A directory of another program is not a folder of recordings.
        entries.push(short(b"D          ", DIRECTORY, 4, 0));
        entries.push(short(name, DIRECTORY, first, 0));
        let heads = [
            short(b".          ", DIRECTORY, first, 0),
            short(b"..         ", DIRECTORY, 0, 0),
            short(b"CARDIOGRIDX", HIDDEN, index, INDEX_BLOCKS * 512),
        ];
        let start = card.rig.layout.first_block(first);
        card.put_entries(&[start], &heads);
        starts[at] = card.rig.layout.first_block(index);
        for number in numbers {
            let block = starts[at] + number / 4;
            let place = *number as usize % 4 * RECORD_BYTES;
            let bytes = encoded(&record(folder, *number));
            card.rig.disk.blocks[block as usize][place..][..RECORD_BYTES].copy_from_slice(&bytes);
        }
        // Two records that a power cut has damaged.
        for (block, place) in [(0, 2), (125, 3)] {
            let block = starts[at] + block;
            card.rig.disk.blocks[block as usize][place * RECORD_BYTES + 4] = 2;
        }
    }
    let root = card.root();
    card.put_entries(&root, &entries);
    (card, starts)
}

/// A recording, and the number of folders begun and of records passed after it.
type Listed = (FileRecord, (u32, u32));

/// Returns all recordings in the order of the list.
fn due() -> Vec<Listed> {
    let folders = (1..).zip(FOLDERS);
    let all = folders.flat_map(|(begun, (folder, numbers))| {
        let numbers = numbers.iter();
        numbers.map(move |number| (record(folder, *number), (begun, number + 1)))
    });
    all.collect()
}

impl Served<'_> {
    /// Returns the list from a place on; calls `before` with the number of each read.
    fn recordings(
        &self,
        place: (u32, u32),
        mut before: impl FnMut(usize),
    ) -> Result<Vec<Listed>, FileError> {
        let mut found = Vec::new();
        let all = async {
            let mut position = self.files().recordings(place).await?;
            assert_eq!(position.place(), place);
            while let Some(record) = self.files().next_recording(&mut position).await? {
                found.push((record.record, position.place()));
                assert!(found.len() < ENTRIES_MAX, "the list does not end");
            }
            Ok(())
        };
        self.run_with(all, &mut before).map(|()| found)
    }
}

#[test]
fn finished_recordings_are_those_of_the_indices() {
    for shape in SHAPES {
        let (card, starts) = made(shape);
        with(card, |served| {
            assert_eq!(served.recordings((0, 0), |_| ()), Ok(due()));
            // Only the indices are read, eight blocks at a time.
            let reads = served.reads.borrow();
            let mut of_indices = Vec::new();
            for start in starts {
                for at in (0..INDEX_BLOCKS).step_by(8) {
                    of_indices.push((start + at, (INDEX_BLOCKS - at).min(8) as usize));
                }
            }
            let indices = starts.map(|start| start..start + INDEX_BLOCKS);
            let is_index = |read: &&(u32, usize)| indices.iter().any(|it| it.contains(&read.0));
            let found: Vec<_> = reads.iter().filter(is_index).copied().collect();
            assert_eq!(found, of_indices);
        });
    }
}

#[test]
fn the_list_continues_at_any_place() {
    for shape in SHAPES {
        let (card, _) = made(shape);
        with(card, |served| {
            for (passed, (_, place)) in (1..).zip(due()) {
                let found = served.recordings(place, |_| ());
                assert_eq!(found, Ok(due()[passed..].to_vec()), "from {place:?}");
            }
        });
    }
}

/// Removals free blocks of files, but move neither folders nor records.
#[test]
fn removals_do_not_disturb_the_list() {
    let (card, _) = made(SHAPES[0]);
    with(card, |served| {
        for place in [(0, 0), (1, 501), (2, 3)] {
            let all = served.recordings(place, |_| ()).unwrap();
            let reads = served.reads.take().len();
            for changed in (0..reads).filter(|read| *read < 12 || read % 8 == 0) {
                let found = served.recordings(place, |read| {
                    if read == changed {
                        served.desk.note_change();
                    }
                });
                assert_eq!(found.as_ref(), Ok(&all), "changed at read {changed}");
            }
            served.reads.take();
        }
    });
}

#[test]
fn the_list_ends_when_the_card_is_exchanged() {
    let (card, _) = made(SHAPES[0]);
    with(card, |served| {
        let mut position = served.run(served.files().recordings((0, 0))).unwrap();
        let mut next = || served.run(served.files().next_recording(&mut position));
        assert!(next().is_ok_and(|found| found.is_some()));
        served.desk.note_change();
        assert!(next().is_ok_and(|found| found.is_some()));
        served.mount();
        let error = next().unwrap_err();
        assert_eq!(error, FileError::Read(crate::ReadError::OtherCard));
    });
}
