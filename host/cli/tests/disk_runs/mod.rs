//! Disks that fail, and runs on disks that change meanwhile.

#![allow(dead_code, reason = "each file of tests uses a part")]

use crate::common::loop_disk::LoopDisk;
use crate::common::signals::{wait_for_handler, wait_until};
use crate::common::{Run, command, directory};
use crate::disks::Loop;
use crate::disks::fuse::{Disk, Mounted};
use std::fs;
use std::path::Path;
use std::process::{Child, Command};

pub const BYTES: u64 = 32 << 20;
const EIO: i32 = 5;

/// Writes 2 MiB in blocks of 4 KiB.
const SHORT: &str = "name = \"short\"\n[[phase]]\ncalls_per_file = 512\nbytes_per_call = 4096\n";

/// Writes for minutes.
pub const LONG: &str =
    "name = \"long\"\n[[phase]]\ncalls_per_file = 4096\nbytes_per_call = 4096\ndelay_us = 20000\n";

/// A disk in memory with blocks that fail.
struct Faulty {
    memory: Vec<u8>,
    bad: Vec<u64>,
}

impl Faulty {
    fn is_bad(&self, offset_bytes: u64, length: usize) -> bool {
        let range = offset_bytes..offset_bytes + length as u64;
        self.bad.iter().any(|bad| range.contains(bad))
    }
}

impl Disk for Faulty {
    fn bytes(&self) -> u64 {
        self.memory.len() as u64
    }

    fn read(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> Result<(), i32> {
        if self.is_bad(offset_bytes, buffer.len()) {
            return Err(EIO);
        }
        let at = offset_bytes as usize;
        buffer.copy_from_slice(&self.memory[at..at + buffer.len()]);
        Ok(())
    }

    fn write(&mut self, offset_bytes: u64, data: &[u8]) -> Result<(), i32> {
        if self.is_bad(offset_bytes, data.len()) {
            return Err(EIO);
        }
        let at = offset_bytes as usize;
        self.memory[at..at + data.len()].copy_from_slice(data);
        Ok(())
    }
}

/// Runs a test with a disk that has these bad bytes.
pub fn with_bad_blocks(bad: &[u64], test: impl FnOnce(&Path, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let disk = Faulty {
        memory: vec![0; BYTES as usize],
        bad: bad.to_vec(),
    };
    let Some(mounted) = Mounted::at(folder.path(), disk) else {
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
