//! Gaps: ranges of consecutive lost samples.

/// Maximum number of gaps in the list of a result; the number of gaps in a result counts all of them.
pub const GAPS_MAX: usize = 1000;

/// Activity of the writer when the ring was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The writer was in a library call that had not returned.
    Write,
    /// The writer was waiting for the end of the session.
    Session,
}

/// A range of consecutive lost samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the first lost sample, from 0.
    pub first: u64,
    /// Number of lost samples.
    pub count: u64,
    /// Arrival time of the first lost sample, in us from the start, rounded down.
    pub at_us: u64,
    /// Cause of the loss of the first sample.
    pub cause: Cause,
}
