//! Why a recording failed.

use cardiograph_record::StreamError;
use cardiograph_store::FormatError;
use std::fmt;

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

/// Failure of a recording by the recorder on a simulated card.
#[derive(Debug)]
pub enum CardStreamError {
    /// The card cannot be formatted as the board wants it.
    Format(FormatError),
    /// The recording itself.
    Stream(StreamError),
    /// No progress any more: a fault of the recorder.
    Stuck(String),
    /// The card failed, as a worn-out one does.
    CardFailed,
}

impl From<StreamError> for CardStreamError {
    fn from(error: StreamError) -> CardStreamError {
        CardStreamError::Stream(error)
    }
}

impl std::error::Error for CardStreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CardStreamError::Format(source) => Some(source),
            CardStreamError::Stream(source) => Some(source),
            CardStreamError::Stuck(_) | CardStreamError::CardFailed => None,
        }
    }
}

impl fmt::Display for CardStreamError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            CardStreamError::Format(error) => error.fmt(f),
            CardStreamError::Stream(error) => error.fmt(f),
            CardStreamError::Stuck(why) => {
                write!(f, "the recorder makes no progress ({why}); report it")
            }
            CardStreamError::CardFailed => f.write_str(
                "the card failed during the recording, and its files were not read back; if it is worn out, \
                 raise flash.endurance_cycles or flash.spare_blocks in its profile",
            ),
        }
    }
}
