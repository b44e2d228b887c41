//! The flash translation layer: page-mapped log blocks over block-mapped data.
//!
//! Flash is written in pages, in order within a block, and erased in whole blocks. A logical unit
//! (one block's worth of addresses) is held by one data block. What does not come in order goes to a
//! small shared log, page by page, until the log is full and has to be cleaned up. That clean-up is
//! the stall.
//!
//! ```text
//!             block written
//!                   │  joins the page's buffer in RAM
//!                   v
//!        page whole, next in an open unit? ── yes ──> program it there ── unit full? ──> switch
//!                   │ no (or page 0: opens a unit)                        merge: erase the old block
//!                   v
//!        program it to the log, so that it is durable
//!                   │  log block full
//!                   v
//!        next log block; none left? ──> free the oldest: every unit with a valid page in it is
//!                                       merged whole (read and program all its pages, erase), then
//!                                       the log block is erased
//! ```
//!
//! Opening a unit beyond the limit closes the oldest one: the pages it still lacks are copied
//! (partial merge). After so many erases a cold block is moved to even out wear. All of it happens
//! in the foreground, while the host waits.

use crate::flash::Flash;
use crate::{BLOCK_BYTES, Profile};
use cardiograph_sim_world::Seed;
use std::collections::VecDeque;

/// No place in the log.
const NONE: u32 = u32::MAX;

/// A unit that is being written in order into a fresh block.
struct OpenUnit {
    unit: u32,
    next_page: u32,
}

/// A page in the controller's RAM.
struct RamPage {
    page: u32,
    /// A bit for each block written since the page was last whole.
    written: u64,
}

pub(crate) struct Translation {
    flash: Flash,
    blocks_per_page: u64,
    pages_per_unit: u32,
    open_units_max: usize,
    ram_pages_max: usize,
    wear_levelling_erases: u64,
    next_wear_move: u64,
    /// Oldest first.
    open: VecDeque<OpenUnit>,
    /// Least recently written first.
    ram: VecDeque<RamPage>,
    /// The page in each slot of the log, whose blocks are used in turn.
    log: Vec<u32>,
    next_slot: usize,
    /// Where the log holds the newest version of each page, or `NONE`.
    slot_of_page: Vec<u32>,
}

impl Translation {
    pub(crate) fn new(profile: &Profile, seed: Seed) -> Translation {
        let (flash, controller) = (profile.flash, profile.controller);
        let log_pages = controller.log_blocks * flash.pages_per_block;
        let pages = profile.capacity_bytes / u64::from(flash.page_bytes);
        Translation {
            flash: Flash::new(flash, seed),
            blocks_per_page: u64::from(flash.page_bytes) / BLOCK_BYTES as u64,
            pages_per_unit: flash.pages_per_block,
            open_units_max: controller.open_units as usize,
            ram_pages_max: controller.ram_pages as usize,
            wear_levelling_erases: u64::from(controller.wear_levelling_erases),
            next_wear_move: u64::from(controller.wear_levelling_erases),
            open: VecDeque::new(),
            ram: VecDeque::new(),
            log: vec![NONE; log_pages as usize],
            next_slot: 0,
            slot_of_page: vec![NONE; pages as usize],
        }
    }

    pub(crate) fn erases(&self) -> u64 {
        self.flash.erases()
    }

    /// Time to fetch consecutive blocks, in ns.
    pub(crate) fn read_ns(&mut self, start: u64, count: u64) -> u64 {
        let mut ns = 0;
        for page in self.pages(start, count) {
            if !self.ram.iter().any(|buffer| buffer.page == page) {
                ns += self.flash.read_ns();
            }
        }
        ns
    }

    /// Time until consecutive blocks, written by one command, are durable, in ns.
    pub(crate) fn write_ns(&mut self, start: u64, count: u64) -> u64 {
        let mut ns = 0;
        for page in self.pages(start, count) {
            let first = (u64::from(page) * self.blocks_per_page).max(start);
            let end = (u64::from(page + 1) * self.blocks_per_page).min(start + count);
            ns += self.write_page(page, first % self.blocks_per_page, end - first);
        }
        ns + self.level_wear()
    }

    /// Blocks that share a page.
    pub(crate) fn blocks_per_page(&self) -> u64 {
        self.blocks_per_page
    }

    /// Time to forget consecutive blocks, in ns. Nothing is erased now: one page notes that they are
    /// empty, and pages of the log that hold nothing else need not be merged later.
    pub(crate) fn forget_ns(&mut self, start: u64, count: u64) -> u64 {
        let first = start.div_ceil(self.blocks_per_page) as usize;
        let end = ((start + count) / self.blocks_per_page) as usize;
        if first < end {
            self.slot_of_page[first..end].fill(NONE);
        }
        self.flash.log_program_ns()
    }

    fn pages(&self, start: u64, count: u64) -> std::ops::Range<u32> {
        let end = (start + count).div_ceil(self.blocks_per_page);
        (start / self.blocks_per_page) as u32..end as u32
    }

    fn write_page(&mut self, page: u32, first_block: u64, blocks: u64) -> u64 {
        let whole = u64::MAX >> (64 - self.blocks_per_page);
        let written = (u64::MAX >> (64 - blocks)) << first_block;
        let (mut ram_page, mut ns) = match self.ram.iter().position(|b| b.page == page) {
            Some(at) => (
                self.ram.remove(at).unwrap_or(RamPage { page, written: 0 }),
                0,
            ),
            // The rest of the page is fetched, unless all of it is written.
            None if written == whole => (RamPage { page, written: 0 }, 0),
            None => (RamPage { page, written: 0 }, self.flash.read_ns()),
        };
        ram_page.written |= written;
        ns += if ram_page.written == whole {
            ram_page.written = 0;
            self.place_whole_page(page)
        } else {
            self.append_to_log(page)
        };
        // What is evicted is in flash already.
        self.ram.push_back(ram_page);
        if self.ram.len() > self.ram_pages_max {
            self.ram.pop_front();
        }
        ns
    }

    fn place_whole_page(&mut self, page: u32) -> u64 {
        let (unit, within) = (page / self.pages_per_unit, page % self.pages_per_unit);
        let mut ns = 0;
        if within == 0 {
            ns += self.open_unit(unit);
        }
        let next = |open: &OpenUnit| open.unit == unit && open.next_page == within;
        match self.open.iter().position(next) {
            Some(at) => ns + self.append_to_unit(at, page),
            None => ns + self.append_to_log(page),
        }
    }

    fn append_to_unit(&mut self, at: usize, page: u32) -> u64 {
        self.slot_of_page[page as usize] = NONE;
        let mut ns = self.flash.program_ns();
        self.open[at].next_page += 1;
        if self.open[at].next_page == self.pages_per_unit {
            self.open.remove(at);
            ns += self.flash.erase_ns();
        }
        ns
    }

    /// Starts a unit in a fresh block. One that was under way, of this unit or the oldest beyond the
    /// limit, is closed first.
    fn open_unit(&mut self, unit: u32) -> u64 {
        let mut ns = 0;
        if let Some(at) = self.open.iter().position(|open| open.unit == unit) {
            ns += self.close_unit(at);
        } else if self.open.len() == self.open_units_max {
            ns += self.close_unit(0);
        }
        self.open.push_back(OpenUnit { unit, next_page: 0 });
        ns
    }

    /// Copies the pages that the fresh block lacks (partial merge) and erases the old one. A page of
    /// the fresh block that was written again since is in the log; flash cannot program it twice, so
    /// then all pages go to yet another block (full merge).
    fn close_unit(&mut self, at: usize) -> u64 {
        let Some(open) = self.open.remove(at) else {
            return 0;
        };
        let first = open.unit * self.pages_per_unit;
        let programmed = first as usize..(first + open.next_page) as usize;
        let is_partial = self.slot_of_page[programmed]
            .iter()
            .all(|&slot| slot == NONE);
        self.forget_log_of(open.unit);
        if is_partial {
            let lacking = self.pages_per_unit - open.next_page;
            return self.flash.copy_ns(lacking) + self.flash.erase_ns();
        }
        self.flash.copy_ns(self.pages_per_unit) + self.flash.erase_ns() + self.flash.erase_ns()
    }

    fn append_to_log(&mut self, page: u32) -> u64 {
        let mut ns = 0;
        if self.next_slot.is_multiple_of(self.pages_per_unit as usize) {
            ns += self.free_log_block();
        }
        self.log[self.next_slot] = page;
        self.slot_of_page[page as usize] = self.next_slot as u32;
        self.next_slot = (self.next_slot + 1) % self.log.len();
        ns + self.flash.log_program_ns()
    }

    /// Makes the block at `next_slot`, the oldest of the log, free to be written.
    fn free_log_block(&mut self) -> u64 {
        let slots = self.next_slot..self.next_slot + self.pages_per_unit as usize;
        if self.log[slots.start] == NONE {
            return 0;
        }
        let mut ns = 0;
        for slot in slots {
            let page = std::mem::replace(&mut self.log[slot], NONE);
            if self.slot_of_page[page as usize] == slot as u32 {
                ns += self.merge_unit(page / self.pages_per_unit);
            }
        }
        ns + self.flash.erase_ns()
    }

    /// Full merge: all pages of the unit, the newest version of each, go to a fresh block.
    fn merge_unit(&mut self, unit: u32) -> u64 {
        if let Some(at) = self.open.iter().position(|open| open.unit == unit) {
            return self.close_unit(at);
        }
        self.forget_log_of(unit);
        self.flash.copy_ns(self.pages_per_unit) + self.flash.erase_ns()
    }

    fn forget_log_of(&mut self, unit: u32) {
        let first = (unit * self.pages_per_unit) as usize;
        self.slot_of_page[first..first + self.pages_per_unit as usize].fill(NONE);
    }

    /// Moves a block that is seldom written, so that its place wears as well.
    fn level_wear(&mut self) -> u64 {
        if self.flash.erases() < self.next_wear_move {
            return 0;
        }
        let ns = self.flash.copy_ns(self.pages_per_unit) + self.flash.erase_ns();
        self.next_wear_move = self.flash.erases() + self.wear_levelling_erases;
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS_PER_PAGE: u64 = 8;
    const PAGE_US: u64 = 700;
    const LOG_US: u64 = 500;
    const READ_US: u64 = 50;
    const ERASE_US: u64 = 3000;

    fn translation(change: impl FnOnce(&mut Profile)) -> Translation {
        let mut profile = Profile::named("class10-16g").unwrap();
        profile.flash.spread_percent = 0;
        change(&mut profile);
        Translation::new(&profile, Seed::new(1))
    }

    #[test]
    fn whole_pages_in_order_cost_one_program_and_one_erase_a_unit() {
        let mut card = translation(|_| ());
        let times: Vec<u64> = (0..64)
            .map(|page| card.write_ns(page * BLOCKS_PER_PAGE, BLOCKS_PER_PAGE) / 1000)
            .collect();
        assert!(times[..63].iter().all(|&us| us == PAGE_US));
        assert_eq!(times[63], PAGE_US + ERASE_US);
    }

    #[test]
    fn single_blocks_go_to_the_log_until_their_page_is_whole() {
        let mut card = translation(|_| ());
        let times: Vec<u64> = (0..8).map(|block| card.write_ns(block, 1) / 1000).collect();
        assert_eq!(times[0], READ_US + LOG_US);
        assert!(times[1..7].iter().all(|&us| us == LOG_US));
        assert_eq!(times[7], PAGE_US);
    }

    #[test]
    fn the_merge_comes_after_all_log_blocks_and_copies_the_unit() {
        let mut card = translation(|profile| profile.controller.log_blocks = 3);
        // The first page stays valid in the oldest log block; the other fills the log over and over.
        card.write_ns(1, 1);
        let mut writes = 1;
        let merge_us = loop {
            let us = card.write_ns(1000 * 64 * BLOCKS_PER_PAGE, 1) / 1000;
            if us > 10_000 {
                break us;
            }
            writes += 1;
        };
        assert_eq!(writes, 3 * 64);
        assert_eq!(merge_us, 64 * (READ_US + PAGE_US) + 2 * ERASE_US + LOG_US);
        // From now on the log holds nothing valid of old, and freeing a block is one erase.
        let worst = (0..1000)
            .map(|_| card.write_ns(1000 * 64 * BLOCKS_PER_PAGE, 1))
            .max();
        assert!(worst.unwrap() / 1000 < 64 * PAGE_US);
    }

    #[test]
    fn a_unit_beyond_the_limit_closes_the_oldest() {
        let mut card = translation(|_| ());
        let unit_blocks = 64 * BLOCKS_PER_PAGE;
        for unit in 0..2 {
            assert_eq!(
                card.write_ns(unit * unit_blocks, BLOCKS_PER_PAGE) / 1000,
                PAGE_US
            );
        }
        let third_us = card.write_ns(2 * unit_blocks, BLOCKS_PER_PAGE) / 1000;
        assert_eq!(third_us, 63 * (READ_US + PAGE_US) + ERASE_US + PAGE_US);
    }

    #[test]
    fn a_page_written_again_since_makes_the_merge_a_full_one() {
        let mut card = translation(|profile| profile.controller.log_blocks = 3);
        for page in 0..60 {
            card.write_ns(page * BLOCKS_PER_PAGE, BLOCKS_PER_PAGE);
        }
        // Page 5 is in the fresh block already; its newer version goes to the log.
        card.write_ns(5 * BLOCKS_PER_PAGE, 1);
        let merge_us = (0..3 * 64)
            .map(|_| card.write_ns(1000 * 64 * BLOCKS_PER_PAGE, 1) / 1000)
            .max();
        // Both blocks of the unit and the log block are erased.
        let expected_us = 64 * (READ_US + PAGE_US) + 3 * ERASE_US + LOG_US;
        assert_eq!(merge_us, Some(expected_us));
    }

    #[test]
    fn a_wear_move_comes_every_so_many_erases() {
        let mut card = translation(|profile| profile.controller.wear_levelling_erases = 5);
        let slow = (0..64 * 30)
            .map(|page| card.write_ns(page * BLOCKS_PER_PAGE, BLOCKS_PER_PAGE))
            .filter(|ns| ns / 1000 > 64 * PAGE_US)
            .count();
        // 30 units are 30 erases, and the moves erase as well: every sixth.
        assert_eq!(slow, 6);
    }

    #[test]
    fn a_page_in_ram_is_read_without_the_flash() {
        let mut card = translation(|_| ());
        card.write_ns(0, 1);
        assert_eq!(card.read_ns(1, 1), 0);
        assert_eq!(card.read_ns(8, 1) / 1000, READ_US);
        assert_eq!(card.read_ns(7, 10) / 1000, 2 * READ_US);
    }
}
