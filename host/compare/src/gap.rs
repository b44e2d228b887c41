//! Lines that were lost.

/// Most gaps that a result lists; all are counted.
pub const GAPS_MAX: usize = 1000;

/// What the writer was at when the ring was full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A library call that had not returned yet.
    Write,
    /// Waiting for the recipe to be over.
    Recipe,
}

/// Lines lost in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Number of the first line lost, from 0.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// When the first would have arrived, in us from the start, rounded down.
    pub at_us: u64,
    /// Why the first was lost.
    pub cause: Cause,
}
