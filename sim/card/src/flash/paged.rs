//! Page mapping: every page may be anywhere, and is written to the head block.
//!
//! ```text
//!   free ──> head ── full ──> closed ── victim: its valid pages are copied to the head ──> erased ──> free
//! ```
//!
//! Garbage is collected when a single free block is left. The victim is the closed block with the fewest valid
//! pages (greedy), the oldest (FIFO), or the one with the best ratio of age and free space to copies
//! (cost-benefit: Rosenblum and Ousterhout, "The Design and Implementation of a Log-Structured File System",
//! 1992; for flash Kawaguchi et al., "A Flash-Memory Based File System", 1995).

use super::chip::Chip;
use crate::nand::Work;
use crate::profile::{Profile, Victim};
use std::collections::VecDeque;
use std::ops::Range;

/// Free blocks left when garbage collection starts: the destination of its copies.
const RESERVED_BLOCKS: u32 = 1;

#[derive(Clone)]
pub(super) struct Paged {
    /// Slot that holds a page, plus one; 0 for a page without data, which the host's memory then need not store.
    pub(super) slot_of_page: Vec<u32>,
    /// Page whose newest version is in a slot, plus one; 0 for none.
    pub(super) page_of_slot: Vec<u32>,
    /// Number of valid pages in each block.
    pub(super) valid: Vec<u32>,
    /// Full blocks in the order in which they became full, with the number of pages programmed until then.
    pub(super) closed: VecDeque<(u32, u64)>,
    /// Block being written, or none on a worn-out card.
    pub(super) head: Option<u32>,
    /// Next page of the head.
    pub(super) next: u32,
    pages_per_block: u32,
    victim: Victim,
}

impl Paged {
    pub(super) fn new(profile: &Profile) -> Paged {
        let pages_per_block = profile.flash.pages_per_block;
        let slots = profile.blocks() as usize * pages_per_block as usize;
        Paged {
            slot_of_page: vec![0; profile.units() as usize * pages_per_block as usize],
            page_of_slot: vec![0; slots],
            valid: vec![0; profile.blocks() as usize],
            closed: VecDeque::new(),
            head: None,
            next: pages_per_block,
            pages_per_block,
            victim: profile.ftl().victim,
        }
    }

    pub(super) fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Returns the flash block of a page; `None` if the page holds no data.
    pub(super) fn block_of(&self, page: u32) -> Option<u32> {
        let slot = self.slot_of_page[page as usize].checked_sub(1)?;
        Some(slot / self.pages_per_block)
    }

    /// Returns true if a page holds data.
    #[cfg(test)]
    pub(super) fn holds(&self, page: u32) -> bool {
        self.slot_of_page[page as usize] != 0
    }

    /// Writes a page; returns the work of making room, and the work of programming it.
    pub(super) fn write_page(&mut self, chip: &mut Chip, page: u32) -> (Work, Work) {
        let room = self.make_room(chip);
        let position = self.append(page);
        chip.map(page);
        (room, chip.program(position))
    }

    /// Writes pages as long as nothing else can happen; calls `each` with the work of each. Returns their number, the
    /// work, and the work of the last one.
    pub(super) fn write_run(
        &mut self,
        chip: &mut Chip,
        pages: Range<u32>,
        each: &mut impl FnMut(Work),
    ) -> (u32, Work, Work) {
        let room = self.pages_per_block - self.next;
        let before_write_back = chip.table.entries_left - 1;
        let count = room.min(before_write_back).min(pages.len() as u32);
        let (mut work, mut last) = (Work::default(), Work::default());
        for page in pages.start..pages.start + count {
            let position = self.append(page);
            chip.map(page);
            last = chip.program(position);
            each(last);
            work += last;
        }
        (count, work, last)
    }

    /// Takes the next slot of the head for the newest version of a page; returns its position in the block.
    pub(super) fn append(&mut self, page: u32) -> u32 {
        let Some(head) = self.head.filter(|_| self.next < self.pages_per_block) else {
            return 0;
        };
        self.forget(page);
        let position = self.next;
        let slot = head * self.pages_per_block + position;
        self.slot_of_page[page as usize] = slot + 1;
        self.page_of_slot[slot as usize] = page + 1;
        self.valid[head as usize] += 1;
        self.next += 1;
        position
    }

    /// Makes the slot of a page stale.
    fn forget(&mut self, page: u32) {
        let slot = std::mem::take(&mut self.slot_of_page[page as usize]);
        if let Some(slot) = slot.checked_sub(1) {
            self.page_of_slot[slot as usize] = 0;
            self.valid[(slot / self.pages_per_block) as usize] -= 1;
        }
    }

    fn make_room(&mut self, chip: &mut Chip) -> Work {
        if self.next < self.pages_per_block {
            return Work::default();
        }
        let room = chip.debt.run_for_block();
        while self.next == self.pages_per_block && chip.pool.free() <= RESERVED_BLOCKS {
            if !self.collect(chip) {
                chip.pool.wear_out();
                return room;
            }
            chip.debt.blocks = 1;
        }
        if self.next == self.pages_per_block {
            self.change_head(chip);
        }
        room
    }

    pub(super) fn change_head(&mut self, chip: &mut Chip) {
        if let Some(full) = self.head.take() {
            self.closed.push_back((full, chip.programmed));
        }
        self.head = chip.pool.allocate();
        self.next = match self.head {
            Some(_) => 0,
            None => self.pages_per_block,
        };
    }

    /// Collects the garbage of one block; returns false if no block contains any.
    pub(super) fn collect(&mut self, chip: &mut Chip) -> bool {
        let at = self.choose(chip.programmed);
        let gains = |&at: &usize| self.valid[self.closed[at].0 as usize] < self.pages_per_block;
        match at.filter(gains) {
            Some(at) => {
                self.empty(chip, at);
                true
            }
            None => false,
        }
    }

    /// Returns the position of the next victim among the closed blocks. A block without garbage is no victim if there
    /// are others.
    fn choose(&self, programmed: u64) -> Option<usize> {
        let valid = |at: usize| self.valid[self.closed[at].0 as usize];
        let all = 0..self.closed.len();
        match self.victim {
            Victim::Fifo => all.clone().find(|&at| valid(at) < self.pages_per_block),
            Victim::Greedy => self.fewest_valid(),
            Victim::CostBenefit => {
                let benefit = |at: usize| {
                    let held = f64::from(valid(at));
                    let gain = f64::from(self.pages_per_block) - held;
                    let age = (programmed - self.closed[at].1) as f64;
                    gain * age / (2.0 * held)
                };
                all.max_by(|&a, &b| benefit(a).total_cmp(&benefit(b)))
            }
        }
    }

    fn fewest_valid(&self) -> Option<usize> {
        let mut best = None;
        let mut fewest = u32::MAX;
        for (at, (block, _)) in self.closed.iter().enumerate() {
            let valid = self.valid[*block as usize];
            if valid < fewest {
                (best, fewest) = (Some(at), valid);
                if valid == 0 {
                    break;
                }
            }
        }
        best
    }

    /// Copies the valid pages of a closed block to the head, and erases the block.
    fn empty(&mut self, chip: &mut Chip, at: usize) {
        let Some((block, _)) = self.closed.remove(at) else {
            return;
        };
        let first = block * self.pages_per_block;
        let mut from = self.next;
        for slot in first..first + self.pages_per_block {
            let Some(page) = self.page_of_slot[slot as usize].checked_sub(1) else {
                continue;
            };
            if self.next == self.pages_per_block {
                chip.copy_to(from.min(self.next)..self.next);
                self.change_head(chip);
                from = self.next;
            }
            self.append(page);
            chip.map(page);
        }
        chip.copy_to(from.min(self.next)..self.next);
        chip.erase(block);
    }

    /// Returns true if enough blocks are free.
    pub(super) fn has_room(&self, chip: &Chip, blocks: u32) -> bool {
        chip.pool.free() >= RESERVED_BLOCKS + blocks
    }

    /// Forgets the data of pages.
    pub(super) fn discard(&mut self, pages: Range<u32>) {
        pages.for_each(|page| self.forget(page));
    }

    /// Moves the data of a block that was read too often.
    pub(super) fn refresh(&mut self, chip: &mut Chip, block: u32) {
        let at = self.closed.iter().position(|(known, _)| *known == block);
        if let Some(at) = at.filter(|_| chip.pool.free() >= RESERVED_BLOCKS) {
            self.empty(chip, at);
        }
    }

    /// Moves the data of the block with the fewest erases.
    pub(super) fn level_wear(&mut self, chip: &mut Chip) {
        let least = (0..self.closed.len())
            .min_by_key(|&at| chip.pool.life_cycles(self.closed[at].0))
            .filter(|_| chip.pool.free() >= RESERVED_BLOCKS);
        if let Some(at) = least {
            self.empty(chip, at);
        }
    }
}
