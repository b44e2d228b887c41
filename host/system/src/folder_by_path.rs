//! A directory, reached by its path: the standard library of other systems offers nothing better.

use crate::{Access, FileIdentity, Flag, Space};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// A directory.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// Takes an existing directory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Folder> {
        match fs::metadata(path)?.is_dir() {
            true => Ok(Folder {
                path: path.to_path_buf(),
            }),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> PathBuf {
        self.path.clone()
    }

    /// Returns true if the directory has been removed.
    pub fn is_removed(&self) -> bool {
        !self.path.exists()
    }

    /// Returns true if the name in this directory is that of the folder.
    pub fn contains(&self, name: &str, folder: &Folder) -> bool {
        self.path.join(name) == folder.path && self.has_folder(name)
    }

    /// Returns the space of the file system that holds the directory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn space(&self) -> io::Result<Space> {
        crate::space(&self.path)
    }

    /// Creates a folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_folder(&self, name: &str) -> io::Result<()> {
        fs::create_dir(self.path.join(name))
    }

    /// Opens a folder, but none that a link points to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        match self.has_folder(name) {
            true => Folder::open(&self.path.join(name)),
            false => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn file(&self, name: &str, access: Access, flags: &[Flag]) -> io::Result<File> {
        let mut options = OpenOptions::new();
        options.read(true).write(access != Access::Read);
        options.create_new(access == Access::Create);
        crate::set(&mut options, flags);
        options.open(self.path.join(name))
    }

    /// Returns true if the name is that of a folder, and not of a link to one.
    fn has_folder(&self, name: &str) -> bool {
        let found = fs::symlink_metadata(self.path.join(name));
        found.is_ok_and(|found| found.is_dir())
    }

    /// Returns true if the name is that of a file with this identity.
    pub fn holds(&self, name: &str, file: FileIdentity) -> bool {
        let found = fs::symlink_metadata(self.path.join(name));
        found.is_ok_and(|found| crate::identity(&found) == file)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        fs::remove_dir(self.path.join(name))
    }
}
