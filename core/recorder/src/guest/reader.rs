//! Reads single blocks through a desk, for lookups.

use crate::reads::{Lent, ReadClass, ReadDesk, ReadError};
use crate::recover::Reader;
use cardiograph_card::{BLOCK_BYTES, Block};
use core::ops::Deref;

/// Maximum number of consecutive blocks of a directory that are read at once.
const AHEAD_BLOCKS_MAX: u32 = 8;

static NO_BLOCK: Block = [0; BLOCK_BYTES];

/// The block that was read last. Its buffer is lent until the next read begins, or the reader is dropped: a reader never
/// keeps a buffer while it waits for another one, or for anything else.
pub(super) struct OnDesk<'d, 'a> {
    desk: &'d ReadDesk<'a>,
    /// Generation as of which blocks are read.
    generation: u32,
    lent: Option<Lent<'d, 'a>>,
}

impl<'d, 'a> OnDesk<'d, 'a> {
    /// Creates a reader of blocks as of this generation.
    pub(super) fn new(desk: &'d ReadDesk<'a>, generation: u32) -> Self {
        OnDesk {
            desk,
            generation,
            lent: None,
        }
    }
}

impl Reader for OnDesk<'_, '_> {
    type Error = ReadError;

    async fn read(&mut self, block: u32) -> Result<(), ReadError> {
        self.read_ahead(block, 1).await
    }

    async fn read_ahead(&mut self, block: u32, blocks: u32) -> Result<(), ReadError> {
        self.lent = None;
        let (desk, generation) = (self.desk, self.generation);
        let count = blocks.min(AHEAD_BLOCKS_MAX);
        let lent = desk
            .lend(block, count, ReadClass::Short, generation)
            .await?;
        if lent.is_empty() {
            return Err(ReadError::NoMemory);
        }
        self.lent = Some(lent);
        Ok(())
    }

    fn block(&self) -> impl Deref<Target = Block> {
        let lent = self.lent.as_deref().unwrap_or_default();
        lent.first().unwrap_or(&NO_BLOCK)
    }
}
