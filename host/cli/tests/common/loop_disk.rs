//! Whole disks for tests: loop devices over files.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
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

    /// Returns the path of the file below the disk.
    pub fn file(&self) -> &Path {
        self.file.path()
    }

    /// Removes the end of the file below the disk, which keeps its capacity: these blocks can no longer be read.
    pub fn cut_off(&self, from_bytes: u64) {
        self.file.as_file().set_len(from_bytes).unwrap();
    }

    /// Makes the disk read-only, as a card does at the end of its life.
    pub fn make_read_only(&self) {
        self.set_access("--setro");
    }

    fn set_access(&self, option: &str) {
        let mut blockdev = Command::new("blockdev");
        let done = blockdev.args([option, &self.device]).status();
        assert!(done.unwrap().success());
    }

    /// Writes to the file below the disk.
    pub fn write(&self, offset_bytes: u64, data: &[u8]) {
        self.file
            .as_file()
            .write_all_at(data, offset_bytes)
            .unwrap();
    }

    /// Returns everything that is on the disk.
    pub fn content(&self) -> Vec<u8> {
        std::fs::read(self.file.path()).unwrap()
    }

    /// Returns what is at the beginning of the disk.
    pub fn first_block(&self) -> [u8; 4096] {
        let mut block = [0; 4096];
        self.file.as_file().read_exact_at(&mut block, 0).unwrap();
        block
    }

    /// Changes the capacity, as of a volume that its administrator shrinks.
    pub fn resize(&self, bytes: u64) {
        let name = self.device.trim_start_matches("/dev/");
        let sectors = format!("/sys/block/{name}/size");
        let wanted = (bytes / 512).to_string();
        // A write in between makes the file longer again.
        while std::fs::read_to_string(&sectors).unwrap().trim() != wanted {
            self.file.as_file().set_len(bytes).unwrap();
            let mut losetup = Command::new("losetup");
            let done = losetup.args(["--set-capacity", &self.device]).status();
            assert!(done.unwrap().success());
        }
    }

    /// Takes the medium out, as from a card reader: the device stays, and has no capacity any more.
    pub fn remove_medium(&self) {
        self.resize(0);
    }
}

impl Drop for LoopDisk {
    /// The kernel keeps the access of a loop device for its next file.
    fn drop(&mut self) {
        self.set_access("--setrw");
    }
}
