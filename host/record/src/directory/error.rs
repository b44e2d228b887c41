//! Why a directory cannot be recorded to, or recovered.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Why a directory cannot be recorded to, or recovered.
#[derive(Debug)]
pub enum DirectoryError {
    /// The file system refused.
    Io {
        /// The directory, or the file in it.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Another program records here or recovers.
    InUse(PathBuf),
    /// There is no recording.
    NoRecording(PathBuf),
    /// As many files as can be are unfinished, or this one is not.
    NotUnfinished(PathBuf),
    /// Others removed or moved the file while it was recorded to.
    Gone(PathBuf),
    /// The prefix of a name is not three capital letters.
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
        ErrorKind::NotFound => "create it, or check its name",
        ErrorKind::NotADirectory => "give a directory",
        ErrorKind::PermissionDenied => "give a directory that you may write to",
        ErrorKind::ReadOnlyFilesystem => "mount it for writing",
        ErrorKind::StorageFull => "remove files, or record to shorter ones",
        ErrorKind::QuotaExceeded => "remove files of yours, or ask for a larger quota",
        ErrorKind::FileTooLarge => "record to shorter files",
        _ => "check the medium, or give another directory",
    }
}

impl fmt::Display for DirectoryError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DirectoryError::Io { path, source } => {
                write!(f, "{}: {source}; {}", path.display(), remedy(source.kind()))
            }
            DirectoryError::InUse(path) => write!(
                f,
                "{}: another program records to this directory; wait for its end, or give another directory",
                path.display()
            ),
            DirectoryError::NoRecording(path) => write!(
                f,
                "{}: there is no recording of Cardiograph here; check its name",
                path.display()
            ),
            DirectoryError::NotUnfinished(path) => write!(
                f,
                "{}: too many files are unfinished, or this one is not; recover the directory",
                path.display()
            ),
            DirectoryError::Gone(path) => write!(
                f,
                "{}: removed or moved while it was recorded to; leave the files of a recording alone until it ends",
                path.display()
            ),
            DirectoryError::BadName => {
                f.write_str("a name begins with three capital letters; choose others")
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
