//! Recording, recovery and export on a computer.
//!
//! ```text
//!   Feed ──> live ──> the recorder ──> directory: files ──> verified against the feed   (live_stream)
//!   input ────┘                            │
//!                     recovery <── after a kill or a power loss
//!                     export   <── binary recordings, as CSV or ULog
//! ```
//!
//! - [`record_in_directory`]: runs the recorder in real time, to files of this computer;
//!   [`stream_in_directory`] also compares the files with the samples, and [`input_in_directory`] records
//!   lines from a pipe.
//! - [`recover_path`]: trims interrupted recordings on a card, in its image or in a directory.
//! - [`export_csv`], [`export_ulog`]: binary recordings as CSV, or as one ULog file.
//! - [`Monitor`]: the state of a recording, for readers in other threads.
//! - [`Feed`], [`verify_file`], [`StreamReport`]: reproducible samples, and their comparison with files.
//!
//! This crate does not depend on simulated cards; cardiograph-compare does.

#[cfg(not(target_family = "wasm"))]
mod card_file;
mod crc;
#[cfg(not(target_family = "wasm"))]
mod directory;
mod export;
mod feed;
#[cfg(not(target_family = "wasm"))]
mod finding;
mod gaps;
mod lines;
#[cfg(not(target_family = "wasm"))]
mod live;
#[cfg(not(target_family = "wasm"))]
mod live_stream;
#[cfg(not(target_family = "wasm"))]
mod local_time;
#[cfg(not(target_family = "wasm"))]
mod monitor;
#[cfg(not(target_family = "wasm"))]
mod recovery;
mod result;
mod samples;
mod stream_report;
#[cfg(not(target_family = "wasm"))]
mod totals;
mod verify;

/// Advice for errors that only a bug in Cardiograph can cause.
pub const REPORT_BUG: &str = "please report this as a bug, with the command line";

#[cfg(not(target_family = "wasm"))]
pub use card_file::{CardFile, CardFileError};
#[cfg(not(target_family = "wasm"))]
pub use directory::{
    Access, DirectoryCard, DirectoryError, DirectoryVolume, Failure, LiveFile, LiveFiles, Repair,
    epoch_of_recording, open_directory, recording_at,
};
pub use export::{ExportError, Exported, export_csv, export_ulog};
pub use feed::{Feed, InputLines, Times, TooLong};
pub use lines::{LINE_BYTES_MIN, Lines, line};
#[cfg(not(target_family = "wasm"))]
pub use live::{
    DirectoryStream, LiveError, LiveFeed, LiveResult, LiveSetup, block_on, record_in_directory,
};
#[cfg(not(target_family = "wasm"))]
pub use live_stream::{LiveProgress, LiveStreaming, input_in_directory, stream_in_directory};
#[cfg(not(target_family = "wasm"))]
pub use local_time::{dos_time_now, unix_s_of_local};
#[cfg(not(target_family = "wasm"))]
pub use monitor::{Monitor, MonitorFigures, Monitored, WriteFigures};
#[cfg(not(target_family = "wasm"))]
pub use recovery::{
    RecoverError, RecoveredFile, Recovery, RecoveryAction, TargetKind, recover_path,
};
pub use result::{Problem, Progress, RecordingResult, StreamError, StreamResult};
pub use samples::{BINARY_SAMPLE_BYTES_MAX, BINARY_SAMPLE_BYTES_MIN, BinarySamples};
pub use stream_report::{StreamReport, prefix};
#[cfg(not(target_family = "wasm"))]
pub use totals::{RecordingTotals, totals_of};
pub use verify::{Mismatch, verify_file};
