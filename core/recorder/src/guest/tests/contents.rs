//! Lookups, listings and contents, compared with what the tests have written to the card.

use super::*;
use crate::DosTime;
use crate::fat::Error;
use crate::format::{binary, mark};
use crate::guest::reader::OnDesk;
use crate::reads::ReadError;
use crate::recover::Reader;
use std::format;

const LONG: &str = "Some longer name.txt";
/// Clusters of `A.BIN`: runs of three, two and one.
const A: [u32; 6] = [10, 11, 12, 20, 21, 15];
const MODIFIED: DosTime = DosTime {
    date: 46 << 9 | 11 << 5 | 22,
    time: 10 << 11 | 30 << 5 | 7,
};

/// A file or directory that guests see.
struct Item {
    path: String,
    first: u32,
    /// The contents of a file.
    data: Option<Vec<u8>>,
    modified: DosTime,
}

/// Returns a card, and everything on it that is not hidden, in the order of its directories.
fn made(shape: Shape) -> (Card, Vec<Item>) {
    let mut card = Card::new(shape);
    let (mut items, mut entries) = (Vec::new(), Vec::new());
    let cluster_bytes = shape.cluster_blocks as usize * BLOCK_BYTES;
    let sum = sum_of(b"SOMELO~1TXT");
    let units: Vec<u16> = LONG.encode_utf16().collect();
    let mut file = |name: &[u8; 11], path: &str, clusters: &[u32], bytes: usize| {
        let number = items.len() as u16;
        let data = bytes_of(number.into(), bytes);
        card.write(clusters, &data);
        let modified = DosTime {
            date: MODIFIED.date + number,
            time: MODIFIED.time - number,
        };
        let first = clusters.first().copied().unwrap_or(0);
        let entry = short(name, FILE, first, bytes as u32);
        items.push(Item {
            path: path.into(),
            first,
            data: Some(data),
            modified,
        });
        dated(entry, modified.date, modified.time)
    };
    entries.push(short(b"CARD       ", 0x08, 0, 0));
    entries.push(file(b"A       BIN", "A.BIN", &A, 6 * cluster_bytes - 300));
    entries.push(short(b"SECRET  SYS", FILE | HIDDEN, 23, 10));
    entries.push(short(b"H          ", DIRECTORY | HIDDEN, 36, 0));
    entries.push(long(0x42, sum, &units[13..]));
    entries.push(long(1, sum, &units[..13]));
    entries.push(file(b"SOMELO~1TXT", LONG, &[22], 100));
    entries.push(file(b"EMPTY   TXT", "EMPTY.TXT", &[], 0));
    let root = entries.len();
    // More than a block.
    for number in 0..20 {
        let name = format!("N{number:07}TXT");
        let path = format!("D/N{number:07}.TXT");
        let (clusters, bytes) = match number {
            7 => (&[24, 25][..], cluster_bytes + 1),
            _ => (&[][..], 0),
        };
        let name = name.as_bytes().try_into().unwrap();
        entries.push(file(name, &path, clusters, bytes));
    }
    let inside = entries.split_off(root);
    // The length of a directory is meaningless.
    let directory = short(b"D          ", DIRECTORY, 31, 0x1234);
    entries.push(dated(directory, MODIFIED.date, MODIFIED.time));
    items.insert(
        3,
        Item {
            path: "D".into(),
            first: 31,
            data: None,
            modified: MODIFIED,
        },
    );
    let blocks = card.root();
    card.put_entries(&blocks, &entries);
    for (clusters, above, inside) in [
        (&[31, 33][..], 31, &inside[..]),
        (&[36], 36, &[short(b"X       TXT", FILE, 0, 0)]),
    ] {
        card.rig.chain(clusters);
        let mut entries = vec![
            short(b".          ", DIRECTORY, above, 0),
            short(b"..         ", DIRECTORY, 0, 0),
        ];
        entries.extend_from_slice(inside);
        let blocks = card.blocks(clusters);
        card.put_entries(&blocks, &entries);
    }
    (card, items)
}

/// Compares a file or directory with what is on the card.
fn assert_is(served: &Served, file: &CardFile, item: &Item) {
    let path = &item.path;
    assert_eq!(file.is_directory(), item.data.is_none(), "{path}");
    assert_eq!(file.first_cluster(), item.first, "{path}");
    assert_eq!(file.modified(), Some(item.modified), "{path}");
    assert!(file.growing().is_none(), "{path}");
    let bytes = item.data.as_ref().map_or(0, Vec::len);
    assert_eq!(file.bytes(), bytes as u64, "{path}");
    let due = item.data.clone().ok_or(FileError::IsDirectory);
    assert_eq!(served.contents(file), due, "{path}");
}

#[test]
fn listings_and_lookups_find_what_is_on_the_card() {
    for shape in SHAPES {
        let (card, items) = made(shape);
        with(card, |served| {
            for item in &items {
                for path in [
                    item.path.clone(),
                    format!("/{}", item.path.to_lowercase()),
                    format!("{}/", item.path),
                ] {
                    assert_is(served, &served.open(&path).unwrap(), item);
                }
            }
            for directory in ["", "D/"] {
                let found = served.list(directory).unwrap();
                let is_inside = |item: &&Item| match item.path.strip_prefix(directory) {
                    Some(name) => !name.contains('/'),
                    None => false,
                };
                let due: Vec<&Item> = items.iter().filter(is_inside).collect();
                assert_eq!(found.len(), due.len());
                for ((name, file), item) in found.iter().zip(due) {
                    assert_eq!(format!("{directory}{name}"), item.path);
                    assert_is(served, file, item);
                }
            }
            let root = served.open("/").unwrap();
            assert!(root.is_directory() && root.growing().is_none());
            let (bytes, first) = (root.bytes(), root.first_cluster());
            assert_eq!((bytes, first, root.modified()), (0, 0, None));
        });
    }
}

#[test]
fn lookups_fail_with_the_reason() {
    let (card, _) = made(SHAPES[0]);
    with(card, |served| {
        for (path, error) in [
            ("NONE", FileError::NotFound),
            ("D/NONE", FileError::NotFound),
            ("A.BIN/X", FileError::NotDirectory),
            ("D//X", FileError::NameInvalid),
            ("SECRET.SYS", FileError::Hidden),
            ("H", FileError::Hidden),
            ("H/X.TXT", FileError::Hidden),
        ] {
            assert_eq!(served.open(path).unwrap_err(), error, "{path}");
            assert_eq!(served.list(path).unwrap_err(), error, "{path}");
        }
        let error = served.list("A.BIN").unwrap_err();
        assert_eq!(error, FileError::NotDirectory);
        served.desk.refuse();
        let error = served.open("A.BIN").unwrap_err();
        assert_eq!(error, FileError::Read(ReadError::NoCard));
    });
}

/// An entry is judged by its long name, its short name and its attributes, whichever name a client uses.
#[test]
fn every_name_of_a_protected_file_is_refused() {
    // Its long name, its short name as stored and as shown, its attributes, and true if guests see it.
    let cases: [(&str, &[u8; 11], &str, u8, bool); 13] = [
        (".wifi.txt", b"WIFI~1  TXT", "wifi~1.txt", FILE, false),
        (".ssh", b"SSH~1      ", "SSH~1", DIRECTORY, false),
        (
            "LOG00001.CSV.part",
            b"LOG000~1PAR",
            "LOG000~1.PAR",
            FILE,
            false,
        ),
        // ".part" is in two entries, and so is what follows it.
        (
            "123456789.part",
            b"123456~1PAR",
            "123456~1.PAR",
            FILE,
            false,
        ),
        (
            "12345678901.part. ",
            b"123456~2PAR",
            "123456~2.PAR",
            FILE,
            false,
        ),
        (
            "cardıogr.a long text",
            b"CARDIO~1A  ",
            "CARDIO~1.A",
            FILE,
            false,
        ),
        ("harmless.txt", b"CARDIOGRTXT", "cardiogr.txt", FILE, false),
        ("", b"HIDDEN  TXT", "HIDDEN.TXT", FILE | 2, false),
        ("", b"SYSTEM     ", "SYSTEM", DIRECTORY | 4, false),
        ("a.part.txt", b"APART~1 TXT", "APART~1.TXT", FILE, true),
        ("", b"CARDIOGR   ", "CARDIOGR", FILE, true),
        ("CARDIOGRAM.TXT", b"CARDIO~1TXT", "CARDIO~1.TXT", FILE, true),
        ("x.wifi.txt", b"XWIFI~1 TXT", "XWIFI~1.TXT", FILE, true),
    ];
    for shape in SHAPES {
        let mut card = Card::new(shape);
        let mut entries = Vec::new();
        card.write(&[40], b"secret");
        for (name, stored, _, attributes, _) in cases {
            let (units, sum): (Vec<u16>, u8) = (name.encode_utf16().collect(), sum_of(stored));
            let parts = units.chunks(13).enumerate().collect::<Vec<_>>();
            for (at, part) in parts.iter().rev() {
                let last = if at + 1 == parts.len() { 0x40 } else { 0 };
                entries.push(long(last | (at + 1) as u8, sum, part));
            }
            entries.push(short(stored, attributes, 40, 6));
        }
        let blocks = card.root();
        card.put_entries(&blocks, &entries);
        with(card, |served| {
            let listed = served.list("").unwrap();
            for (name, _, shown, attributes, is_seen) in cases {
                let is_valid = !name.is_empty() && !name.ends_with(' ');
                for path in [name, shown].into_iter().skip(usize::from(!is_valid)) {
                    let refused = (!is_seen).then_some(FileError::Hidden);
                    assert_eq!(served.open(path).err(), refused, "{path}");
                    let is_listed = listed.iter().any(|(listed, _)| listed == path);
                    let is_due = is_seen && (path == name || name.is_empty());
                    assert_eq!(is_listed, is_due, "{path}");
                    // The device itself reads its settings.
                    let file = served.run(served.files().open_protected(path)).unwrap();
                    if attributes & DIRECTORY == 0 {
                        assert_eq!(served.contents(&file).unwrap(), b"secret", "{path}");
                    }
                }
            }
            assert_eq!(listed.len(), cases.iter().filter(|case| case.4).count());
        });
    }
}

#[test]
fn failures_of_a_lookup_are_reported_as_those_of_a_file() {
    for (error, due) in [
        (Error::Card(ReadError::Changed), FileError::Changed),
        (Error::Changed(*b"A       BIN"), FileError::Changed),
        (
            Error::Card(ReadError::Busy),
            FileError::Read(ReadError::Busy),
        ),
        (Error::NotFound, FileError::NotFound),
        (Error::NotDirectory, FileError::NotDirectory),
        (Error::NameInvalid, FileError::NameInvalid),
        (Error::BadName, FileError::NameInvalid),
        (Error::DamagedChain, FileError::Damaged),
        (Error::DamagedDirectory, FileError::Damaged),
    ] {
        assert_eq!(FileError::from(error), due);
    }
}

/// A read ends with the file, with its run of blocks, with the buffer or with the caller's limit, whichever comes first.
#[test]
fn reads_return_the_bytes_at_any_offset() {
    for shape in SHAPES {
        let (card, items) = made(shape);
        let data = items[0].data.clone().unwrap();
        let cluster_bytes = shape.cluster_blocks as usize * BLOCK_BYTES;
        with(card, |served| {
            let reused = served.open("A.BIN").unwrap();
            for bytes_max in [0, 1, 511, 512, 513, 2000, 100_000] {
                for offset in (0..data.len() + 600).step_by(157) {
                    let at = A.get(offset / cluster_bytes..).unwrap_or_default();
                    let pairs = at.windows(2);
                    let run = 1 + pairs.take_while(|pair| pair[0] + 1 == pair[1]).count();
                    let run_end = (offset / cluster_bytes + run) * cluster_bytes;
                    let buffer_end = (offset / BLOCK_BYTES + BUFFER_BLOCKS) * BLOCK_BYTES;
                    let end = [data.len(), run_end, buffer_end, offset + bytes_max];
                    let end = end.into_iter().min().unwrap().max(offset);
                    let due = data.get(offset..end).unwrap_or_default();
                    for file in [&served.open("A.BIN").unwrap(), &reused] {
                        let files = served.files();
                        let bytes = served.run(files.read(file, offset as u64, bytes_max));
                        let bytes = bytes.unwrap();
                        assert!(*bytes == *due, "{bytes_max} B at {offset}");
                    }
                }
            }
        });
    }
}

#[test]
fn only_located_blocks_are_read_without_a_lookup() {
    let (card, items) = made(SHAPES[0]);
    let data = items[0].data.clone().unwrap();
    with(card, |served| {
        let files = served.files();
        let file = served.open("A.BIN").unwrap();
        let read = |offset: u64| {
            let bytes = served.run(files.read_located(&file, offset, 10)).unwrap();
            bytes.map(|bytes| bytes.to_vec())
        };
        assert_eq!(read(600), None);
        served.run(files.locate(&file, 600)).unwrap();
        assert_eq!(read(600), Some(data[600..610].to_vec()));
        // The located run extends from block 1 to the end of cluster 12.
        assert_eq!(read(3 * 512 - 1), Some(data[3 * 512 - 1..3 * 512].to_vec()));
        assert_eq!((read(0), read(3 * 512)), (None, None));
        let end = served.run(files.locate(&file, 6 * 512));
        assert_eq!(end, Err(FileError::Damaged));
    });
}

#[test]
fn a_reader_of_blocks_returns_the_block() {
    let (card, _) = made(SHAPES[0]);
    let blocks = card.blocks(&A);
    with(card, |served| {
        let mut reader = OnDesk::new(&served.desk, served.desk.generation());
        assert_eq!(*reader.block(), [0; BLOCK_BYTES]);
        for block in blocks {
            served.run(reader.read(block)).unwrap();
            let due = served.card.borrow().rig.disk.blocks[block as usize];
            assert_eq!(*reader.block(), due);
        }
    });
}

/// Block 0 of a recording contains its epoch.
#[test]
fn the_epoch_of_a_recording_is_in_its_first_block() {
    let text = |epoch, index| {
        let mut block = [b'x'; BLOCK_BYTES];
        let mark = mark::Mark {
            epoch,
            index,
            ..mark::Mark::default()
        };
        mark::write(&mut block, &mark, 0);
        block
    };
    let binary = |epoch, index| {
        let mut block = [0; BLOCK_BYTES];
        let head = binary::Head {
            epoch,
            index,
            durable: 1,
            kind: 0,
            stream: 0,
            used: 0,
            first: 0,
            gaps: 0,
            sample: 0,
            lost: 0,
            age_ms: 0,
        };
        binary::seal(&mut block, &head);
        block
    };
    for (block, bytes, due) in [
        (text(0x1234_5678, 0), 512, Some(0x1234_5678)),
        (text(0x1234_5678, 0), 2000, Some(0x1234_5678)),
        (text(0x1234_5678, 0), 511, None),
        (text(0x1234_5678, 1), 512, None),
        (binary(0x9ABC_DEF0, 0), 513, Some(0x9ABC_DEF0)),
        (binary(0x9ABC_DEF0, 2), 513, None),
        ([b'x'; BLOCK_BYTES], 512, None),
        ([0; BLOCK_BYTES], 0, None),
    ] {
        let mut card = Card::new(SHAPES[1]);
        card.write(&[10], &block);
        let root = card.root();
        let directory = short(b"D          ", DIRECTORY, 10, 0);
        let file = short(b"LOG00001CSV", FILE, 10, bytes);
        card.put_entries(&root, &[directory, file]);
        with(card, |served| {
            let file = served.open("LOG00001.CSV").unwrap();
            let epoch = served.run(served.files().epoch(&file));
            assert_eq!(epoch, Ok(due), "{bytes} B");
            let directory = served.open("D").unwrap();
            assert_eq!(served.run(served.files().epoch(&directory)), Ok(None));
        });
    }
}
