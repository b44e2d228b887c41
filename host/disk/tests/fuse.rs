//! Disks that misbehave, through the real kernel: a FUSE file below a loop device. Every test runs in a mount namespace
//! of its own.

mod common;

use cardiograph_disk::{
    Aligned, Capacity, CapacityPlan, DiskError, RawDisk, RawStore, System, check_capacity,
    read_workload,
};
use cardiograph_store::{Directory, Io};
use cardiograph_workload::{Activity, Clock, Observer, Operation, Phase, Workload, run};
use common::faulty::Faulty;
use common::fuse::{Disk, Mounted};
use common::{Loop, in_a_namespace};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const CLAIMED_BYTES: u64 = 64 << 30;
const BLOCK_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Beyond {
    Honest,
    Wraps,
    Drops,
    Zeros,
}

/// A card that claims 64 GiB.
struct Card {
    real_bytes: u64,
    beyond: Beyond,
    sectors: HashMap<u64, Box<[u8]>>,
}

impl Card {
    fn place(&self, sector: u64) -> Option<u64> {
        let real = self.real_bytes / 512;
        match self.beyond {
            _ if sector < real => Some(sector),
            Beyond::Honest => Some(sector),
            Beyond::Wraps => Some(sector % real),
            Beyond::Drops | Beyond::Zeros => None,
        }
    }
}

impl Disk for Card {
    fn bytes(&self) -> u64 {
        CLAIMED_BYTES
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        for (data, sector) in buffer.chunks_mut(512).zip(offset_bytes / 512..) {
            let stored = self.place(sector).and_then(|at| self.sectors.get(&at));
            match stored {
                Some(stored) => data.copy_from_slice(stored),
                None if self.beyond == Beyond::Zeros => data.fill(0),
                None => data.fill(0x5a),
            }
        }
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        for (data, sector) in data.chunks(512).zip(offset_bytes / 512..) {
            if let Some(at) = self.place(sector) {
                self.sectors.insert(at, data.into());
            }
        }
        Ok(())
    }
}

/// Number of fakes of each kind: a few, unless the environment asks for more.
fn cards() -> u64 {
    let asked = std::env::var("CARDIOGRAPH_FAKES").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn checked(real_bytes: u64, beyond: Beyond, run: u64) -> Option<(Capacity, Duration)> {
    let folder = tempfile::tempdir().unwrap();
    let card = Card {
        real_bytes,
        beyond,
        sectors: HashMap::new(),
    };
    let mounted = Mounted::at(folder.path(), card)?;
    let attached = Loop::over(&mounted.disk(), &[])?;
    let begun = Instant::now();
    let disk = RawDisk::open(&System::default(), &attached.device).unwrap();
    let mut disk = disk.destroy(&attached.device).unwrap();
    let go_on = |_| ControlFlow::Continue(());
    let capacity = check_capacity(&mut disk, CapacityPlan::Quick, run, go_on).unwrap();
    Some((capacity, begun.elapsed()))
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn fakes_are_found_through_the_kernel_and_honest_cards_pass() {
    if !in_a_namespace("fakes_are_found_through_the_kernel_and_honest_cards_pass") {
        return;
    }
    let mut random = 17;
    let (mut longest, mut fakes, mut honest) = (Duration::ZERO, 0, 0);
    for run in 0..4 * cards() {
        let kinds = [Beyond::Wraps, Beyond::Drops, Beyond::Zeros, Beyond::Honest];
        let beyond = kinds[(run % 4) as usize];
        random = splitmix64(random);
        let real_bytes = ((32 << 20) + random % (CLAIMED_BYTES - (48 << 20))) / 512 * 512;
        let Some((capacity, elapsed)) = checked(real_bytes, beyond, run) else {
            return;
        };
        longest = longest.max(elapsed);
        match beyond {
            Beyond::Honest => honest += u64::from(capacity.is_honest()),
            _ => fakes += u64::from(!capacity.is_honest()),
        }
        let is_honest = beyond == Beyond::Honest;
        assert_eq!(
            capacity.is_honest(),
            is_honest,
            "{beyond:?} at {real_bytes}: {capacity:?}"
        );
        if beyond == Beyond::Wraps {
            assert_eq!(capacity.kept_bytes, real_bytes);
        }
    }
    println!("{fakes} fakes found, {honest} honest cards passed, longest check {longest:?}");
}

fn splitmix64(seed: u64) -> u64 {
    let mut z = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A stall that the file system below planted.
#[derive(Clone, Copy, Debug)]
struct Planted {
    offset_bytes: u64,
    length_bytes: u64,
    ns: u64,
}

type Log = Arc<Mutex<Vec<Planted>>>;

/// A disk that stalls on some writes of the workload's payload, and fails on some blocks.
struct Stalling {
    disk: Faulty,
    random: u64,
    /// Mean number of writes from stall to stall.
    every: u64,
    log: Log,
}

impl Disk for Stalling {
    fn bytes(&self) -> u64 {
        self.disk.bytes()
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        self.disk.read(offset_bytes, buffer)
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        self.disk.write(offset_bytes, data)?;
        self.random = splitmix64(self.random);
        let is_payload = data.len() as u64 == BLOCK_BYTES && data[8..].iter().all(|&b| b == b'A');
        if is_payload && self.random.is_multiple_of(self.every) {
            let begun = Instant::now();
            std::thread::sleep(Duration::from_micros(20_000 + self.random / 7 % 60_000));
            self.log.lock().unwrap().push(Planted {
                offset_bytes,
                length_bytes: data.len() as u64,
                ns: begun.elapsed().as_nanos() as u64,
            });
        }
        Ok(())
    }
}

struct HostClock(Instant);

impl Clock for HostClock {
    fn now_ns(&mut self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    fn pause_ns(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
    }
}

#[derive(Default)]
struct Operations(Vec<Operation>);

impl Observer for Operations {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push(*operation);
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

const PHASES: [Phase; 1] = [Phase {
    calls_per_file: 2048,
    bytes_per_call: BLOCK_BYTES as u32,
    ..Phase::WRITE
}];

const WORKLOAD: Workload = Workload {
    name: "stalls",
    study: "",
    about: "",
    phases: &PHASES,
};

/// Compares the stalls of a run with those planted. Every planted stall must be a write at its offset that took at least
/// as long; how much longer it took depends on the load of this computer, and is only printed.
fn compare(planted: &[Planted], operations: &[Operation], on_disk: impl Fn(u64) -> u64) {
    let mut excess_us = Vec::new();
    for stall in planted {
        let at = stall.offset_bytes..stall.offset_bytes + stall.length_bytes;
        let found: Vec<_> = operations
            .iter()
            .filter(|operation| at.contains(&on_disk(operation.offset_bytes)))
            .collect();
        let slowest = found.iter().map(|operation| operation.duration_ns()).max();
        let slowest_ns = slowest.unwrap_or_else(|| panic!("no write at {stall:?}"));
        assert!(
            slowest_ns >= stall.ns,
            "{stall:?} took only {slowest_ns} ns"
        );
        excess_us.push((slowest_ns - stall.ns) / 1000);
    }
    excess_us.sort_unstable();
    let within = excess_us.iter().filter(|&&us| us <= 1000).count();
    println!(
        "{} stalls planted and found, {within} of them within 1 ms; median excess {} us, longest {} us",
        planted.len(),
        excess_us[excess_us.len() / 2],
        excess_us[excess_us.len() - 1]
    );
}

fn stalling(seed: u64, bad: &[u64]) -> (Stalling, Log) {
    let log = Log::default();
    let disk = Stalling {
        disk: Faulty::new(32 << 20, bad),
        random: seed,
        every: 64,
        log: log.clone(),
    };
    (disk, log)
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn planted_stalls_are_found_at_their_offsets_on_a_raw_disk() {
    if !in_a_namespace("planted_stalls_are_found_at_their_offsets_on_a_raw_disk") {
        return;
    }
    for seed in 1..=cards() {
        let (disk, log) = stalling(seed, &[]);
        let folder = tempfile::tempdir().unwrap();
        let Some(mounted) = Mounted::at(folder.path(), disk) else {
            return;
        };
        let Some(attached) = Loop::over(&mounted.disk(), &[]) else {
            return;
        };
        let disk = RawDisk::open(&System::default(), &attached.device).unwrap();
        let disk = disk.destroy(&attached.device).unwrap();
        let mut store = RawStore::new(disk, &WORKLOAD);
        let mut seen = Operations::default();
        let mut buffer = Aligned::zeros(WORKLOAD.buffer_bytes());
        let mut clock = HostClock(Instant::now());
        run(&WORKLOAD, &mut store, &mut clock, &mut seen, buffer.bytes()).unwrap();
        let planted = log.lock().unwrap().clone();
        assert!(planted.len() > 5, "{planted:?}");
        // The only file is the first region.
        compare(&planted, &seen.0, |offset_bytes| offset_bytes);
    }
}

/// Takes the extents of the file from the file system (FIEMAP) after its last write.
struct Extents {
    seen: Operations,
    file: PathBuf,
    /// First block of the file, first block on the disk, and number of blocks of each extent.
    extents: Vec<(u64, u64, u64)>,
}

impl Observer for Extents {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.seen.0.push(*operation);
        if self.seen.0.len() == 2048 {
            let listed = Command::new("filefrag").arg("-v").arg(&self.file).output();
            let text = String::from_utf8(listed.unwrap().stdout).unwrap();
            assert!(text.contains("blocks of 4096 bytes"), "{text}");
            self.extents = text.lines().filter_map(extent).collect();
        }
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Parses a row such as `   0:        0..    2047:       8192..     10239:   2048:             last,eof`.
fn extent(row: &str) -> Option<(u64, u64, u64)> {
    let mut columns = row.split(':').skip(1);
    let mut first = || columns.next()?.split("..").next()?.trim().parse().ok();
    Some((first()?, first()?, first()?))
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn planted_stalls_are_found_at_their_offsets_below_ext4() {
    if !in_a_namespace("planted_stalls_are_found_at_their_offsets_below_ext4") {
        return;
    }
    for seed in 1..=cards() {
        let (disk, log) = stalling(seed, &[]);
        let folder = tempfile::tempdir().unwrap();
        let Some(mounted) = Mounted::at(folder.path(), disk) else {
            return;
        };
        let Some(attached) = Loop::over(&mounted.disk(), &[]) else {
            return;
        };
        let files = tempfile::tempdir().unwrap();
        succeed(Command::new("mkfs.ext4").args(["-q", "-b", "4096", &attached.device]));
        succeed(
            Command::new("mount")
                .arg(&attached.device)
                .arg(files.path()),
        );
        let mut store = Directory::open(files.path(), Io::Direct).unwrap();
        let mut seen = Extents {
            seen: Operations::default(),
            file: files.path().join("writeTimeTemp/test_0/temp_0.txt"),
            extents: Vec::new(),
        };
        let mut buffer = Aligned::zeros(WORKLOAD.buffer_bytes());
        let mut clock = HostClock(Instant::now());
        run(&WORKLOAD, &mut store, &mut clock, &mut seen, buffer.bytes()).unwrap();
        let refused = RawDisk::open(&System::default(), &attached.device);
        assert!(
            matches!(refused, Err(DiskError::InUse { .. })),
            "the disk is mounted"
        );
        // It holds the directory open.
        drop(store);
        succeed(Command::new("umount").arg(files.path()));
        let planted = log.lock().unwrap().clone();
        assert!(planted.len() > 5, "{planted:?}");
        assert!(!seen.extents.is_empty());
        let on_disk = |offset_bytes: u64| {
            let block = offset_bytes / BLOCK_BYTES;
            let extent = seen
                .extents
                .iter()
                .find(|(file, _, count)| (*file..file + count).contains(&block));
            let (file, disk, _) = extent.expect("an extent covers each block");
            (disk + block - file) * BLOCK_BYTES
        };
        compare(&planted, &seen.seen.0, on_disk);
    }
}

fn succeed(command: &mut Command) {
    let status = command.status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "{command:?} failed"
    );
}

#[test]
#[ignore = "needs root and /dev/fuse"]
fn blocks_that_fail_are_recorded_with_their_addresses() {
    if !in_a_namespace("blocks_that_fail_are_recorded_with_their_addresses") {
        return;
    }
    let bad = [40 * BLOCK_BYTES + 512, 1000 * BLOCK_BYTES];
    let (mut disk, _) = stalling(1, &bad);
    disk.every = u64::MAX;
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::at(folder.path(), disk) else {
        return;
    };
    let Some(attached) = Loop::over(&mounted.disk(), &[]) else {
        return;
    };
    let disk = RawDisk::open(&System::default(), &attached.device).unwrap();
    let mut disk = disk.destroy(&attached.device).unwrap();
    let expected = [40 * BLOCK_BYTES, 1000 * BLOCK_BYTES];
    let mut seen = Operations::default();
    let mut buffer = Aligned::zeros(WORKLOAD.buffer_bytes());
    let mut clock = HostClock(Instant::now());
    let read = read_workload(&mut disk, &WORKLOAD, &mut clock, &mut seen, buffer.bytes());
    let offsets: Vec<_> = read
        .unwrap()
        .iter()
        .map(|block| block.offset_bytes)
        .collect();
    assert_eq!(offsets, expected);
    assert_eq!(seen.0.len(), 2048);

    let mut store = RawStore::new(disk, &WORKLOAD);
    let outcome = run(&WORKLOAD, &mut store, &mut clock, &mut seen, buffer.bytes());
    assert_eq!(outcome.unwrap().verified_bytes, 2048 * BLOCK_BYTES);
    let failed = store.failed_blocks();
    let offsets: Vec<_> = failed.iter().map(|block| block.offset_bytes).collect();
    assert_eq!(offsets, expected);
    assert!(failed[0].error.contains("Input/output error"), "{failed:?}");
}
