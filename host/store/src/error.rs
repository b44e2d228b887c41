//! Errors of a store, with remedies.

use crate::card_device::DriverError;
#[cfg(not(target_family = "wasm"))]
use cardiograph_system::is_of_medium;
use std::fmt;
use std::io;

/// Error of an operation on a store.
#[derive(Debug)]
pub enum StoreError {
    /// Error of the host's file system.
    Io(io::Error),
    /// Error of embedded-sdmmc or of the card driver below it.
    Fat(embedded_sdmmc::Error<DriverError>),
    /// Error of the crate fatfs or of the card driver below it.
    Fatfs(io::Error),
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StoreError::Io(source) => Some(source),
            StoreError::Fat(source) => Some(source),
            StoreError::Fatfs(source) => Some(source),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(source: io::Error) -> StoreError {
        StoreError::Io(source)
    }
}

impl From<embedded_sdmmc::Error<DriverError>> for StoreError {
    fn from(source: embedded_sdmmc::Error<DriverError>) -> StoreError {
        StoreError::Fat(source)
    }
}

impl From<DriverError> for StoreError {
    fn from(source: DriverError) -> StoreError {
        StoreError::Fat(embedded_sdmmc::Error::DeviceError(source))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StoreError::Io(source) => match remedy(source) {
                Some(remedy) => write!(f, "{source}; {remedy}"),
                None => source.fmt(f),
            },
            StoreError::Fat(
                source @ (embedded_sdmmc::Error::DiskFull | embedded_sdmmc::Error::NotEnoughSpace),
            ) => {
                write!(f, "{source}; {WRITE_LESS}")
            }
            StoreError::Fat(embedded_sdmmc::Error::DeviceError(source)) => source.fmt(f),
            StoreError::Fat(source) => source.fmt(f),
            StoreError::Fatfs(source) if source.to_string() == FATFS_FULL => {
                write!(f, "disk full; {WRITE_LESS}")
            }
            StoreError::Fatfs(source) => source.fmt(f),
        }
    }
}

/// Message of the crate fatfs when no cluster is free; the crate has no error kind for this case.
const FATFS_FULL: &str = "No space left on device";
const WRITE_LESS: &str = "write less, or use a larger card";

fn remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space, or write less")
        }
        io::ErrorKind::PermissionDenied => Some("choose a directory you may write to"),
        io::ErrorKind::ReadOnlyFilesystem => {
            Some("make the file system writable, or choose another directory")
        }
        io::ErrorKind::DirectoryNotEmpty => {
            Some("make sure that no other program changes the directory during the run")
        }
        io::ErrorKind::FileTooLarge => {
            Some("raise the limit with `ulimit -f`, or write smaller files")
        }
        io::ErrorKind::NotFound => Some("choose a directory in which files can be created"),
        // Only O_DIRECT restricts lengths and offsets.
        io::ErrorKind::InvalidInput => Some(
            "this file system or payload size does not support O_DIRECT; use --io dsync instead of --io direct",
        ),
        _ if is_out_of_files(error) => {
            Some("raise the limit with `ulimit -n`, or end other programs")
        }
        // A browser has no disks.
        #[cfg(not(target_family = "wasm"))]
        _ if is_of_medium(error) => Some(
            "the disk failed or was removed, or its file system shut down; do not trust it with data until you know the cause",
        ),
        _ => None,
    }
}

/// Returns true if this process, or the computer, may not open any more files.
pub fn is_out_of_files(error: &io::Error) -> bool {
    // ENFILE and EMFILE have these numbers on every Unix.
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only errors of the medium speak against it. Numbers as on Linux.
    #[cfg(target_os = "linux")]
    #[test]
    fn errors_of_a_directory_have_a_remedy_that_fits() {
        for (errno, words) in [
            (5, "do not trust it with data"),
            (28, "free some space"),
            (30, "make the file system writable"),
            (13, "choose a directory you may write to"),
            (24, "ulimit -n"),
            (39, "no other program changes the directory"),
        ] {
            let error = StoreError::Io(io::Error::from_raw_os_error(errno)).to_string();
            assert!(error.contains(words), "{error}");
            assert_eq!(error.contains("do not trust"), errno == 5, "{error}");
        }
    }
}
