//! Records of the journal, byte by byte as docs/formats.md documents them.

use super::*;
use crate::crc32::crc32;
use crate::fat::DirEntry;
use crate::fat::guest_record::{NamePlace, SAME_PARENT};
use crate::fat::record::tests::LAYOUT;
use crate::fat::record::{File, Kind, Record, put};
use crate::volume::RESERVED_MAX;

const JOURNAL: u32 = 3;
/// First clusters of runs, and whether they exist.
const CLUSTERS: [(u32, bool); 7] = [
    (0, false),
    (1, false),
    (2, true),
    (500, true),
    (999, true),
    (1000, false),
    (u32::MAX, false),
];

/// A record with these bytes in addition to its identity.
fn record(magic: &[u8; 8], number: u8, fields: &[(usize, &[u8])]) -> Block {
    let mut block = [0; 512];
    block[..8].copy_from_slice(magic);
    block[8] = number;
    put(&mut block, 24, JOURNAL);
    // The first cluster, and the blocks of each.
    put(&mut block, 36, 50);
    put(&mut block, 40, 8);
    put(&mut block, 48, u32::MAX);
    for (at, bytes) in fields {
        block[*at..][..bytes.len()].copy_from_slice(bytes);
    }
    let crc = crc32(0, &block);
    put(&mut block, 16, crc);
    block
}

fn read(block: &Block) -> Option<Record> {
    Record::decode(block, &LAYOUT, JOURNAL, 0)
}

fn operation(number: u8, fields: &[(usize, &[u8])]) -> Option<Intent> {
    read(&record(b"CARDIOJ3", number, fields)).map(|record| record.intent)
}

/// A file of clusters 100 to 149 whose entry is the fourth in block 60.
fn file(kind: u8, clusters: u32) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[..7].copy_from_slice(b"LOGCSV\0");
    bytes[6] = kind;
    bytes[11] = 3;
    for (at, value) in [
        (7, 12),
        (12, 60),
        (16, 100),
        (20, clusters),
        (24, 7),
        (28, 1),
    ] {
        put(&mut bytes, at, value);
    }
    bytes
}

fn file_of(kind: Kind, clusters: u32) -> File {
    File {
        kind,
        prefix: *b"LOG",
        extension: *b"CSV",
        number: 12,
        place: place(60, 3),
        first: 100,
        clusters,
        epoch: 7,
        note: 1,
    }
}

/// The same as version 0.1 stored it.
fn old_file() -> ([u8; 32], File) {
    let mut bytes = file(0, 50);
    bytes[..11].copy_from_slice(b"LOG00012CSV");
    (bytes, file_of(Kind::Version0_1, 50))
}

/// Clusters of a folder's directory (335 blocks) and of its index (250 blocks).
const FOLDER: u32 = 42 + 32;

#[test]
fn operations_on_files_have_files_of_their_kind() {
    for kind in 0..=6 {
        for clusters in [0, 50, FOLDER] {
            let bytes = file(kind, clusters);
            let known = match kind {
                1 => Some(Kind::Prepared),
                2 => Some(Kind::Named),
                3 => Some(Kind::Version0_1),
                4 if clusters == FOLDER => Some(Kind::Folder),
                _ => None,
            };
            let found = known.map(|kind| file_of(kind, clusters));
            let of = |number| operation(number, &[(64, &bytes), (9, &[5])]);
            let only = |kind: Kind| found.filter(|file| file.kind == kind);
            let reserved = found.filter(|_| clusters > 0);
            assert_eq!(of(1), reserved.map(Intent::Reserve), "{kind}, {clusters}");
            assert_eq!(of(4), found.map(Intent::Remove), "{kind}, {clusters}");
            let named = only(Kind::Named).map(|file| Intent::Name { slot: 5, file });
            assert_eq!(of(7), named, "{kind}, {clusters}");
            let folder = only(Kind::Folder);
            assert_eq!(of(8), folder.map(Intent::MakeFolder), "{kind}, {clusters}");
            assert_eq!(
                of(9),
                folder.map(Intent::RemoveFolder),
                "{kind}, {clusters}"
            );
        }
    }
}

#[test]
fn directories_grow_by_clusters_that_exist() {
    for (first, has_first) in CLUSTERS {
        for (second, has_second) in CLUSTERS {
            let bytes = [first.to_le_bytes(), second.to_le_bytes()].concat();
            let of = |number| operation(number, &[(28, &bytes)]);
            let (last, new) = (first, second);
            let has_both = has_first && has_second;
            let grown = has_both.then_some(Intent::ExtendDirectory { last, new });
            assert_eq!(of(5), grown, "{first}, {second}");
            let is_made = has_both || (first, second) == (0, 0);
            let made = is_made.then_some(Intent::MakeJournal { last, new });
            assert_eq!(of(6), made, "{first}, {second}");
        }
    }
}

/// The layout of the same volume if it begins at this block.
fn from_block(start: u32) -> Layout {
    Layout {
        start,
        root: Root::Fixed {
            start: start + 20,
            blocks: 20,
        },
        data: start + 50,
        ..LAYOUT
    }
}

#[test]
fn addresses_are_relative_to_the_volume() {
    const START: u32 = 1_000;
    let bytes = file(2, 50);
    let moved = File {
        place: place(START + 60, 3),
        ..file_of(Kind::Named, 50)
    };
    let block = record(b"CARDIOJ3", 4, &[(64, &bytes), (96, &bytes)]);
    let read = Record::decode(&block, &from_block(START), JOURNAL, 7).unwrap();
    assert_eq!(read.intent, Intent::Remove(moved));
    assert_eq!(read.reserved[0], Some(moved));
    let mut written = [0; 512];
    read.encode(&from_block(START), &mut written);
    assert!(written == block);
    // The same record of a volume with other places of its clusters.
    for (at, value) in [(36, 49), (36, 51), (40, 4)] {
        let other = record(
            b"CARDIOJ3",
            4,
            &[(64, &bytes), (at, &u32::to_le_bytes(value))],
        );
        assert!(Record::decode(&other, &LAYOUT, JOURNAL, 0).is_none());
    }
    // Version 2 had addresses of the card, and the volume has moved since.
    for (old_start, block) in [(0, START + 60), (10, START + 50), (60, START), (5_000, 0)] {
        let old = record(b"CARDIOJ2", 4, &[(64, &bytes)]);
        let read = Record::decode(&old, &from_block(START), JOURNAL, old_start);
        let place = place(block, 3);
        let expected = (block >= START + 50).then_some(Intent::Remove(File { place, ..moved }));
        assert_eq!(read.map(|read| read.intent), expected, "{old_start}");
    }
}

/// Version 0.1 had the operations 0 to 6, and no prefixes.
#[test]
fn records_of_version_0_1_have_no_later_operations() {
    let (bytes, file) = old_file();
    let clusters = [100_u32.to_le_bytes(), 200_u32.to_le_bytes()].concat();
    let mut prefix = *b"LOG\0\0\0\0\0\0\0\0\0\0\0\0\0";
    put(&mut prefix, 4, 77);
    let mut guest = [0; 32];
    // A valid place to write, and a valid cluster, for operations 10 to 13.
    put(&mut guest, 16, 60);
    put(&mut guest, 24, 100);
    for number in 0..=20 {
        let fields: [(usize, &[u8]); 5] = [
            (9, &[2]),
            (28, &clusters),
            (64, if number < 10 { &bytes } else { &guest }),
            (96 + 32, &bytes),
            (352, &prefix),
        ];
        let read = read(&record(b"CARDIOJ1", number, &fields));
        let (last, new) = (100, 200);
        let expected = match number {
            0 => Some(Intent::Nothing),
            1 => Some(Intent::Reserve(file)),
            2 => Some(Intent::Close {
                slot: 2,
                bytes: 100,
            }),
            3 => Some(Intent::Discard { slot: 2 }),
            4 => Some(Intent::Remove(file)),
            5 => Some(Intent::ExtendDirectory { last, new }),
            6 => Some(Intent::MakeJournal { last, new }),
            _ => None,
        };
        assert_eq!(read.map(|read| read.intent), expected, "{number}");
        if let Some(read) = read {
            assert!(read.series.iter().all(Option::is_none));
            let files: [Option<File>; RESERVED_MAX] =
                core::array::from_fn(|slot| (slot == 1).then_some(file));
            assert_eq!(read.reserved, files);
        }
        // In version 2, the same bytes are operations of guests, but no file, and no run for an upload.
        let is_read = operation(number, &fields).is_some();
        let is_known = matches!(number, 0 | 2 | 3 | 5 | 6 | 10 | 11 | 13);
        assert_eq!(is_read, is_known, "{number}");
    }
}

#[test]
fn counts_and_prefixes_are_read_as_documented() {
    for (free, known) in [(0, Some(0)), (77, Some(77)), (u32::MAX, None)] {
        let mut prefixes = [0; 128];
        prefixes[..3].copy_from_slice(b"LOG");
        put(&mut prefixes, 4, 77);
        put(&mut prefixes, 8, 5);
        prefixes[32..35].copy_from_slice(b"lOG");
        prefixes[112..115].copy_from_slice(b"IMU");
        let fields: [(usize, &[u8]); 4] = [
            (44, &9_u32.to_le_bytes()),
            (48, &u32::to_le_bytes(free)),
            (52, &600_u32.to_le_bytes()),
            (352, &prefixes),
        ];
        let read = read(&record(b"CARDIOJ3", 0, &fields)).unwrap();
        assert_eq!((read.free, read.epochs, read.hint), (known, 9, 600));
        let mut expected = [None; 8];
        expected[0] = Some(Series {
            low: 5,
            ..series(*b"LOG", 77)
        });
        // Numbers begin with 1.
        expected[7] = Some(series(*b"IMU", 1));
        for (at, (read, expected)) in read.series.iter().zip(expected).enumerate() {
            let fields = |it: &Series| (it.prefix, it.next, it.low);
            assert_eq!(
                read.as_ref().map(fields),
                expected.as_ref().map(fields),
                "{at}"
            );
        }
    }
}

/// Operations of guests: positions and clusters have to exist.
#[test]
fn operations_of_guests_have_places_and_clusters_that_exist() {
    let set = |changes: &[(usize, u32)]| {
        // A name with a long name in two blocks, a target, a cluster, and a run.
        let mut block = [0; 512];
        for (at, value) in [
            (64, 60),
            (68, 61),
            (72, 0),
            (80, 71),
            (88, 500),
            (92, SAME_PARENT),
            (480, 4),
            (484, 2),
            (488, 9),
            (492, 3),
        ]
        .iter()
        .chain(changes)
        {
            put(&mut block, *at, *value);
        }
        (block[76], block[77], block[78], block[79]) = (15, 20, 7, 1);
        (block[84], block[85]) = (3, 0xA5);
        block
    };
    let reads = |block: &Block, number| {
        operation(number, &[(64, &block[64..96]), (480, &block[480..500])]).is_some()
    };
    let numbers = [10, 11, 12, 13];
    let all = |block: &Block| numbers.map(|number| reads(block, number));
    assert_eq!(all(&set(&[])), [true; 4]);
    for (cluster, exists) in CLUSTERS {
        let is_any = exists || cluster == 0;
        let block = set(&[(88, cluster)]);
        assert_eq!(all(&block), [is_any, is_any, exists, exists], "{cluster}");
        // 0 is the root directory.
        let is_parent = is_any || cluster == SAME_PARENT;
        let block = set(&[(92, cluster)]);
        assert_eq!(all(&block), [true, is_parent, true, true], "{cluster}");
        // The run that is freed or appended.
        let has_run = (2..=998).contains(&cluster);
        let block = set(&[(480, cluster)]);
        assert_eq!(all(&block), [has_run, has_run, has_run, true], "{cluster}");
    }
    // Only freeing may do without a run.
    assert_eq!(all(&set(&[(484, 0)])), [true, true, false, true]);
    for (block, index, exists) in [
        (19, 0, false),
        (20, 15, true),
        (20, 16, false),
        (40, 0, false),
        (8033, 15, true),
        (8033, 16, false),
        (8034, 0, false),
    ] {
        let mut from = set(&[(64, block)]);
        from[76] = index;
        assert_eq!(all(&from), [exists, exists, true, true], "{block}, {index}");
        let mut to = set(&[(80, block)]);
        to[84] = index;
        assert_eq!(all(&to), [true, exists, true, exists], "{block}, {index}");
    }
    for (before, entries, is_name) in [
        ([0, 0], 0, true),
        ([61, 62], 20, true),
        ([61, 62], 21, false),
        ([19, 0], 20, false),
        ([61, 8034], 20, false),
        ([8034, 61], 21, false),
    ] {
        let mut block = set(&[(68, before[0]), (72, before[1])]);
        block[77] = entries;
        assert_eq!(
            all(&block),
            [is_name, is_name, true, true],
            "{before:?}, {entries}"
        );
        // Without a name, nothing is read of it.
        block[79] = 0;
        assert_eq!(all(&block), [true; 4]);
    }
}

/// A long name may begin in a block before that of the short entry.
#[test]
fn a_name_has_the_blocks_of_its_long_entries() {
    let entry = DirEntry {
        attributes: 0x20,
        bytes: 0,
        modified: DosTime::NO_CLOCK,
        is_hidden: false,
        first: 0,
        short: SHORT,
        place: place(61, 1),
        long_entries: 3,
        before: [60, 59],
    };
    let name = NamePlace::of(&entry).unwrap();
    assert_eq!((name.place(), name.before), (entry.place, entry.before));
    assert_eq!((name.long_entries, name.sum), (3, sum_of(&SHORT)));
    let place = place(0, 1);
    assert!(NamePlace::of(&DirEntry { place, ..entry }).is_none());
}
