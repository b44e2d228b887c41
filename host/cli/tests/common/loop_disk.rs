//! Whole disks for tests: loop devices over files.

use std::fs::File;
use std::io::Write;
use std::process::Command;
use tempfile::NamedTempFile;

/// A loop device. It detaches itself when its last user closes it, even if this process is killed.
pub struct LoopDisk {
    pub device: String,
    file: NamedTempFile,
    _open: File,
}

impl LoopDisk {
    /// Creates a disk of zeros; returns `None`, and says so, if this user may not create loop devices.
    pub fn new(bytes: u64) -> Option<LoopDisk> {
        LoopDisk::with_options(bytes, &[])
    }

    /// Creates a disk with further options of `losetup`.
    pub fn with_options(bytes: u64, options: &[&str]) -> Option<LoopDisk> {
        let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        file.as_file().set_len(bytes).unwrap();
        let mut attach = Command::new("losetup");
        attach.args(["--find", "--show"]).args(options);
        let attached = attach.arg(file.path()).output();
        let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
            // Reaches the terminal even if the test passes.
            let note = b"no loop devices for this user: disks are not tested\n";
            std::io::stderr().write_all(note).unwrap();
            return None;
        };
        let device = String::from_utf8(attached.stdout).unwrap();
        let device = device.trim().to_string();
        let open = File::open(&device).unwrap();
        let detached = Command::new("losetup").args(["--detach", &device]).status();
        assert!(detached.unwrap().success());
        Some(LoopDisk {
            device,
            file,
            _open: open,
        })
    }

    /// Returns everything that is on the disk.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(self.file.path()).unwrap()
    }
}
