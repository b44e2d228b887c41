//! Gaps: runs of lost samples.

/// Maximum number of gaps in the list of a result; the count includes all.
pub const GAPS_MAX: usize = 1000;

/// Activity of the writer when the ring was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A library call that had not returned.
    Write,
    /// Waiting for the end of the session.
    Session,
}

/// A run of lost samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Index of the first lost sample, from 0.
    pub first: u64,
    /// Number of lost samples.
    pub count: u64,
    /// Arrival time of the first lost sample, in us from the start, rounded down.
    pub at_us: u64,
    /// Cause of the first loss.
    pub cause: Cause,
}
