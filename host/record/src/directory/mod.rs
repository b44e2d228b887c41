//! A directory of this computer in place of a card: preallocated files, renamed when they are finished.
//!
//! ```text
//!   Recorder ── BlockDevice ── DirectoryCard ──┐
//!       │                                      ├── Folder: lock, unfinished files
//!       └───── Volume ── DirectoryVolume ──────┘
//!
//!   reserve   .cardiograph-0-LOG-CSV.part        full length, no number yet
//!   name      LOG00000/LOG00012.CSV.part         renamed, full length
//!   close     LOG00000/LOG00012.CSV              trimmed, made durable, renamed
//! ```
//!
//! Each unfinished file has a slot, which determines its range of block addresses. There is no journal: after
//! a kill or a power loss, mounting finds the unfinished files by their names; their first blocks contain the
//! epoch and the number. A lock file keeps a second recorder out.

mod block_device;
mod error;
mod files;
mod first_block;
mod live_files;
mod names;
mod unfinished;
mod volume;

pub use error::DirectoryError;
pub use live_files::{LiveFile, LiveFiles};
pub(crate) use names::path_of;
pub use names::recording_at;

use crate::monitor::{Monitor, Writes};
use cardiograph_card::{BLOCK_BYTES, Block};
use cardiograph_recorder::{FileId, RESERVED_MAX};
pub(crate) use first_block::{FirstBlock, is_text_of_recorder};
use names::LOCK;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use unfinished::Unfinished;

/// Block addresses per file: no FAT file has more blocks.
const RANGE_BLOCKS: u32 = 1 << 23;
/// Maximum number of blocks in a file.
const BLOCKS_MAX: u32 = RANGE_BLOCKS - 1;
const _: () = assert!(BLOCKS_MAX as u64 * BLOCK_BYTES as u64 <= u32::MAX as u64);
/// A block address outside all files; reading it has no effect.
const NO_BLOCK: u32 = CARD_BLOCKS;

const CARD_BLOCKS: u32 = RESERVED_MAX as u32 * RANGE_BLOCKS;

/// Purpose for which a directory is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Opens the directory for a recording.
    Record,
    /// Opens the directory to trim interrupted recordings.
    Recover,
    /// Opens the directory to find out what [`Recover`](Access::Recover) would do, without writing.
    DryRun,
}

/// The block device of a directory.
pub struct DirectoryCard {
    folder: Rc<RefCell<Folder>>,
    failure: Failure,
}

impl DirectoryCard {
    /// Returns a handle to the first failure, which stays valid when the recorder owns the card.
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }

    /// Reports files, writes and the next numbers of these prefixes to a monitor.
    pub(crate) fn report_to(&self, monitor: &Monitor, prefixes: Vec<[u8; 3]>) {
        let mut folder = self.folder.borrow_mut();
        folder.live = monitor.files().clone();
        folder.prefixes = prefixes;
        folder.writes = Some(Arc::clone(&monitor.writes));
    }
}

/// The first failure of a directory. The recorder may continue after it.
#[derive(Clone, Default)]
pub struct Failure {
    first: Arc<Mutex<Option<String>>>,
    is_full: Arc<AtomicBool>,
}

impl Failure {
    /// Returns the failure as a sentence. A full storage device does not count as a failure.
    pub fn first(&self) -> Option<String> {
        let first = self.first.lock().unwrap_or_else(|held| held.into_inner());
        first.clone()
    }

    /// Returns true if a block did not fit on the storage device.
    pub fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }

    fn note<T>(&self, result: Result<T, DirectoryError>) -> Result<T, DirectoryError> {
        match &result {
            Ok(_) => (),
            Err(error) if error.is_full() => self.is_full.store(true, Ordering::Relaxed),
            Err(error) => {
                let mut first = self.first.lock().unwrap_or_else(|held| held.into_inner());
                first.get_or_insert_with(|| error.to_string());
            }
        }
        result
    }
}

/// The file system of a directory.
pub struct DirectoryVolume {
    folder: Rc<RefCell<Folder>>,
    failure: Failure,
    /// Number of the next recording of each prefix.
    next_numbers: BTreeMap<[u8; 3], u32>,
    startup: Option<Startup>,
}

/// Rules for reservations of a recording until sampling begins.
pub(crate) struct Startup {
    /// Number of files, for all streams together, that are reserved before sampling begins.
    pub(crate) files: u32,
    /// True if finished recordings may be removed to make room.
    pub(crate) may_remove: bool,
    /// True once sampling has begun.
    pub(crate) is_sampling: Arc<AtomicBool>,
    /// Recordings that have been removed to make room, for the recorder's event handler.
    pub(crate) removed: Rc<RefCell<Vec<FileId>>>,
}

impl DirectoryVolume {
    /// Sets the rules for reservations until sampling begins.
    pub(crate) fn set_startup(&mut self, startup: Startup) {
        self.startup = Some(startup);
    }

    /// Returns the files that mounting and recovery renamed, removed or left alone, and clears the list. In a dry
    /// run nothing is changed.
    pub fn take_repairs(&mut self) -> Vec<Repair> {
        std::mem::take(&mut self.folder.borrow_mut().repairs)
    }
}

/// Opens a directory and locks it, so that no other program records to it.
///
/// # Errors
/// [`DirectoryError`], which displays as a sentence with path and remedy.
pub fn open_directory(
    path: &Path,
    access: Access,
) -> Result<(DirectoryCard, DirectoryVolume), DirectoryError> {
    let mut folder = Folder {
        path: path.to_path_buf(),
        access,
        lock: None,
        files: [const { None }; RESERVED_MAX],
        stream: None,
        is_fresh: true,
        repairs: Vec::new(),
        live: LiveFiles::default(),
        prefixes: Vec::new(),
        writes: None,
        spent: Spent::default(),
    };
    folder.open()?;
    let folder = Rc::new(RefCell::new(folder));
    let failure = Failure::default();
    let volume = DirectoryVolume {
        folder: Rc::clone(&folder),
        failure: failure.clone(),
        next_numbers: BTreeMap::new(),
        startup: None,
    };
    Ok((DirectoryCard { folder, failure }, volume))
}

/// The open directory, its lock and its unfinished files.
struct Folder {
    path: PathBuf,
    access: Access,
    /// The lock file, locked. `None` in a dry run if the directory has no lock file.
    lock: Option<File>,
    files: [Option<Unfinished>; RESERVED_MAX],
    /// Slot of the file being written, and index of its next block.
    stream: Option<(usize, u32)>,
    /// True from opening until the first `acquire`, which need not reopen the directory.
    is_fresh: bool,
    repairs: Vec<Repair>,
    /// List of the unfinished files, for readers.
    live: LiveFiles,
    /// Prefixes of the recording whose names are reserved in that list.
    prefixes: Vec<[u8; 3]>,
    /// Statistics that receive the latency of each write; `None` if nobody reads them.
    writes: Option<Arc<Writes>>,
    /// Time and bytes of the current stream of blocks.
    spent: Spent,
}

/// Time and bytes that a stream of blocks has taken so far.
#[derive(Default)]
struct Spent {
    time: Duration,
    bytes: u64,
}

/// Outcome for a file whose name is that of an unfinished file, but which is not an interrupted recording
/// with samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Repair {
    /// The file lacked only its final name: the new name in the directory, and its length in bytes.
    Renamed(String, u64),
    /// The file was prepared and contained no samples; it has been removed.
    Removed(String),
    /// The file is not provably a Cardiograph recording; it is untouched.
    LeftAlone(String),
}

impl Folder {
    /// Reopens the directory, the lock and all unfinished files, because the storage device may have been
    /// removed and put back.
    fn open(&mut self) -> Result<(), DirectoryError> {
        self.lock = None;
        self.stream = None;
        self.files = [const { None }; RESERVED_MAX];
        let directory = std::fs::metadata(&self.path).map_err(DirectoryError::at(&self.path))?;
        if !directory.is_dir() {
            return Err(DirectoryError::at(&self.path)(
                ErrorKind::NotADirectory.into(),
            ));
        }
        if self.access != Access::Record && !self.has_recordings()? {
            return Err(DirectoryError::NoRecording(self.path.clone()));
        }
        let path = self.path.join(LOCK);
        let mut options = OpenOptions::new();
        options.read(true).write(self.access != Access::DryRun);
        let lock = options.create(self.access != Access::DryRun).open(&path);
        let lock = match lock {
            Err(error) if error.kind() == ErrorKind::NotFound && self.access == Access::DryRun => {
                return Ok(());
            }
            // The directory exists, but holds no ordinary files: `/proc`, for example.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(DirectoryError::NoFiles(self.path.clone()));
            }
            lock => lock.map_err(DirectoryError::at(&path))?,
        };
        match lock.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                return Err(DirectoryError::InUse(self.path.clone()));
            }
            Err(TryLockError::Error(error)) => return Err(DirectoryError::at(&path)(error)),
        }
        self.lock = Some(lock);
        Ok(())
    }

    /// Returns the path of a file relative to the directory, as text.
    fn name_in(&self, path: &Path) -> String {
        let name = path.strip_prefix(&self.path).unwrap_or(path);
        name.display().to_string()
    }

    fn unfinished(&self, slot: usize) -> Result<&Unfinished, DirectoryError> {
        let file = self.files.get(slot).and_then(Option::as_ref);
        file.ok_or_else(|| DirectoryError::NotUnfinished(self.path.clone()))
    }
}

/// Returns true if a directory contains a recording, finished or not, of any session.
pub(crate) fn is_recording_there(directory: &Path, id: &FileId) -> bool {
    let folder = names::folder_of(id);
    let Some(of_folder) = names::parse_folder(&folder) else {
        return false;
    };
    let is_it = |name: &std::ffi::OsStr| {
        let found = name
            .to_str()
            .and_then(|name| names::parse_recording(of_folder, name));
        found.is_some_and(|(found, _)| found == *id)
    };
    let mut entries = std::fs::read_dir(directory.join(folder))
        .into_iter()
        .flatten()
        .flatten();
    entries.any(|entry| is_it(&entry.file_name()))
}

/// Returns the epoch of the recording that begins with this block, or `None` if it is not the first block of
/// one.
pub fn epoch_of_recording(first: &Block) -> Option<u32> {
    match FirstBlock::of(first) {
        FirstBlock::Recording { epoch, .. } => Some(epoch),
        FirstBlock::Unused | FirstBlock::Foreign => None,
    }
}

/// Makes the file names in a directory durable.
fn sync(directory: &Path) -> Result<(), DirectoryError> {
    cardiograph_system::sync_directory(directory).map_err(DirectoryError::at(directory))
}

/// Returns the first block address of a slot.
fn start_of(slot: usize) -> u32 {
    slot as u32 * RANGE_BLOCKS
}
