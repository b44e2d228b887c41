//! Repair of interrupted recordings on a computer: the same recovery that a recorder runs when it mounts.

use crate::card_file::{CardFile, CardFileError};
use crate::directory::{Access, DirectoryError, Repair, open_directory};
use crate::finding::Finding;
use crate::live::block_on;
use cardiograph_recorder::{
    Blocks, DosTime, Event, FatError, FatVolume, StartError, Volume, recover,
};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

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

/// Returns the current time in UTC, in the format of FAT directory entries.
pub fn dos_time_now() -> DosTime {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    dos_time(elapsed.map_or(0, |elapsed| elapsed.as_secs()))
}

fn dos_time(unix_s: u64) -> DosTime {
    let (days, second) = (unix_s / 86_400, unix_s % 86_400);
    // In this calculation, years begin in March, so that the leap day is the last day of a year (Hinnant, chrono
    // algorithms).
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month_index = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_index + 2) / 5 + 1;
    let month = if month_index < 10 {
        month_index + 3
    } else {
        month_index - 9
    };
    let (hour, minute, pair) = (second / 3600, second / 60 % 60, second % 60 / 2);
    let year = 400 * era + year + u64::from(month <= 2);
    let Some(years) = year.checked_sub(1980).filter(|years| *years < 128) else {
        return DosTime::NO_CLOCK;
    };
    DosTime {
        date: (years << 9 | month << 5 | day) as u16,
        time: (hour << 11 | minute << 5 | pair) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date -u -d @SECONDS`.
    #[test]
    fn unix_times_become_calendar_dates() {
        for (unix_s, (year, month, day), (hour, minute, second)) in [
            (315_532_800, (1980, 1, 1), (0, 0, 0)),
            (951_782_400, (2000, 2, 29), (0, 0, 0)),
            (1_709_251_199, (2024, 2, 29), (23, 59, 59)),
            (1_709_251_200, (2024, 3, 1), (0, 0, 0)),
            (4_102_444_799, (2099, 12, 31), (23, 59, 59)),
        ] {
            let expected = DosTime {
                date: (year - 1980) << 9 | month << 5 | day,
                time: (hour << 11) + (minute << 5) + second / 2,
            };
            assert_eq!(dos_time(unix_s), expected, "{unix_s}");
        }
        assert_eq!(dos_time(0), DosTime::NO_CLOCK);
    }
}
