//! Progress and result of a recording.

use crate::{Mismatch, REPORT_BUG};
use cardiograph_recorder::{Gap, StreamSummary};
#[cfg(not(target_family = "wasm"))]
use cardiograph_system::is_of_medium;
use std::{fmt, io};

/// Progress of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Number of samples pushed to all streams.
    pub pushed: u64,
    /// Number of durable samples.
    pub durable: u64,
    /// Number of lost samples.
    pub lost: u64,
    /// Arrival of the newest sample, in us from the start.
    pub at_us: u64,
}

/// Result of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordingResult {
    /// One result per stream.
    pub streams: Vec<StreamResult>,
    /// Time from the start of sampling until all files were closed, in us.
    pub duration_us: u64,
    /// Reason why the files were not compared with the samples, as a clause for "not verified: ..."; `None`
    /// if the files were compared.
    pub unverified: Option<&'static str>,
    /// Problems that did not end the recording.
    pub problems: Vec<Problem>,
}

/// A problem of a recording that nevertheless ended cleanly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Another program removed, moved or changed files; contains the file names, as far as they are known.
    /// The samples of these files are neither in files nor in gaps.
    FilesGone(Vec<String>),
    /// Samples are neither in files nor in gaps, or in both; contains the numbers of samples as a sentence.
    Unaccounted(String),
    /// A file could not be read back, or differs from the samples; contains the file and the difference as a
    /// sentence.
    Differs(String),
    /// The storage device failed temporarily or until the end; contains the first error as a sentence.
    Device(String),
    /// The input could not be read to its end; contains the error of the operating system.
    Input(String),
    /// The input ended, or the recording did, before a line arrived.
    NoLines,
    /// Samples were lost because the storage device was full.
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
                    ": removed, moved or changed by another program during the recording, so its samples are \
                     unaccounted for; leave the files alone until the recording ends",
                )
            }
            Problem::Unaccounted(sentence) | Problem::Differs(sentence) => f.write_str(sentence),
            Problem::Device(error) => write!(
                f,
                "the storage device failed during the recording ({error}); check the device and its connection"
            ),
            Problem::Input(error) => {
                write!(f, "the input could not be read to the end ({error}); check the input source")
            }
            Problem::NoLines => f.write_str(
                "no lines arrived from standard input; check the program that writes them, or increase --for",
            ),
            Problem::Full => f.write_str(
                "the storage device is full; remove files, use a larger device or a smaller --file-size, or free space \
                 automatically with --when-full remove-oldest",
            ),
        }
    }
}

/// Result of one stream.
#[derive(Clone, Debug, PartialEq)]
pub struct StreamResult {
    /// Samples pushed, including lost ones.
    pub pushed: u64,
    /// Gaps in order, without overlaps; times in us from the start of sampling.
    pub gaps: Vec<Gap>,
    /// Total size of the samples found in files, in bytes. If the files were not compared, the total size of
    /// the files, including checkpoint marks.
    pub sample_bytes: u64,
    /// Number of closed files. Files shared by several streams count for the first stream only.
    pub files: u64,
    /// Total size of the closed files, in bytes.
    pub file_bytes: u64,
    /// Statistics of the recorder.
    pub summary: StreamSummary,
}

impl StreamResult {
    /// Returns the number of samples in gaps.
    pub fn lost(&self) -> u64 {
        self.gaps.iter().map(|gap| gap.count).sum()
    }
}

/// Failure of a recording.
#[derive(Debug)]
pub enum StreamError {
    /// The recorder did not start; contains the reason as a sentence.
    Refused(String),
    /// A file could not be read back.
    Read {
        /// Name of the file.
        file: String,
        /// Error of the operating system or of the FAT library.
        source: io::Error,
    },
    /// The contents of a file differ from the samples.
    Differs {
        /// Name of the file.
        file: String,
        /// First difference between the file and the samples.
        mismatch: Mismatch,
    },
    /// Samples are neither in files nor in gaps, or in both.
    Unaccounted {
        /// Number of samples pushed.
        pushed: u64,
        /// Number of samples found in files.
        found: u64,
        /// Number of samples in gaps.
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
            // A browser has no disks.
            #[cfg(not(target_family = "wasm"))]
            StreamError::Read { file, source } if is_of_medium(source) => write!(
                f,
                "{file}: could not be read back ({source}); do not trust this storage device"
            ),
            StreamError::Read { file, source } => {
                let remedy = match source.kind() {
                    io::ErrorKind::PermissionDenied => "permit this user to read the file",
                    _ => "resolve this",
                };
                write!(
                    f,
                    "{file}: could not be read back ({source}), so that its samples are not verified; {remedy}, and record \
                     again"
                )
            }
            StreamError::Differs { file, mismatch } => {
                write!(f, "{file}: {mismatch}; do not trust this storage device")
            }
            StreamError::Unaccounted {
                pushed,
                found,
                lost,
            } => write!(
                f,
                "{pushed} samples arrived, but the {found} in files and {lost} in gaps do not add up to that; \
                 {REPORT_BUG}"
            ),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn only_an_error_of_the_medium_advises_against_it() {
        const EIO: i32 = 5;
        const ENOMEM: i32 = 12;
        const EACCES: i32 = 13;
        let sentence = |errno| {
            let error = StreamError::Read {
                file: "REC00001.CSV".to_string(),
                source: io::Error::from_raw_os_error(errno),
            };
            error.to_string()
        };
        assert!(
            sentence(EIO)
                .ends_with("(Input/output error (os error 5)); do not trust this storage device")
        );
        for (errno, cause, remedy) in [
            (ENOMEM, "Cannot allocate memory", "resolve this"),
            (
                EACCES,
                "Permission denied",
                "permit this user to read the file",
            ),
        ] {
            let sentence = sentence(errno);
            assert!(!sentence.contains("do not trust"), "{sentence}");
            assert!(
                sentence.contains(cause) && sentence.contains(remedy),
                "{sentence}"
            );
        }
    }
}
