//! The studies' ways to log, a plain stream, and the recorder, compared on simulated cards.
//!
//! ```text
//!   lines, one every 1/rate ──> ring in RAM ──> policy ──> blocking library calls ──> Store
//!                                  │                             │
//!                                  └── no room: a gap            └── moves the clock
//! ```
//!
//! - [`record`]: a [`Recording`] by a [`Policy`] of the studies to any store, read back and compared.
//! - [`record_on_card`]: the same on a simulated card on a board.
//! - [`stream_on_card`]: the recorder on a simulated card; every line of its files is read back.
//! - [`plain_stream`]: one unbroken CMD25 by a loop that knows no recorder, and the
//!   [rate](lossless_rate_Bps) that it sustains without loss.

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
