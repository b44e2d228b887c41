//! Files and processes, as far as operating systems differ.
//!
//! ```text
//!   unix.rs      Linux, on which everything is tested
//!   folder.rs    a directory that is held open; by its path on other systems than Unix
//!   mount.rs     file systems that this process alone mounts; Linux only
//!   windows.rs   the nearest operation of Windows; where there is none, an error or nothing
//! ```
//!
//! `unix.rs` and `windows.rs` have the same functions, so that no other crate has to distinguish systems for ordinary
//! files.

#[cfg(unix)]
mod folder;
#[cfg(not(unix))]
#[path = "folder_by_path.rs"]
mod folder;
#[cfg(target_os = "linux")]
mod mount;
#[cfg(not(target_os = "linux"))]
#[path = "no_mount.rs"]
mod mount;
mod rename;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as here;
#[cfg(windows)]
use windows as here;

pub use folder::Folder;
pub use mount::{Mount, has_file_system};

pub use here::{
    Positioned, RunQueue, allowed_cores, computer, device_number, drop_from_cache, identity,
    in_own_group, is_block_device, is_hangup_ignored, is_of_medium, is_of_whole_device,
    is_without_medium, kill_group, next_data, path_of_open, pin_to_core, preallocate,
    rename_without_replacing, set, space, steal_ns, sync_directory, sync_file_system,
};

/// A property of an open file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Reads and writes bypass the page cache; only whole blocks are possible then.
    BypassCache,
    /// A write returns when the device has the data.
    WriteThrough,
    /// The path may not end in a symbolic link.
    NotThroughLinks,
    /// The device and its partitions may not be in use.
    Exclusively,
}

/// Way in which a file of a [`Folder`] is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An existing file, for reading.
    Read,
    /// An existing file, for reading and writing.
    ReadWrite,
    /// A new file, for reading and writing.
    Create,
}

/// Numbers of device and inode, which no other file on this computer has.
pub type FileIdentity = (u64, u64);

/// Space of a file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that this user can still write.
    pub free_bytes: u64,
    /// Size of the file system in bytes.
    pub total_bytes: u64,
}

/// Names of a computer and its operating system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computer {
    /// Name of the computer.
    pub name: String,
    /// Name, release and processor of the operating system.
    pub system: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, File, OpenOptions};

    #[test]
    fn reads_and_writes_have_positions() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path);
        let file = file.unwrap();
        file.write_all_at(b"world", 7).unwrap();
        file.write_all_at(b"hello, ", 0).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"hello, world");
        let mut word = [0; 5];
        file.read_exact_at(&mut word, 7).unwrap();
        assert_eq!(&word, b"world");
        assert_eq!(file.read_at(&mut word, 12).unwrap(), 0);
        assert!(file.read_exact_at(&mut word, 8).is_err());
    }

    #[test]
    fn a_rename_never_replaces() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&from, "new").unwrap();
        rename_without_replacing(&from, &to).unwrap();
        assert_eq!(fs::read(&to).unwrap(), b"new");
        fs::write(&from, "newer").unwrap();
        let error = rename_without_replacing(&from, &to).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"new");
    }

    #[test]
    fn files_are_told_apart() {
        let directory = tempfile::tempdir().unwrap();
        let of = |name: &str| {
            let path = directory.path().join(name);
            fs::write(&path, name).unwrap();
            identity(&path.metadata().unwrap())
        };
        let (first, second) = (of("a"), of("b"));
        assert_ne!(first, second);
        fs::rename(directory.path().join("a"), directory.path().join("c")).unwrap();
        let moved = directory.path().join("c").metadata().unwrap();
        assert_eq!(identity(&moved), first);
    }

    #[test]
    fn a_preallocated_file_has_its_length_and_holds_zeros() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let file = File::create_new(&path).unwrap();
        preallocate(&file, 10_000).unwrap();
        assert_eq!(fs::read(&path).unwrap(), vec![0; 10_000]);
    }

    #[test]
    fn waits_for_a_processor_do_not_decrease() {
        let Some(queue) = RunQueue::of_this_thread() else {
            assert!(!std::path::Path::new("/proc/self/schedstat").exists());
            return;
        };
        let first = queue.waited_ns();
        std::thread::sleep(std::time::Duration::from_millis(1));
        assert!(first.is_some() && queue.waited_ns() >= first);
    }

    #[test]
    fn steal_does_not_decrease() {
        let first = steal_ns();
        assert!(steal_ns() >= first);
        assert_eq!(first.is_some(), cfg!(target_os = "linux"));
    }

    #[test]
    fn space_and_names_are_known() {
        let own = space(&std::env::temp_dir()).unwrap();
        assert!(own.total_bytes > 0 && own.free_bytes <= own.total_bytes);
        assert!(!computer().name.is_empty());
    }
}
