//! A card in memory: an implementation of `BlockDevice` for a host that is not SPI.

use cardiograph_card::{Block, BlockDevice, WriteError};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

/// Blocks of a card; clones share them.
#[derive(Clone)]
pub struct Memory {
    pub blocks: Rc<RefCell<Vec<Block>>>,
    /// Next block of the open stream.
    next: usize,
}

impl Memory {
    pub fn new(blocks: Vec<Block>) -> Memory {
        Memory {
            blocks: Rc::new(RefCell::new(blocks)),
            next: 0,
        }
    }
}

impl BlockDevice for Memory {
    type Error = Infallible;

    async fn acquire(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn blocks(&self) -> u32 {
        self.blocks.borrow().len() as u32
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), Infallible> {
        let start = start as usize;
        blocks.copy_from_slice(&self.blocks.borrow()[start..start + blocks.len()]);
        Ok(())
    }

    async fn write(&mut self, start: u32, blocks: &[Block]) -> Result<(), WriteError<Infallible>> {
        let start = start as usize;
        self.blocks.borrow_mut()[start..start + blocks.len()].copy_from_slice(blocks);
        Ok(())
    }

    async fn begin(&mut self, start: u32, _: u32) -> Result<(), WriteError<Infallible>> {
        self.next = start as usize;
        Ok(())
    }

    async fn push(&mut self, block: &Block) -> Result<(), WriteError<Infallible>> {
        self.blocks.borrow_mut()[self.next] = *block;
        self.next += 1;
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<Infallible>> {
        Ok(())
    }
}
