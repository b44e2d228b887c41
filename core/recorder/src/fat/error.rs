//! Errors, with remedies in their messages.

use crate::guest::FileError;
use crate::volume::{FileId, Name, write_name};
use core::fmt;

/// Error of a FAT volume. `Card` is the error type of the block device below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Error<Card> {
    /// The card failed.
    Card(Card),
    /// The volume is not mounted, or an operation was interrupted.
    NotMounted,
    /// There is neither a partition table nor a boot sector.
    NoFileSystem,
    /// The partition table is a GPT.
    Gpt,
    /// No partition has a FAT type; the value is the type of the first partition.
    NoFatPartition(u8),
    /// The file system is exFAT.
    ExFat,
    /// The file system is NTFS.
    Ntfs,
    /// The file system is FAT12.
    Fat12,
    /// Sectors are not 512 bytes; the value is their size in bytes.
    SectorBytes(u32),
    /// The volume ends beyond the end of the card. Both are in blocks.
    LargerThanCard {
        /// End of the volume.
        end: u64,
        /// End of the card.
        card_blocks: u32,
    },
    /// A field of the boot sector has an invalid value; the text names the field.
    DamagedBootSector(&'static str),
    /// The root directory's cluster chain is broken.
    DamagedRoot,
    /// The card has no journal, and this volume must not create one: nothing was recorded here.
    NoJournal,
    /// The journal was made for another volume.
    ForeignJournal,
    /// An earlier version wrote the journal, with addresses of a card on which the volume was at another place. They
    /// cannot be assigned to blocks of this card.
    MovedJournal,
    /// The journal has no valid record, or its file was changed.
    DamagedJournal,
    /// No free run is long enough.
    NoSpace {
        /// Length of the longest free run, in blocks.
        longest_blocks: u32,
    },
    /// A directory is full and cannot grow. The name is that of the folder, or all spaces for the root directory.
    DirectoryFull(Name),
    /// A recording with this prefix has the highest possible number, 99,999,999.
    NumbersUsedUp([u8; 3]),
    /// The maximum number of unfinished files is reached.
    TooManyUnfinished,
    /// There is no unfinished file in this slot.
    NoSuchFile(u8),
    /// A length is more than the file's blocks hold, or reaches the FAT limit of 4 GiB.
    TooLong,
    /// Prefix, extension or session contain invalid characters, or the number is too high.
    BadName,
    /// A file or folder with this name already exists.
    NameTaken(Name),
    /// The file already has a name, which is the value.
    AlreadyNamed(FileId),
    /// Another program changed the directory entry of this unfinished file while the volume was mounted.
    Changed(Name),
    /// There is no file or directory with this path.
    NotFound,
    /// A component of the path other than the last is a file, or a directory was expected.
    NotDirectory,
    /// A component of the path is not a valid name.
    NameInvalid,
    /// A directory's chain is broken, or longer than a directory may be.
    DamagedDirectory,
    /// A file's chain is broken, or shorter than the file.
    DamagedChain,
    /// The path is that of a directory, and a file was expected.
    IsDirectory,
    /// A file or directory with this path exists already.
    Exists,
    /// The directory is not empty.
    NotEmpty,
    /// Guests may not change this file or directory.
    Forbidden(Refusal),
    /// The maximum number of uploads is reached.
    TooManyUploads,
    /// The upload was discarded or committed, or the card has been mounted again since it began.
    NoSuchUpload,
}

/// Reason why a guest may not change a file or directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Refusal {
    /// It is the root directory.
    Root,
    /// It is hidden: the recorder's or the operating system's own.
    Hidden,
    /// It is a recording that is not finished.
    Unfinished,
    /// Its entry is marked as read-only.
    ReadOnly,
    /// It is a folder that the recorder is using, or has a name that the recorder will use.
    Recordings,
    /// A directory cannot be moved into itself.
    IntoItself,
}

impl Refusal {
    fn message(self) -> &'static str {
        match self {
            Refusal::Root => "the root directory cannot be changed; use a path in it",
            Refusal::Hidden => {
                "the path belongs to the recorder or the operating system; use another path"
            }
            Refusal::Unfinished => "the recording is not finished; stop it first",
            Refusal::ReadOnly => "the file is read-only; remove that attribute on a computer",
            Refusal::Recordings => {
                "the recorder uses this folder, or may need this name; use another name"
            }
            Refusal::IntoItself => "a directory cannot be moved into itself; use another path",
        }
    }
}

/// Displays a short name in readable form.
struct Shown<'a>(&'a Name);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write_name(f, self.0)
    }
}

impl<Card: fmt::Display> fmt::Display for Error<Card> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Card(error) => write!(f, "the card failed: {error}"),
            Error::NotMounted => {
                f.write_str("the card's file system is not mounted, or an operation on it was interrupted; mount it again")
            }
            Error::NoFileSystem => {
                f.write_str("the card has no file system; format it as FAT32 or FAT16")
            }
            Error::Gpt => f.write_str(
                "the card has a GUID partition table (GPT); partition it with an MBR (DOS) table instead",
            ),
            Error::NoFatPartition(kind) => write!(
                f,
                "the card has no FAT partition (the first partition has type {kind:#04x}); format the card as FAT32 or FAT16"
            ),
            Error::ExFat => f.write_str("the card is formatted as exFAT; format it as FAT32 or FAT16"),
            Error::Ntfs => f.write_str("the card is formatted as NTFS; format it as FAT32 or FAT16"),
            Error::Fat12 => f.write_str("the card is formatted as FAT12; format it as FAT16 or FAT32"),
            Error::SectorBytes(bytes) => write!(
                f,
                "the card's file system has sectors of {bytes} bytes; format it with sectors of 512 bytes"
            ),
            Error::LargerThanCard { end, card_blocks } => write!(
                f,
                "the file system ends at block {end}, but the card has only {card_blocks} blocks; format the card"
            ),
            Error::DamagedBootSector(what) => write!(
                f,
                "the card's boot sector is damaged ({what}); repair the card on a computer, or format it"
            ),
            Error::DamagedRoot => f.write_str(
                "the card's root directory is damaged; repair the card on a computer, or format it",
            ),
            Error::NoJournal => f.write_str(
                "the card has no Cardiograph recordings (no CARDIOGR.JNL); check that this is the right card",
            ),
            Error::ForeignJournal => f.write_str(
                "CARDIOGR.JNL was copied from another card; use the original card",
            ),
            Error::MovedJournal => f.write_str(
                "CARDIOGR.JNL refers to blocks of the card from which this volume was copied; recover the whole card or its image, or delete CARDIOGR.JNL if it is lost",
            ),
            Error::DamagedJournal => f.write_str(
                "CARDIOGR.JNL is damaged; copy all recordings off the card, including hidden files, then format it",
            ),
            Error::NoSpace { longest_blocks } => write!(
                f,
                "the card is full: its longest free run is {longest_blocks} blocks of 512 bytes; delete files from the card"
            ),
            Error::DirectoryFull(name) if name.trim_ascii().is_empty() => f.write_str(
                "the card's root directory is full; delete files from it, or move them into folders",
            ),
            Error::DirectoryFull(name) => write!(
                f,
                "the folder {} is full; move files other than recordings out of it",
                Shown(name)
            ),
            Error::NumbersUsedUp(prefix) => write!(
                f,
                "recording {} 99999999 exists, so no numbers are left; use another prefix or another card",
                prefix.escape_ascii()
            ),
            Error::TooManyUnfinished => {
                f.write_str("too many files are unfinished; close or discard one first")
            }
            Error::NoSuchFile(slot) => {
                write!(f, "there is no unfinished file in slot {slot}; reserve one first")
            }
            Error::TooLong => f.write_str(
                "invalid file length; choose a length within the file's blocks and below 4 GiB",
            ),
            Error::BadName => f.write_str(
                "invalid name; use a prefix of three capital letters, a number below 100000000, an extension of three capital letters or digits, and a session name of at most 32 letters, digits, - or _",
            ),
            Error::NameTaken(name) => write!(
                f,
                "{} already exists on the card; rename it, or move it off the card",
                Shown(name)
            ),
            Error::AlreadyNamed(id) => {
                write!(f, "the file is already named {id}; close it under that name")
            }
            Error::Changed(name) => write!(
                f,
                "another program changed the directory entry of {}; mount the card again",
                Shown(name)
            ),
            Error::IsDirectory => {
                f.write_str("the path is that of a directory; use that of a file")
            }
            Error::Exists => {
                f.write_str("the path exists already; use another one, or remove it first")
            }
            Error::NotEmpty => {
                f.write_str("the directory is not empty; remove what it contains first")
            }
            Error::Forbidden(refusal) => f.write_str(refusal.message()),
            Error::TooManyUploads => {
                f.write_str("too many uploads are in progress; wait for one of them")
            }
            Error::NoSuchUpload => f.write_str(
                "the upload was interrupted: it has ended, or the card was mounted again; upload the file again",
            ),
            Error::NotFound => f.write_str("no file or directory has this path; list the directory"),
            Error::NotDirectory => {
                f.write_str("a part of the path is a file, not a directory; correct the path")
            }
            Error::NameInvalid => f.write_str(
                "a name in the path is empty, too long, ends with a dot or a space, or contains one of \"*/:<>?\\|; use another name",
            ),
            Error::DamagedDirectory => f.write_str(
                "the directory is damaged; repair the card on a computer",
            ),
            Error::DamagedChain => f.write_str(
                "the file is damaged: its cluster chain is broken; repair the card on a computer",
            ),
        }
    }
}

impl<Card: core::error::Error + 'static> core::error::Error for Error<Card> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Error::Card(error) => Some(error),
            _ => None,
        }
    }
}

/// Returns the reason why a change was refused; `None` if the volume or the card failed.
pub(super) fn refusal_of<Card>(error: &Error<Card>) -> Option<FileError> {
    Some(match error {
        Error::NoSpace { .. } | Error::DirectoryFull(_) => FileError::Full,
        Error::TooLong => FileError::TooLong,
        Error::TooManyUploads => FileError::Busy,
        Error::NotFound => FileError::NotFound,
        Error::NotDirectory => FileError::NotDirectory,
        Error::IsDirectory => FileError::IsDirectory,
        Error::NameInvalid => FileError::NameInvalid,
        Error::Exists => FileError::Exists,
        Error::NotEmpty => FileError::NotEmpty,
        Error::NoSuchUpload => FileError::Changed,
        Error::Forbidden(Refusal::Hidden) => FileError::Hidden,
        Error::Forbidden(Refusal::Unfinished | Refusal::Recordings) => FileError::Recording,
        Error::Forbidden(_) => FileError::ReadOnly,
        Error::DamagedDirectory | Error::DamagedChain => FileError::Damaged,
        _ => return None,
    })
}
