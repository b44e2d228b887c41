//! What can go wrong in a store, and what to do about it.

use crate::card_device::DriverError;
use std::fmt;
use std::io;

/// Why an operation on a store failed.
#[derive(Debug)]
pub enum StoreError {
    /// The computer's file system said so.
    Io(io::Error),
    /// The FAT library or the card driver below it said so.
    Fat(embedded_sdmmc::Error<DriverError>),
    /// The crate fatfs or the card driver below it said so.
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
                write!(f, "{source}; {LESS_OR_LARGER}")
            }
            StoreError::Fat(embedded_sdmmc::Error::DeviceError(source)) => source.fmt(f),
            StoreError::Fat(source) => source.fmt(f),
            StoreError::Fatfs(source) if source.to_string() == FATFS_FULL => {
                write!(f, "disk full; {LESS_OR_LARGER}")
            }
            StoreError::Fatfs(source) => source.fmt(f),
        }
    }
}

/// What the crate fatfs says when no cluster is free: it has no kind of error for that.
const FATFS_FULL: &str = "No space left on device";
const LESS_OR_LARGER: &str = "take a workload that writes less, or a larger card";

fn remedy(error: &io::Error) -> Option<&'static str> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            Some("free some space, or take a workload that writes less")
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("give a directory you may write to")
        }
        io::ErrorKind::NotFound => Some("give a directory that files can be made in"),
        // Only O_DIRECT makes the kernel particular about lengths and places.
        io::ErrorKind::InvalidInput => Some(
            "this file system or payload cannot go past the page cache; use --io dsync instead of direct",
        ),
        _ => None,
    }
}
