//! Compares the blocks that FatFs reads and writes, and their order, with those of the boards whose library has a window:
//! embedded-sdmmc with the accesses of FatFs (`host/store/src/fatfs_device.rs`).
//!
//! The patterns stay within the first sector of the FAT. At its end, embedded-sdmmc reads the next sector one cluster earlier than
//! FatFs, and the present one again: two reads for each 128 clusters.

use crate::card_thread::{Access, CardThread};
use crate::{mount, on};
use cardiograph_sim_card::wire::{Kind, Options};
use cardiograph_sim_card::{Board, Card, Operation, Profile, Seed};
use cardiograph_store::{FatCard, format};
use cardiograph_workload::{Clock, Flush, Store};
use fatfs_embedded::fatfs::{FileOptions, RawFileSystem};

const CAPACITY_BYTES: u64 = 4 << 30;
const CLUSTER_BYTES: u32 = 8192;

/// A way to write files.
pub struct Pattern {
    pub name: &'static str,
    files: usize,
    lines: usize,
    line_bytes: usize,
    is_reopened: bool,
    /// Lines after which the file is synced; 0 for never.
    sync_lines: usize,
}

const KEPT_OPEN: Pattern = Pattern {
    name: "files kept open",
    files: 3,
    lines: 3000,
    line_bytes: 100,
    is_reopened: false,
    sync_lines: 0,
};

pub const PATTERNS: [Pattern; 5] = [
    KEPT_OPEN,
    Pattern {
        name: "files opened for each line",
        files: 2,
        lines: 4000,
        is_reopened: true,
        ..KEPT_OPEN
    },
    Pattern {
        name: "many files",
        files: 100,
        lines: 3,
        is_reopened: true,
        ..KEPT_OPEN
    },
    Pattern {
        name: "files synced now and then",
        sync_lines: 7,
        ..KEPT_OPEN
    },
    Pattern {
        name: "blocks of 2048 B",
        lines: 150,
        line_bytes: 2048,
        ..KEPT_OPEN
    },
];

fn card() -> Card {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = CAPACITY_BYTES;
    Card::new(&profile, Seed::new(1))
}

fn path_of(file: usize) -> String {
    format!("LOG/FILE{file:03}.TXT")
}

/// Returns the accesses of FatFs.
fn of_fatfs(pattern: &Pattern) -> Vec<Access> {
    let mut card = card();
    format(&mut card, CLUSTER_BYTES).unwrap();
    let options = Options {
        kind: Kind::High,
        ..Options::default()
    };
    let thread = CardThread::start(card, options);
    on(&thread, |files| {
        mount();
        files.mkdir("LOG\0").unwrap();
        thread.take_accesses();
        (0..pattern.files).for_each(|file| write_with_fatfs(files, pattern, file));
    });
    let accesses = thread.take_accesses();
    thread.stop();
    accesses
}

fn write_with_fatfs(files: &RawFileSystem, pattern: &Pattern, file: usize) {
    let path = path_of(file) + "\0";
    let line = vec![b'~'; pattern.line_bytes];
    let append = || {
        let mode = FileOptions::OpenAppend | FileOptions::Write;
        files.open(&path, mode).unwrap()
    };
    let mut open = append();
    for number in 1..=pattern.lines {
        assert_eq!(files.write(&mut open, &line), Ok(line.len() as u32));
        if pattern.is_reopened {
            files.close(&mut open).unwrap();
            if number == pattern.lines {
                return;
            }
            open = append();
        } else if pattern.sync_lines > 0 && number % pattern.sync_lines == 0 {
            files.sync(&mut open).unwrap();
        }
    }
    files.close(&mut open).unwrap();
}

/// Returns the accesses of the board.
fn of_board(pattern: &Pattern) -> Vec<Access> {
    let mut board = Board::named("esp32").unwrap();
    board.library.window = true;
    board.library.cluster_bytes = CLUSTER_BYTES;
    // The others are calls of the Arduino core.
    board.library.path_walks_per_open = 1;
    let mut card = card();
    card.controller_mut().start_trace();
    let mut store = FatCard::mount(card, &board).unwrap();
    store.mkdir("LOG").unwrap();
    let mut clock = store.clock();
    let start_ns = clock.now_ns();
    (0..pattern.files).for_each(|file| write_with_board(&mut store, pattern, file));
    let end_ns = clock.now_ns();
    let mut card = store.unmount().unwrap();
    let calls = card.controller_mut().take_trace().into_iter();
    let calls = calls.filter(|call| (start_ns..end_ns).contains(&call.start_ns));
    calls
        .flat_map(|call| match call.operation {
            Operation::Read { start, count } => accesses(Access::Read, start, count),
            Operation::Write { start, count } => accesses(Access::Write, start, count),
            _ => Vec::new(),
        })
        .collect()
}

fn accesses(kind: fn(u32) -> Access, start: u64, count: u64) -> Vec<Access> {
    (start..start + count)
        .map(|block| kind(block as u32))
        .collect()
}

fn write_with_board(store: &mut FatCard, pattern: &Pattern, file: usize) {
    let path = path_of(file);
    let line = vec![b'~'; pattern.line_bytes];
    let mut open = store.append(&path).unwrap();
    for number in 1..=pattern.lines {
        let at = ((number - 1) * line.len()) as u64;
        store.write(&mut open, at, &line).unwrap();
        if pattern.is_reopened {
            store.close(open).unwrap();
            if number == pattern.lines {
                return;
            }
            open = store.append(&path).unwrap();
        } else if pattern.sync_lines > 0 && number % pattern.sync_lines == 0 {
            store.flush(&mut open, Flush::Wait).unwrap();
        }
    }
    store.close(open).unwrap();
}

/// Fails unless both lists are the same, except that the board writes the last sector of a cluster before it reads the FAT, and
/// FatFs after it.
pub fn compare(pattern: &Pattern) {
    let (expected, found) = (of_fatfs(pattern), of_board(pattern));
    assert!(expected.len() > pattern.files * 10);
    let mut at = 0;
    while at < expected.len().max(found.len()) {
        let pair = |all: &[Access]| (all.get(at).copied(), all.get(at + 1).copied());
        let (first, second) = (pair(&expected), pair(&found));
        at += match first.0 == second.0 {
            true => 1,
            false => {
                let is_exchanged = first == (second.1, second.0);
                let is_read = matches!(first.0, Some(Access::Read(_)));
                // Clusters are aligned to their size.
                let is_last = matches!(first.1, Some(Access::Write(block)) if (block + 1).is_multiple_of(CLUSTER_BYTES / 512));
                assert!(
                    is_exchanged && is_read && is_last,
                    "{}: access {at} of FatFs is {:?}, of the board {:?}",
                    pattern.name,
                    first.0,
                    second.0
                );
                2
            }
        };
    }
}
