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
//!             in the fast zone? ── yes ──> program it to the zone's own log ── full? ──> free the
//!                   │ no                   oldest block: copy its valid pages to the head
//!                   v
//!        page whole, next in an open unit? ── yes ──> program it there ── unit full? ──> switch
//!                   │ no (or page 0: opens a unit)                        merge: erase the old block
//!                   v
//!        program it to the log, so that it is durable
//!                   │  log block full
//!                   v
//!        next log block; too many? ──> free the oldest, or several: every unit with a valid page in
//!                                      one is merged whole (read and program all its pages, erase),
//!                                      then the log block is erased
//! ```
//!
//! Opening a unit beyond the limit closes the oldest one: the pages it still lacks are copied
//! (partial merge). After so many erases a cold block is moved to even out wear.
//!
//! All of this is *clean-up*. It happens while the host waits, up to a limit for each write; what is
//! left is owed, and paid by later writes, or when the host is idle if the controller cleans up then.
//! What it begins by itself it puts aside when the host comes back. A log takes its next block only
//! when its share of what is owed is paid, because that block is what clean-up frees.
//!
//! How cheap cards work inside is told in "Flash memory card design" (Linaro wiki) and "Optimizing
//! Linux with cheap flash drives" (LWN, 2011): open units, the zone for the FAT, clean-up.

mod blocks;
mod log;

use crate::nand::{Nand, Work};
use crate::{BLOCK_BYTES, Profile};
use blocks::Blocks;
use cardiograph_sim_world::Seed;
use log::Log;
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

/// A unit that is being written in order into a fresh block.
#[derive(Clone)]
struct OpenUnit {
    unit: u32,
    next_page: u32,
    block: u32,
}

/// A page in the controller's RAM.
#[derive(Clone)]
struct RamPage {
    page: u32,
    /// A bit for each block written since the page was last whole.
    written: u64,
}

/// What a write keeps the host waiting for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Written {
    /// All of it.
    pub(crate) work: Work,
    /// The last part of it, in which the page is programmed.
    pub(crate) program_ns: u64,
}

#[derive(Clone)]
pub(crate) struct Translation {
    nand: Nand,
    blocks: Blocks,
    log: Log,
    log_blocks_max: u32,
    /// Blocks of the log that are freed together when it is full.
    clean_up_blocks: u32,
    zone: Log,
    zone_units: u32,
    /// Oldest first.
    open: VecDeque<OpenUnit>,
    /// Least recently written first.
    ram: VecDeque<RamPage>,
    /// Clean-up that writes wait for and that is not done yet.
    owed: Work,
    /// Log blocks that what is owed will have freed.
    blocks_owed: u64,
    /// Clean-up begun while the host was idle; the host waits for it only if the log has no block left.
    begun_idle: Work,
    /// Clean-up that one write may wait for, in ns.
    stall_limit_ns: u64,
    /// Log blocks that are kept free when the host is idle.
    idle_free_blocks: u32,
    blocks_per_page: u64,
    pages_per_unit: u32,
    open_units_max: usize,
    ram_pages_max: usize,
    wear_levelling_erases: u64,
    next_wear_move: u64,
    /// The unit whose block is moved next.
    next_cold_unit: u32,
}

/// What a fast zone takes of flash: its cells hold one bit where others may hold two, and half of its
/// pages are superseded when clean-up comes by.
const ZONE_BLOCKS_PER_UNIT: u32 = 2;

impl Translation {
    pub(crate) fn new(profile: &Profile, seed: Seed) -> Translation {
        let (flash, controller) = (&profile.flash, profile.controller);
        let zone_blocks_max = controller.fast_zone_units * ZONE_BLOCKS_PER_UNIT;
        // Each log has a block more: it is written to while the oldest is cleaned up.
        let beside_units = controller.log_blocks + 1 + zone_blocks_max + 1 + controller.open_units;
        let mut translation = Translation {
            nand: Nand::new(profile, seed),
            blocks: Blocks::new(profile, beside_units, seed),
            log: Log::new(
                controller.log_blocks + 1,
                flash.pages_per_block,
                profile.units(),
            ),
            log_blocks_max: controller.log_blocks,
            clean_up_blocks: controller.clean_up_blocks,
            zone: Log::new(
                zone_blocks_max + 1,
                flash.pages_per_block,
                controller.fast_zone_units,
            ),
            zone_units: controller.fast_zone_units,
            open: VecDeque::new(),
            ram: VecDeque::new(),
            owed: Work::default(),
            blocks_owed: 0,
            begun_idle: Work::default(),
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

    /// Leaves the log as who had the card before left it: each block with pages of a unit of its own, the
    /// units spread over the card.
    fn use_log(&mut self, pages: u32) {
        let distance = self.blocks.units() / (self.log_blocks_max + 1);
        for page in 0..pages {
            if self.log.is_full() {
                self.log.extend(self.blocks.take());
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

    /// Blocks that share a page.
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

    /// Writes consecutive blocks by one command, until they are durable.
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
        written.work += pay(&mut self.owed, self.stall_limit_ns);
        written
    }

    /// Forgets consecutive blocks. Nothing is erased now: one page notes that they are empty, and pages
    /// of the log that hold nothing else need not be merged later.
    pub(crate) fn forget(&mut self, start: u64, count: u64) -> Work {
        let first = start.div_ceil(self.blocks_per_page) as u32;
        let end = ((start + count) / self.blocks_per_page) as u32;
        if first < end {
            self.log.forget_range(first..end);
            let zone_pages = self.zone_units * self.pages_per_unit;
            self.zone
                .forget_range(first.min(zone_pages)..end.min(zone_pages));
            self.ram
                .retain(|buffer| !(first..end).contains(&buffer.page));
        }
        self.nand.log_program()
    }

    /// Cleans up while the host wants nothing for so long, in ns; tells what was done.
    pub(crate) fn idle(&mut self, idle_ns: u64) -> Work {
        let mut done = Work::default();
        if self.idle_free_blocks == 0 {
            return done;
        }
        loop {
            done += pay(&mut self.owed, idle_ns - done.ns);
            done += pay(&mut self.begun_idle, idle_ns - done.ns);
            let has_enough = self.log.blocks() + self.idle_free_blocks <= self.log_blocks_max;
            if done.ns == idle_ns || has_enough {
                return done;
            }
            self.free_oldest_log_block();
            self.begun_idle = std::mem::take(&mut self.owed);
        }
    }

    /// What is in RAM is lost; it is in flash already.
    pub(crate) fn power_cut(&mut self) {
        self.ram.clear();
    }

    fn pages(&self, start: u64, count: u64) -> Range<u32> {
        let end = (start + count).div_ceil(self.blocks_per_page);
        (start / self.blocks_per_page) as u32..end as u32
    }

    /// Writes blocks of one page; returns what comes before it is programmed, and its programming.
    fn write_page(&mut self, page: u32, first_block: u64, blocks: u64) -> (Work, Work) {
        let whole = u64::MAX >> (64 - self.blocks_per_page);
        let written = (u64::MAX >> (64 - blocks)) << first_block;
        let mut before = Work::default();
        let is_newest = self.ram.back().is_some_and(|buffer| buffer.page == page);
        if !is_newest {
            let ram_page = match self.ram.iter().position(|buffer| buffer.page == page) {
                Some(at) => self.ram.remove(at).unwrap_or(RamPage { page, written: 0 }),
                None => {
                    // The rest of the page is fetched, unless all of it is written.
                    if written != whole {
                        before = self.nand.read();
                    }
                    RamPage { page, written: 0 }
                }
            };
            // What is evicted is in flash already.
            if self.ram.len() == self.ram_pages_max {
                self.ram.pop_front();
            }
            self.ram.push_back(ram_page);
        }
        let mut is_whole = false;
        if let Some(buffer) = self.ram.back_mut() {
            buffer.written |= written;
            is_whole = buffer.written == whole;
            if is_whole {
                buffer.written = 0;
            }
        }
        let (room, program) = match is_whole {
            _ if page / self.pages_per_unit < self.zone_units => self.append_to_zone(page),
            true => self.place_whole_page(page),
            false => self.append_to_log(page),
        };
        (before + room, program)
    }

    fn place_whole_page(&mut self, page: u32) -> (Work, Work) {
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
        self.log.forget(page);
        let open = &mut self.open[at];
        let program = self.nand.program(open.next_page);
        open.next_page += 1;
        if open.next_page == self.pages_per_unit {
            let (unit, block) = (open.unit, open.block);
            self.open.remove(at);
            let old = self.blocks.place_unit(unit, block);
            self.owe_erase(old);
        }
        program
    }

    /// Starts a unit in a fresh block. One that was under way, of this unit or the oldest beyond the
    /// limit, is closed first.
    fn open_unit(&mut self, unit: u32) {
        if let Some(at) = self.open.iter().position(|open| open.unit == unit) {
            self.close_unit(at);
        } else if self.open.len() == self.open_units_max {
            self.close_unit(0);
        }
        let block = self.blocks.take();
        self.open.push_back(OpenUnit {
            unit,
            next_page: 0,
            block,
        });
    }

    /// Copies the pages that the fresh block lacks (partial merge) and erases the old one. A page of
    /// the fresh block that was written again since is in the log; flash cannot program it twice, so
    /// then all pages go to yet another block (full merge).
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
            return self.owe_erase(block);
        }
        self.log.forget_unit(unit);
        self.owed += self.nand.copy(next_page..self.pages_per_unit);
        let old = self.blocks.place_unit(unit, block);
        self.owe_erase(old);
    }

    fn append_to_log(&mut self, page: u32) -> (Work, Work) {
        let mut room = Work::default();
        if self.log.is_full() {
            room = self.pay_for_log_block();
            self.log.extend(self.blocks.take());
            if self.log.blocks() > self.log_blocks_max {
                (0..self.clean_up_blocks).for_each(|_| self.free_oldest_log_block());
                self.blocks_owed = self.clean_up_blocks.into();
            }
        }
        self.log.push(page);
        (room, self.nand.log_program())
    }

    /// Merges every unit that has a valid page in the oldest block of the log.
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
            self.owe_erase(block);
        }
    }

    /// Full merge: all pages of the unit, the newest version of each, go to a fresh block.
    fn copy_unit(&mut self, unit: u32) {
        self.log.forget_unit(unit);
        let block = self.blocks.take();
        self.owed += self.nand.copy(0..self.pages_per_unit);
        let old = self.blocks.place_unit(unit, block);
        self.owe_erase(old);
    }

    /// The fast zone is mapped page by page, so that no unit of it is ever merged.
    fn append_to_zone(&mut self, page: u32) -> (Work, Work) {
        let mut room = Work::default();
        // An oldest block whose pages are all valid fills the newest; the next oldest has its turn
        // then. No more than half of all are valid.
        while self.zone.is_full() {
            room += self.pay_all();
            self.zone.extend(self.blocks.take());
            if self.zone.blocks() > self.zone_units * ZONE_BLOCKS_PER_UNIT {
                self.free_oldest_zone_block();
            }
        }
        self.zone.push(page);
        (room, self.nand.log_program())
    }

    /// Copies the valid pages of the oldest block to the newest, which has just been begun.
    fn free_oldest_zone_block(&mut self) {
        let (mut copied, mut from) = (0, 0);
        while let Some((slot, page)) = self.zone.next_in_oldest(from) {
            self.zone.push(page);
            (copied, from) = (copied + 1, slot + 1);
        }
        self.owed += self.nand.copy_to_log(copied);
        if let Some(block) = self.zone.drop_oldest() {
            self.owe_erase(block);
        }
    }

    fn owe_erase(&mut self, block: u32) {
        self.owed += self.blocks.erase(block, &mut self.nand);
    }

    /// The next block of the log is the first that clean-up frees.
    fn pay_for_log_block(&mut self) -> Work {
        if self.blocks_owed <= 1 {
            return self.pay_all();
        }
        let share_ns = self.owed.ns / self.blocks_owed;
        self.blocks_owed -= 1;
        pay(&mut self.owed, share_ns)
    }

    fn pay_all(&mut self) -> Work {
        self.blocks_owed = 0;
        std::mem::take(&mut self.owed) + std::mem::take(&mut self.begun_idle)
    }

    /// Moves a block that is seldom written, so that its place wears as well: one unit after the other.
    fn level_wear(&mut self) {
        if self.blocks.erases() < self.next_wear_move {
            return;
        }
        let block = self.blocks.take_most_worn();
        self.owed += self.nand.copy(0..self.pages_per_unit);
        let old = self.blocks.place_unit(self.next_cold_unit, block);
        self.owe_erase(old);
        self.next_cold_unit = (self.next_cold_unit + 1) % self.blocks.units();
        self.next_wear_move = self.blocks.erases() + self.wear_levelling_erases;
    }
}

/// Works off what is owed, for at most so long; returns what was done.
fn pay(owed: &mut Work, limit_ns: u64) -> Work {
    if owed.ns <= limit_ns {
        return std::mem::take(owed);
    }
    let share = limit_ns as f64 / owed.ns as f64;
    let paid = Work {
        ns: limit_ns,
        nj: (owed.nj as f64 * share) as u64,
    };
    owed.ns -= paid.ns;
    owed.nj -= paid.nj;
    paid
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
