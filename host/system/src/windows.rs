//! Windows. Nothing here has been tested on it.

use crate::rename::link_or_reserve;
use crate::{Computer, Flag, Space};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

// Flags of CreateFile, as documented by Microsoft.
const WRITE_THROUGH: u32 = 0x8000_0000;
const NO_BUFFERING: u32 = 0x2000_0000;
const OPEN_REPARSE_POINT: u32 = 0x0020_0000;

/// Reads and writes at a position. They move the position of the file, which nothing here uses.
pub trait Positioned {
    /// Reads up to the length of the buffer; 0 at the end of the file.
    ///
    /// # Errors
    /// Those of the system.
    fn read_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<usize>;

    /// Fills the buffer.
    ///
    /// # Errors
    /// [`UnexpectedEof`](io::ErrorKind::UnexpectedEof), and those of the system.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset_bytes: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset_bytes) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset_bytes += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes all data.
    ///
    /// # Errors
    /// Those of the system.
    fn write_all_at(&self, data: &[u8], offset_bytes: u64) -> io::Result<()>;
}

impl Positioned for File {
    fn read_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<usize> {
        self.seek_read(buffer, offset_bytes)
    }

    fn write_all_at(&self, mut data: &[u8], mut offset_bytes: u64) -> io::Result<()> {
        while !data.is_empty() {
            match self.seek_write(data, offset_bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => {
                    data = &data[written..];
                    offset_bytes += written as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// Adds flags to the options. A link is opened itself instead of being refused, and an exclusive file is not shared.
pub fn set(options: &mut OpenOptions, flags: &[Flag]) {
    let mut bits = 0;
    for flag in flags {
        bits |= match flag {
            Flag::BypassCache => NO_BUFFERING,
            Flag::WriteThrough => WRITE_THROUGH,
            Flag::NotThroughLinks => OPEN_REPARSE_POINT,
            Flag::Exclusively => {
                options.share_mode(0);
                0
            }
        };
    }
    options.custom_flags(bits);
}

/// Does nothing: Windows has no such operation.
///
/// # Errors
/// None.
pub fn drop_from_cache(_: &File) -> io::Result<()> {
    Ok(())
}

/// Renames a file.
///
/// # Errors
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the new name exists, and those of the system.
pub fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    link_or_reserve(from, to)
}

/// Extends a file to the given length.
///
/// # Errors
/// Those of the system.
pub fn preallocate(file: &File, bytes: u64) -> io::Result<()> {
    file.set_len(bytes)
}

/// Returns an error: the standard library does not know the space of a file system.
///
/// # Errors
/// [`Unsupported`](io::ErrorKind::Unsupported).
pub fn space(_: &Path) -> io::Result<Space> {
    let reason = "the free space of a file system is known on Linux only";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// Times that a thread was ready and waited for a processor, which Windows does not count.
pub struct RunQueue(());

impl RunQueue {
    /// Returns nothing.
    pub fn of_this_thread() -> Option<RunQueue> {
        None
    }

    /// Returns nothing.
    pub fn waited_ns(&self) -> Option<u64> {
        let RunQueue(()) = self;
        None
    }
}

/// Returns nothing: Windows does not count CPU steal.
pub fn steal_ns() -> Option<u64> {
    None
}

/// Returns the time at which a file was created, which rarely agrees for two files.
pub fn identity(metadata: &Metadata) -> (u64, u64) {
    (metadata.creation_time(), 0)
}

/// Returns false: whole disks are supported on Linux only.
pub fn is_block_device(_: &Metadata) -> bool {
    false
}

/// Returns 0, because no path names a block device.
pub fn device_number(_: &Metadata) -> (u32, u32) {
    (0, 0)
}

/// Returns false: errors of devices are not told apart.
pub fn is_without_medium(_: &io::Error) -> bool {
    false
}

/// Returns false: errors of devices are not told apart.
pub fn is_of_whole_device(_: &io::Error) -> bool {
    false
}

/// Returns true for errors that a medium or its connection causes, and not this computer.
pub fn is_of_medium(error: &io::Error) -> bool {
    // ERROR_CRC, ERROR_SECTOR_NOT_FOUND, ERROR_GEN_FAILURE, ERROR_NOT_READY, ERROR_DEVICE_NOT_CONNECTED, ERROR_IO_DEVICE.
    const OF_MEDIUM: [i32; 6] = [23, 27, 31, 21, 1167, 1117];
    match error.raw_os_error() {
        Some(code) => OF_MEDIUM.contains(&code),
        None => matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::WriteZero
        ),
    }
}

/// Does nothing.
pub fn in_own_group(_: &mut Command) {}

/// Kills a program, and not the programs that it has started.
///
/// # Errors
/// Those of the system.
pub fn kill_group(child: &mut Child) -> io::Result<()> {
    child.kill()
}

/// Returns false: Windows has no SIGHUP.
pub fn is_hangup_ignored() -> bool {
    false
}

/// Returns nothing.
pub fn path_of_open(_: &File) -> Option<PathBuf> {
    None
}

/// Does nothing: NTFS records names in a journal.
///
/// # Errors
/// None.
pub fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}

/// Makes this file durable.
///
/// # Errors
/// Those of the system.
pub fn sync_file_system(file: &File) -> io::Result<()> {
    file.sync_all()
}

/// Returns the offset itself: holes are not known.
///
/// # Errors
/// None.
pub fn next_data(_: &File, offset_bytes: u64) -> io::Result<Option<u64>> {
    Ok(Some(offset_bytes))
}

/// Returns the names of this computer.
pub fn computer() -> Computer {
    Computer {
        name: std::env::var("COMPUTERNAME").unwrap_or_else(|_| String::from("unknown")),
        system: format!("Windows {}", std::env::consts::ARCH),
    }
}

/// Returns no cores, because threads cannot be pinned to them.
pub fn allowed_cores() -> Vec<usize> {
    Vec::new()
}

/// Does nothing.
pub fn pin_to_core(_: usize) {}
