//! Recording, recovery and export on a computer.
//!
//! ```text
//!   Feed ──> live ──> the recorder ──> directory: files ──> read back and compared   (live_stream)
//!   input ────┘                            │
//!                     recovery <── after a kill or a power loss
//!                     export   <── binary recordings, as CSV
//! ```
//!
//! - [`record_in_directory`]: the recorder in real time, to files of this computer;
//!   [`stream_in_directory`] and [`input_in_directory`] compare what the files hold with the lines.
//! - [`recover_path`]: trims interrupted recordings on a card, in its image or in a directory.
//! - [`export_csv`], [`export_ulog`]: binary recordings as CSV, or as one ULog file.
//! - [`Feed`], [`read_back`], [`Reported`]: samples that can be made again, and the comparison with files.
//!
//! Nothing here depends on simulated cards; cardiograph-compare does.

mod card_file;
mod crc;
mod directory;
mod export;
mod feed;
mod gaps;
mod lines;
mod live;
mod live_stream;
mod read_back;
mod recovery;
mod reported;
mod result;
mod samples;

pub use card_file::{CardFile, CardFileError};
pub use directory::{
    Access, DirectoryCard, DirectoryError, DirectoryVolume, Failure, open_directory,
};
pub use export::{ExportError, Exported, export_csv, export_ulog};
pub use feed::{Feed, Given, Times, TooLong};
pub use lines::{LINE_BYTES_MIN, Lines, line};
pub use live::{
    DirectoryStream, LiveError, LiveFeed, LiveSetup, Logged, block_on, record_in_directory,
};
pub use live_stream::{LiveProgress, LiveStreaming, input_in_directory, stream_in_directory};
pub use read_back::{Mismatch, read_back};
pub use recovery::{Place, RecoverError, RecoveredFile, Recovery, recover_path};
pub use reported::{Reported, prefix};
pub use result::{Problem, Progress, StreamError, StreamResult, Streamed};
pub use samples::{BINARY_SAMPLE_BYTES_MAX, BINARY_SAMPLE_BYTES_MIN, Samples};
