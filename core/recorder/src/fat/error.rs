//! What can go wrong, with a remedy.

use crate::volume::Name;
use core::fmt;

/// Why something was not done on a FAT volume. `Card` is the error of the blocks below.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error<Card> {
    /// The card failed.
    Card(Card),
    /// The volume is not mounted, or an operation did not come to its end since.
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
        /// Where the volume ends.
        end: u64,
        /// Where the card ends.
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
        /// Blocks of the longest that there is.
        longest_blocks: u32,
    },
    /// The root directory is full and cannot grow.
    DirectoryFull,
    /// A file numbered 99999 exists.
    NumbersUsedUp,
    /// As many files as can be are unfinished.
    TooManyUnfinished,
    /// There is no unfinished file in this slot.
    NoSuchFile(u8),
    /// The file is shorter than it was said to be, or the least length asked for more than FAT allows.
    TooLong,
    /// Prefix or extension have characters other than capital letters and, in the extension, digits.
    BadName,
    /// Somebody else changed this unfinished file's directory entry while the volume was mounted.
    Changed(Name),
}

impl<Card: fmt::Display> fmt::Display for Error<Card> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Error::Card(error) => write!(f, "the card failed: {error}"),
            Error::NotMounted => f.write_str("the volume is not in order: mount it"),
            Error::NoFileSystem => {
                f.write_str("the card has no file system: format it as FAT32 or FAT16")
            }
            Error::Gpt => f.write_str(
                "the card has a GUID partition table: make a new one of the kind MBR (DOS)",
            ),
            Error::NoFatPartition(kind) => write!(
                f,
                "no partition is of a FAT type, the first is of type {kind:#04x}: format the card as FAT32 or FAT16"
            ),
            Error::ExFat => f.write_str("the card holds exFAT: format it as FAT32 or FAT16"),
            Error::Ntfs => f.write_str("the card holds NTFS: format it as FAT32 or FAT16"),
            Error::Fat12 => f.write_str("the card holds FAT12: format it as FAT16 or FAT32"),
            Error::SectorBytes(bytes) => write!(
                f,
                "sectors have {bytes} bytes: format the card with sectors of 512 bytes"
            ),
            Error::LargerThanCard { end, card_blocks } => write!(
                f,
                "the volume ends at block {end}, the card at {card_blocks}: format the card"
            ),
            Error::DamagedBootSector(what) => write!(
                f,
                "the boot sector is damaged ({what}): repair the card with a computer, or format it"
            ),
            Error::DamagedRoot => f.write_str(
                "the root directory is damaged: repair the card with a computer, or format it",
            ),
            Error::NoJournal => f.write_str(
                "there is no recording of Cardiograph here (no CARDIOGR.JNL): check that this is the card",
            ),
            Error::ForeignJournal => f.write_str(
                "CARDIOGR.JNL is the journal of another card, copied here: recover that card",
            ),
            Error::DamagedJournal => f.write_str(
                "CARDIOGR.JNL is damaged: copy the recordings off the card, unfinished ones in their full length, and format it",
            ),
            Error::NoSpace { longest_blocks } => write!(
                f,
                "the longest free run has {longest_blocks} blocks: remove files from the card"
            ),
            Error::DirectoryFull => {
                f.write_str("the root directory is full: remove files from it, or put them in folders")
            }
            Error::NumbersUsedUp => {
                f.write_str("a file has the last number, 99999: move it off the card")
            }
            Error::TooManyUnfinished => {
                f.write_str("too many files are unfinished: close or discard one")
            }
            Error::NoSuchFile(slot) => write!(f, "no file is unfinished in slot {slot}: reserve one"),
            Error::TooLong => f.write_str("the length is more than the file can have: ask for less"),
            Error::BadName => f.write_str(
                "a name begins with three letters and ends with three letters or digits, all capital: choose others",
            ),
            Error::Changed(name) => {
                f.write_str("the directory entry of ")?;
                name.iter().try_for_each(|byte| write!(f, "{}", byte.escape_ascii()))?;
                f.write_str(" is not as it was written: mount the volume")
            }
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
