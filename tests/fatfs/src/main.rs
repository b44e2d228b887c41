//! ChaN's FatFs on the simulated SPI bus, for each kind of card: what it writes is checked by fsck.fat and read by another
//! implementation.

#[path = "../../../sim/card/tests/reference/mod.rs"]
mod reference;

mod accesses;
mod card_thread;
mod image;

use card_thread::CardThread;
use cardiograph_sim_card::wire::{Kind, Options};
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_store::format;
use embassy_futures::block_on;
use fatfs_embedded::fatfs::{self, FS, FileOptions, FormatOptions, RawFileSystem};
use image::{check, content_of, write_partition};
use std::ffi::{c_char, c_uint};

const CAPACITY_BYTES: u64 = 64 << 20;
const SEED: u64 = 5;
/// FatFs expects paths that end with a zero byte.
const LOG: &str = "LOG/measurement 1.csv\0";
const SHORT: &str = "SHORT.BIN\0";

/// A pseudorandom sequence (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) % limit
    }
}

fn card() -> Card {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = CAPACITY_BYTES;
    Card::new(&profile, Seed::new(SEED))
}

unsafe extern "C" {
    fn f_mount(fs: *mut Volume, path: *const c_char, mount_now: u8) -> c_uint;
}

/// Memory for FatFs's `FATFS`, which has 600 B.
#[repr(C, align(16))]
struct Volume([u8; 4096]);

/// Mounts the card. The bindings' own function passes FatFs a path without an end.
fn mount() {
    let volume = Box::leak(Box::new(Volume([0; 4096])));
    // SAFETY: FatFs keeps the volume, which is never freed, and reads the path up to its zero byte.
    let result = unsafe { f_mount(volume, c"".as_ptr(), 1) };
    assert_eq!(result, 0, "f_mount");
}

/// Installs the card of the thread and calls `work` with the file system.
fn on(thread: &CardThread, work: impl FnOnce(&RawFileSystem)) {
    block_on(fatfs::diskio::install(thread.driver()));
    work(&block_on(FS.lock()));
}

/// Writes a file in pieces of random lengths, syncs now and then, overwrites a part, and truncates. Returns the content that
/// the file must have.
fn write_log(files: &RawFileSystem, path: &str, random: &mut Random) -> Vec<u8> {
    let mode = FileOptions::CreateNew | FileOptions::Write | FileOptions::Read;
    let mut file = files.open(path, mode).unwrap();
    let mut expected = Vec::new();
    while expected.len() < 400_000 {
        let piece = vec![random.below(256) as u8; 1 + random.below(5000) as usize];
        assert_eq!(files.write(&mut file, &piece), Ok(piece.len() as u32));
        expected.extend_from_slice(&piece);
        if random.below(8) == 0 {
            files.sync(&mut file).unwrap();
        }
    }
    for _ in 0..20 {
        let at = random.below(expected.len() as u64 - 3000) as usize;
        let piece = vec![random.below(256) as u8; 1 + random.below(3000) as usize];
        files.seek(&mut file, at as u32).unwrap();
        assert_eq!(files.write(&mut file, &piece), Ok(piece.len() as u32));
        expected[at..at + piece.len()].copy_from_slice(&piece);
    }
    expected.truncate(expected.len() - random.below(100_000) as usize);
    files.seek(&mut file, expected.len() as u32).unwrap();
    files.truncate(&mut file).unwrap();
    files.close(&mut file).unwrap();
    assert!(read(files, path) == expected);
    expected
}

fn read(files: &RawFileSystem, path: &str) -> Vec<u8> {
    let mut file = files.open(path, FileOptions::Read).unwrap();
    let mut content = Vec::new();
    let mut piece = [0; 3001];
    loop {
        let count = files.read(&mut file, &mut piece).unwrap() as usize;
        content.extend_from_slice(&piece[..count]);
        if count < piece.len() {
            files.close(&mut file).unwrap();
            return content;
        }
    }
}

/// Creates, renames and removes files and folders; returns the content of the two files that remain.
fn work(files: &RawFileSystem, random: &mut Random) -> [Vec<u8>; 2] {
    files.mkdir("LOG\0").unwrap();
    let log = write_log(files, "LOG/new.csv\0", random);
    write_log(files, "LOG/removed.csv\0", random);
    let short = write_log(files, SHORT, random);
    files.rename("LOG/new.csv\0", LOG).unwrap();
    files.unlink("LOG/removed.csv\0").unwrap();
    [log, short]
}

/// The card of each kind, in the order of the specification's versions.
fn kinds() -> impl Iterator<Item = Options> {
    let of = |kind| Options {
        kind,
        ..Options::default()
    };
    [Kind::Version1, Kind::Standard, Kind::High]
        .into_iter()
        .map(of)
}

/// Not a test of Rust's harness: FatFs has a single volume in static memory, and its bindings insist on the main thread.
fn main() {
    println!("seed {SEED}");
    for pattern in &accesses::PATTERNS {
        accesses::compare(pattern);
        println!("ok: accesses, {}", pattern.name);
    }
    let mut random = Random(SEED);
    for options in kinds() {
        let mut formatted = card();
        let partition = format(&mut formatted, 4096).unwrap();
        works_on(formatted, options, false, partition.start, &mut random);
        println!("ok: {:?} card, formatted as manufacturers do", options.kind);
        works_on(card(), options, true, 0, &mut random);
        println!("ok: {:?} card, formatted by FatFs", options.kind);
    }
}

/// Lets FatFs work on a card, which it formats without a partition table if `is_blank`; judges the file system at `first_block`.
fn works_on(card: Card, options: Options, is_blank: bool, first_block: u64, random: &mut Random) {
    let thread = CardThread::start(card, options);
    let mut expected = Default::default();
    on(&thread, |files| {
        if is_blank {
            let whole = FormatOptions::FAT | FormatOptions::from_bits_retain(SUPER_FLOPPY);
            files.mkfs("\0", whole, 2, 8192, 4096, 512).unwrap();
        }
        mount();
        expected = work(files, random);
        files.unmount("\0").unwrap();
    });
    // Mounted once more, nothing is in memory.
    on(&thread, |files| {
        mount();
        assert!(read(files, LOG) == expected[0] && read(files, SHORT) == expected[1]);
        files.unmount("\0").unwrap();
    });
    let mut card = thread.stop();
    let image = write_partition(&mut card, first_block);
    check(image.path());
    for (path, expected) in [LOG, SHORT].iter().zip(&expected) {
        let path = path.trim_end_matches('\0');
        assert!(content_of(image.path(), path) == *expected, "{path}");
    }
}

/// `FM_SFD` of FatFs: no partition table.
const SUPER_FLOPPY: u8 = 8;
