//! A directory that is reached even if its path changes.

use crate::unix::{bits_of, identity};
use crate::{Access, FileIdentity, Flag, Space, unix};
use rustix::fs::{AtFlags, CWD, Mode, OFlags};
use rustix::io::retry_on_intr;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An open directory.
///
/// Names are looked up in the directory that was opened, even if it is renamed or something is mounted over its path
/// meanwhile.
pub struct Folder {
    file: File,
    path: PathBuf,
}

/// Flags for opening a directory only to look up names in it, which needs no permission to read it.
const LOOK_UP: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(HANDLE);

#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = OFlags::empty();

/// Permissions of new files and folders, as those of the standard library; the umask restricts them.
const FILE_MODE: Mode = Mode::from_raw_mode(0o666);
const FOLDER_MODE: Mode = Mode::from_raw_mode(0o777);

impl Folder {
    /// Opens an existing directory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<Folder> {
        let file = retry_on_intr(|| rustix::fs::openat(CWD, path, LOOK_UP, Mode::empty()))?;
        Ok(Folder {
            file: file.into(),
            path: path.to_path_buf(),
        })
    }

    /// Returns a path of the directory: the one with which it was opened, or the present one if it has been renamed and
    /// the system knows it.
    pub fn path(&self) -> PathBuf {
        let is_here = |path: &PathBuf| {
            let (own, found) = (self.file.metadata(), path.metadata());
            own.is_ok_and(|own| found.is_ok_and(|found| identity(&own) == identity(&found)))
        };
        if is_here(&self.path) {
            return self.path.clone();
        }
        let present = unix::path_of(&self.file).filter(is_here);
        present.unwrap_or_else(|| self.path.clone())
    }

    /// Returns true if the directory has been removed.
    pub fn is_removed(&self) -> bool {
        self.file.metadata().is_ok_and(|found| found.nlink() == 0)
    }

    /// Returns true if the name in this directory is that of the folder.
    pub fn contains(&self, name: &str, folder: &Folder) -> bool {
        let found = rustix::fs::statat(&self.file, name, AtFlags::SYMLINK_NOFOLLOW);
        let own = rustix::fs::fstat(&folder.file);
        own.is_ok_and(|own| {
            found.is_ok_and(|found| (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino))
        })
    }

    /// Returns the space of the file system that holds the directory.
    ///
    /// # Errors
    /// Those of the system.
    pub fn space(&self) -> io::Result<Space> {
        Ok(unix::space_of(&rustix::fs::fstatvfs(&self.file)?))
    }

    /// Creates a folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn create_folder(&self, name: &str) -> io::Result<()> {
        let (parent, name) = self.parent(name)?;
        let folder = parent.as_ref().unwrap_or(&self.file);
        Ok(rustix::fs::mkdirat(folder, name, FOLDER_MODE)?)
    }

    /// Opens a folder, but none that a link points to.
    ///
    /// # Errors
    /// Those of the system.
    pub fn folder(&self, name: &str) -> io::Result<Folder> {
        let flags = LOOK_UP | OFlags::NOFOLLOW;
        let open = || rustix::fs::openat(&self.file, name, flags, Mode::empty());
        Ok(Folder {
            file: retry_on_intr(open)?.into(),
            path: self.path.join(name),
        })
    }

    /// Opens a file; a link on the way to it, or in its place, is an error.
    ///
    /// # Errors
    /// Those of the system.
    pub fn file(&self, name: &str, access: Access, flags: &[Flag]) -> io::Result<File> {
        let access = match access {
            Access::Read => OFlags::RDONLY,
            Access::ReadWrite => OFlags::RDWR,
            Access::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
        };
        let flags = access | OFlags::CLOEXEC | bits_of(flags);
        let (parent, name) = self.parent(name)?;
        let folder = parent.as_ref().unwrap_or(&self.file);
        let open = || rustix::fs::openat(folder, name, flags | OFlags::NOFOLLOW, FILE_MODE);
        Ok(retry_on_intr(open)?.into())
    }

    /// Opens the folder of a path, without following links, and returns it with the last name; `None` for this folder.
    fn parent<'a>(&self, path: &'a str) -> io::Result<(Option<File>, &'a str)> {
        let Some((folders, name)) = path.rsplit_once('/') else {
            return Ok((None, path));
        };
        let mut parent: Option<File> = None;
        for folder in folders.split('/') {
            let within = parent.as_ref().unwrap_or(&self.file);
            let flags = LOOK_UP | OFlags::NOFOLLOW;
            let open = || rustix::fs::openat(within, folder, flags, Mode::empty());
            parent = Some(retry_on_intr(open)?.into());
        }
        Ok((parent, name))
    }

    /// Returns true if the name is that of the file with this identity, and not of another one that has taken its place.
    pub fn holds(&self, name: &str, file: FileIdentity) -> bool {
        let Ok((parent, name)) = self.parent(name) else {
            return false;
        };
        let folder = parent.as_ref().unwrap_or(&self.file);
        let found = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW);
        found.is_ok_and(|found| (found.st_dev, found.st_ino) == file)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_file(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::empty())
    }

    /// Removes an empty folder.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove_folder(&self, name: &str) -> io::Result<()> {
        self.unlink(name, AtFlags::REMOVEDIR)
    }

    fn unlink(&self, name: &str, flags: AtFlags) -> io::Result<()> {
        let (parent, name) = self.parent(name)?;
        let folder = parent.as_ref().unwrap_or(&self.file);
        Ok(rustix::fs::unlinkat(folder, name, flags)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_folder_is_reached_after_it_was_renamed() {
        let own = tempfile::tempdir().unwrap();
        let (before, after) = (own.path().join("before"), own.path().join("after"));
        fs::create_dir(&before).unwrap();
        let folder = Folder::open(&before).unwrap();
        assert_eq!(folder.path(), before);
        fs::rename(&before, &after).unwrap();
        // Another folder takes its place.
        fs::create_dir(&before).unwrap();
        folder.create_folder("in").unwrap();
        drop(folder.file("in/a", Access::Create, &[]).unwrap());
        assert!(after.join("in/a").exists());
        assert_eq!(fs::read_dir(&before).unwrap().count(), 0);
        if cfg!(target_os = "linux") {
            assert_eq!(folder.path(), fs::canonicalize(&after).unwrap());
        }
        let inner = folder.folder("in").unwrap();
        assert!(folder.contains("in", &inner) && !inner.is_removed());
        folder.remove_file("in/a").unwrap();
        folder.remove_folder("in").unwrap();
        assert!(inner.is_removed());
        folder.create_folder("in").unwrap();
        assert!(
            !folder.contains("in", &inner),
            "another one of the same name"
        );
        folder.remove_folder("in").unwrap();
        assert_eq!(fs::read_dir(&after).unwrap().count(), 0);
        fs::remove_dir(&after).unwrap();
        assert!(folder.is_removed());
        assert_eq!(folder.path(), before);
        let error = folder.create_folder("in").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_link_is_no_folder() {
        let own = tempfile::tempdir().unwrap();
        fs::create_dir(own.path().join("folder")).unwrap();
        std::os::unix::fs::symlink("folder", own.path().join("link")).unwrap();
        let folder = Folder::open(own.path()).unwrap();
        assert!(folder.folder("folder").is_ok() && folder.folder("link").is_err());
        let taken = folder.create_folder("link").unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    }

    #[test]
    fn a_file_is_told_from_another_one_with_its_name() {
        let own = tempfile::tempdir().unwrap();
        fs::create_dir(own.path().join("in")).unwrap();
        let folder = Folder::open(own.path()).unwrap();
        let file = folder.file("in/a", Access::Create, &[]).unwrap();
        let of_file = identity(&file.metadata().unwrap());
        assert!(folder.holds("in/a", of_file));
        fs::rename(own.path().join("in/a"), own.path().join("b")).unwrap();
        assert!(folder.holds("b", of_file) && !folder.holds("in/a", of_file));
        fs::write(own.path().join("in/a"), "mine").unwrap();
        assert!(!folder.holds("in/a", of_file));
        std::os::unix::fs::symlink("../b", own.path().join("in/c")).unwrap();
        assert!(!folder.holds("in/c", of_file) && !folder.holds("none/a", of_file));
    }

    #[test]
    fn permissions_are_those_of_the_standard_library() {
        let own = tempfile::tempdir().unwrap();
        let folder = Folder::open(own.path()).unwrap();
        drop(folder.file("a", Access::Create, &[]).unwrap());
        folder.create_folder("b").unwrap();
        fs::write(own.path().join("c"), "").unwrap();
        fs::create_dir(own.path().join("d")).unwrap();
        let mode = |name: &str| own.path().join(name).metadata().unwrap().permissions();
        assert_eq!((mode("a"), mode("b")), (mode("c"), mode("d")));
    }
}
