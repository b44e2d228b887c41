//! Repair of interrupted recordings on a computer: the same recovery that a recorder runs when it mounts.

use crate::card_file::{CardFile, CardFileError};
use crate::directory::{Access, DirectoryError, Repair, open_directory};
use crate::finding::Finding;
use crate::live::block_on;
use crate::local_time::dos_time_now;
use cardiograph_recorder::{Blocks, Event, FatError, FatVolume, StartError, Volume, recover};
use std::fmt;
use std::path::{Path, PathBuf};

/// Journal file on the card of a recorder.
const CARD_JOURNAL: &str = "CARDIOGR.JNL";

/// Kind of target that a path names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetKind {
    /// A card or a card image.
    Card,
    /// A directory that this computer recorded to.
    Directory,
}

/// Result of a recovery, or of a dry run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Kind of the target.
    pub kind: TargetKind,
    /// Interrupted recordings, and prepared files.
    pub files: Vec<RecoveredFile>,
    /// Untouched files of a directory: their names are those of unfinished files, but they are not provably
    /// recordings.
    pub left_alone: Vec<String>,
    /// True if an interrupted file system operation on the card, other than the changes listed in `files`,
    /// was completed or undone.
    pub is_repaired: bool,
}

/// An interrupted recording, or a prepared file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveredFile {
    /// Name of the file.
    pub name: String,
    /// Actual length in bytes; 0 if the file was empty and has been removed.
    pub bytes: u64,
    /// Change to the file.
    pub action: RecoveryAction,
}

/// Change that recovery makes to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryAction {
    /// The file is trimmed to its actual length.
    Trimmed,
    /// The file had its actual length already, and gets its final name.
    Renamed,
    /// The file is empty, and is removed.
    Removed,
}

/// Reason why a recovery failed; files may already have been repaired.
#[derive(Debug)]
pub enum RecoverError {
    /// Error of the card or image.
    Card(CardFileError),
    /// Error of the card's file system.
    Volume(PathBuf, Box<FatError<CardFileError>>),
    /// The card or image does not contain a recorder's file system.
    NoRecorder(Finding),
    /// Error of the directory.
    Directory(DirectoryError),
    /// The directory is the mounted card of a recorder.
    MountedCard(PathBuf),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RecoverError::Card(error) => error.fmt(f),
            RecoverError::Volume(path, error) => write!(f, "{}: {error}", path.display()),
            RecoverError::NoRecorder(finding) => finding.fmt(f),
            RecoverError::Directory(error) => error.fmt(f),
            RecoverError::MountedCard(path) => write!(
                f,
                "{}: this is the mounted card of a recorder (it contains {CARD_JOURNAL}); unmount it and use its \
                 block device instead",
                path.display()
            ),
        }
    }
}

impl std::error::Error for RecoverError {}

/// Repairs the interrupted recordings of a card, an image or a directory. With `is_dry`, only reports what
/// the recovery would do.
///
/// # Errors
/// [`RecoverError`], which displays as a sentence with path and remedy. Files repaired before the error stay
/// repaired.
pub fn recover_path(path: &Path, is_dry: bool) -> Result<Recovery, RecoverError> {
    match path.is_dir() {
        true => recover_directory(path, is_dry),
        false => recover_card(path, is_dry),
    }
}

fn recover_card(path: &Path, is_dry: bool) -> Result<Recovery, RecoverError> {
    let mut card = CardFile::open(path, is_dry).map_err(RecoverError::Card)?;
    // Recovery reserves no file and so chooses no epoch: the entropy value is not used.
    let mut volume = FatVolume::new(dos_time_now, 0).with_journal_only();
    let files = files_of(&mut volume, &mut card).map_err(|error| match error {
        StartError::Card(error) | StartError::Volume(FatError::Card(error)) => {
            RecoverError::Card(error)
        }
        StartError::Volume(error) => match Finding::of(path, &error) {
            Some(finding) => RecoverError::NoRecorder(finding),
            None => RecoverError::Volume(path.to_path_buf(), Box::new(error)),
        },
        _ => unreachable!("only starting a recording returns this error"),
    })?;
    Ok(Recovery {
        kind: TargetKind::Card,
        is_repaired: files.is_empty() && card.written_blocks() > 0,
        files,
        left_alone: Vec::new(),
    })
}

fn recover_directory(path: &Path, is_dry: bool) -> Result<Recovery, RecoverError> {
    let access = if is_dry {
        Access::DryRun
    } else {
        Access::Recover
    };
    let opened = open_directory(path, access).map_err(|error| match error {
        DirectoryError::NoRecording(_) if is_card(path) => {
            RecoverError::MountedCard(path.to_path_buf())
        }
        error => RecoverError::Directory(error),
    });
    let (mut card, mut volume) = opened?;
    let mut files = files_of(&mut volume, &mut card).map_err(|error| match error {
        StartError::Card(error) | StartError::Volume(error) => RecoverError::Directory(error),
        _ => unreachable!("only starting a recording returns this error"),
    })?;
    let mut left_alone = Vec::new();
    for repair in volume.take_repairs() {
        let (name, bytes, action) = match repair {
            Repair::Renamed(name, bytes) => (name, bytes, RecoveryAction::Renamed),
            Repair::Removed(name) => (name, 0, RecoveryAction::Removed),
            Repair::LeftAlone(name) => {
                left_alone.push(name);
                continue;
            }
        };
        files.push(RecoveredFile {
            name,
            bytes,
            action,
        });
    }
    Ok(Recovery {
        kind: TargetKind::Directory,
        files,
        left_alone,
        is_repaired: false,
    })
}

fn files_of<B: Blocks, V: Volume<B>>(
    volume: &mut V,
    card: &mut B,
) -> Result<Vec<RecoveredFile>, StartError<B::Error, V::Error>> {
    let mut files = Vec::new();
    block_on(recover(volume, card, |_, event| {
        if let Event::Recovered { record } = event {
            files.push(RecoveredFile {
                name: record.id.to_string(),
                bytes: record.bytes,
                action: match record.bytes {
                    0 => RecoveryAction::Removed,
                    _ => RecoveryAction::Trimmed,
                },
            });
        }
    }))?;
    Ok(files)
}

/// Returns true if a directory is the root of a recorder's card. Some mounts show names in lower case.
fn is_card(directory: &Path) -> bool {
    [CARD_JOURNAL.to_string(), CARD_JOURNAL.to_lowercase()]
        .iter()
        .any(|name| directory.join(name).is_file())
}
