//! Ways in which cards do not keep their word.
//!
//! These are properties of a card. What happens to one, such as a power cut, a flipped bit on the wire
//! or a card that is pulled, is a [`Strike`](crate::wire::Strike).

use std::num::NonZeroU64;

/// What is wrong with a card; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defects {
    /// What is left of a page that was being programmed when power failed.
    pub torn_page: TornPage,
    /// The card says that data is durable while the newest so many blocks are in RAM only.
    pub volatile_blocks: u32,
    /// The card tells of more blocks than it has.
    pub counterfeit: Option<Counterfeit>,
    /// How reading goes wrong.
    pub bit_errors: BitErrors,
}

/// What is left of a page that was being programmed when power failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TornPage {
    /// The page as it was: the controller finds the torn one when power returns, and drops it.
    #[default]
    Old,
    /// New bytes up to some point, erased ones (0xFF) after it, in all blocks of the page: those that
    /// nobody wrote are damaged too.
    Mixed,
    /// Random bytes in all blocks of the page.
    Garbage,
    /// All blocks of the page fail to read until they are written anew.
    Unreadable,
}

/// A card with a forged capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counterfeit {
    /// Addresses past the real end begin again at the first block.
    Wraps {
        /// Blocks there are in truth.
        real_blocks: NonZeroU64,
    },
    /// What is written past the real end is lost, and reads as zeros.
    Vanishes {
        /// Blocks there are in truth.
        real_blocks: NonZeroU64,
    },
}

/// How many of a million pages fetched have wrong bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BitErrors {
    /// Corrected after reading the page eight times over.
    pub corrected_ppm: u32,
    /// Not to be corrected: this read fails, the next may not.
    pub unreadable_ppm: u32,
    /// Not noticed: one bit of the block is wrong on its way to the host; what is held is not.
    pub silent_ppm: u32,
}

impl Defects {
    /// Whether the card is as it should be.
    pub fn is_none(&self) -> bool {
        *self == Defects::default()
    }
}
