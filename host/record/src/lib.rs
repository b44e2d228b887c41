//! Recorders as the studies have them, and what they and ours are measured against.
//!
//! ```text
//!   lines, one every 1/rate ──> ring in RAM ──> policy ──> blocking library calls ──> Store
//!                                  │                             │
//!                                  └── no room: a gap            └── moves the clock
//! ```
//!
//! - [`record`]: a [`Recording`] by a [`Policy`] of the studies to any store, read back and compared.
//! - [`record_on_card`]: the same on a simulated card on a board.
//! - [`stream_on_card`]: our recorder on a simulated card, every line of its files read back.
//! - [`record_in_directory`]: the recorder itself, in real time, to files of this computer;
//!   [`stream_in_directory`] and [`input_in_directory`] with the lines that our recorder has on a card.
//! - [`recover_path`]: recordings that were cut off, on a card, its image or in a directory.
//! - [`export_csv`], [`export_ulog`]: binary recordings as CSV, or as one ULog file.
//! - [`plain_stream`]: one unbroken CMD25 by a loop that knows no recorder, and the
//!   [rate](lossless_rate_Bps) that it carries without loss.

mod bound;
mod card_file;
mod card_files;
mod crc;
mod directory;
mod error;
mod export;
mod feed;
mod gap;
mod gaps;
mod live;
mod live_stream;
mod plain_stream;
mod policy;
mod read_back;
mod record;
mod recovery;
mod ring;
mod simulated;
mod stream;
mod told;
mod verify;

pub use bound::{BOUND_BYTES_MAX, BOUND_BYTES_MIN, bus_rate_Bps, lossless_bound_Bps};
pub use card_file::{CardFile, CardFileError};
pub use directory::{
    Access, DirectoryCard, DirectoryError, DirectoryVolume, file_name, open_directory,
};
pub use error::{Invalid, RecordError, StreamError};
pub use export::{ExportError, Exported, export_csv, export_ulog};
pub use feed::{Feed, Given, Times, TooLong};
pub use gap::{Cause, GAPS_MAX, Gap};
pub use live::{DirectoryStream, LiveFeed, LiveSetup, block_on, record_in_directory};
pub use live_stream::{LiveProgress, LiveStreaming, input_in_directory, stream_in_directory};
pub use plain_stream::{PlainError, lossless_rate_Bps, plain_stream};
pub use policy::{Policy, Recording};
pub use read_back::Mismatch;
pub use record::{Recorded, record};
pub use recovery::{Place, RecoverError, RecoveredFile, Recovery, recover_path};
pub use simulated::{SimulatedRecord, record_on_card};
pub use stream::{Progress, StreamResult, Streamed, Streaming, stream_on_card};
