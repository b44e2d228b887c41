//! Reads single blocks through a desk, and keeps the last one.

use crate::reads::{ReadClass, ReadDesk, ReadError};
use crate::recover::Reader;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::ops::Deref;

/// The block that was read last. It belongs to its reader, so that no buffer of the desk stays lent while the reader
/// waits for something else.
#[derive(Clone, Debug)]
pub(super) struct CardReader {
    generation: u32,
    held: Option<u32>,
    block: Block,
}

impl CardReader {
    /// Creates a reader of blocks as of this generation.
    pub(super) fn new(generation: u32) -> CardReader {
        CardReader {
            generation,
            held: None,
            block: [0; BLOCK_BYTES],
        }
    }

    pub(super) fn generation(&self) -> u32 {
        self.generation
    }

    /// Continues after something was removed from the card: the block is read again.
    ///
    /// # Errors
    /// [`ReadError::OtherCard`] if the card was exchanged or mounted again.
    pub(super) fn follow(&mut self, desk: &ReadDesk) -> Result<(), ReadError> {
        if desk.is_other_card(self.generation) {
            return Err(ReadError::OtherCard);
        }
        let generation = desk.generation();
        if generation != self.generation {
            self.generation = generation;
            self.held = None;
        }
        Ok(())
    }

    /// Returns access to the blocks of a desk's card.
    pub(super) fn on<'r, 'd, 'a>(&'r mut self, desk: &'d ReadDesk<'a>) -> OnDesk<'r, 'd, 'a> {
        OnDesk { reader: self, desk }
    }
}

/// A reader and the desk through which it reads.
pub(super) struct OnDesk<'r, 'd, 'a> {
    reader: &'r mut CardReader,
    desk: &'d ReadDesk<'a>,
}

impl Reader for OnDesk<'_, '_, '_> {
    type Error = ReadError;

    async fn read(&mut self, block: u32) -> Result<(), ReadError> {
        if self.reader.held == Some(block) {
            return Ok(());
        }
        self.reader.held = None;
        let generation = self.reader.generation;
        let lent = self
            .desk
            .lend(block, 1, ReadClass::Short, generation)
            .await?;
        let read = lent.first().ok_or(ReadError::NoMemory)?;
        self.reader.block.copy_from_slice(read);
        self.reader.held = Some(block);
        Ok(())
    }

    fn block(&self) -> impl Deref<Target = Block> {
        &self.reader.block
    }
}
