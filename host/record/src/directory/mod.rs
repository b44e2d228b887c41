//! A directory of this computer as a card: files of their full length from the start, and a journal.
//!
//! ```text
//!   Recorder ── Medium ── DirectoryCard ──┐
//!       │                                 ├── Folder: journal, open files
//!       └───── Volume ── DirectoryVolume ─┘
//! ```
//!
//! The journal's blocks are the card's first; each unfinished file has a range of its own behind them,
//! by its slot. A file is in the journal before it is made, and until it has its length: after a kill or a
//! power failure a mount finds it.

mod error;
mod files;
mod journal;
mod medium;
mod volume;

pub use error::DirectoryError;

use cardiograph_card::BLOCK_BYTES;
use cardiograph_recorder::{Name, RESERVED_MAX};
use journal::{JOURNAL, Record};
use std::cell::RefCell;
use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Blocks of the range that a file has: more than one of FAT can have.
const RANGE_BLOCKS: u32 = 1 << 23;
/// Most blocks of a file.
const BLOCKS_MAX: u32 = RANGE_BLOCKS - 1;
const _: () = assert!(BLOCKS_MAX as u64 * BLOCK_BYTES as u64 <= u32::MAX as u64);
const CARD_BLOCKS: u32 = (1 + RESERVED_MAX as u32) * RANGE_BLOCKS;

/// What a directory is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To record: a journal is made if there is none.
    Record,
    /// To bring recordings that were cut off in order.
    Recover,
    /// To see what [`Recover`](Access::Recover) would do; nothing is written.
    Look,
}

/// The blocks of a directory.
pub struct DirectoryCard {
    folder: Rc<RefCell<Folder>>,
    failure: Failure,
}

impl DirectoryCard {
    /// Returns a handle to the first failure, which stays valid when the recorder has the card.
    pub fn failure(&self) -> Failure {
        self.failure.clone()
    }
}

/// The first failure of a directory, which the recorder may survive.
#[derive(Clone, Default)]
pub struct Failure(Rc<RefCell<Option<String>>>);

impl Failure {
    /// Returns the failure, in a sentence.
    pub fn first(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    fn note<T>(&self, result: Result<T, DirectoryError>) -> Result<T, DirectoryError> {
        if let Err(error) = &result {
            self.0.borrow_mut().get_or_insert_with(|| error.to_string());
        }
        result
    }
}

/// The files of a directory.
pub struct DirectoryVolume {
    folder: Rc<RefCell<Folder>>,
    failure: Failure,
    record: Record,
}

/// Opens a directory that nobody else records to. `key` is a number that other directories do not have,
/// a random one: it sets a new journal's epochs apart.
///
/// # Errors
/// [`DirectoryError`], in a sentence with path and remedy.
pub fn open_directory(
    path: &Path,
    access: Access,
    key: u32,
) -> Result<(DirectoryCard, DirectoryVolume), DirectoryError> {
    let mut folder = Folder {
        path: path.to_path_buf(),
        access,
        journal: None,
        files: [const { None }; RESERVED_MAX],
        stream: None,
        is_fresh: true,
    };
    folder.open()?;
    let folder = Rc::new(RefCell::new(folder));
    let failure = Failure::default();
    let volume = DirectoryVolume {
        folder: Rc::clone(&folder),
        failure: failure.clone(),
        record: Record::new(1, key),
    };
    Ok((DirectoryCard { folder, failure }, volume))
}

/// An unfinished file.
struct Unfinished {
    file: File,
    path: PathBuf,
}

impl Unfinished {
    /// Checks that the file is still the one of its name: others may have removed or moved it.
    fn check_is_there(&self) -> Result<(), DirectoryError> {
        let own = self
            .file
            .metadata()
            .map_err(DirectoryError::at(&self.path))?;
        let named = self.path.symlink_metadata();
        let is_there =
            named.is_ok_and(|named| (named.dev(), named.ino()) == (own.dev(), own.ino()));
        match is_there {
            true => Ok(()),
            false => Err(DirectoryError::Gone(self.path.clone())),
        }
    }
}

/// What is open.
struct Folder {
    path: PathBuf,
    access: Access,
    /// Locked, so that no other program records here.
    journal: Option<File>,
    files: [Option<Unfinished>; RESERVED_MAX],
    /// Slot of the file that is being written, or the journal, and the next block in it.
    stream: Option<(Place, u32)>,
    /// Opened, and not acquired since.
    is_fresh: bool,
}

/// Where a block of the card is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Journal,
    File(usize),
}

impl Folder {
    /// Opens all anew: the medium may have been away.
    fn open(&mut self) -> Result<(), DirectoryError> {
        self.journal = None;
        self.stream = None;
        self.files = [const { None }; RESERVED_MAX];
        let directory = std::fs::metadata(&self.path).map_err(DirectoryError::at(&self.path))?;
        if !directory.is_dir() {
            let error = std::io::ErrorKind::NotADirectory.into();
            return Err(DirectoryError::at(&self.path)(error));
        }
        let path = self.path.join(JOURNAL);
        let mut options = OpenOptions::new();
        options.read(true).write(self.access != Access::Look);
        let journal = options.create(self.access == Access::Record).open(&path);
        let journal = journal.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if self.access != Access::Record => {
                DirectoryError::NoJournal(self.path.clone())
            }
            _ => DirectoryError::at(&path)(error),
        })?;
        match journal.try_lock() {
            Ok(()) => (),
            Err(TryLockError::WouldBlock) => {
                return Err(DirectoryError::InUse(self.path.clone()));
            }
            Err(TryLockError::Error(error)) => return Err(DirectoryError::at(&path)(error)),
        }
        self.journal = Some(journal);
        Ok(())
    }

    /// Where a block is, and its number there.
    fn place(&self, block: u32) -> (Place, u32) {
        match block / RANGE_BLOCKS {
            0 => (Place::Journal, block),
            range => (Place::File(range as usize - 1), block % RANGE_BLOCKS),
        }
    }

    fn file(&self, place: Place) -> Result<&File, DirectoryError> {
        let file = match place {
            Place::Journal => self.journal.as_ref(),
            Place::File(slot) => self.unfinished(slot).map(|unfinished| &unfinished.file),
        };
        file.ok_or_else(|| DirectoryError::NotUnfinished(self.path.clone()))
    }

    fn unfinished(&self, slot: usize) -> Option<&Unfinished> {
        self.files.get(slot)?.as_ref()
    }

    fn path_of(&self, name: &Name) -> PathBuf {
        self.path.join(file_name(name))
    }

    /// Makes names durable.
    fn sync(&self) -> Result<(), DirectoryError> {
        let directory = File::open(&self.path).and_then(|directory| directory.sync_all());
        directory.map_err(DirectoryError::at(&self.path))
    }
}

/// A name as people write it: `REC00001.CSV`.
pub fn file_name(name: &Name) -> String {
    let part = |bytes: &[u8]| {
        let text: String = bytes
            .iter()
            .map(|byte| byte.escape_ascii().to_string())
            .collect();
        text.trim_end().to_string()
    };
    match part(&name[8..]) {
        extension if extension.is_empty() => part(&name[..8]),
        extension => format!("{}.{extension}", part(&name[..8])),
    }
}

/// First block of a slot's range.
fn start_of(slot: usize) -> u32 {
    (1 + slot as u32) * RANGE_BLOCKS
}
