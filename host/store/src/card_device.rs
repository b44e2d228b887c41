//! A simulated card on a board, as the FAT library sees it.

use cardiograph_sim_card::{BLOCK_BYTES, Board, Card, Clock, OutOfRange};
use embedded_sdmmc::{Block, BlockCount, BlockDevice, BlockIdx};
use std::cell::RefCell;

pub(crate) struct CardDevice {
    card: RefCell<Card>,
    board: Board,
    clock: Clock,
}

impl CardDevice {
    pub(crate) fn new(card: Card, board: Board, clock: Clock) -> CardDevice {
        CardDevice {
            card: RefCell::new(card),
            board,
            clock,
        }
    }

    pub(crate) fn into_card(self) -> Card {
        self.card.into_inner()
    }
}

impl BlockDevice for CardDevice {
    type Error = OutOfRange;

    fn read(&self, blocks: &mut [Block], start: BlockIdx) -> Result<(), OutOfRange> {
        let mut data = vec![[0; BLOCK_BYTES]; blocks.len()];
        let busy_ns = self.card.borrow_mut().read(u64::from(start.0), &mut data)?;
        for (block, data) in blocks.iter_mut().zip(data) {
            block.contents = data;
        }
        self.clock
            .advance_ns(self.board.read_ns(blocks.len() as u64, busy_ns));
        Ok(())
    }

    fn write(&self, blocks: &[Block], start: BlockIdx) -> Result<(), OutOfRange> {
        let data: Vec<_> = blocks.iter().map(|block| block.contents).collect();
        let busy_ns = self.card.borrow_mut().write(u64::from(start.0), &data)?;
        self.clock
            .advance_ns(self.board.write_ns(blocks.len() as u64, busy_ns));
        Ok(())
    }

    fn num_blocks(&self) -> Result<BlockCount, OutOfRange> {
        let blocks = self.card.borrow().blocks();
        Ok(BlockCount(u32::try_from(blocks).unwrap_or(u32::MAX)))
    }
}
