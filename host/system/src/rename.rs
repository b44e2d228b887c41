//! Renaming without replacing, for systems and file systems without an operation for it.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Renames a file by a hard link, which never replaces a file; on FAT, which has no hard links, by
/// [`reserve_and_rename`].
///
/// Windows has such an operation (`MoveFileExW` without `MOVEFILE_REPLACE_EXISTING`), but the standard library does not
/// offer it, and calling it would be the only unsafe code of the workspace.
pub(crate) fn link_or_reserve(from: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(from, to) {
        Ok(()) => fs::remove_file(from),
        Err(error) if is_final(&error) => Err(error),
        Err(_) => reserve_and_rename(from, to),
    }
}

/// Returns true for errors that another way to rename would have, too.
fn is_final(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::AlreadyExists | ErrorKind::NotFound | ErrorKind::ReadOnlyFilesystem
    )
}

/// Creates an empty file with the new name, which fails if the name exists, and replaces that file.
///
/// Only a program that removes the empty file and creates another one meanwhile could lose its file. If the power fails
/// between the two steps, the empty file stays.
pub(crate) fn reserve_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    from.symlink_metadata()?;
    drop(fs::File::options().write(true).create_new(true).open(to)?);
    fs::rename(from, to).inspect_err(|_| {
        let _ = fs::remove_file(to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_rename_and_neither_replaces() {
        for rename in [link_or_reserve, reserve_and_rename] {
            let directory = tempfile::tempdir().unwrap();
            let (from, to) = (directory.path().join("a"), directory.path().join("b"));
            let error = rename(&from, &to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound);
            assert!(!to.exists());
            fs::write(&from, "new").unwrap();
            rename(&from, &to).unwrap();
            assert!(!from.exists());
            assert_eq!(fs::read(&to).unwrap(), b"new");
            fs::write(&from, "newer").unwrap();
            let error = rename(&from, &to).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert_eq!(fs::read(&to).unwrap(), b"new");
            assert_eq!(fs::read(&from).unwrap(), b"newer");
        }
    }

    #[test]
    fn a_failed_rename_leaves_no_reservation() {
        let directory = tempfile::tempdir().unwrap();
        // A directory cannot replace a file.
        let (from, to) = (directory.path().join("a"), directory.path().join("b"));
        fs::create_dir(&from).unwrap();
        assert!(reserve_and_rename(&from, &to).is_err());
        assert!(from.is_dir() && !to.exists());
    }
}
