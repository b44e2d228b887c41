//! Errors of a storage, each with its reason.

use core::fmt;

/// Reason why a storage operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// Nothing has this path.
    NotFound,
    /// A component of the path, or the path itself, is not a directory.
    NotDirectory,
    /// The path is a directory; the operation needs a file.
    IsDirectory,
    /// Something already has this path.
    Exists,
    /// The path is hidden or protected.
    Forbidden,
    /// The recorder is writing this file.
    Recording,
    /// The file or directory changed after it was looked up. Look it up again.
    Changed,
    /// The file was looked up on another card.
    OtherCard,
    /// The recorder needs the card. Try again later.
    Busy,
    /// The card has no room left.
    Full,
    /// The file would be larger than the storage supports.
    TooLarge,
    /// The card reported a failure, or returned corrupt data.
    CardFailed,
    /// There is no card.
    NoCard,
    /// The storage does not support this name.
    NameInvalid,
    /// The name or the path is too long for the storage.
    TooLong,
    /// The directory is not empty.
    NotEmpty,
}

impl Error {
    /// Returns a sentence for the person who sent the request.
    pub const fn reason(self) -> &'static str {
        match self {
            Error::NotFound => "there is no file or directory with this path",
            Error::NotDirectory => "a component of the path is not a directory",
            Error::IsDirectory => "the path is a directory",
            Error::Exists => "a file or directory with this path exists already",
            Error::Forbidden => "the path is protected",
            Error::Recording => {
                "the recorder is writing this file; stop or rotate the recording first"
            }
            Error::Changed => "the file has changed in the meantime; repeat the request",
            Error::OtherCard => "the card was exchanged; repeat the request",
            Error::Busy => "the recorder needs the card; try again later",
            Error::Full => {
                "the card is full, or has only the space that the recorder needs; remove files first"
            }
            Error::TooLarge => "the file is larger than the storage supports; split it",
            Error::CardFailed => "the card failed; check it",
            Error::NoCard => "there is no card; insert one",
            Error::NameInvalid => {
                "the storage does not support this name; on FAT, use at most 195 characters, and none of \"*:<>?\\|"
            }
            Error::TooLong => "the name or path is too long",
            Error::NotEmpty => {
                "the directory contains files that are not served; remove them where the card is mounted"
            }
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.reason())
    }
}

impl core::error::Error for Error {}
