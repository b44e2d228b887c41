//! Defects: ways in which cards violate the specification.
//!
//! These are properties of a card. Events, such as a power cut, a bit flipped on the bus or a card that is
//! pulled, are [`Fault`](crate::wire::Fault)s.

use std::num::NonZeroU64;

/// Defects of a card; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// State of a page whose programming was interrupted by a power failure.
    pub torn_page: TornPage,
    /// Number of most recently written blocks that the card reports as durable although they are only in RAM.
    pub volatile_blocks: u32,
    /// Forged capacity, if any.
    pub counterfeit: Option<Counterfeit>,
    /// Rates of read errors.
    pub bit_errors: BitErrors,
}

/// State of a page whose programming was interrupted by a power failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TornPage {
    /// The old page: at power-on the controller detects the torn page and discards it.
    #[default]
    Old,
    /// In each block of the page, new bytes up to some point and erased bytes (0xFF) after this point.
    /// Blocks of the page that were not being written are damaged too.
    Mixed,
    /// Random bytes in all blocks of the page.
    Garbage,
    /// All blocks of the page fail to read until they are rewritten.
    Unreadable,
}

/// Behaviour of a card with a forged capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterfeit {
    /// Addresses past the actual end wrap around to the first block.
    Wraps {
        /// Actual capacity in blocks.
        real_blocks: NonZeroU64,
    },
    /// Writes past the actual end are lost; reads return zeros.
    Vanishes {
        /// Actual capacity in blocks.
        real_blocks: NonZeroU64,
    },
}

/// Bit errors, per million page fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitErrors {
    /// Errors that are corrected after eight reads of the page.
    pub corrected_ppm: u32,
    /// Uncorrectable errors: the read fails, but the next read of the page may succeed.
    pub unreadable_ppm: u32,
    /// Undetected errors: one bit of the block is wrong in the data sent to the host; the stored data is intact.
    pub silent_ppm: u32,
}

impl Defects {
    /// Returns true if the card has no defect.
    pub fn is_none(&self) -> bool {
        *self == Defects::default()
    }
}
