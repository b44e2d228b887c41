//! The card as a block device: what it stores, and how long it is busy.

use crate::Profile;
use crate::medium::Medium;
use crate::translation::Translation;
use std::fmt;

/// Bytes in a block, the unit of every command.
pub const BLOCK_BYTES: usize = 512;

/// The bytes of one block.
pub type Block = [u8; BLOCK_BYTES];

/// A block past the end of the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfRange {
    /// The block asked for.
    pub block: u64,
    /// Blocks there are.
    pub blocks: u64,
}

impl std::error::Error for OutOfRange {}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "block {} is past the card's {} blocks",
            self.block, self.blocks
        )
    }
}

/// A simulated card at the level of blocks.
///
/// A write is durable when it is no longer busy: what is left in a RAM page is in the log as well.
pub struct Card {
    medium: Medium,
    translation: Translation,
    command_ns: u64,
    blocks: u64,
}

impl Card {
    /// A card of this profile, filled once and then cleaned up: every page holds data, the log is
    /// empty. `seed` decides the spread of its times.
    pub fn new(profile: &Profile, seed: u64) -> Card {
        Card {
            medium: Medium::default(),
            translation: Translation::new(profile, seed),
            command_ns: u64::from(profile.controller.command_us) * 1000,
            blocks: profile.capacity_bytes / BLOCK_BYTES as u64,
        }
    }

    /// Number of blocks.
    pub fn blocks(&self) -> u64 {
        self.blocks
    }

    /// Reads consecutive blocks by one command; returns how long the card keeps the host waiting, in
    /// ns.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is read.
    pub fn read(&mut self, start: u64, data: &mut [Block]) -> Result<u64, OutOfRange> {
        self.check(start, data.len())?;
        let busy_ns = self.translation.read_ns(start, data.len() as u64);
        self.load(start, data);
        Ok(self.command_ns + busy_ns)
    }

    /// Writes consecutive blocks by one command; returns how long the card is busy, in ns.
    ///
    /// # Errors
    /// [`OutOfRange`]; nothing is written.
    pub fn write(&mut self, start: u64, data: &[Block]) -> Result<u64, OutOfRange> {
        self.check(start, data.len())?;
        let busy_ns = self.translation.write_ns(start, data.len() as u64);
        self.store(start, data);
        Ok(self.command_ns + busy_ns)
    }

    /// Blocks as they are stored, past the controller and outside time.
    pub fn load(&self, start: u64, data: &mut [Block]) {
        for (block, data) in (start..).zip(data) {
            self.medium.read(block, data);
        }
    }

    /// Stores blocks past the controller and outside time, as a card comes formatted from its maker.
    pub fn store(&mut self, start: u64, data: &[Block]) {
        for (block, data) in (start..).zip(data) {
            self.medium.write(block, data);
        }
    }

    /// Blocks of flash erased so far.
    pub fn erases(&self) -> u64 {
        self.translation.erases()
    }

    fn check(&self, start: u64, count: usize) -> Result<(), OutOfRange> {
        let end = start.saturating_add(count as u64);
        if end > self.blocks {
            return Err(OutOfRange {
                block: end - 1,
                blocks: self.blocks,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_the_rest_is_zero() {
        let mut card = Card::new(&Profile::named("class10-16g").unwrap(), 1);
        card.write(100, &[[7; 512], [8; 512]]).unwrap();
        let mut data = [[1; 512]; 4];
        card.read(99, &mut data).unwrap();
        assert_eq!(data, [[0; 512], [7; 512], [8; 512], [0; 512]]);
    }

    #[test]
    fn blocks_past_the_end_are_refused() {
        let mut card = Card::new(&Profile::named("class10-16g").unwrap(), 1);
        let blocks = card.blocks();
        assert!(card.write(blocks - 1, &[[1; 512]; 2]).is_err());
        assert!(card.read(u64::MAX, &mut [[0; 512]]).is_err());
    }
}
