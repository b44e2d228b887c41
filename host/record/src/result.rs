//! Progress and result of a recording.

use crate::Mismatch;
use cardiograph_recorder::{Gap, StreamSummary};
use std::{fmt, io};

/// Progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Lines pushed, of all streams.
    pub pushed: u64,
    /// Lines that are durable.
    pub safe: u64,
    /// Lines that are missing.
    pub lost: u64,
    /// Arrival of the newest line, in us from the start.
    pub at_us: u64,
}

/// Result of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Streamed {
    /// One result per stream.
    pub streams: Vec<StreamResult>,
    /// From the start of sampling until all files were closed, in us.
    pub duration_us: u64,
    /// Reason why the files were not compared with the lines, as a part of a sentence; `None` if they were.
    pub unread: Option<&'static str>,
    /// Problems that the recording survived.
    pub problems: Vec<Problem>,
}

/// A problem of a recording that nevertheless went on to an orderly end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Others removed, moved or changed closed files; their samples are neither in files nor in gaps.
    FilesGone(Vec<String>),
    /// The medium failed for a time, or until the end; the first error in a sentence.
    Medium(String),
    /// The input could not be read to its end; the system's reason.
    Input(String),
    /// Samples were lost because the medium was full.
    Full,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Problem::FilesGone(names) => {
                let (first, others) = names.split_first().map_or(("a file", 0), |(first, others)| {
                    (first.as_str(), others.len())
                });
                write!(f, "{first}")?;
                if others > 0 {
                    write!(f, " and {others} more")?;
                }
                f.write_str(
                    ": removed, moved or changed during the recording, so that its samples are unaccounted for; \
                     leave the files of a recording alone until it ends",
                )
            }
            Problem::Medium(error) => write!(f, "the medium failed during the recording ({error})"),
            Problem::Input(error) => {
                write!(f, "the input could not be read to its end ({error}); check where it comes from")
            }
            Problem::Full => f.write_str(
                "the medium is full; remove files, record to a larger one, or let --when-full remove-oldest make \
                 room",
            ),
        }
    }
}

/// Result of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamResult {
    /// Lines pushed.
    pub pushed: u64,
    /// Gaps in order, without overlaps; times in us from the start of sampling.
    pub gaps: Vec<Gap>,
    /// Bytes of the lines that were found in files; bytes of the files, marks included, if they were not
    /// compared.
    pub line_bytes: u64,
    /// Files that were closed, and compared; of files that several streams share, those of the first stream.
    pub files: u64,
    /// Their bytes.
    pub file_bytes: u64,
    /// Statistics of the recorder.
    pub summary: StreamSummary,
}

impl StreamResult {
    /// Returns the number of lines in gaps.
    pub fn lost(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.count).sum()
    }
}

/// Failure of a recording.
#[derive(Debug)]
pub enum StreamError {
    /// The recorder did not begin; the reason, in a sentence.
    Refused(String),
    /// A file cannot be read back.
    Read {
        /// Its name.
        file: String,
        /// The error of the system or of the FAT library.
        source: io::Error,
    },
    /// A file does not hold its lines.
    Differs {
        /// Its name.
        file: String,
        /// The first difference.
        mismatch: Mismatch,
    },
    /// Lines are neither in files nor in gaps, or in both.
    Unaccounted {
        /// Lines pushed.
        pushed: u64,
        /// Lines found in files.
        found: u64,
        /// Lines in gaps.
        lost: u64,
    },
}

impl std::error::Error for StreamError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StreamError::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            StreamError::Refused(why) => f.write_str(why),
            StreamError::Read { file, source } => {
                write!(
                    f,
                    "{file} cannot be read back ({source}); do not trust this medium"
                )
            }
            StreamError::Differs { file, mismatch } => {
                write!(f, "{file}: {mismatch}; do not trust this medium")
            }
            StreamError::Unaccounted {
                pushed,
                found,
                lost,
            } => write!(
                f,
                "{pushed} lines were pushed, but {found} are in files and {lost} in gaps; report it"
            ),
        }
    }
}
