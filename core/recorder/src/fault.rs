//! Faults of a card during a recording.

use core::fmt;

/// Reason why samples cannot be written to the card now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum CardFault {
    /// The card does not answer, or reports a failure.
    NoResponse,
    /// The card has no room for another file.
    Full,
}

impl CardFault {
    pub(crate) const fn of(is_lost: bool, is_full: bool) -> Option<CardFault> {
        match (is_lost, is_full) {
            (true, _) => Some(CardFault::NoResponse),
            (false, true) => Some(CardFault::Full),
            (false, false) => None,
        }
    }
}

/// A sentence for a serial port, a log or a page.
impl fmt::Display for CardFault {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            CardFault::NoResponse => "the card does not respond; check it",
            CardFault::Full => "the card is full; remove files",
        })
    }
}
