//! A simulated card on a board, in virtual time.

use crate::{BLOCK_BYTES, Target, TargetError};
use cardiograph_sim_card::{Board, Card, Profile, Seed};
use cardiograph_store::{DriverError, RawCard};

/// A simulated card on a board.
pub struct SimulatedTarget {
    card: RawCard,
    bytes: u64,
}

impl SimulatedTarget {
    /// Powers up a card.
    ///
    /// # Errors
    /// If the driver cannot initialise the card.
    pub fn new(
        profile: &Profile,
        board: &Board,
        seed: u64,
    ) -> Result<SimulatedTarget, TargetError> {
        let card = RawCard::new(Card::new(profile, Seed::new(seed)), board).map_err(error)?;
        let bytes = u64::from(card.blocks().map_err(error)?) * BLOCK_BYTES;
        Ok(SimulatedTarget { card, bytes })
    }

    fn timed(
        &mut self,
        act: impl FnOnce(&mut RawCard) -> Result<(), DriverError>,
    ) -> Result<u64, TargetError> {
        let start_ns = self.card.clock().now_ns();
        act(&mut self.card).map_err(error)?;
        Ok(self.card.clock().now_ns() - start_ns)
    }
}

impl Target for SimulatedTarget {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn begins_at_the_card(&self) -> bool {
        true
    }

    fn is_filled(&self) -> bool {
        false
    }

    fn write(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError> {
        let (start, blocks) = blocks(offset_bytes, length_bytes);
        self.timed(|card| card.write(start, blocks))
    }

    fn read(&mut self, offset_bytes: u64, length_bytes: u64) -> Result<u64, TargetError> {
        let (start, blocks) = blocks(offset_bytes, length_bytes);
        self.timed(|card| card.read(start, blocks))
    }

    fn pause(&mut self, ns: u64) {
        self.card.clock().advance_ns(ns);
    }

    fn elapsed_ns(&mut self) -> u64 {
        self.card.clock().now_ns()
    }
}

fn blocks(offset_bytes: u64, length_bytes: u64) -> (u32, u32) {
    (
        (offset_bytes / BLOCK_BYTES) as u32,
        (length_bytes / BLOCK_BYTES) as u32,
    )
}

fn error(error: DriverError) -> TargetError {
    TargetError(error.to_string())
}
