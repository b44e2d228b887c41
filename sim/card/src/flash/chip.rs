//! The chip and the bookkeeping that both mappings share.

use super::bits::KINDS_MAX;
use super::debt::Debt;
use super::pool::Pool;
use super::table::Table;
use crate::nand::{Nand, Work};
use std::ops::Range;

#[derive(Clone)]
pub(super) struct Chip {
    pub(super) nand: Nand,
    pub(super) pool: Pool,
    pub(super) table: Table,
    pub(super) debt: Debt,
    /// Reads after which a block is moved.
    pub(super) refresh_reads: u32,
    /// Pages programmed by writes and by garbage collection.
    pub(super) programmed: u64,
}

impl Chip {
    /// Programs a page of a data block.
    pub(super) fn program(&mut self, page_in_block: u32) -> Work {
        self.programmed += 1;
        self.nand.program(page_in_block)
    }

    /// Programs a page of a log block.
    pub(super) fn program_log(&mut self) -> Work {
        self.programmed += 1;
        self.nand.log_program()
    }

    /// Copies pages, given the number of each kind, to the same positions of another block; the debt grows.
    pub(super) fn copy(&mut self, kinds: [u32; KINDS_MAX]) {
        self.programmed += kinds.iter().copied().map(u64::from).sum::<u64>();
        self.debt.due += self.nand.copy_kinds(kinds);
    }

    /// Copies pages to the given positions of another block; the debt grows.
    pub(super) fn copy_to(&mut self, positions: Range<u32>) {
        self.programmed += positions.len() as u64;
        self.debt.due += self.nand.copy(positions);
    }

    /// Copies pages to a log block; the debt grows.
    pub(super) fn copy_to_log(&mut self, pages: u64) {
        self.programmed += pages;
        self.debt.due += self.nand.copy_to_log(pages);
    }

    /// Erases a block; the debt grows.
    pub(super) fn erase(&mut self, block: u32) {
        self.debt.due += self.pool.erase(block, &mut self.nand);
    }

    /// Records a change of the mapping; the debt grows if the tables are written back.
    pub(super) fn map(&mut self, entry: u32) {
        self.debt.due += self.table.change(entry, &mut self.nand);
    }

    /// Reads a page; returns the work, and true if its block has been read so often that it must be moved.
    pub(super) fn read(&mut self, block: u32) -> (Work, bool) {
        let work = self.nand.read_worn(self.pool.life_cycles(block));
        (work, self.pool.count_read(block, self.refresh_reads))
    }
}
