//! Errors of directories.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Reason why a directory cannot be recorded to, or recovered.
#[derive(Debug)]
pub enum DirectoryError {
    /// The file system reported an error.
    Io {
        /// The directory, or the file in it.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The file system of the directory does not allow new files.
    NoFiles(PathBuf),
    /// Another program records to the directory or recovers it.
    InUse(PathBuf),
    /// The directory contains no recording.
    NoRecording(PathBuf),
    /// There are too many unfinished files, or the given file is not an unfinished recording.
    NotUnfinished(PathBuf),
    /// Another program removed or moved the file during the recording.
    Gone(PathBuf),
    /// Another program uses the name of a recording, or of its folder.
    NameTaken(PathBuf),
    /// The prefix of a file name is not three capital letters.
    BadName,
}

impl DirectoryError {
    pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> DirectoryError {
        move |source| DirectoryError::Io {
            path: path.to_path_buf(),
            source,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        matches!(self, DirectoryError::Io { source, .. }
            if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded))
    }
}

fn remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::NotFound => "create it, or check the name",
        ErrorKind::NotADirectory => "use a directory",
        ErrorKind::PermissionDenied => "use a directory with write permission",
        ErrorKind::ReadOnlyFilesystem => "mount it for writing",
        ErrorKind::StorageFull => "remove files, or use a smaller --file-size",
        ErrorKind::QuotaExceeded => "remove some of your files, or ask for a larger quota",
        ErrorKind::FileTooLarge => "use a smaller --file-size",
        _ => "check the storage device, or use another directory",
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DirectoryError::Io { path, source } => {
                write!(f, "{}: {source}; {}", path.display(), remedy(source.kind()))
            }
            DirectoryError::NoFiles(path) => write!(
                f,
                "{}: files cannot be created here; use another directory",
                path.display()
            ),
            DirectoryError::InUse(path) => write!(
                f,
                "{}: another program is recording to this directory; wait until that program ends, or use another directory",
                path.display()
            ),
            DirectoryError::NoRecording(path) => write!(
                f,
                "{}: contains no Cardiograph recording; check the directory name",
                path.display()
            ),
            DirectoryError::NotUnfinished(path) => write!(
                f,
                "{}: too many unfinished files; repair them with `cardiograph recover`",
                path.display()
            ),
            DirectoryError::Gone(path) => write!(
                f,
                "{}: removed or moved by another program during the recording; leave the files alone until the recording ends",
                path.display()
            ),
            DirectoryError::NameTaken(path) => write!(
                f,
                "{}: another program has created this name; remove or rename it",
                path.display()
            ),
            DirectoryError::BadName => {
                f.write_str("the file name prefix must be three capital letters; choose another")
            }
        }
    }
}

impl std::error::Error for DirectoryError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            DirectoryError::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
