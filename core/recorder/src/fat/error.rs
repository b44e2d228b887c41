//! Errors, with remedies.

use crate::volume::{FileId, Name, write_name};
use core::fmt;

/// Error of a FAT volume. `Card` is the error of the blocks below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<Card> {
    /// The card failed.
    Card(Card),
    /// The volume is not mounted, or an operation was interrupted.
    NotMounted,
    /// There is neither a partition table nor a boot sector.
    NoFileSystem,
    /// The partition table is a GPT.
    Gpt,
    /// No partition is of a FAT type; this is the type of the first.
    NoFatPartition(u8),
    /// The file system is exFAT.
    ExFat,
    /// The file system is NTFS.
    Ntfs,
    /// The file system is FAT12.
    Fat12,
    /// Sectors have another size, in bytes, than the blocks of a card.
    SectorBytes(u32),
    /// The volume ends beyond the card. Both in blocks.
    LargerThanCard {
        /// End of the volume.
        end: u64,
        /// End of the card.
        card_blocks: u32,
    },
    /// A field of the boot sector is impossible; the text names it.
    DamagedBootSector(&'static str),
    /// The root directory's chain of clusters is broken.
    DamagedRoot,
    /// There is no journal, and none is to be made: nothing was recorded here.
    NoJournal,
    /// The journal belongs to another volume.
    ForeignJournal,
    /// No record of the journal is whole, or its file is not as it was made.
    DamagedJournal,
    /// No free run is long enough.
    NoSpace {
        /// Blocks of the longest free run.
        longest_blocks: u32,
    },
    /// A directory is full and cannot grow. The name is that of the folder, or blank for the root directory.
    DirectoryFull(Name),
    /// A recording with this prefix has the last number, 99,999,999.
    NumbersUsedUp([u8; 3]),
    /// As many files as possible are unfinished.
    TooManyUnfinished,
    /// No file is unfinished in this slot.
    NoSuchFile(u8),
    /// The file is shorter than the length to close it at, or the shortest useful length is more than FAT
    /// allows.
    TooLong,
    /// Prefix, extension or session have characters that a name cannot have, or the number is too high.
    BadName,
    /// A file or folder with this name exists already.
    NameTaken(Name),
    /// The file already has this other name.
    NamedAlready(FileId),
    /// Somebody else changed the directory entry of this unfinished file while the volume was mounted.
    Changed(Name),
}

/// Shows a short name as people read it.
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
                f.write_str("the card's file system is not mounted, or an operation on it was interrupted; mount it")
            }
            Error::NoFileSystem => {
                f.write_str("the card has no file system; format it as FAT32 or FAT16")
            }
            Error::Gpt => f.write_str(
                "the card has a GUID partition table (GPT); partition it with an MBR (DOS) table instead",
            ),
            Error::NoFatPartition(kind) => write!(
                f,
                "the card has no FAT partition, the first partition is of type {kind:#04x}; format the card as FAT32 or FAT16"
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
                "the card has no recordings of Cardiograph (no CARDIOGR.JNL); check that this is the right card",
            ),
            Error::ForeignJournal => f.write_str(
                "CARDIOGR.JNL was copied from another card; use the card that it was made on",
            ),
            Error::DamagedJournal => f.write_str(
                "CARDIOGR.JNL is damaged; copy the recordings off the card, including hidden files, and format it",
            ),
            Error::NoSpace { longest_blocks } => write!(
                f,
                "the card is full: its longest free run has {longest_blocks} blocks of 512 bytes; delete files from it"
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
                "recording {} 99999999 exists and no number is left; use another prefix or card",
                prefix.escape_ascii()
            ),
            Error::TooManyUnfinished => {
                f.write_str("too many files are unfinished; close or discard one first")
            }
            Error::NoSuchFile(slot) => {
                write!(f, "slot {slot} has no unfinished file; reserve one first")
            }
            Error::TooLong => f.write_str(
                "the file cannot have this length; choose one within its blocks and below 4 GiB",
            ),
            Error::BadName => f.write_str(
                "a name needs three capital letters, a number below 100000000 and an extension of three capital letters or digits; a session's name has up to 32 letters, digits, - or _",
            ),
            Error::NameTaken(name) => write!(
                f,
                "{} already exists on the card; move it off the card, or use another number",
                Shown(name)
            ),
            Error::NamedAlready(id) => {
                write!(f, "the file is named {id} already; close it under that name")
            }
            Error::Changed(name) => write!(
                f,
                "another program changed the directory entry of {}; mount the card again",
                Shown(name)
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
