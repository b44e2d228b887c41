//! Gaps: missing samples and the reason.

use core::fmt;

/// Consecutive lost samples. After a failure of the card, everything that was not known to be durable counts as lost;
/// recovery may find the first of these samples in the previous file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Gap {
    /// Index of the first lost sample, counted from the start of the stream, lost samples included.
    pub first: u64,
    /// Number of lost samples.
    pub count: u64,
    /// Time at which the first was lost, in us of the recorder's clock.
    pub at_us: u64,
    /// Time at which the last was lost, in us of the recorder's clock.
    pub last_us: u64,
    /// Reason for the loss.
    pub cause: Cause,
}

impl Gap {
    /// Returns the index of the first sample after the gap.
    pub(crate) const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// Reason why samples are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Cause {
    /// The card was busy, or slower than the samples, for longer than the ring could absorb.
    Busy = 0,
    /// There was no card: it was removed, lost power, or was never inserted.
    NoCard = 1,
    /// The card reported failures or returned corrupt data repeatedly.
    CardFailed = 2,
    /// The card has no room left.
    CardFull = 3,
    /// The next file was not ready in time.
    FileNotReady = 4,
    /// A read requested by another task was in progress.
    Read = 5,
    /// The sample does not have the length of its schema, or is not a single line of text.
    BadSample = 6,
}

impl Cause {
    pub(crate) fn of(number: u8) -> Cause {
        match number {
            1 => Cause::NoCard,
            2 => Cause::CardFailed,
            3 => Cause::CardFull,
            4 => Cause::FileNotReady,
            5 => Cause::Read,
            6 => Cause::BadSample,
            _ => Cause::Busy,
        }
    }

    /// Returns the keyword for the cause in files and reports.
    pub fn word(self) -> &'static str {
        match self {
            Cause::Busy => "busy",
            Cause::NoCard => "no-card",
            Cause::CardFailed => "card-failed",
            Cause::CardFull => "card-full",
            Cause::FileNotReady => "file-not-ready",
            Cause::Read => "read",
            Cause::BadSample => "bad-sample",
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.word())
    }
}
