//! Uploads: a temporary file in the directory of the final one, renamed when it is complete.
//!
//! | step | after an interruption here |
//! |---|---|
//! | bytes go to `.cardiograph-upload-N.part`, which takes room as they arrive | the old file, and a hidden one that the next start removes |
//! | the temporary file is made durable | the same |
//! | it is renamed | **the new file**, or the old one until the directory is durable |

use super::aside;
use super::room::Room;
use crate::beneath::{PART, Root, error_of};
use crate::descriptors::checked;
use cardiograph_server::Error;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, RenameFlags, flock, fstat, fsync, ftruncate,
    openat, renameat, renameat_with, statat, unlinkat,
};
use rustix::io::{Errno, pwrite};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Uploads that may be in progress in one directory.
const UPLOADS_MAX: u32 = 64;
/// Bytes collected before they are written.
const BUFFER_BYTES: usize = 64 << 10;
/// Prefix of temporary names.
const PREFIX: &str = ".cardiograph-upload-";

/// An unfinished upload. Dropping it removes the temporary file.
pub struct Upload {
    parent: Arc<OwnedFd>,
    /// The temporary file, locked: other uploads reuse only files that are not locked.
    file: Arc<OwnedFd>,
    temporary: String,
    path: String,
    room: Arc<Room>,
    buffer: Vec<u8>,
    written: u64,
    is_named: bool,
}

impl Upload {
    /// Creates the temporary file. Refuses an upload that is known to be longer than the room for it.
    pub async fn create(
        root: &Arc<Root>,
        room: &Arc<Room>,
        path: &str,
        bytes: Option<u64>,
    ) -> Result<Upload, Error> {
        let (parent, name) = root.parent(path).await?;
        let found = statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW);
        check_replaceable(found)?;
        let parent = Arc::new(parent);
        let (folder, space) = (Arc::clone(&parent), Arc::clone(room));
        // Nothing is reserved: a client that sends one byte would hold the whole length.
        aside(move || space.take(&folder, bytes.unwrap_or(0)).map(drop)).await?;
        let (file, temporary) = temporary_file(&parent)?;
        Ok(Upload {
            parent,
            file: Arc::new(file),
            temporary,
            path: path.to_string(),
            room: Arc::clone(room),
            buffer: Vec::new(),
            written: 0,
            is_named: false,
        })
    }

    /// Appends bytes.
    pub async fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.buffer.extend_from_slice(bytes);
        match self.buffer.len() < BUFFER_BYTES {
            true => Ok(()),
            false => self.write_buffer().await,
        }
    }

    async fn write_buffer(&mut self) -> Result<(), Error> {
        let (file, at) = (Arc::clone(&self.file), self.written);
        let room = Arc::clone(&self.room);
        let buffer = std::mem::take(&mut self.buffer);
        let mut buffer = aside(move || {
            let _permit = room.take(&file, buffer.len() as u64)?;
            write_all(&file, &buffer, at)?;
            Ok(buffer)
        })
        .await?;
        self.written += buffer.len() as u64;
        buffer.clear();
        self.buffer = buffer;
        Ok(())
    }

    /// Makes the upload durable and gives it its final name; returns true if no file was replaced.
    pub async fn commit(mut self) -> Result<bool, Error> {
        self.write_buffer().await?;
        aside(move || {
            fsync(&self.file)?;
            let is_new = self.rename()?;
            self.is_named = true;
            fsync(&self.parent)?;
            Ok(is_new)
        })
        .await
    }

    /// Renames the temporary file; returns true if no file was replaced.
    fn rename(&self) -> Result<bool, Errno> {
        let (_, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        let (parent, from) = (&self.parent, &self.temporary);
        let exclusive = renameat_with(parent, from, parent, name, RenameFlags::NOREPLACE);
        match exclusive {
            Ok(()) => return Ok(true),
            Err(Errno::EXIST | Errno::INVAL | Errno::NOSYS) => (),
            Err(error) => return Err(error),
        }
        let is_new = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).is_err();
        renameat(parent, from, parent, name)?;
        Ok(is_new)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if !self.is_named {
            // If this fails, the next upload to this directory reuses the file.
            let _ = unlinkat(&self.parent, &self.temporary, AtFlags::empty());
        }
    }
}

/// Refuses to replace a directory, a link or a device.
fn check_replaceable(found: Result<rustix::fs::Stat, Errno>) -> Result<(), Error> {
    match found {
        Ok(found) => match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(Error::IsDirectory),
            _ => Err(Error::Forbidden),
        },
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error_of(error)),
    }
}

/// Creates a temporary file, or takes over one that an interrupted upload left behind; returns it locked and
/// empty.
fn temporary_file(parent: &OwnedFd) -> Result<(OwnedFd, String), Error> {
    for index in 0..UPLOADS_MAX {
        let name = format!("{PREFIX}{index}{PART}");
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(0o644);
        let file = openat(parent, name.as_str(), flags, mode).and_then(checked);
        let file = file.map_err(error_of)?;
        if is_taken_over(parent, &name, &file).map_err(error_of)? {
            ftruncate(&file, 0).map_err(error_of)?;
            return Ok((file, name));
        }
    }
    Err(Error::Busy)
}

/// Locks a temporary file. Returns false if another upload has it.
fn is_taken_over(parent: &OwnedFd, name: &str, file: &OwnedFd) -> Result<bool, Errno> {
    if flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(false);
    }
    // Another upload may have renamed or removed the file before it was locked here.
    let named = statat(parent, name, AtFlags::SYMLINK_NOFOLLOW);
    let own = fstat(file)?;
    Ok(named.is_ok_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)))
}

/// Removes a temporary file that no upload uses, in this server or another one.
pub fn remove_leftover(parent: &OwnedFd, name: &str) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = openat(parent, name, flags, Mode::empty())?;
    match is_taken_over(parent, name, &file)? {
        true => unlinkat(parent, name, AtFlags::empty()),
        false => Ok(()),
    }
}

/// Returns true for the name of a temporary file.
pub fn is_temporary(name: &str) -> bool {
    name.starts_with(PREFIX) && name.ends_with(PART)
}

fn write_all(file: &OwnedFd, mut bytes: &[u8], mut at: u64) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match pwrite(file, bytes, at) {
            Ok(0) => return Err(Errno::IO),
            Ok(written) => {
                bytes = &bytes[written..];
                at += written as u64;
            }
            Err(Errno::INTR) => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
