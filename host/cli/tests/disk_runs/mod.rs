//! Disks that fail, and runs on disks that change meanwhile.

#![allow(dead_code, reason = "each file of tests uses a part")]

use crate::common::loop_disk::LoopDisk;
use crate::common::signals::{wait_for_handler, wait_until};
use crate::common::{Run, command, directory};
use crate::disks::Loop;
use crate::disks::faulty::Faulty;
use crate::disks::fuse::Mounted;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

pub const BYTES: u64 = 32 << 20;

/// Writes 2 MiB in blocks of 4 KiB.
const SHORT: &str = "name = \"short\"\n[[phase]]\ncalls_per_file = 512\nbytes_per_call = 4096\n";

/// Writes for minutes.
pub const LONG: &str =
    "name = \"long\"\n[[phase]]\ncalls_per_file = 4096\nbytes_per_call = 4096\ndelay_us = 20000\n";

/// A study that takes long enough for a change in the middle of it.
pub const STUDY: [&str; 7] = [
    "flash-benchmark",
    "--experiment",
    "filesystems",
    "--for",
    "1s",
    "--limit",
    "10MB",
];

/// Runs a test with a disk that has these bad bytes.
pub fn with_bad_blocks(bad: &[u64], test: impl FnOnce(&Path, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let Some(mounted) = Mounted::at(folder.path(), Faulty::new(BYTES, bad)) else {
        return;
    };
    let Some(attached) = Loop::over(&mounted.disk(), &[]) else {
        return;
    };
    let own = directory();
    fs::write(own.path().join("short.toml"), SHORT).unwrap();
    test(own.path(), &attached.device);
}

/// Asserts that standard error has a single sentence that begins with `error:`.
pub fn assert_one_error(stderr: &str, words: &[&str]) {
    let errors: Vec<_> = stderr
        .lines()
        .filter(|line| line.starts_with("error: "))
        .collect();
    assert_eq!(errors.len(), 1, "{stderr}");
    for word in words {
        assert!(errors[0].contains(word), "{word} in {stderr}");
    }
    assert!(!stderr.contains("panicked"), "{stderr}");
}

pub fn signal(child: &Child, signal: &str) {
    let mut kill = Command::new("kill");
    let sent = kill.args([signal, &child.id().to_string()]).status();
    assert!(sent.unwrap().success());
}

/// Starts a command, and waits until it has written to the disk.
pub fn started(own: &Path, disk: &LoopDisk, args: &[&str]) -> Child {
    let child = command(own, args).spawn().unwrap();
    wait_for_handler(&child);
    wait_until(|| disk.first_block().iter().any(|&byte| byte != 0));
    child
}

/// Runs a command with `--destroy` on a disk, and changes the disk while the command is stopped: in between, it would see
/// another state of the disk, or make the file below longer again. Returns the command's error, which ends with code 2.
pub fn error_after(disk: &LoopDisk, args: &[&str], change: impl FnOnce(&LoopDisk)) -> String {
    let own = directory();
    fs::write(own.path().join("long.toml"), LONG).unwrap();
    let device = disk.device.as_str();
    let args = [args, &[device, "--destroy", device]].concat();
    let child = started(own.path(), disk, &args);
    signal(&child, "-STOP");
    change(disk);
    signal(&child, "-CONT");
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(2), "{args:?}: {}", run.stderr);
    run.stderr
}
