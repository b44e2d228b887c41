//! Space that uploads must not take: the recorder needs it.

use rustix::fs::{StatVfs, fstatvfs};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

/// Default for the space that uploads leave free, in bytes, on a large storage device.
const FREE_BYTES: u64 = 64 << 20;
/// Part of a small storage device that uploads leave free by default.
const FREE_SHARE: u64 = 8;
/// Number of files that can still be created, on file systems that limit it.
const FREE_FILES: u64 = 64;

/// Space that clients may take, checked as bytes arrive.
#[derive(Debug, Default)]
pub struct Room {
    /// Bytes that remain free; `None` for the default.
    keep_free: Option<u64>,
    /// Bytes of writes that have been permitted and may not be counted by the file system yet.
    pending: AtomicU64,
}

/// Permission to take space; it ends when this is dropped.
pub struct Permit<'a> {
    room: &'a Room,
    bytes: u64,
}

impl Room {
    /// Creates the rule that this many bytes remain free; `None` for the default.
    pub fn keeping(keep_free: Option<u64>) -> Room {
        Room {
            keep_free,
            pending: AtomicU64::new(0),
        }
    }

    /// Permits to take `bytes` bytes of the file system of `file`.
    ///
    /// # Errors
    /// [`Errno::NOSPC`] if less than the recorder needs would remain.
    pub fn take(&self, file: &OwnedFd, bytes: u64) -> Result<Permit<'_>, Errno> {
        // Counted first, so that two threads cannot both take the last bytes.
        let before = self.pending.fetch_add(bytes, Ordering::SeqCst);
        let permit = Permit { room: self, bytes };
        let space = fstatvfs(file)?;
        match has_room(&space, before.saturating_add(bytes), self.keep_free) {
            true => Ok(permit),
            false => Err(Errno::NOSPC),
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.room.pending.fetch_sub(self.bytes, Ordering::SeqCst);
    }
}

/// Returns true if enough remains free once `bytes` more bytes are written. A file system without totals, as some
/// in user space are, reports only that it is full.
fn has_room(space: &StatVfs, bytes: u64, keep_free: Option<u64>) -> bool {
    let in_bytes = |blocks: u64| blocks.saturating_mul(space.f_frsize);
    let total = in_bytes(space.f_blocks);
    let keep_free = keep_free.unwrap_or(FREE_BYTES.min(total / FREE_SHARE));
    let has_bytes = in_bytes(space.f_bavail) >= bytes.saturating_add(keep_free);
    let has_files = space.f_files == 0 || space.f_favail >= FREE_FILES;
    total == 0 || has_bytes && has_files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn space(blocks: u64, free: u64) -> StatVfs {
        let directory = std::fs::File::open(".").unwrap();
        StatVfs {
            f_frsize: 4096,
            f_blocks: blocks,
            f_bavail: free,
            f_files: 0,
            ..fstatvfs(directory).unwrap()
        }
    }

    #[test]
    fn uploads_leave_the_space_of_the_recorder() {
        let large = space(1 << 30, 1 << 20);
        let free = 4096 << 20;
        assert!(has_room(&large, free, Some(0)));
        assert!(!has_room(&large, free + 1, Some(0)));
        assert!(has_room(&large, free - FREE_BYTES, None));
        assert!(!has_room(&large, free - FREE_BYTES + 1, None));
        assert!(!has_room(&large, u64::MAX, None));
        let small = space(800, 200);
        assert!(has_room(&small, 100 * 4096, None));
        assert!(!has_room(&small, 101 * 4096, None));
        let few_files = StatVfs {
            f_files: 1000,
            f_favail: FREE_FILES - 1,
            ..large
        };
        assert!(!has_room(&few_files, 0, None));
        assert!(has_room(&space(0, 0), 1, None));
    }

    #[test]
    fn bytes_on_their_way_count_until_they_are_written() {
        let directory = tempfile::tempdir().unwrap();
        let directory = OwnedFd::from(std::fs::File::open(directory.path()).unwrap());
        let room = Room::default();
        let most = u64::MAX / 2;
        assert_eq!(room.take(&directory, most).err(), Some(Errno::NOSPC));
        let first = room.take(&directory, 1).unwrap();
        assert_eq!(room.pending.load(Ordering::SeqCst), 1);
        drop(first);
        assert_eq!(room.pending.load(Ordering::SeqCst), 0);
    }
}
