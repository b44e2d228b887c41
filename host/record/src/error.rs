//! Why a recording failed.

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
