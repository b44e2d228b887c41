//! A directory that no path can leave.

use crate::descriptors::checked;
use crate::directory::aside;
use cardiograph_recorder::{is_protected, is_same_name};
use cardiograph_server::Error;
use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, fstatfs, openat2, statat,
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
    /// [`Error::Forbidden`] for a protected name, a link, or anything that is neither a file nor a directory.
    pub async fn read(&self, path: &str) -> Result<(OwnedFd, Stat), Error> {
        self.check(path).await?;
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
    /// [`Error::Forbidden`] for a protected name, a link, or the root itself.
    pub async fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Error> {
        self.check(path).await?;
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

    /// Refuses protected names, and other names of protected files: on FAT, each file has a short one as well.
    async fn check(&self, path: &str) -> Result<(), Error> {
        let mut parent_bytes = 0;
        for name in path.split('/') {
            if is_protected(name) {
                return Err(Error::Forbidden);
            }
            if may_be_short(name) {
                self.check_listed(&path[..parent_bytes], name).await?;
            }
            parent_bytes += name.len() + 1;
        }
        Ok(())
    }

    /// Refuses a name that exists but is not listed in its directory: it is another name of a file, whose listed one may
    /// be protected. Most file systems have no such names; on the others, a helper thread reads the directory.
    async fn check_listed(&self, parent: &str, name: &str) -> Result<(), Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let Ok(parent) = self.open_at(parent, flags) else {
            // The operation itself reports why.
            return Ok(());
        };
        if has_one_name_per_file(&parent) {
            return Ok(());
        }
        let name = name.to_string();
        match aside(move || is_listed_or_missing(parent, &name)).await? {
            true => Ok(()),
            false => Err(Error::Forbidden),
        }
    }
}

/// Returns true if a name has the form of a FAT short name: up to eight characters, a dot, and up to three.
fn may_be_short(name: &str) -> bool {
    let (base, extension) = name.rsplit_once('.').unwrap_or((name, ""));
    let are_few = |text: &str, most: usize| text.chars().count() <= most && !text.contains('.');
    !base.is_empty() && are_few(base, 8) && are_few(extension, 3)
}

/// Types of file systems on which a file has only the names that its directories list (linux/magic.h).
const ONE_NAME_PER_FILE: &[u32] = &[
    0x0000_EF53, // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0x2FC1_2FC1, // ZFS
    0xCA45_1A4E, // bcachefs
    0x0102_1994, // tmpfs
    0x8584_58F6, // ramfs
    0x794C_7630, // overlayfs, which refuses layers that compare names in their own way
];

fn has_one_name_per_file(directory: &OwnedFd) -> bool {
    // Some systems report the type as a negative number.
    fstatfs(directory).is_ok_and(|found| ONE_NAME_PER_FILE.contains(&(found.f_type as u32)))
}

/// Returns true if a directory lists a name, whatever its case, or has no such file.
fn is_listed_or_missing(directory: OwnedFd, name: &str) -> Result<bool, Errno> {
    match statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(true),
        found => drop(found?),
    }
    for entry in Dir::new(directory)? {
        let entry = entry?;
        if entry
            .file_name()
            .to_str()
            .is_ok_and(|listed| is_same_name(listed, name))
        {
            return Ok(true);
        }
    }
    Ok(false)
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
    use futures_util::FutureExt;
    use std::fs;
    use std::os::unix::fs::symlink;

    /// Returns the result of an operation that needs no helper thread.
    fn at_once<T>(operation: impl Future<Output = T>) -> T {
        operation.now_or_never().unwrap()
    }

    #[test]
    fn short_names_are_recognised() {
        for name in [
            "WIFI~1.TXT",
            "KEY~1",
            "wifi.txt",
            "A.B",
            "LOG00012.CSV",
            "Ñ.c",
        ] {
            assert!(may_be_short(name), "{name}");
        }
        for name in [
            "",
            "WIFI~1.TEXT",
            "LOG000012.CSV",
            "a.b.c",
            ".x",
            "LOG00012 x.CSV",
        ] {
            assert!(!may_be_short(name), "{name}");
        }
    }

    #[test]
    fn a_listed_name_is_found_in_any_case() {
        let own = tempfile::tempdir().unwrap();
        fs::write(own.path().join("A"), "").unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        let is_due = |name| {
            let directory = rustix::fs::open(own.path(), flags, Mode::empty()).unwrap();
            is_listed_or_missing(directory, name)
        };
        assert_eq!(is_due("A"), Ok(true));
        assert_eq!(is_due("none"), Ok(true));
        // A name that every directory has, although the walk over a directory never asks for it.
        assert_eq!(is_due("./A"), Ok(false));
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
        let read = |path| at_once(root.read(path));
        assert!(read("/inside/file").is_ok());
        assert!(read("/").is_ok());
        for path in [
            "/link",
            "/up/secret",
            "/absolute/secret",
            "/within/file",
            "/../secret",
            "/inside/../../secret",
        ] {
            assert_eq!(read(path).err(), Some(Error::Forbidden), "{path}");
            assert_eq!(
                at_once(root.parent(path)).err(),
                match path {
                    // The link itself may be replaced; it is not followed.
                    "/link" => None,
                    _ => Some(Error::Forbidden),
                },
                "{path}"
            );
        }
        assert_eq!(read("/none").err(), Some(Error::NotFound));
    }

    #[test]
    fn a_pipe_is_refused_at_once() {
        let own = tempfile::tempdir().unwrap();
        let path = own.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let root = Root::open(own.path()).unwrap();
        assert_eq!(at_once(root.read("/pipe")).err(), Some(Error::Forbidden));
    }
}
