//! Files that a recorder is writing, for readers in other threads.

use cardiograph_recorder::FileId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The unfinished, named files of a running recorder. The recorder updates it at each checkpoint.
#[derive(Clone, Debug, Default)]
pub struct LiveFiles {
    files: Arc<Mutex<Vec<Arc<LiveFile>>>>,
}

/// An unfinished file.
#[derive(Debug)]
pub struct LiveFile {
    /// Prefix, extension and number.
    pub id: FileId,
    /// Name of the session; empty if there is none.
    pub session: String,
    /// Path below the directory that the file gets when it is finished.
    pub path: String,
    /// Device and inode.
    pub inode: (u64, u64),
    /// Number of the recording that its marks contain.
    pub epoch: u32,
    durable_bytes: AtomicU64,
}

impl LiveFile {
    pub(super) fn new(
        (id, session): (FileId, &str),
        path: String,
        inode: (u64, u64),
        epoch: u32,
        durable_bytes: u64,
    ) -> LiveFile {
        LiveFile {
            id,
            session: session.to_string(),
            path,
            inode,
            epoch,
            durable_bytes: AtomicU64::new(durable_bytes),
        }
    }

    /// Returns the durable length in bytes, without the mark that follows the data.
    pub fn durable_bytes(&self) -> u64 {
        self.durable_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn set_durable_bytes(&self, bytes: u64) {
        self.durable_bytes.store(bytes, Ordering::Relaxed);
    }
}

impl LiveFiles {
    /// Returns the file that gets this path, relative to the directory, when it is finished.
    pub fn at(&self, path: &str) -> Option<Arc<LiveFile>> {
        self.find(|file| file.path == path)
    }

    /// Returns the file with this device and inode.
    pub fn with_inode(&self, inode: (u64, u64)) -> Option<Arc<LiveFile>> {
        self.find(|file| file.inode == inode)
    }

    /// Returns true if one of the files is in this directory, or below it.
    pub fn is_any_below(&self, directory: &str) -> bool {
        let is_below = |file: &LiveFile| {
            let rest = file.path.strip_prefix(directory);
            directory.is_empty() || rest.is_some_and(|rest| rest.starts_with('/'))
        };
        self.find(is_below).is_some()
    }

    /// Returns all files.
    pub fn all(&self) -> Vec<Arc<LiveFile>> {
        self.lock().clone()
    }

    pub(super) fn add(&self, file: Arc<LiveFile>) {
        self.lock().push(file);
    }

    pub(super) fn remove(&self, file: &Arc<LiveFile>) {
        self.lock().retain(|other| !Arc::ptr_eq(other, file));
    }

    fn find(&self, is_wanted: impl Fn(&LiveFile) -> bool) -> Option<Arc<LiveFile>> {
        self.lock().iter().find(|file| is_wanted(file)).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<LiveFile>>> {
        self.files.lock().unwrap_or_else(|held| held.into_inner())
    }
}
