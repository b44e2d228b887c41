//! The logging policies of the studies, a plain stream and the recorder, compared on simulated cards.
//!
//! ```text
//!   samples, one every 1/rate ──> ring buffer ──> policy ──> blocking library calls ──> Store
//!                                  │                             │
//!                                  └── full: a gap               └── advance the clock
//! ```
//!
//! - [`run_logger`]: runs a [`LoggerConfig`] with a [`Policy`] of the studies on any store, and verifies the file.
//! - [`run_logger_on_card`]: does the same on a simulated card on a board.
//! - [`stream_on_card`]: runs the recorder on a simulated card; every sample of its files is read back.
//! - [`plain_stream`]: writes one continuous CMD25 by a loop independent of the recorder; the
//!   [rate](sustained_rate_bytes_per_s) that this stream sustains is the upper bound of the recorder's.

mod bound;
mod card_files;
mod course;
mod error;
mod figures;
mod gap;
mod load;
mod logger;
mod plain_stream;
mod policy;
mod ring;
#[cfg(not(target_family = "wasm"))]
mod served;
mod simulated;
mod stream;
mod verify;

pub use bound::{
    BOUND_BYTES_MAX, BOUND_BYTES_MIN, bus_rate_bytes_per_s, sustained_bound_bytes_per_s,
};
pub use course::Course;
pub use error::{CardStreamError, Invalid, LoggerError};
pub use figures::{Figures, GapFigures, RunInfo};
pub use gap::{Cause, GAPS_MAX, Gap};
pub use load::Load;
pub use logger::{LoggerResult, run_logger};
pub use plain_stream::{PlainError, plain_stream, plain_turns, sustained_rate_bytes_per_s};
pub use policy::{LoggerConfig, Policy};
#[cfg(not(target_family = "wasm"))]
pub use served::{Downloaded, Served, ServedSetup, Watcher, serve_while_recording};
pub use simulated::{CardRun, run_logger_on_card};
pub use stream::{Streaming, stream_on_card, stream_with_course};
