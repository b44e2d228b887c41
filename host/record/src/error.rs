//! Why a recording failed.

use crate::Mismatch;
use cardiograph_store::FormatError;
use std::{fmt, io};

/// Why a recording cannot be made as asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// Lines too short or too long.
    LineBytes,
    /// A ring that holds no line.
    RamBytes,
    /// More than a FAT file holds.
    FileBytes,
    /// A recipe of no length.
    Recipe,
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Invalid::LineBytes => "a line must have 3 B to 1 MiB",
            Invalid::RamBytes => "the RAM must hold one line at least",
            Invalid::FileBytes => "a file holds no more than 4 GiB; record for a shorter time",
            Invalid::Recipe => "a recipe must be longer than 0",
        })
    }
}

/// Why a recording failed.
#[derive(Debug)]
pub enum RecordError<E> {
    /// It cannot be made as asked.
    Invalid(Invalid),
    /// The store failed.
    Store {
        /// What was being done, as `writing to`.
        doing: &'static str,
        /// What the store said.
        source: E,
    },
    /// What was read back is not what was written.
    Differs {
        /// Offset of the first byte that differs, or where the file ends too early or too late.
        offset_bytes: u64,
    },
}

impl<E: std::error::Error + 'static> std::error::Error for RecordError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RecordError::Invalid(source) => Some(source),
            RecordError::Store { source, .. } => Some(source),
            RecordError::Differs { .. } => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for RecordError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            RecordError::Invalid(invalid) => invalid.fmt(f),
            RecordError::Store { doing, source } => write!(f, "{doing} the file: {source}"),
            RecordError::Differs { offset_bytes } => write!(
                f,
                "byte {offset_bytes} of the file: what was read back is not what was written; \
                 do not trust this medium"
            ),
        }
    }
}

/// Why a recording of ours failed.
#[derive(Debug)]
pub enum StreamError {
    /// The card cannot be formatted as the board wants it.
    Format(FormatError),
    /// The recorder did not begin: why, in a sentence.
    Refused(String),
    /// Nothing went on any more: a fault of the recorder.
    Stuck(String),
    /// The card failed, as one does that is worn out.
    CardFailed,
    /// A file cannot be read back.
    Read {
        /// Its name.
        file: String,
        /// What the FAT library or the system says.
        source: io::Error,
    },
    /// A file does not hold what it has to.
    Differs {
        /// Its name.
        file: String,
        /// Where.
        mismatch: Mismatch,
    },
    /// Lines are neither in files nor in gaps, or in both.
    Untold {
        /// Lines that came.
        pushed: u64,
        /// Lines found in files.
        found: u64,
        /// Lines in gaps.
        lost: u64,
    },
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StreamError::Format(source) => Some(source),
            StreamError::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StreamError::Format(error) => error.fmt(f),
            StreamError::Refused(why) => f.write_str(why),
            StreamError::Stuck(why) => write!(f, "the recorder came to no end ({why}); report it"),
            StreamError::CardFailed => f.write_str(
                "the card failed in the midst, and what it holds was not read back; if it is worn out, raise \
                 flash.endurance_cycles or flash.spare_blocks in its profile",
            ),
            StreamError::Read { file, source } => {
                write!(f, "{file} cannot be read back ({source}); do not trust this medium")
            }
            StreamError::Differs { file, mismatch } => {
                write!(f, "{file}: {mismatch}; do not trust this medium")
            }
            StreamError::Untold {
                pushed,
                found,
                lost,
            } => write!(
                f,
                "{pushed} lines came, {found} are in files and {lost} in gaps, which does not fit; report it"
            ),
        }
    }
}
