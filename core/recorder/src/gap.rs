//! Gaps: samples that are missing, and why.

use core::fmt;

/// Samples lost in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// Index of the first sample behind the gap.
    pub(crate) const fn end(&self) -> u64 {
        self.first + self.count
    }
}

/// Reason why samples are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// The card was busy, or slower than the samples, for longer than the ring lasts.
    Busy = 0,
    /// There was no card, or it lost power: pulled, or not plugged in.
    NoCard = 1,
    /// The card reports a failure, or garbles data, again and again.
    CardFailed = 2,
    /// The card has no room left.
    CardFull = 3,
    /// The next file was not ready in time.
    FileNotReady = 4,
    /// A requested read was in progress.
    Read = 5,
    /// The sample does not have the length of its schema, or is not one line of text.
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

    /// The word for it in files and reports.
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
