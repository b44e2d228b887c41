//! The flash translation layer (FTL): a hybrid mapping with page-mapped log blocks over block-mapped data.
//!
//! Flash is programmed in pages, in order within a block, and erased in whole blocks. One data block holds
//! a logical unit (one block's worth of addresses). Pages that do not arrive in order go to a small set of
//! shared log blocks until these are full and have to be garbage collected. That garbage collection is the
//! write stall.
//!
//! ```text
//!             block written
//!                   │  joins the page's buffer in RAM
//!                   v
//!             in the fast zone? ── yes ──> program it to the zone's own log ── full? ──> free the
//!                   │ no                   oldest block: copy its valid pages to the head
//!                   v
//!      page complete, next in an open unit? ── yes ──> program it there ── unit full? ──> switch
//!                   │ no (or page 0: opens a unit)                         merge: erase the old block
//!                   v
//!        program it to a log block, so that it is durable
//!                   │  log block full
//!                   v
//!        next log block; too many? ──> free the oldest, or several: every unit with a valid page in
//!                                      one gets a full merge (read and program all its pages, erase),
//!                                      then the log block is erased
//! ```
//!
//! Opening a unit beyond the limit closes the oldest one: the pages it still lacks are copied (partial
//! merge). After a fixed number of erases, a cold block is moved to even out wear.
//!
//! All of this is *garbage collection*. It runs while the host waits, up to a limit per write. The remainder is
//! *garbage-collection debt*. Later writes run it, or the controller does while the host is idle, if the profile lets
//! the controller collect garbage then. Garbage collection begun while idle is postponed when the host returns. The log
//! takes its next block only after the corresponding share of the debt has been run, because that garbage collection
//! frees the block.
//!
//! References on cheap cards: "Flash memory card design" (Linaro wiki) and "Optimizing Linux with cheap
//! flash drives" (LWN, 2011), which describe open units, the fast zone for the FAT, and garbage collection.

pub(crate) mod blocks;
pub(crate) mod log;
mod state;

use crate::nand::{Nand, Work};
use crate::{BLOCK_BYTES, Profile};
use blocks::Blocks;
use cardiograph_sim_world::Seed;
use log::Log;
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

/// A unit that is being written in order to a fresh block.
#[derive(Clone)]
struct OpenUnit {
    unit: u32,
    next_page: u32,
    block: u32,
}

/// A page in the controller's RAM.
#[derive(Clone)]
pub(crate) struct RamPage {
    pub(crate) page: u32,
    /// Bit mask of the blocks that have been written since the page was last complete.
    pub(crate) written: u64,
}

/// Work caused by a write, which the host waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// Total work that the write causes.
    pub(crate) work: Work,
    /// Last phase of the work, in which the page is programmed, in ns.
    pub(crate) program_ns: u64,
}

#[derive(Clone)]
pub(crate) struct Translation {
    nand: Nand,
    blocks: Blocks,
    log: Log,
    log_blocks_max: u32,
    /// Log blocks freed together when the log is full.
    gc_log_blocks: u32,
    zone: Log,
    zone_units: u32,
    /// Open units, oldest first.
    open: VecDeque<OpenUnit>,
    /// Buffered pages, least recently written first.
    ram: VecDeque<RamPage>,
    /// Garbage-collection debt: work that writes have to wait for.
    gc_debt: Work,
    /// Number of log blocks that running the remaining garbage-collection debt frees.
    debt_blocks: u64,
    /// Garbage collection begun while the host was idle; the host waits for it only if the log has no block
    /// left.
    idle_gc: Work,
    /// Longest garbage collection that one write waits for, in ns.
    stall_limit_ns: u64,
    /// Log blocks that garbage collection keeps free while the host is idle.
    idle_free_blocks: u32,
    blocks_per_page: u64,
    pages_per_unit: u32,
    open_units_max: usize,
    ram_pages_max: usize,
    wear_levelling_erases: u64,
    next_wear_move: u64,
    /// Unit whose block wear levelling moves next.
    next_cold_unit: u32,
}

/// Number of flash blocks per unit of the fast zone. With two, at most half of the zone's pages are valid, so
/// garbage collection always frees space.
const ZONE_BLOCKS_PER_UNIT: u32 = 2;

impl Translation {
    pub(crate) fn new(profile: &Profile, seed: Seed) -> Translation {
        let (flash, controller) = (&profile.flash, profile.controller);
        let zone_blocks_max = controller.fast_zone_units * ZONE_BLOCKS_PER_UNIT;
        // Each log has one extra block, which is written to while the oldest is garbage collected.
        let other_blocks = controller.log_blocks + 1 + zone_blocks_max + 1 + controller.open_units;
        let mut translation = Translation {
            nand: Nand::new(profile, seed),
            blocks: Blocks::new(profile, other_blocks, seed),
            log: Log::new(
                controller.log_blocks + 1,
                flash.pages_per_block,
                flash.pages_per_block,
                profile.units(),
            ),
            log_blocks_max: controller.log_blocks,
            gc_log_blocks: controller.gc_log_blocks,
            zone: Log::new(
                zone_blocks_max + 1,
                flash.pages_per_block,
                flash.pages_per_block,
                controller.fast_zone_units,
            ),
            zone_units: controller.fast_zone_units,
            open: VecDeque::new(),
            ram: VecDeque::new(),
            gc_debt: Work::default(),
            debt_blocks: 0,
            idle_gc: Work::default(),
            stall_limit_ns: u64::from(controller.stall_limit_us) * 1000,
            idle_free_blocks: controller.idle_free_blocks,
            blocks_per_page: profile.page_bytes() / BLOCK_BYTES as u64,
            pages_per_unit: flash.pages_per_block,
            open_units_max: controller.open_units as usize,
            ram_pages_max: controller.ram_pages as usize,
            wear_levelling_erases: controller.wear_levelling_erases.into(),
            next_wear_move: controller.wear_levelling_erases.into(),
            next_cold_unit: 0,
        };
        translation.use_log(controller.log_used_pages);
        translation
    }

    /// Fills the log with the given number of pages, as after previous use of the card: each log block holds
    /// pages of one unit, and the units are spread over the card.
    fn use_log(&mut self, pages: u32) {
        let distance = self.blocks.units() / (self.log_blocks_max + 1);
        for page in 0..pages {
            if self.log.is_full() {
                self.log.extend(self.blocks.allocate());
            }
            let (block, within) = (page / self.pages_per_unit, page % self.pages_per_unit);
            let unit = ((block + 1) * distance).min(self.blocks.units() - 1);
            self.log.push(unit * self.pages_per_unit + within);
        }
    }

    pub(crate) fn erases(&self) -> u64 {
        self.blocks.erases()
    }

    pub(crate) fn cycles(&self) -> RangeInclusive<u32> {
        self.blocks.cycles()
    }

    pub(crate) fn spares_left(&self) -> u32 {
        self.blocks.spares_left()
    }

    pub(crate) fn is_worn_out(&self) -> bool {
        self.blocks.is_worn_out()
    }

    /// Returns the number of blocks per page.
    pub(crate) fn blocks_per_page(&self) -> u64 {
        self.blocks_per_page
    }

    /// Fetches consecutive blocks.
    pub(crate) fn read(&mut self, start: u64, count: u64) -> Work {
        let mut work = Work::default();
        for page in self.pages(start, count) {
            if !self.ram.iter().any(|buffer| buffer.page == page) {
                work += self.nand.read();
            }
        }
        work
    }

    /// Writes consecutive blocks that were received with one command; they are durable when the work is done.
    pub(crate) fn write(&mut self, start: u64, count: u64) -> Written {
        let mut written = Written::default();
        for page in self.pages(start, count) {
            let first = (u64::from(page) * self.blocks_per_page).max(start);
            let end = (u64::from(page + 1) * self.blocks_per_page).min(start + count);
            let (before, program) =
                self.write_page(page, first % self.blocks_per_page, end - first);
            written.work += before + program;
            written.program_ns = program.ns;
        }
        self.level_wear();
        written.work += run_gc(&mut self.gc_debt, self.stall_limit_ns);
        written
    }

    /// Marks consecutive blocks as empty. Nothing is erased: one page records that the blocks are empty, and
    /// log pages that hold only empty blocks need no merge later.
    pub(crate) fn discard(&mut self, start: u64, count: u64) -> Work {
        let first = start.div_ceil(self.blocks_per_page) as u32;
        let end = ((start + count) / self.blocks_per_page) as u32;
        if first < end {
            self.log.invalidate_range(first..end);
            let zone_pages = self.zone_units * self.pages_per_unit;
            self.zone
                .invalidate_range(first.min(zone_pages)..end.min(zone_pages));
            self.ram
                .retain(|buffer| !(first..end).contains(&buffer.page));
        }
        self.nand.log_program()
    }

    /// Runs garbage collection while the host is idle for `idle_ns`; returns the work done.
    pub(crate) fn idle(&mut self, idle_ns: u64) -> Work {
        let mut done = Work::default();
        if self.idle_free_blocks == 0 {
            return done;
        }
        loop {
            done += run_gc(&mut self.gc_debt, idle_ns - done.ns);
            done += run_gc(&mut self.idle_gc, idle_ns - done.ns);
            let has_enough = self.log.blocks() + self.idle_free_blocks <= self.log_blocks_max;
            if done.ns == idle_ns || has_enough {
                return done;
            }
            self.free_oldest_log_block();
            self.idle_gc = std::mem::take(&mut self.gc_debt);
        }
    }

    /// Discards the contents of the RAM, which are in flash already.
    pub(crate) fn power_cut(&mut self) {
        self.ram.clear();
    }

    fn pages(&self, start: u64, count: u64) -> Range<u32> {
        let end = (start + count).div_ceil(self.blocks_per_page);
        (start / self.blocks_per_page) as u32..end as u32
    }

    /// Writes blocks of one page; returns the work before the page is programmed, and the work of
    /// programming it.
    fn write_page(&mut self, page: u32, first_block: u64, blocks: u64) -> (Work, Work) {
        let complete = u64::MAX >> (64 - self.blocks_per_page);
        let written = (u64::MAX >> (64 - blocks)) << first_block;
        let mut before = Work::default();
        let is_newest = self.ram.back().is_some_and(|buffer| buffer.page == page);
        if !is_newest {
            let ram_page = match self.ram.iter().position(|buffer| buffer.page == page) {
                Some(at) => self.ram.remove(at).unwrap_or(RamPage { page, written: 0 }),
                None => {
                    // Fetch the blocks of the page that are not overwritten, if any.
                    if written != complete {
                        before = self.nand.read();
                    }
                    RamPage { page, written: 0 }
                }
            };
            // The evicted page is in flash already.
            if self.ram.len() == self.ram_pages_max {
                self.ram.pop_front();
            }
            self.ram.push_back(ram_page);
        }
        let mut is_complete = false;
        if let Some(buffer) = self.ram.back_mut() {
            buffer.written |= written;
            is_complete = buffer.written == complete;
            if is_complete {
                buffer.written = 0;
            }
        }
        let (room, program) = match is_complete {
            _ if page / self.pages_per_unit < self.zone_units => self.append_to_zone(page),
            true => self.write_complete_page(page),
            false => self.append_to_log(page),
        };
        (before + room, program)
    }

    fn write_complete_page(&mut self, page: u32) -> (Work, Work) {
        let (unit, within) = (page / self.pages_per_unit, page % self.pages_per_unit);
        if within == 0 && self.open_units_max > 0 {
            self.open_unit(unit);
        }
        let next = |open: &OpenUnit| open.unit == unit && open.next_page == within;
        match self.open.iter().position(next) {
            Some(at) => (Work::default(), self.append_to_unit(at, page)),
            None => self.append_to_log(page),
        }
    }

    fn append_to_unit(&mut self, at: usize, page: u32) -> Work {
        self.log.invalidate(page);
        let open = &mut self.open[at];
        let program = self.nand.program(open.next_page);
        open.next_page += 1;
        if open.next_page == self.pages_per_unit {
            let (unit, block) = (open.unit, open.block);
            self.open.remove(at);
            let old = self.blocks.map_unit(unit, block);
            self.defer_erase(old);
        }
        program
    }

    /// Opens a unit in a fresh block. If the unit is open already, closes it first; if the limit of open
    /// units is reached, closes the oldest one first.
    fn open_unit(&mut self, unit: u32) {
        if let Some(at) = self.open.iter().position(|open| open.unit == unit) {
            self.close_unit(at);
        } else if self.open.len() == self.open_units_max {
            self.close_unit(0);
        }
        let block = self.blocks.allocate();
        self.open.push_back(OpenUnit {
            unit,
            next_page: 0,
            block,
        });
    }

    /// Copies the pages that the fresh block lacks (partial merge) and erases the old block. If a page of
    /// the fresh block has been rewritten since, its newest version is in the log; because flash cannot
    /// program it twice, all pages then go to another block (full merge).
    fn close_unit(&mut self, at: usize) {
        let Some(OpenUnit {
            unit,
            next_page,
            block,
        }) = self.open.remove(at)
        else {
            return;
        };
        let first = unit * self.pages_per_unit;
        if self.log.holds_any(unit, first..first + next_page) {
            self.copy_unit(unit);
            return self.defer_erase(block);
        }
        self.log.invalidate_unit(unit);
        self.gc_debt += self.nand.copy(next_page..self.pages_per_unit);
        let old = self.blocks.map_unit(unit, block);
        self.defer_erase(old);
    }

    fn append_to_log(&mut self, page: u32) -> (Work, Work) {
        let mut room = Work::default();
        if self.log.is_full() {
            room = self.run_gc_for_log_block();
            self.log.extend(self.blocks.allocate());
            if self.log.blocks() > self.log_blocks_max {
                (0..self.gc_log_blocks).for_each(|_| self.free_oldest_log_block());
                self.debt_blocks = self.gc_log_blocks.into();
            }
        }
        self.log.push(page);
        (room, self.nand.log_program())
    }

    /// Merges every unit that has a valid page in the oldest log block.
    fn free_oldest_log_block(&mut self) {
        let mut from = 0;
        while let Some((slot, page)) = self.log.next_in_oldest(from) {
            from = slot + 1;
            let unit = page / self.pages_per_unit;
            match self.open.iter().position(|open| open.unit == unit) {
                Some(at) => self.close_unit(at),
                None => self.copy_unit(unit),
            }
        }
        if let Some(block) = self.log.drop_oldest() {
            self.defer_erase(block);
        }
    }

    /// Performs a full merge: copies the newest version of every page of the unit to a fresh block.
    fn copy_unit(&mut self, unit: u32) {
        self.log.invalidate_unit(unit);
        let block = self.blocks.allocate();
        self.gc_debt += self.nand.copy(0..self.pages_per_unit);
        let old = self.blocks.map_unit(unit, block);
        self.defer_erase(old);
    }

    /// Appends a page to the fast zone, which is mapped page by page so that no unit of it is ever merged.
    fn append_to_zone(&mut self, page: u32) -> (Work, Work) {
        let mut room = Work::default();
        // If all pages of the oldest block are valid, they fill the new block at once, and the next oldest
        // block is freed as well. At most half of all pages are valid, so the loop ends.
        while self.zone.is_full() {
            room += self.run_all_gc();
            self.zone.extend(self.blocks.allocate());
            if self.zone.blocks() > self.zone_units * ZONE_BLOCKS_PER_UNIT {
                self.free_oldest_zone_block();
            }
        }
        self.zone.push(page);
        (room, self.nand.log_program())
    }

    /// Copies the valid pages of the oldest block to the block just added.
    fn free_oldest_zone_block(&mut self) {
        let (mut copied, mut from) = (0, 0);
        while let Some((slot, page)) = self.zone.next_in_oldest(from) {
            self.zone.push(page);
            (copied, from) = (copied + 1, slot + 1);
        }
        self.gc_debt += self.nand.copy_to_log(copied);
        if let Some(block) = self.zone.drop_oldest() {
            self.defer_erase(block);
        }
    }

    fn defer_erase(&mut self, block: u32) {
        self.gc_debt += self.blocks.erase(block, &mut self.nand);
    }

    /// Runs the share of the garbage-collection debt that frees the next log block.
    fn run_gc_for_log_block(&mut self) -> Work {
        if self.debt_blocks <= 1 {
            return self.run_all_gc();
        }
        let share_ns = self.gc_debt.ns / self.debt_blocks;
        self.debt_blocks -= 1;
        run_gc(&mut self.gc_debt, share_ns)
    }

    fn run_all_gc(&mut self) -> Work {
        self.debt_blocks = 0;
        std::mem::take(&mut self.gc_debt) + std::mem::take(&mut self.idle_gc)
    }

    /// Moves the data of a rarely written unit to a worn block, so that the block that it leaves is used for
    /// other data. Successive calls go through all units.
    fn level_wear(&mut self) {
        if self.blocks.erases() < self.next_wear_move {
            return;
        }
        let block = self.blocks.allocate_most_worn();
        self.gc_debt += self.nand.copy(0..self.pages_per_unit);
        let old = self.blocks.map_unit(self.next_cold_unit, block);
        self.defer_erase(old);
        self.next_cold_unit = (self.next_cold_unit + 1) % self.blocks.units();
        self.next_wear_move = self.blocks.erases() + self.wear_levelling_erases;
    }
}

/// Runs garbage collection that is due, for at most `limit_ns`; returns the work done.
fn run_gc(gc_debt: &mut Work, limit_ns: u64) -> Work {
    if gc_debt.ns <= limit_ns {
        return std::mem::take(gc_debt);
    }
    let share = limit_ns as f64 / gc_debt.ns as f64;
    let done = Work {
        ns: limit_ns,
        nj: (gc_debt.nj as f64 * share) as u64,
    };
    gc_debt.ns -= done.ns;
    gc_debt.nj -= done.nj;
    done
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
