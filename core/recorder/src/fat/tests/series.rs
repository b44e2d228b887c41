//! Numbers of recordings, determined from the folders on a card.

use super::folder::rec;
use super::*;
use crate::fat::Error;
use crate::fat::record::{File, Kind};
use crate::volume::{FileId, NUMBER_LAST};

const SHAPE: Shape = Shape {
    kind: FatKind::Fat16,
    clusters: 2200,
    cluster_blocks: 1,
    shift: 0,
};

/// A volume with folders of recordings.
struct Numbers {
    rig: Rig,
    volume: FatVolume,
}

impl Numbers {
    fn new() -> Numbers {
        let rig = Rig::new(SHAPE);
        let volume = rig.volume();
        Numbers { rig, volume }
    }

    /// Creates the recorder's folder of a number, and the entries of recordings in it.
    fn add(&mut self, id: FileId, recordings: &[u32]) {
        let first = done(self.volume.folder_for(&mut self.rig.disk, id));
        let block = self.rig.layout.block_of(first) + 1;
        for (at, number) in recordings.iter().enumerate() {
            let id = FileId {
                number: *number,
                ..id
            };
            let entry = short(&id.short_name(), 0x20, 0, 0);
            self.rig.disk.put_entry(place(block, at), entry);
        }
    }

    /// Puts an entry at the end of the root directory.
    fn add_entry(&mut self, name: &[u8; 11], attributes: u8, first: u32) {
        let start = self.rig.root_block();
        let places = (0..64).map(|at| place(start + at / 16, at as usize % 16));
        let mut free = places.filter(|place| self.rig.disk.entry(*place)[0] == 0);
        let entry = short(name, attributes, first, 0);
        self.rig.disk.put_entry(free.next().unwrap(), entry);
    }

    fn next(&self, prefix: [u8; 3]) -> Option<u32> {
        self.volume.series(prefix).map(|series| series.next)
    }
}

fn of(prefix: &[u8; 3], number: u32) -> FileId {
    FileId {
        prefix: *prefix,
        ..rec(number)
    }
}

fn file(kind: Kind, prefix: [u8; 3]) -> File {
    File {
        kind,
        prefix,
        extension: *b"CSV",
        number: 1,
        place: place(1, 0),
        first: 2,
        clusters: 1,
        epoch: 0,
        note: 0,
    }
}

#[test]
fn unnamed_files_are_counted_per_prefix() {
    let mut volume = Rig::new(SHAPE).volume();
    assert_eq!(volume.unnamed(*b"REC"), 0);
    let (prepared, named) = (Kind::Prepared, Kind::Named);
    let all = [
        (prepared, *b"REC"),
        (named, *b"REC"),
        (prepared, *b"ABC"),
        (prepared, *b"REC"),
        (named, *b"ABC"),
        (prepared, *b"REC"),
    ];
    for (place, (kind, prefix)) in volume.record.reserved.iter_mut().zip(all) {
        *place = Some(file(kind, prefix));
    }
    assert_eq!(volume.unnamed(*b"REC"), 3);
    assert_eq!(volume.unnamed(*b"ABC"), 1);
    assert_eq!(volume.unnamed(*b"XYZ"), 0);
}

#[test]
fn a_new_prefix_replaces_the_oldest_without_unfinished_files() {
    let prefixes: Vec<[u8; 3]> = (b'A'..=b'H').map(|letter| [letter; 3]).collect();
    // Bits of the prefixes with unfinished files.
    for in_use in [
        0b0,
        0b1000_0000,
        0b1010_0000,
        0b0111_1111,
        0b1111_0101,
        0b1111_1111,
    ] {
        let mut numbers = Numbers::new();
        let is_in_use = |at: usize| in_use >> at & 1 == 1;
        for (at, prefix) in prefixes.iter().enumerate() {
            numbers.volume.record.series[at] = Some(series(*prefix, 7));
            if is_in_use(at) {
                numbers.volume.record.reserved[at] = Some(file(Kind::Prepared, *prefix));
            }
        }
        let known = poll(numbers.volume.know_series(&mut numbers.rig.disk, *b"NEW"));
        let oldest = (0..8).rev().find(|at| !is_in_use(*at));
        let mut due = prefixes.clone();
        assert_eq!(known.is_ok(), oldest.is_some());
        if let Some(oldest) = oldest {
            due.remove(oldest);
            due.insert(0, *b"NEW");
        }
        let all = numbers.volume.record.series.iter().flatten();
        let all: Vec<[u8; 3]> = all.map(|series| series.prefix).collect();
        assert_eq!(all, due, "{in_use:b}");
    }
}

#[test]
fn the_next_number_follows_the_highest_recording() {
    let known = |numbers: &mut Numbers| {
        done(numbers.volume.know_series(&mut numbers.rig.disk, *b"REC"));
        numbers.next(*b"REC")
    };
    assert_eq!(known(&mut Numbers::new()), Some(1));
    let mut numbers = Numbers::new();
    numbers.add(rec(3000), &[3008, 3011, 3002]);
    numbers.add(rec(2000), &[2950]);
    // The folder with the highest number has no recordings.
    numbers.add(rec(7000), &[]);
    // Neither files nor directories of other programs count, even with the same name.
    numbers.add_entry(b"REC00009   ", 0x20, 5);
    numbers.add_entry(b"REC00008TXT", 0x10, 5);
    numbers.add_entry(b"REC00010   ", 0x10, 5);
    numbers.add_entry(b"REC00003   ", 0x10, 5);
    numbers.add_entry(b"ABC00011   ", 0x10, 5);
    let from = |numbers: &mut Numbers, from| {
        done(
            numbers
                .volume
                .folder_from(&mut numbers.rig.disk, *b"REC", from),
        )
    };
    let due = [(0, 2), (2, 2), (3, 3), (4, 7), (8, 10), (10, 10)];
    for (least, due) in due {
        assert_eq!(from(&mut numbers, least), Some(due), "{least}");
    }
    assert_eq!(from(&mut numbers, 11), None);
    assert_eq!(known(&mut numbers), Some(3012));
    let mut numbers = Numbers::new();
    numbers.add(rec(NUMBER_LAST), &[NUMBER_LAST]);
    assert_eq!(known(&mut numbers), Some(NUMBER_LAST + 1));
}

#[test]
fn numbers_that_another_program_has_taken_are_passed() {
    // Highest number in the folder, number that is taken, next number.
    for (highest, taken, due) in [(3011, 3005, 3012), (3001, 3005, 3006), (3999, 3005, 4000)] {
        let mut numbers = Numbers::new();
        numbers.add(rec(3000), &[3000, highest]);
        numbers.volume.record.series[0] = Some(series(*b"REC", 3001));
        done(numbers.volume.pass_taken(&mut numbers.rig.disk, rec(taken)));
        assert_eq!(numbers.next(*b"REC"), Some(due), "{highest}");
    }
    for is_foreign in [false, true] {
        let mut numbers = Numbers::new();
        if is_foreign {
            numbers.add_entry(b"REC00003   ", 0x10, 5);
        }
        numbers.volume.record.series[0] = Some(series(*b"REC", 3001));
        done(numbers.volume.pass_taken(&mut numbers.rig.disk, rec(3005)));
        assert_eq!(numbers.next(*b"REC"), Some(4000));
        // A number is never lowered.
        numbers.volume.record.series[0] = Some(series(*b"REC", 9001));
        done(numbers.volume.pass_taken(&mut numbers.rig.disk, rec(3005)));
        assert_eq!(numbers.next(*b"REC"), Some(9001));
    }
}

#[test]
fn a_mount_finds_every_prefix_with_recordings_and_raises_its_number() {
    let mut numbers = Numbers::new();
    numbers.add(of(b"AAA", 0), &[5]);
    numbers.add(of(b"BBB", 0), &[]);
    numbers.add(of(b"AAA", 1000), &[1007]);
    numbers.add_entry(b"CCC00000   ", 0x10, 5);
    done(numbers.volume.discover_series(&mut numbers.rig.disk));
    let all = numbers.volume.record.series.iter().flatten();
    let all: Vec<_> = all.map(|series| (series.prefix, series.next)).collect();
    assert_eq!(all, [(*b"AAA", 1008)]);

    for (next, due) in [
        (1001, 1008),
        (1007, 1008),
        (1008, 1008),
        (1020, 1020),
        (3, 6),
    ] {
        numbers.volume.record.series[0] = Some(series(*b"AAA", next));
        done(numbers.volume.check_series(&mut numbers.rig.disk));
        assert_eq!(numbers.next(*b"AAA"), Some(due), "{next}");
    }
}

#[test]
fn the_last_number_is_used_and_none_after_it() {
    let mut numbers = Numbers::new();
    let prepared = |numbers: &mut Numbers, next| {
        numbers.volume.record.series[0] = Some(series(*b"REC", next));
        poll(
            numbers
                .volume
                .prepare_folder(&mut numbers.rig.disk, *b"REC"),
        )
    };
    let used_up = Err(Error::NumbersUsedUp(*b"REC"));
    assert_eq!(prepared(&mut numbers, NUMBER_LAST), Ok(()));
    let name = numbers.rig.disk.entry(place(numbers.rig.root_block(), 0));
    assert_eq!(name[..11], *b"REC99999   ");
    assert_eq!(prepared(&mut numbers, NUMBER_LAST + 1), used_up);
    // A prepared file has the last number.
    numbers.volume.record.reserved[0] = Some(file(Kind::Prepared, *b"REC"));
    assert_eq!(prepared(&mut numbers, NUMBER_LAST), used_up);
    assert_eq!(prepared(&mut numbers, NUMBER_LAST - 1), Ok(()));
}
