//! Open files: properties and reads.

use super::aside;
use crate::beneath::{PART, Root, error_of};
use cardiograph_record::{LiveFile, LiveFiles, epoch_of_recording, recording_at};
use cardiograph_server::{Error, Kind, Stat, Version};
use rustix::fs::{FileType, fstat, sendfile};
use rustix::io::{Errno, ReadWriteFlags, pread, preadv2};
use std::cell::RefCell;
use std::cmp::Ordering;
use std::io::IoSliceMut;
use std::ops::Deref;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::sleep;

/// Bytes per read. A connection holds up to two pieces: one is sent while the next one is read.
const PIECE_BYTES: usize = 64 << 10;
/// Bytes that the system sends per call, and distance of the bytes that show whether they are in the page cache.
const SEND_BYTES: usize = 256 << 10;
const PROBE_BYTES: usize = 64 << 10;
/// Maximum delay, in ms, between the updates of a file's modification time and of its length when another program
/// appends to it.
const APPEND_MS_MAX: usize = 200;
/// Buffers kept for reuse.
const BUFFERS_KEPT: usize = 16;

/// An open file or directory.
pub struct OpenFile {
    file: Arc<OwnedFd>,
    stat: Stat,
    /// Length and times as of the lookup.
    found: rustix::fs::Stat,
    /// Progress of a file that is or was being recorded.
    growing: Option<Arc<LiveFile>>,
}

impl OpenFile {
    /// Looks up a path. A file that is being recorded is found under its final name.
    pub async fn open(root: &Root, live: &LiveFiles, path: &str) -> Result<OpenFile, Error> {
        if let Some(growing) = live.at(path.trim_start_matches('/')) {
            let part = format!("/{}{PART}", growing.path);
            match root.read_unchecked(&part) {
                Ok((file, found)) if inode_of(&found) == growing.inode => {
                    return Ok(OpenFile {
                        file: Arc::new(file),
                        stat: stat_of_growing(&found, &growing),
                        found,
                        growing: Some(growing),
                    });
                }
                // The recorder has finished the file in the meantime.
                Ok(_) | Err(Error::NotFound) => (),
                Err(error) => return Err(error),
            }
        }
        let (file, found) = root.read(path).await?;
        let stat = stat_of(&found, || epoch_at(path, &file));
        Ok(OpenFile {
            file: Arc::new(file),
            stat,
            found,
            growing: None,
        })
    }

    /// Returns the properties as of the last lookup.
    pub fn stat(&self) -> Stat {
        self.stat
    }

    /// Returns the file descriptor.
    pub fn file(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.file)
    }

    /// Updates the durable length of a file that is or was being recorded.
    pub async fn refresh(&mut self) -> Result<(), Error> {
        let Some(growing) = &self.growing else {
            return self.check_unchanged().await;
        };
        let found = fstat(&self.file).map_err(error_of)?;
        // Read the flag before the length: once a file is finished, its length is final.
        let is_growing = growing.is_unfinished();
        self.stat = stat_of_growing(&found, growing);
        self.stat.is_growing = is_growing;
        Ok(())
    }

    /// Sends bytes to a socket without copying them. Returns [`Errno::OPNOTSUPP`] for bytes that are not in the page cache, or
    /// if the file may have changed: they have to be read, which does not block other clients, and is checked.
    pub fn send_cached(&self, socket: impl AsFd, offset: u64, bytes: u64) -> Result<usize, Errno> {
        let bytes = usize::try_from(bytes).map_or(SEND_BYTES, |bytes| bytes.min(SEND_BYTES));
        let last = offset + bytes as u64 - 1;
        let mut probes = (offset..last).step_by(PROBE_BYTES).chain([last]);
        if !self.is_as_found()? || !probes.all(|at| is_cached(&self.file, at)) {
            return Err(Errno::OPNOTSUPP);
        }
        let mut from = offset;
        match sendfile(socket, &self.file, Some(&mut from), bytes) {
            // The file has become shorter, or the file system cannot do this.
            Ok(0) | Err(Errno::INVAL | Errno::NOSYS) => Err(Errno::OPNOTSUPP),
            sent => sent,
        }
    }

    /// Returns true if the contents are those of the lookup, or the recorder only appends to them.
    fn is_as_found(&self) -> Result<bool, Errno> {
        if self.growing.is_some() {
            return Ok(true);
        }
        let found = fstat(&self.file)?;
        let key = |stat: &rustix::fs::Stat| (stat.st_size, stat.st_mtime, stat.st_mtime_nsec);
        Ok(key(&found) == key(&self.found))
    }

    /// Fails if the contents have changed since the lookup. A recorder only appends to its file.
    async fn check_unchanged(&self) -> Result<(), Error> {
        if self.growing.is_some() {
            return Ok(());
        }
        for _ in 0..APPEND_MS_MAX {
            let found = fstat(&self.file).map_err(error_of)?;
            // Compare the modification time, not the time of the last status change: renaming does not change the
            // contents.
            let written = |stat: &rustix::fs::Stat| (stat.st_mtime, stat.st_mtime_nsec);
            match found.st_size.cmp(&self.found.st_size) {
                // Another program appends, as loggers do.
                Ordering::Greater => return Ok(()),
                Ordering::Equal if written(&found) == written(&self.found) => return Ok(()),
                // An append updates the time before the length.
                Ordering::Equal => sleep(Duration::from_millis(1)).await,
                Ordering::Less => return Err(Error::Changed),
            }
        }
        Err(Error::Changed)
    }
}

/// Returns the properties of a file or directory that is not being recorded. `epoch` reads the epoch of a
/// recording.
pub fn stat_of(found: &rustix::fs::Stat, epoch: impl FnOnce() -> Option<u32>) -> Stat {
    let kind = match FileType::from_raw_mode(found.st_mode) {
        FileType::Directory => Kind::Directory,
        _ => Kind::File,
    };
    let epoch = match kind {
        Kind::File => epoch(),
        Kind::Directory => None,
    };
    Stat {
        kind,
        bytes: match kind {
            Kind::File => length_of(found),
            Kind::Directory => 0,
        },
        modified_s: u64::try_from(found.st_mtime).ok(),
        version: match epoch {
            Some(epoch) => Version::Appended { epoch },
            None => Version::Whole {
                generation: generation(found),
            },
        },
        is_growing: false,
    }
}

/// Returns the properties of a file that is being recorded.
pub fn stat_of_growing(found: &rustix::fs::Stat, growing: &LiveFile) -> Stat {
    let bytes = growing.durable_bytes();
    Stat {
        bytes,
        version: Version::Appended {
            epoch: growing.epoch,
        },
        is_growing: true,
        ..stat_of(found, || None)
    }
}

/// Returns the epoch of a recording, or `None` if the path or the first block is not that of a recording.
pub fn epoch_at(path: &str, file: &OwnedFd) -> Option<u32> {
    recording_at(path.trim_start_matches('/'))?;
    let mut block = [0; 512];
    let read = pread(file, &mut block, 0).ok()?;
    (read == block.len()).then(|| epoch_of_recording(&block))?
}

fn inode_of(found: &rustix::fs::Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

fn length_of(found: &rustix::fs::Stat) -> u64 {
    u64::try_from(found.st_size).unwrap_or(0)
}

/// Hashes inode, length and times of a file to 64 bits (FNV-1a).
fn generation(found: &rustix::fs::Stat) -> u64 {
    let parts = [
        found.st_ino,
        length_of(found),
        found.st_mtime as u64,
        found.st_mtime_nsec,
        found.st_ctime as u64,
        found.st_ctime_nsec,
    ];
    let bytes = parts.into_iter().flat_map(u64::to_le_bytes);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Read buffers.
#[derive(Default)]
pub struct Pool {
    free: RefCell<Vec<Vec<u8>>>,
}

/// Bytes of a file, in a buffer that returns to its pool.
pub struct Piece<'a> {
    buffer: Vec<u8>,
    bytes: usize,
    pool: &'a Pool,
}

impl Pool {
    /// Reads at most `bytes_max` bytes at `offset`, up to the length as of the last lookup.
    pub async fn read(
        &self,
        file: &OpenFile,
        offset: u64,
        bytes_max: usize,
    ) -> Result<Piece<'_>, Error> {
        if file.stat.kind == Kind::Directory {
            return Err(Error::IsDirectory);
        }
        let left = file.stat.bytes.saturating_sub(offset);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX);
        let wanted = wanted.min(bytes_max).min(PIECE_BYTES);
        let mut piece = Piece {
            buffer: self.free.borrow_mut().pop().unwrap_or_default(),
            bytes: 0,
            pool: self,
        };
        if wanted == 0 {
            return Ok(piece);
        }
        piece.buffer.resize(PIECE_BYTES, 0);
        let into = &mut piece.buffer[..wanted];
        piece.bytes = match read_cached(&file.file, into, offset) {
            Ok(bytes) => bytes,
            // Not in the page cache, or the file system cannot tell.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INTR) => {
                let (file, mut buffer) =
                    (Arc::clone(&file.file), std::mem::take(&mut piece.buffer));
                let (bytes, buffer) = aside(move || {
                    let bytes = retry(|| pread(&file, &mut buffer[..wanted], offset))?;
                    Ok((bytes, buffer))
                })
                .await?;
                piece.buffer = buffer;
                bytes
            }
            Err(error) => return Err(error_of(error)),
        };
        // Check after the read: if a program overwrites the file later, this piece is not affected.
        file.check_unchanged().await?;
        match piece.bytes {
            // The file has been truncated.
            0 => Err(Error::Changed),
            _ => Ok(piece),
        }
    }
}

/// Returns true if the byte at an offset is in the page cache.
fn is_cached(file: &OwnedFd, offset: u64) -> bool {
    read_cached(file, &mut [0], offset) == Ok(1)
}

/// Reads from the page cache only.
fn read_cached(file: &OwnedFd, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
    let mut slices = [IoSliceMut::new(into)];
    preadv2(file, &mut slices, offset, ReadWriteFlags::NOWAIT)
}

/// Repeats a system call that a signal interrupted.
fn retry<T>(mut call: impl FnMut() -> Result<T, Errno>) -> Result<T, Errno> {
    loop {
        match call() {
            Err(Errno::INTR) => (),
            done => return done,
        }
    }
}

impl Deref for Piece<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.bytes]
    }
}

impl Drop for Piece<'_> {
    fn drop(&mut self) {
        let mut free = self.pool.free.borrow_mut();
        if free.len() < BUFFERS_KEPT {
            free.push(std::mem::take(&mut self.buffer));
        }
    }
}
