//! Errors of access to a disk, with remedies.

use cardiograph_system::{is_of_medium, is_without_medium};
use std::fmt;
use std::io;

/// An access to a disk that ended a measurement early. `Display` is a sentence with the remedy.
#[derive(Debug)]
pub struct Failed<T> {
    /// Figures so far.
    pub so_far: T,
    /// Address on the disk; `None` for an access to the disk as a whole.
    pub offset_bytes: Option<u64>,
    /// Error of the operating system.
    pub source: io::Error,
}

impl<T: fmt::Debug> std::error::Error for Failed<T> {}

impl<T> fmt::Display for Failed<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        if let Some(offset_bytes) = self.offset_bytes {
            write!(f, "byte {offset_bytes} of the disk: ")?;
        }
        write!(f, "{}; {}", self.source, remedy(&self.source))
    }
}

/// Returns the cause, if it is known, and the remedy of an access to a whole disk that failed.
pub(crate) fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        // The block layer refuses writes to a disk that has become read-only with EPERM.
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "the disk became read-only during the run: slide its lock switch up, or make it writable with `blockdev \
             --setrw`, and run the command again"
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "the file or pool that stores the data of this disk is full, and the disk itself did not fail: free some \
             space there, and run the command again"
        }
        _ if is_of_medium(error) => {
            "check that the disk is connected, and do not trust it with data"
        }
        _ => "resolve this, and run the command again",
    }
}

/// A capacity that changed during a run. `Display` is a clause with the remedy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resized {
    /// Capacity when the disk was opened.
    pub before_bytes: u64,
    /// Capacity that the kernel reports now.
    pub now_bytes: u64,
}

impl fmt::Display for Resized {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "the capacity changed during the run, from {} B to {} B, so that the result does not count; make sure that \
             nothing changes the disk, and run the command again",
            self.before_bytes, self.now_bytes
        )
    }
}

/// Refusal or failure to open a disk.
#[derive(Debug)]
pub enum DiskError {
    /// The path names no block device.
    NotADisk {
        /// Path on the command line.
        path: String,
    },
    /// The path names a partition.
    Partition {
        /// Path on the command line.
        path: String,
        /// Name of its disk.
        disk: String,
    },
    /// The disk has no capacity: an empty card reader, or a loop device without a file.
    NoMedium {
        /// Path on the command line.
        path: String,
    },
    /// Something uses the disk.
    InUse {
        /// Path on the command line.
        path: String,
        /// Use, such as `/dev/sdb1 is mounted on /media/card`.
        by: String,
        /// Steps that end this use.
        remedy: String,
    },
    /// `--destroy` names another disk.
    OtherName {
        /// Path on the command line.
        path: String,
        /// Value of `--destroy`.
        named: String,
    },
    /// The disk has changed since it was opened.
    Exchanged {
        /// Path on the command line.
        path: String,
        /// Property that differs, with both values.
        what: String,
    },
    /// The disk, or its lock switch, does not permit writing.
    ReadOnly {
        /// Path on the command line.
        path: String,
    },
    /// An operation failed.
    Io {
        /// Path on the command line.
        path: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl DiskError {
    /// Wraps an error of the operating system.
    pub(crate) fn io(path: &str, source: io::Error) -> DiskError {
        let path = path.to_string();
        match source.kind() {
            io::ErrorKind::ResourceBusy => DiskError::InUse {
                path,
                by: String::from(
                    "another program has it open exclusively, or a file system on it is mounted elsewhere",
                ),
                remedy: String::from("end that program or unmount the file system"),
            },
            _ if is_without_medium(&source) => DiskError::NoMedium { path },
            _ => DiskError::Io { path, source },
        }
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DiskError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DiskError::NotADisk { path } if cfg!(not(target_os = "linux")) => write!(
                f,
                "{path}: whole disks are supported on Linux only; name a directory on the disk"
            ),
            DiskError::NotADisk { path } => {
                write!(
                    f,
                    "{path}: not a block device; name a whole disk such as /dev/sdb, or a directory on it"
                )
            }
            DiskError::Partition { path, disk } => write!(
                f,
                "{path}: a partition of /dev/{disk}; name the whole disk, or a directory on the mounted partition"
            ),
            DiskError::NoMedium { path } => {
                write!(
                    f,
                    "{path}: the device has no capacity; insert a card, or attach a file to the loop device"
                )
            }
            DiskError::InUse { path, by, remedy } => write!(f, "{path}: {by}; {remedy} first"),
            DiskError::OtherName { path, named } => write!(
                f,
                "{path}: --destroy names {named}; to overwrite the disk, repeat its name: --destroy {path}"
            ),
            DiskError::Exchanged { path, what } => write!(
                f,
                "{path}: the disk was exchanged after it was shown ({what}); nothing was written: run the command again"
            ),
            DiskError::ReadOnly { path } => write!(
                f,
                "{path}: the disk is read-only; slide its lock switch up, or measure reads without --destroy"
            ),
            DiskError::Io { path, source } => {
                let remedy = match source.kind() {
                    io::ErrorKind::NotFound => "check the name, `lsblk` lists the disks",
                    io::ErrorKind::PermissionDenied => {
                        "run the command as root, or join the group that owns the device"
                    }
                    _ if is_of_medium(source) => "check that the disk is connected",
                    _ => "resolve this, and run the command again",
                };
                write!(f, "{path}: {source}; {remedy}")
            }
        }
    }
}
