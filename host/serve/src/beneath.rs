//! A directory that no path can leave.

use crate::descriptors::checked;
use cardiograph_server::Error;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, openat2, statat,
};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Suffix of unfinished files.
pub const PART: &str = ".part";

/// Rules of a lookup: it stays below the root and follows no symbolic link.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH
    .union(ResolveFlags::NO_SYMLINKS)
    .union(ResolveFlags::NO_MAGICLINKS);

/// An open directory. All paths are relative to it; a lookup never leaves it, and follows no symbolic link.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
}

impl Root {
    /// Opens a directory. Its own path may contain symbolic links.
    ///
    /// # Errors
    /// [`Errno`] of the system.
    pub fn open(path: &Path) -> Result<Root, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Root { directory })
    }

    /// Returns the directory itself.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Opens a file or directory for reading.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a hidden name, a link, or anything that is neither a file nor a directory.
    pub fn read(&self, path: &str) -> Result<(OwnedFd, Stat), Error> {
        self.check(path)?;
        self.read_unchecked(path)
    }

    /// Opens a file or directory for reading, even if its name is hidden.
    ///
    /// # Errors
    /// As [`read`](Root::read).
    pub fn read_unchecked(&self, path: &str) -> Result<(OwnedFd, Stat), Error> {
        // Opening a pipe would otherwise wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.open_at(path, flags).map_err(error_of)?;
        let stat = fstat(&file).map_err(error_of)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile | FileType::Directory => Ok((file, stat)),
            _ => Err(Error::Forbidden),
        }
    }

    /// Opens the directory that contains `path`; returns it and the last component.
    ///
    /// # Errors
    /// [`Error::Forbidden`] for a hidden name, a link, or the root itself.
    pub fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Error> {
        self.check(path)?;
        let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
        if name.is_empty() {
            return Err(Error::Forbidden);
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let parent = self.open_at(parent, flags).map_err(error_of)?;
        Ok((parent, name))
    }

    fn open_at(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let relative = match path.trim_start_matches('/') {
            "" => ".",
            relative => relative,
        };
        let flags = flags | OFlags::CLOEXEC;
        checked(openat2(
            &self.directory,
            relative,
            flags,
            Mode::empty(),
            RESOLVE,
        )?)
    }

    /// Refuses hidden names, and FAT short names of files whose long names are hidden.
    fn check(&self, path: &str) -> Result<(), Error> {
        let mut parent_bytes = 0;
        for name in path.split('/') {
            if is_hidden(name) || name == ".." {
                return Err(Error::Forbidden);
            }
            if name.contains('~') {
                self.check_alias(&path[..parent_bytes], name)?;
            }
            parent_bytes += name.len() + 1;
        }
        Ok(())
    }

    /// Refuses a name that exists but is not listed in its directory: it is the short name of a file on FAT,
    /// and the long name may be hidden.
    fn check_alias(&self, parent: &str, name: &str) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Ok(parent) = self.open_at(parent, flags) else {
            return Ok(());
        };
        if statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW).is_err() {
            return Ok(());
        }
        let mut entries = Dir::new(parent).map_err(error_of)?;
        let is_listed = entries
            .any(|entry| entry.is_ok_and(|entry| entry.file_name().to_bytes() == name.as_bytes()));
        match is_listed {
            true => Ok(()),
            false => Err(Error::Forbidden),
        }
    }
}

/// Returns true if a name belongs to the recorder, the server or the system, and is not served.
pub fn is_hidden(name: &str) -> bool {
    let begins = |prefix: &str| {
        let start = name.as_bytes().get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix.as_bytes()))
    };
    name.starts_with('.') || begins("CARDIOGR.") || stem_of_part(name).is_some()
}

/// Returns the final name of an unfinished file.
pub fn stem_of_part(name: &str) -> Option<&str> {
    let (stem, end) = name.split_at_checked(name.len().checked_sub(PART.len())?)?;
    end.eq_ignore_ascii_case(PART).then_some(stem)
}

/// Converts a system error to an error of the server.
pub fn error_of(errno: Errno) -> Error {
    match errno {
        Errno::NOENT => Error::NotFound,
        Errno::NOTDIR => Error::NotDirectory,
        Errno::ISDIR => Error::IsDirectory,
        Errno::EXIST => Error::Exists,
        Errno::NOTEMPTY => Error::NotEmpty,
        Errno::NAMETOOLONG => Error::TooLong,
        Errno::INVAL | Errno::ILSEQ => Error::NameInvalid,
        // A symbolic link; a path that leaves the root, or another file system; a socket.
        Errno::LOOP | Errno::XDEV | Errno::NXIO => Error::Forbidden,
        Errno::ACCESS | Errno::PERM | Errno::ROFS => Error::Forbidden,
        Errno::NOSPC | Errno::DQUOT => Error::Full,
        Errno::FBIG => Error::TooLarge,
        Errno::BUSY | Errno::MFILE | Errno::NFILE | Errno::NOMEM => Error::Busy,
        Errno::NODEV => Error::NoCard,
        _ => Error::CardFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn names_of_recorder_and_system_are_hidden() {
        for name in [
            ".cardiograph.lock",
            "LOG00012.CSV.part",
            "LOG00012.CSV.PART",
            "CARDIOGR.JNL",
            "cardiogr.idx",
            ".",
        ] {
            assert!(is_hidden(name), "{name}");
        }
        for name in [
            "LOG00012.CSV",
            "part",
            "é.csv",
            "CARDIOGRAM.CSV",
            "a.partial",
        ] {
            assert!(!is_hidden(name), "{name}");
        }
    }

    #[test]
    fn no_path_leaves_the_directory() {
        let own = tempfile::tempdir().unwrap();
        let served = own.path().join("served");
        fs::create_dir_all(served.join("inside")).unwrap();
        fs::write(own.path().join("secret"), "secret").unwrap();
        fs::write(served.join("inside/file"), "file").unwrap();
        symlink("../secret", served.join("link")).unwrap();
        symlink("..", served.join("up")).unwrap();
        symlink(own.path(), served.join("absolute")).unwrap();
        symlink("inside", served.join("within")).unwrap();
        let root = Root::open(&served).unwrap();
        assert!(root.read("/inside/file").is_ok());
        assert!(root.read("/").is_ok());
        for path in [
            "/link",
            "/up/secret",
            "/absolute/secret",
            "/within/file",
            "/../secret",
            "/inside/../../secret",
        ] {
            assert_eq!(root.read(path).err(), Some(Error::Forbidden), "{path}");
            assert_eq!(
                root.parent(path).err(),
                match path {
                    // The link itself may be replaced; it is not followed.
                    "/link" => None,
                    _ => Some(Error::Forbidden),
                },
                "{path}"
            );
        }
        assert_eq!(root.read("/none").err(), Some(Error::NotFound));
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let own = tempfile::tempdir().unwrap();
        let path = own.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let root = Root::open(own.path()).unwrap();
        assert_eq!(root.read("/pipe").err(), Some(Error::Forbidden));
    }
}
