//! Recordings in progress, as a recorder publishes them.

use super::*;
use crate::guest::Unfinished;
use crate::volume::{Extent, FileId, ShortText};

/// Attributes of a recording in progress.
const UNFINISHED: u8 = 0x24;
/// First clusters of the recordings; each has four.
const NAMED: u32 = 10;
const UNNAMED: u32 = 20;
const FINISHED: u32 = 30;
const CLUSTERS: u32 = 4;
/// Cluster of the folder.
const FOLDER: u32 = 5;

fn log(number: u32) -> FileId {
    FileId {
        prefix: *b"LOG",
        extension: *b"CSV",
        number,
    }
}

fn unfinished(card: &Card, id: FileId, first: u32, is_named: bool, bytes: u32) -> Unfinished {
    Unfinished {
        id,
        session: ShortText::EMPTY,
        extent: Extent {
            start: card.rig.layout.first_block(first),
            blocks: CLUSTERS * card.shape.cluster_blocks,
        },
        epoch: 1000 + id.number,
        is_named,
        bytes,
        first_us: 0,
        last_us: 0,
        samples: 0,
        gaps: 0,
        lost: 0,
    }
}

/// Returns the entry of a recording in the folder, at this position.
fn put_entry(card: &mut Card, at: usize, entry: [u8; 32]) {
    let block = card.rig.layout.first_block(FOLDER);
    card.rig.disk.blocks[block as usize][at * 32..][..32].copy_from_slice(&entry);
}

fn data_of(shape: Shape, first: u32) -> Vec<u8> {
    bytes_of(
        first,
        (CLUSTERS * shape.cluster_blocks) as usize * BLOCK_BYTES,
    )
}

/// A folder with a recording in progress, a finished one, and one that a power cut interrupted; and recordings in
/// progress that no directory names yet.
fn recording(shape: Shape, test: impl FnOnce(&Served)) {
    let mut card = Card::new(shape);
    let root = card.root();
    card.put_entries(&root, &[short(b"LOG00000   ", DIRECTORY, FOLDER, 0)]);
    card.rig.chain(&[FOLDER]);
    for first in [NAMED, UNNAMED, FINISHED] {
        let clusters: Vec<u32> = (first..first + CLUSTERS).collect();
        card.write(&clusters, &data_of(shape, first));
    }
    let size = CLUSTERS * shape.cluster_blocks * 512;
    for (at, entry) in [
        short(b"LOG00001CSV", FILE, FINISHED, size - 100),
        short(b"LOG00002CSV", UNFINISHED, NAMED, size),
        short(b"LOG00003CSV", UNFINISHED, 40, size),
        short(b"LOG00005CSV", FILE, 0, 0),
    ]
    .into_iter()
    .enumerate()
    {
        put_entry(&mut card, at, entry);
    }
    let other = FileId {
        prefix: *b"ABC",
        ..log(8)
    };
    let files = [
        (1, unfinished(&card, log(2), NAMED, true, 700)),
        (2, unfinished(&card, log(6), UNNAMED, false, 1100)),
        (3, unfinished(&card, log(1000), 50, false, 0)),
        (4, unfinished(&card, other, 54, false, 0)),
        (6, unfinished(&card, log(7), 58, false, 0)),
    ];
    with(card, |served| {
        for (slot, file) in files {
            served.desk.publish(slot, Some(file));
        }
        test(served);
    });
}

#[test]
fn listings_end_with_recordings_that_the_folder_will_name() {
    for shape in SHAPES {
        recording(shape, |served| {
            let found = served.list("LOG00000").unwrap();
            let found = found.iter().map(|(name, file)| {
                let id = file.growing().map(|growing| growing.id.number);
                (name.as_str(), id, file.bytes(), file.first_cluster())
            });
            let size = u64::from(CLUSTERS * shape.cluster_blocks) * 512;
            let due = [
                ("LOG00001.CSV", None, size - 100, FINISHED),
                ("LOG00002.CSV", Some(2), 700, NAMED),
                ("LOG00005.CSV", None, 0, 0),
                ("LOG00006.CSV", Some(6), 1100, 0),
                ("LOG00007.CSV", Some(7), 0, 0),
            ];
            assert_eq!(found.collect::<Vec<_>>(), due);
            // The root directory names no recordings.
            let root = served.list("/").unwrap();
            assert_eq!(root.len(), 1);
            assert!(root[0].1.is_directory());
        });
    }
}

#[test]
fn a_recording_in_progress_is_read_up_to_its_durable_length() {
    for shape in SHAPES {
        recording(shape, |served| {
            for (path, id, first, bytes) in [
                ("LOG00000/LOG00002.CSV", log(2), NAMED, 700),
                ("/log00000/log00006.csv", log(6), UNNAMED, 1100),
            ] {
                let by_id = served.run(served.files().open_recording(id)).unwrap();
                for file in [served.open(path).unwrap(), by_id] {
                    assert_eq!(file.growing().unwrap().id, id);
                    assert!(!file.is_directory());
                    assert_eq!(file.modified(), None);
                    let data = data_of(shape, first);
                    assert_eq!(served.contents(&file).unwrap(), data[..bytes], "{path}");
                    served.reads.borrow_mut().clear();
                    let epoch = served.run(served.files().epoch(&file));
                    assert_eq!(epoch, Ok(Some(1000 + id.number)));
                    assert_eq!(*served.reads.borrow(), []);
                    // It ends with its preallocated blocks.
                    let end = u64::from(CLUSTERS * shape.cluster_blocks) * 512;
                    assert_eq!(served.run(served.files().locate(&file, end - 1)), Ok(()));
                    let located = served.run(served.files().locate(&file, end));
                    assert_eq!(located, Err(FileError::Changed));
                }
            }
            let error = served.open("LOG00000/LOG00003.CSV").unwrap_err();
            assert_eq!(error, FileError::NotFound, "an interrupted recording");
            let error = served.open("LOG00000/LOG00009.CSV").unwrap_err();
            assert_eq!(error, FileError::NotFound);
        });
    }
}

#[test]
fn recordings_in_progress_are_counted_by_their_slots() {
    recording(SHAPES[0], |served| {
        let from = |slot| {
            let found = served.files().next_unfinished(slot);
            found.map(|(slot, file)| (slot, file.id.number))
        };
        let found: Vec<_> = (0..8).map(from).collect();
        let [two, six, folder, other, seven] =
            [(1, 2), (2, 6), (3, 1000), (4, 8), (6, 7)].map(Some);
        assert_eq!(found, [two, two, six, folder, other, seven, seven, None]);
    });
}

#[test]
fn an_open_recording_follows_the_recorder() {
    for shape in SHAPES {
        recording(shape, |served| {
            let files = served.files();
            let mut file = served.open("LOG00000/LOG00002.CSV").unwrap();
            let data = data_of(shape, NAMED);
            let published = files.next_unfinished(1).unwrap().1;
            for bytes in [700, 1200, 2048] {
                served
                    .desk
                    .publish(1, Some(Unfinished { bytes, ..published }));
                served.run(files.refresh(&mut file)).unwrap();
                assert_eq!(file.growing().unwrap().id, log(2));
                let read = served.contents(&file).unwrap();
                assert_eq!(read, data[..bytes as usize]);
            }
            // Finished in the meantime.
            served.desk.publish(1, None);
            served.change(|card| put_entry(card, 1, short(b"LOG00002CSV", FILE, NAMED, 2047)));
            served.run(files.refresh(&mut file)).unwrap();
            assert!(file.growing().is_none() && !file.is_directory());
            assert_eq!(file.first_cluster(), NAMED);
            assert_eq!(served.contents(&file).unwrap(), data[..2047]);
        });
    }
}

#[test]
fn a_recording_that_became_another_file_or_disappeared_has_changed() {
    let is_other = |first| short(b"LOG00002CSV", FILE, first, 500);
    let is_gone = short(b"\xE5OG00002CSV", FILE, NAMED, 500);
    for entry in [UNNAMED, NAMED + 1, 0]
        .map(is_other)
        .into_iter()
        .chain([is_gone])
    {
        recording(SHAPES[0], |served| {
            let mut file = served.open("LOG00000/LOG00002.CSV").unwrap();
            served.desk.publish(1, None);
            served.change(|card| put_entry(card, 1, entry));
            let refreshed = served.run(served.files().refresh(&mut file));
            assert_eq!(refreshed, Err(FileError::Changed), "{entry:x?}");
        });
    }
}

/// Removals of other files do not interrupt its readers.
#[test]
fn a_recording_is_read_until_the_recorder_discards_it() {
    recording(SHAPES[0], |served| {
        let data = data_of(SHAPES[0], UNNAMED);
        let file = served.open("LOG00000/LOG00006.CSV").unwrap();
        served.desk.note_change();
        assert_eq!(served.contents(&file).unwrap(), data[..1100]);
        served.desk.publish(2, None);
        served.desk.note_change();
        let located = served.run(served.files().locate(&file, 0));
        assert_eq!(located, Err(FileError::Changed));
        assert_eq!(served.contents(&file), Err(FileError::Changed));
    });
}
