//! The logging policies of the studies, a plain stream and the recorder, compared on simulated cards.
//!
//! ```text
//!   samples, one every 1/rate ──> ring buffer ──> policy ──> blocking library calls ──> Store
//!                                  │                             │
//!                                  └── full: a gap               └── advance the clock
//! ```
//!
//! - [`record`]: runs a [`Recording`] by a [`Policy`] of the studies on any store, and verifies the file.
//! - [`record_on_card`]: does the same on a simulated card on a board.
//! - [`stream_on_card`]: runs the recorder on a simulated card; every sample of its files is read back.
//! - [`plain_stream`]: writes one continuous CMD25 by a loop independent of the recorder; the
//!   [rate](lossless_rate_Bps) that this stream sustains is the upper bound of the recorder's.

mod bound;
mod card_files;
mod error;
mod gap;
mod plain_stream;
mod policy;
mod record;
mod ring;
mod simulated;
mod stream;
mod verify;

pub use bound::{BOUND_BYTES_MAX, BOUND_BYTES_MIN, bus_rate_Bps, lossless_bound_Bps};
pub use error::{CardStreamError, Invalid, RecordError};
pub use gap::{Cause, GAPS_MAX, Gap};
pub use plain_stream::{PlainError, lossless_rate_Bps, plain_stream, plain_turns};
pub use policy::{Policy, Recording};
pub use record::{Recorded, record};
pub use simulated::{SimulatedRecord, record_on_card};
pub use stream::{Streaming, stream_on_card};
