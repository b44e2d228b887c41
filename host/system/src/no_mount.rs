//! Systems on which nothing is mounted.

use std::io;
use std::path::PathBuf;

/// A mounted file system; there is none on this system.
pub enum Mount {}

impl Mount {
    /// Mounts nothing.
    ///
    /// # Errors
    /// [`Unsupported`](io::ErrorKind::Unsupported).
    pub fn new(_: &str, _: &str, _: bool) -> io::Result<Mount> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns the path of the root folder.
    pub fn path(&self) -> PathBuf {
        match *self {}
    }

    /// Remounts.
    ///
    /// # Errors
    /// None: there is nothing to remount.
    pub fn remount(&self, _: bool) -> io::Result<()> {
        match *self {}
    }
}

/// Returns an error.
///
/// # Errors
/// [`Unsupported`](io::ErrorKind::Unsupported).
pub fn has_file_system(_: &str) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
