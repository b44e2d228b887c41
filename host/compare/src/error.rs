//! Errors of recordings.

use cardiograph_record::{REPORT_BUG, StreamError};
use cardiograph_store::FormatError;
use std::fmt;

/// An invalid setting of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Invalid {
    /// The samples are too short or too long.
    SampleBytes,
    /// The buffer is smaller than one sample.
    BufferBytes,
    /// The samples exceed the maximum size of a FAT file.
    FileBytes,
    /// The session length is zero.
    Session,
}

impl std::error::Error for Invalid {}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Invalid::SampleBytes => "a sample must have 3 B to 1 MiB",
            Invalid::BufferBytes => "the buffer must hold at least one sample",
            Invalid::FileBytes => "a FAT file cannot exceed 4 GiB; record for a shorter time",
            Invalid::Session => "a session must be longer than 0",
        })
    }
}

/// Reason why a recording by a policy of the studies failed.
#[derive(Debug)]
pub enum LoggerError<E> {
    /// A setting is invalid.
    Invalid(Invalid),
    /// The store failed.
    Store {
        /// The operation that failed, such as `writing to`.
        doing: &'static str,
        /// Error of the store.
        source: E,
    },
    /// The data read back differ from the data written.
    Differs {
        /// Offset of the first different byte, or of the end if the file is too short or too long.
        offset_bytes: u64,
    },
}

impl<E: std::error::Error + 'static> std::error::Error for LoggerError<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            LoggerError::Invalid(source) => Some(source),
            LoggerError::Store { source, .. } => Some(source),
            LoggerError::Differs { .. } => None,
        }
    }
}

impl<E: fmt::Display> fmt::Display for LoggerError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            LoggerError::Invalid(invalid) => invalid.fmt(f),
            LoggerError::Store { doing, source } => write!(f, "{doing} the file: {source}"),
            LoggerError::Differs { offset_bytes } => write!(
                f,
                "the data read back differ from the data written at byte {offset_bytes} of the file; \
                 do not trust this card"
            ),
        }
    }
}

/// Reason why a recording by the recorder on a simulated card failed.
#[derive(Debug)]
pub enum CardStreamError {
    /// The card cannot be formatted as the board requires.
    Format(FormatError),
    /// The recording failed.
    Stream(StreamError),
    /// The recorder made no more progress, which is a bug in the recorder. The string says at what point.
    Stuck(String),
    /// The card failed, for example because it is worn out.
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
                write!(
                    f,
                    "the recorder stopped making progress ({why}); {REPORT_BUG}"
                )
            }
            CardStreamError::CardFailed => f.write_str(
                "the simulated card failed during the recording, so its files were not read \
                 back; if the card is worn out, increase flash.endurance_cycles or \
                 flash.spare_blocks in the card profile",
            ),
        }
    }
}
