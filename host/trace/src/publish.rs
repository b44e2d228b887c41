//! New files that appear complete or not at all, and never replace an existing file.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A file could not be written. `Display` is one sentence with the remedy.
#[derive(Debug)]
pub struct WriteError {
    path: PathBuf,
    error: io::Error,
}

impl WriteError {
    /// Wraps the operating system's error for a file that could not be written.
    pub fn new(path: &Path, error: io::Error) -> WriteError {
        WriteError {
            path: path.to_owned(),
            error,
        }
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path.display())?;
        match self.error.kind() {
            ErrorKind::AlreadyExists if is_ordinary(&self.path) => write!(
                f,
                "already exists; choose another name, or replace it with --force"
            ),
            ErrorKind::AlreadyExists | ErrorKind::InvalidInput => {
                write!(f, "exists and is not an ordinary file; choose another name")
            }
            ErrorKind::NotFound => write!(f, "the directory does not exist; create it first"),
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                write!(
                    f,
                    "the disk is full; free some space or choose another location"
                )
            }
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => write!(
                f,
                "cannot write to the directory ({}); choose another location",
                self.error
            ),
            _ => write!(
                f,
                "cannot be written ({}); choose another location",
                self.error
            ),
        }
    }
}

/// Returns true for an ordinary file, which `--force` may replace; false for a link, a directory or a device.
fn is_ordinary(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_file())
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// Treatment of an existing file with the name of a new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Existing {
    /// The new file is refused.
    #[default]
    Keep,
    /// The new file takes its place once it is complete.
    Replace,
}

impl Existing {
    /// Refuses a name that may not be used.
    fn check(self, path: &Path) -> io::Result<()> {
        // A dangling symbolic link counts as an existing file: it must not be replaced either.
        match (path.symlink_metadata(), self) {
            (Err(_), _) => Ok(()),
            (Ok(_), Existing::Keep) => Err(ErrorKind::AlreadyExists.into()),
            (Ok(metadata), Existing::Replace) if metadata.is_file() => Ok(()),
            // A rename would replace a link or a device such as /dev/null.
            (Ok(_), Existing::Replace) => Err(ErrorKind::InvalidInput.into()),
        }
    }
}

/// A file under a temporary name next to its final name, until [`NewFile::commit`].
///
/// Dropping it removes the temporary file.
pub struct NewFile {
    path: PathBuf,
    existing: Existing,
    temporary: PathBuf,
    /// True if the file has no name yet, so that even a killed process leaves nothing behind.
    is_unnamed: bool,
    /// Writer of the temporary file; `None` once the file has its final name.
    out: Option<BufWriter<File>>,
}

impl NewFile {
    /// Creates the temporary file.
    ///
    /// # Errors
    /// If a file with the final name exists, or its directory is not writable.
    pub fn create(path: &Path) -> Result<NewFile, WriteError> {
        NewFile::create_with(path, Existing::Keep)
    }

    /// Creates the temporary file; `existing` states how to treat a file with the final name.
    ///
    /// # Errors
    /// If the final name may not be used, or its directory is not writable.
    pub fn create_with(path: &Path, existing: Existing) -> Result<NewFile, WriteError> {
        let new = || {
            existing.check(path)?;
            let temporary = temporary_name(path)?;
            let unnamed = unnamed(&temporary);
            let is_unnamed = unnamed.is_some();
            let file = match unnamed {
                Some(file) => file,
                None => OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .open(&temporary)?,
            };
            Ok(NewFile {
                path: path.to_owned(),
                existing,
                temporary,
                is_unnamed,
                out: Some(BufWriter::new(file)),
            })
        };
        new().map_err(|error| WriteError::new(path, error))
    }

    /// Moves the file to its final name.
    ///
    /// # Errors
    /// If the data still buffered cannot be written, or if a file with the final name has appeared in the meantime. No
    /// partial file remains.
    pub fn commit(mut self) -> Result<(), WriteError> {
        self.publish()
            .map_err(|error| WriteError::new(&self.path, error))
    }

    fn publish(&mut self) -> io::Result<()> {
        let out = self.out.as_mut().ok_or(ErrorKind::NotFound)?;
        out.flush()?;
        // The name must not become visible before the data is on disk.
        out.get_ref().sync_data()?;
        if self.is_unnamed {
            give_name(out.get_ref(), &self.temporary)?;
            self.is_unnamed = false;
        }
        match self.existing {
            Existing::Keep => rename_without_replacing(&self.temporary, &self.path)?,
            Existing::Replace => fs::rename(&self.temporary, &self.path)?,
        }
        self.out = None;
        Ok(())
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.out {
            Some(out) => out.write(bytes),
            None => Err(ErrorKind::NotFound.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(out) = self.out.take() {
            // Discard the buffered bytes instead of flushing them.
            drop(out.into_parts());
            if !self.is_unnamed {
                // `drop` cannot report an error.
                let _ = fs::remove_file(&self.temporary);
            }
        }
    }
}

/// Returns a hidden name next to `path` that no other thread or process uses.
pub(crate) fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(ErrorKind::IsADirectory.into());
    };
    // The number makes the names of temporary files unique among the threads of a process.
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut temporary = std::ffi::OsString::from(".");
    temporary.push(name);
    temporary.push(format!(".{}-{number}.part", std::process::id()));
    Ok(path.with_file_name(temporary))
}

/// Creates an unnamed file in the directory of `path`, if the file system supports this; FAT does not.
#[cfg(target_os = "linux")]
pub(crate) fn unnamed(path: &Path) -> Option<File> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    let directory = directory.unwrap_or(Path::new("."));
    let file = openat(CWD, directory, flags, Mode::from_raw_mode(0o666));
    file.ok().map(File::from)
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn unnamed(_: &Path) -> Option<File> {
    None
}

/// Names a file that [`unnamed`] created.
#[cfg(target_os = "linux")]
fn give_name(file: &File, name: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(
        CWD,
        open.as_str(),
        CWD,
        name,
        AtFlags::SYMLINK_FOLLOW,
    )?)
}

#[cfg(not(target_os = "linux"))]
fn give_name(_: &File, _: &Path) -> io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// Renames atomically without replacing, where the operating system supports this. On FAT, which has no hard
/// links, there is no other way.
#[cfg(target_os = "linux")]
fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Some network file systems do not support rename flags.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_and_remove(from, to),
        result => Ok(result?),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_without_replacing(from: &Path, to: &Path) -> io::Result<()> {
    match link_and_remove(from, to) {
        Err(error) if !matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotFound) => {
            reserve_and_rename(from, to)
        }
        result => result,
    }
}

fn link_and_remove(from: &Path, to: &Path) -> io::Result<()> {
    fs::hard_link(from, to)?;
    fs::remove_file(from)
}

/// Renames on FAT, which has no hard links: creates an empty file, which fails if the name exists, and replaces it.
#[cfg(any(test, not(target_os = "linux")))]
fn reserve_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    drop(File::options().write(true).create_new(true).open(to)?);
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_for_fat_never_replaces() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("a"), directory.path().join("b"));
        fs::write(&from, "new").unwrap();
        reserve_and_rename(&from, &to).unwrap();
        assert_eq!(names(directory.path()), ["b"]);
        fs::write(&from, "newer").unwrap();
        let error = reserve_and_rename(&from, &to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"new");
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_appears_complete_or_not_at_all() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert!(names(directory.path()).is_empty());

        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"whole").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn an_existing_file_is_never_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        let mut late = NewFile::create(&path).unwrap();
        late.write_all(b"late").unwrap();
        fs::write(&path, b"first").unwrap();
        let sentence = format!(
            "{}: already exists; choose another name, or replace it with --force",
            path.display()
        );
        assert_eq!(late.commit().unwrap_err().to_string(), sentence);
        assert_eq!(NewFile::create(&path).err().unwrap().to_string(), sentence);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(names(directory.path()), ["a"]);
    }

    #[test]
    fn only_an_ordinary_file_is_replaced_and_only_by_a_complete_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a");
        fs::write(&path, b"first").unwrap();
        let replaced = || NewFile::create_with(&path, Existing::Replace).unwrap();
        let mut file = replaced();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(fs::read(&path).unwrap(), b"first");
        let mut file = replaced();
        file.write_all(b"second").unwrap();
        file.commit().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(names(directory.path()), ["a"]);

        let link = directory.path().join("link");
        std::os::unix::fs::symlink("a", &link).unwrap();
        for path in [&link, Path::new("/dev/null"), directory.path()] {
            let error = NewFile::create_with(path, Existing::Replace).err().unwrap();
            assert!(
                error.to_string().contains("not an ordinary file"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_hard_link_fallback_publishes_like_a_rename() {
        let directory = tempfile::tempdir().unwrap();
        let (from, to) = (directory.path().join("from"), directory.path().join("to"));
        fs::write(&from, b"new").unwrap();
        link_and_remove(&from, &to).unwrap();
        assert_eq!(names(directory.path()), ["to"]);
        fs::write(&from, b"newer").unwrap();
        assert!(link_and_remove(&from, &to).is_err());
        assert_eq!(fs::read(&to).unwrap(), b"new");
    }

    #[test]
    fn a_missing_directory_is_reported() {
        let error = NewFile::create(Path::new("no/such/place.csv"))
            .err()
            .unwrap();
        assert_eq!(
            error.to_string(),
            "no/such/place.csv: the directory does not exist; create it first"
        );
    }
}
