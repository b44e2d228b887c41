//! Finds the inner values of a card from outside, by timing alone.
//!
//! ```text
//!   Target ── write, read, pause: how long each took          simulated.rs, directory.rs
//!     │
//!   Session ── counts bytes and time, stops at the limits      session.rs
//!     │
//!     ├── page        reads across boundaries take longer if a page ends there        page.rs
//!     ├── unit        a stream is slower where a flash block ends                     unit.rs
//!     ├── open units  streams in turn: how many before copying begins                 streams.rs
//!     ├── log         small rewrites: how many before copying begins       ┐
//!     ├── FAT zone    small rewrites at the start of the card              ├ rewrites.rs
//!     └── idle        small rewrites after a pause                         ┘
//!     │
//!   Answer: a value with its confidence, or the reason for "cannot tell"   answer.rs
//! ```
//!
//! The experiments for page, unit and open units follow flashbench (Arnd Bergmann) and "Optimizing Linux with cheap
//! flash drives" (LWN, 2011). Decisions use medians and the rank test of Mann and Whitney, and every answer must be
//! consistent over several sizes; anything else is "cannot tell". Sizes are assumed to be powers of two: a card with
//! units of another size shows no consistent step.

mod answer;
mod boundary;
mod directory;
mod page;
mod rewrites;
mod session;
mod simulated;
mod statistics;
mod streams;
mod text;
mod unit;

pub use answer::{Answer, Findings};
pub use directory::{DirectoryTarget, FILE_BYTES_MIN};
pub use session::{Limits, Stage};
pub use simulated::SimulatedTarget;

use session::{Session, Stop};
use std::fmt;
use std::ops::ControlFlow;

/// Alignment of all offsets and lengths, in bytes.
pub const BLOCK_BYTES: u64 = 512;

/// Error of a target, in one sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetError(pub String);

impl std::error::Error for TargetError {}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A contiguous region of a card.
pub trait Target {
    /// Returns the size of the region, in bytes.
    fn bytes(&self) -> u64;

    /// Returns true if the region begins at the card's first block, where the FAT is.
    fn begins_at_the_card(&self) -> bool;

    /// Returns true if all of the region was written before the probe. Otherwise the probe first writes the part that an
    /// experiment uses: a card neither reads nor erases anything where no data is.
    fn is_filled(&self) -> bool;

    /// Writes any data; returns how long it took, in ns.
    ///
    /// # Errors
    /// If the write fails.
    fn write(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError>;

    /// Reads from the card itself, not from a cache; returns how long it took, in ns.
    ///
    /// # Errors
    /// If the read fails.
    fn read(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError>;

    /// Leaves the card idle.
    fn pause(&mut self, ns: u64);

    /// Returns the time since the target was opened, in ns.
    fn elapsed_ns(&mut self) -> u64;
}

/// End of a probe without findings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProbeError {
    /// The caller stopped it.
    Stopped,
    /// A read or write failed.
    Target(TargetError),
}

/// Probes a card. Calls `progress` before each read and write with the current experiment and the share of the limits
/// used, from 0 to 1; the probe ends if it returns `Break`.
///
/// # Errors
/// If the target fails or `progress` stops the probe. A limit that is reached is not an error: the answers that are
/// missing then are "cannot tell".
pub fn probe(
    target: &mut dyn Target,
    limits: Limits,
    progress: &mut dyn FnMut(Stage, f64) -> ControlFlow<()>,
) -> Result<Findings, ProbeError> {
    let mut session = Session::new(target, limits, progress);
    let page = page::find(&mut session);
    let page = settled(page)?;
    let unit = match page.value() {
        Some(page_bytes) => settled(unit::find(&mut session, page_bytes))?,
        None => Answer::needs("the page size"),
    };
    let geometry = page.value().zip(unit.value());
    let open_units = match geometry {
        Some((page, unit)) => settled(streams::find(&mut session, page, unit))?,
        None => Answer::needs("page and unit"),
    };
    let rewrites = match geometry {
        Some((page, unit)) => rewrites::find(&mut session, page, unit.bytes)?,
        None => rewrites::Rewrites::without_geometry(),
    };
    Ok(Findings {
        page_bytes: page,
        unit_bytes: unit.map(|unit| unit.bytes),
        open_units,
        log_bytes: rewrites.log_bytes,
        fat_zone_bytes: rewrites.fat_zone_bytes,
        collects_while_idle: rewrites.collects_while_idle,
        written_bytes: session.written_bytes(),
        elapsed_ns: session.elapsed_ns(),
    })
}

/// Turns a limit into "cannot tell", and everything else that stops an experiment into an error.
fn settled<T>(answer: Result<Answer<T>, Stop>) -> Result<Answer<T>, ProbeError> {
    match answer {
        Ok(answer) => Ok(answer),
        Err(Stop::Limit(reason)) => Ok(Answer::cannot_tell(reason)),
        Err(Stop::Caller) => Err(ProbeError::Stopped),
        Err(Stop::Target(error)) => Err(ProbeError::Target(error)),
    }
}
