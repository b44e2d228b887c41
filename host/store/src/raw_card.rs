//! A simulated card on a board, block by block and without a file system.

use crate::card_device::{CardDevice, DriverError};
use cardiograph_sim_card::{Board, Card, Clock};
use embedded_sdmmc::{Block, BlockDevice};

/// A card accessed through the board's driver. Blocks written are zeros.
pub struct RawCard {
    device: CardDevice,
    clock: Clock,
    blocks: Vec<Block>,
}

impl RawCard {
    /// Powers up and initialises the card.
    ///
    /// # Errors
    /// The driver's error.
    pub fn new(card: Card, board: &Board) -> Result<RawCard, DriverError> {
        let clock = Clock::default();
        Ok(RawCard {
            device: CardDevice::new(card, board, clock.clone())?,
            clock,
            blocks: Vec::new(),
        })
    }

    /// Returns the number of blocks that the card reports.
    ///
    /// # Errors
    /// The driver's error.
    pub fn blocks(&self) -> Result<u32, DriverError> {
        Ok(self.device.num_blocks()?.0)
    }

    /// Returns the virtual clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Returns how many times the driver timed out on a busy card or reader and was called again.
    pub fn timeouts(&self) -> u64 {
        self.device.timeouts()
    }

    /// Removes the card from the board.
    pub fn into_card(self) -> Card {
        self.device.into_card()
    }

    /// Writes zeros to consecutive blocks.
    ///
    /// # Errors
    /// The driver's error.
    pub fn write(&mut self, start: u32, blocks: u32) -> Result<(), DriverError> {
        self.blocks.resize(blocks as usize, Block::new());
        self.blocks.fill(Block::new());
        self.device.write(start, &self.blocks)
    }

    /// Reads consecutive blocks and discards their contents.
    ///
    /// # Errors
    /// The driver's error.
    pub fn read(&mut self, start: u32, blocks: u32) -> Result<(), DriverError> {
        self.blocks.resize(blocks as usize, Block::new());
        self.device.read(start, &mut self.blocks)
    }
}
