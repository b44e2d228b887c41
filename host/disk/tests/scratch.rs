//! Disks that are formatted and mounted: loop devices over files, checked by fsck, blkid and the kernel's own lists.
//! Needs root; without it, the tests do nothing, and say so.

mod common;

use cardiograph_disk::{DiskError, FileSystem, Marker, RawDisk, Scratch, ScratchError, System};
use common::Loop;
use std::fs;
use std::ops::ControlFlow;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;

const BYTES: u64 = 64 << 20;
const REGION_BEGIN: usize = 4 << 20;
const CLEARED: usize = 1 << 20;

struct Disk {
    attached: Loop,
    file: NamedTempFile,
}

impl Disk {
    /// Creates a disk that is full of the user's data.
    fn new(bytes: u64) -> Option<Disk> {
        Disk::with_options(bytes, &[])
    }

    /// Creates such a disk with further options of `losetup`.
    fn with_options(bytes: u64, options: &[&str]) -> Option<Disk> {
        let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        fs::write(file.path(), vec![b'u'; bytes as usize]).unwrap();
        let attached = Loop::over(file.path(), options)?;
        Some(Disk { attached, file })
    }

    fn device(&self) -> &str {
        &self.attached.device
    }

    /// Opens the disk. A program that another test is just starting has a copy of every open file for a moment.
    fn open(&self) -> RawDisk {
        let begun = Instant::now();
        loop {
            match RawDisk::open(&System::default(), self.device()) {
                Err(DiskError::InUse { .. }) if begun.elapsed() < Duration::from_secs(30) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                opened => return opened.unwrap().destroy(self.device()).unwrap(),
            }
        }
    }

    fn scratch(&self) -> Scratch {
        Scratch::begin(self.open(), marker()).unwrap()
    }

    fn content(&self) -> Vec<u8> {
        fs::read(self.file.path()).unwrap()
    }

    /// Returns the kernel's lists of mounts and loop devices that name the disk.
    fn uses(&self) -> Vec<String> {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let mut losetup = Command::new("losetup");
        let loops = losetup.args(["--noheadings", "--output", "NAME,BACK-FILE", "--list"]);
        let loops = String::from_utf8(loops.output().unwrap().stdout).unwrap();
        let all = mounts.lines().chain(loops.lines().filter(|line| {
            // The disk itself is a loop device, too.
            !line.starts_with(self.device())
        }));
        all.filter(|line| line.split_whitespace().any(|word| word == self.device()))
            .map(str::to_string)
            .collect()
    }
}

fn marker() -> Marker {
    Marker {
        run: String::from("test"),
        begun: String::from("2026-11-25T21:32:17Z"),
        step: String::from("begin"),
    }
}

fn go_on() -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// Returns the file systems that this computer can format and mount.
fn available() -> Vec<FileSystem> {
    let all = FileSystem::ALL.into_iter();
    all.filter(|file_system| file_system.obstacle().is_none())
        .collect()
}

#[test]
#[ignore = "needs root and losetup"]
fn every_file_system_is_clean_afterwards_and_leaves_nothing_behind() {
    let Some(disk) = Disk::new(BYTES) else { return };
    let mut scratch = disk.scratch();
    for file_system in available() {
        let name = file_system.name();
        let formatted = scratch
            .format(file_system, None, false, &mut go_on)
            .unwrap();
        let path = formatted.path().join("data");
        fs::write(&path, vec![7; 3_000_000]).unwrap();
        formatted.remount(true).unwrap();
        let refused = fs::write(formatted.path().join("other"), "x").unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
        formatted.remount(false).unwrap();
        fs::write(formatted.path().join("other"), "x").unwrap();
        // Nobody else sees the mount, and nobody else can use the disk meanwhile.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
        assert!(disk.uses().len() == 1, "{:?}", disk.uses());
        assert!(!mounts.contains("/dev/loop"), "{mounts}");
        let second = RawDisk::open(&System::default(), disk.device());
        assert!(matches!(second, Err(DiskError::InUse { .. })));
        drop(formatted);
        assert_eq!(disk.uses(), [""; 0], "{name}");
        check_clean(&disk, name);
    }
    // Modules have been loaded by now.
    let known = fs::read_to_string("/proc/filesystems").unwrap();
    let knows = |name: &str| known.lines().any(|line| line.trim() == name);
    for file_system in FileSystem::ALL {
        if !knows(file_system.name()) {
            assert!(file_system.obstacle().is_some(), "{file_system:?}");
        }
    }
    scratch.end().unwrap();
    let content = disk.content();
    for begin in [0, REGION_BEGIN, content.len() - CLEARED] {
        let cleared = &content[begin..][..CLEARED];
        assert!(cleared.iter().all(|&byte| byte == 0), "from byte {begin}");
    }
    let between = content[CLEARED..REGION_BEGIN].iter();
    assert!(between.copied().all(|byte| byte == b'u'), "other data stay");
    let signatures = Command::new("blkid")
        .args(["--probe", disk.device()])
        .output();
    assert_eq!(signatures.unwrap().stdout, b"");
}

/// Checks the region with the program of the file system, and reads the file with a second program.
fn check_clean(disk: &Disk, name: &str) {
    let region = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    fs::write(region.path(), &disk.content()[REGION_BEGIN..]).unwrap();
    let blkid = Command::new("blkid")
        .args(["--probe", "--output", "value", "--match-tag", "TYPE"])
        .arg(region.path())
        .output();
    let found = String::from_utf8(blkid.unwrap().stdout).unwrap();
    assert_eq!(found.trim(), name);
    if name.starts_with("ext") {
        let fsck = Command::new("e2fsck")
            .arg("-fn")
            .arg(region.path())
            .output();
        let fsck = fsck.unwrap();
        assert!(
            fsck.status.success(),
            "{}",
            String::from_utf8_lossy(&fsck.stdout)
        );
        let cat = Command::new("debugfs")
            .args(["-R", "cat /data"])
            .arg(region.path())
            .output();
        assert!(cat.unwrap().stdout == vec![7; 3_000_000]);
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn block_sizes_and_mount_options_reach_the_file_system() {
    let Some(disk) = Disk::new(BYTES) else { return };
    let mut scratch = disk.scratch();
    for (block_bytes, is_synchronous) in [(1024, false), (4096, true)] {
        let formatted = scratch.format(
            FileSystem::Ext2,
            Some(block_bytes),
            is_synchronous,
            &mut go_on,
        );
        let formatted = formatted.unwrap();
        let region = disk.content();
        // s_log_block_size of the superblock.
        let log = u32::from_le_bytes(region[REGION_BEGIN + 1048..][..4].try_into().unwrap());
        assert_eq!(1024 << log, block_bytes);
        // A write that waits for the disk needs no sync to be there.
        fs::write(formatted.path().join("data"), vec![b'#'; 50_000]).unwrap();
        let written = disk.content().iter().filter(|&&byte| byte == b'#').count();
        assert_eq!(written >= 50_000, is_synchronous, "{written}");
    }
    drop(scratch);
}

/// mkfs.vfat would use sectors of 4096 B and succeed.
#[test]
#[ignore = "needs root and losetup"]
fn blocks_smaller_than_those_of_the_disk_are_refused() {
    let Some(disk) = Disk::with_options(BYTES, &["--sector-size", "4096"]) else {
        return;
    };
    let mut scratch = disk.scratch();
    for (file_system, bytes, reason) in [
        (FileSystem::Vfat, 512, "at least 4096 B"),
        (FileSystem::Ext2, 1024, "too small for device"),
        (FileSystem::Ext4, 2048, "too small for device"),
    ] {
        let Err(error) = scratch.format(file_system, Some(bytes), false, &mut go_on) else {
            panic!("{file_system:?} with {bytes} B");
        };
        let text = error.to_string();
        let is_refused = matches!(error, ScratchError::BlockSize { .. });
        assert!(is_refused && text.contains(reason), "{text}");
        assert_eq!(text.matches("mkfs.").count(), 1, "{text}");
    }
    if available().contains(&FileSystem::Ext2) {
        let formatted = scratch.format(FileSystem::Ext2, Some(4096), false, &mut go_on);
        let formatted = formatted.unwrap();
        // The loop device has the blocks of the disk, which it needs to bypass the page cache.
        let mut losetup = Command::new("losetup");
        let list = losetup.args(["--noheadings", "--raw", "--output", "BACK-FILE,DIO,LOG-SEC"]);
        let list = String::from_utf8(list.output().unwrap().stdout).unwrap();
        let own = format!("{} 1 4096", disk.device());
        assert!(list.lines().any(|line| line == own), "{list}");
        drop(formatted);
    }
    scratch.end().unwrap();
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_is_marked_from_the_first_write_to_the_last() {
    let Some(disk) = Disk::new(BYTES) else { return };
    assert_eq!(disk.open().marker(), None);
    let mut scratch = disk.scratch();
    assert_eq!(scratch.disk().marker(), Some(marker()));
    let content = disk.content();
    assert!(
        content[4096..].iter().all(|&byte| byte == b'u'),
        "only the marker was written"
    );
    if let Some(&file_system) = available().first() {
        scratch
            .format(file_system, None, false, &mut go_on)
            .unwrap();
        let step = scratch.disk().marker().unwrap().step;
        assert_eq!(step, file_system.name());
    }
    // As after SIGKILL, the marker stays.
    drop(scratch);
    let mut raw = disk.open();
    let left = raw.marker().unwrap();
    assert!(
        left.to_string()
            .contains("half formatted by an interrupted run of `test`")
    );
    let mut raw = Scratch::begin(raw, marker()).unwrap().end().unwrap();
    assert_eq!(raw.marker(), None);
    drop(raw);
    // Other programs that format the disk remove the marker as well.
    for tool in [
        "mkfs.ext4",
        "mkfs.vfat",
        "mkfs.f2fs",
        "mkfs.exfat",
        "mkswap",
    ] {
        drop(disk.scratch());
        assert!(disk.open().marker().is_some());
        let force = match tool {
            "mkfs.ext4" => &["-q", "-F"][..],
            "mkfs.vfat" => &["-I"],
            "mkfs.f2fs" => &["-q", "-f"],
            "mkswap" => &["-q"],
            _ => &[],
        };
        let made = Command::new(tool).args(force).arg(disk.device()).output();
        if made.is_ok_and(|made| made.status.success()) {
            assert_eq!(disk.open().marker(), None, "{tool}");
        }
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn a_small_disk_is_refused_before_anything_is_written() {
    let Some(disk) = Disk::new(16 << 20) else {
        return;
    };
    let Err(error) = Scratch::begin(disk.open(), marker()) else {
        panic!("a disk of 16 MiB was accepted");
    };
    assert!(matches!(error, ScratchError::TooSmall { .. }), "{error}");
    assert!(disk.content().iter().all(|&byte| byte == b'u'));
}
