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
//! - [`plain_stream`]: one unbroken CMD25 by a loop that knows no recorder, and the
//!   [rate](lossless_rate_Bps) that it carries without loss.

mod error;
mod gap;
mod plain_stream;
mod policy;
mod record;
mod ring;
mod simulated;
mod verify;

pub use error::{Invalid, RecordError};
pub use gap::{Cause, GAPS_MAX, Gap};
pub use plain_stream::{PlainError, lossless_rate_Bps, plain_stream};
pub use policy::{Policy, Recording};
pub use record::{Recorded, record};
pub use simulated::{SimulatedRecord, record_on_card};
