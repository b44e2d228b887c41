//! Hybrid mapping: data blocks that hold a unit each, and log blocks for pages that do not arrive in order.
//!
//! A data block holds the pages of one logical unit at fixed positions. Complete pages in order go to the fresh
//! block of an open unit; all other pages go to the log. When the log has as many blocks as the pool can
//! spare, its oldest blocks are freed: every unit with a valid page there is merged, which copies the pages of
//! the unit that hold data, and only those. (BAST: Kim et al., "A Space-Efficient Flash Translation Layer for
//! CompactFlash Systems", 2002. FAST, whose log blocks take pages of any unit as here: Lee et al., "A Log
//! Buffer-Based Flash Translation Layer Using Fully-Associative Sector Translation", 2007.)
//!
//! A log block holds one bit per cell, hence as many pages as a data block divided by the bits per cell.

use super::bits::{Bits, KINDS_MAX};
use super::chip::Chip;
use crate::nand::Work;
use crate::profile::Profile;
use crate::translation::log::Log;
use std::collections::VecDeque;
use std::ops::Range;

/// Value that stands for a unit without a data block.
pub(super) const NONE: u32 = u32::MAX;

/// Blocks that merges need besides those of log, zone and open units: a destination, and one to erase.
const WORKING_BLOCKS: u32 = 2;

#[derive(Clone)]
pub(super) struct OpenUnit {
    pub(super) unit: u32,
    pub(super) next_page: u32,
    pub(super) block: u32,
}

#[derive(Clone)]
pub(super) struct Hybrid {
    /// Pages that hold data: written and not discarded.
    pub(super) data: Bits,
    pub(super) block_of_unit: Vec<u32>,
    pub(super) log: Log,
    pub(super) zone: Log,
    /// Units being written in order, oldest first.
    pub(super) open: VecDeque<OpenUnit>,
    /// Unit whose block wear levelling moves next.
    pub(super) next_cold_unit: u32,
    pub(super) pages_per_unit: u32,
    pub(super) zone_units: u32,
    zone_blocks_max: u32,
    pub(super) open_units_max: usize,
    pub(super) log_blocks_max: u32,
    gc_log_blocks: u32,
}

/// Returns the number of flash blocks per unit of the fast zone, whose blocks hold one bit per cell: room for twice its
/// pages. At most half of the zone's pages are then valid, so garbage collection always frees space.
fn zone_blocks_per_unit(profile: &Profile) -> u32 {
    let pages = profile.flash.pages_per_block;
    2 * pages.div_ceil(profile.log_pages_per_block())
}

/// Returns the number of pool blocks that cannot serve as log blocks.
pub(crate) fn reserved_blocks(profile: &Profile) -> u32 {
    // One block per unit of the fast zone comes from the capacity, the others from the pool, with one to be emptied.
    let zone = match profile.controller.fast_zone_units {
        0 => 0,
        units => units * (zone_blocks_per_unit(profile) - 1) + 1,
    };
    zone + profile.controller.open_units + WORKING_BLOCKS
}

impl Hybrid {
    pub(super) fn new(profile: &Profile) -> Hybrid {
        let (flash, controller) = (&profile.flash, profile.controller);
        let (units, pages_per_unit) = (profile.units(), flash.pages_per_block);
        let log_blocks_max = profile.log_blocks();
        let zone_units = controller.fast_zone_units;
        let zone_blocks_max = zone_units * zone_blocks_per_unit(profile);
        Hybrid {
            data: Bits::new(units * pages_per_unit),
            block_of_unit: vec![NONE; units as usize],
            log: Log::new(
                log_blocks_max + 1,
                profile.log_pages_per_block(),
                pages_per_unit,
                units,
            ),
            zone: Log::new(
                zone_blocks_max + 1,
                profile.log_pages_per_block(),
                pages_per_unit,
                zone_units,
            ),
            open: VecDeque::new(),
            next_cold_unit: 0,
            pages_per_unit,
            zone_units,
            zone_blocks_max,
            open_units_max: controller.open_units as usize,
            log_blocks_max,
            gc_log_blocks: controller.gc_log_blocks,
        }
    }

    pub(super) fn units(&self) -> u32 {
        self.block_of_unit.len() as u32
    }

    /// Returns the number of log blocks that the pool has room for. Each worn-out block leaves one fewer.
    pub(super) fn log_limit(&self, chip: &Chip) -> u32 {
        self.log_blocks_max.saturating_sub(chip.pool.retired())
    }

    /// Returns the flash block of a page; `None` if the page holds no data.
    pub(super) fn block_of(&self, page: u32) -> Option<u32> {
        if !self.data.contains(page) {
            return None;
        }
        let unit = page / self.pages_per_unit;
        let log = match unit < self.zone_units {
            true => &self.zone,
            false => &self.log,
        };
        let in_unit = || match self.open.iter().find(|open| open.unit == unit) {
            Some(open) if page % self.pages_per_unit < open.next_page => open.block,
            _ => self.block_of_unit[unit as usize],
        };
        let block = log.block_of(page).unwrap_or_else(in_unit);
        (block != NONE).then_some(block)
    }

    /// Returns true if a page holds data.
    #[cfg(test)]
    pub(super) fn holds(&self, page: u32) -> bool {
        self.data.contains(page)
    }

    /// Writes a page; returns the work of making room, and the work of programming it.
    pub(super) fn write_page(
        &mut self,
        chip: &mut Chip,
        page: u32,
        is_complete: bool,
    ) -> (Work, Work) {
        let works = match is_complete {
            _ if page / self.pages_per_unit < self.zone_units => self.append_to_zone(chip, page),
            true => self.write_complete_page(chip, page),
            false => self.append_to_log(chip, page),
        };
        self.data.insert(page);
        works
    }

    /// Writes those of the given complete pages that an open unit takes next, as long as nothing else can happen; calls
    /// `each` with the work of each. Returns their number, the work, and the work of the last one.
    pub(super) fn write_run(
        &mut self,
        chip: &mut Chip,
        pages: Range<u32>,
        each: &mut impl FnMut(Work),
    ) -> (u32, Work, Work) {
        let (unit, within) = (
            pages.start / self.pages_per_unit,
            pages.start % self.pages_per_unit,
        );
        let next = |open: &&mut OpenUnit| open.unit == unit && open.next_page == within;
        let Some(open) = self.open.iter_mut().find(next) else {
            return (0, Work::default(), Work::default());
        };
        // The last page of the unit replaces its old block.
        let end = (self.pages_per_unit - 1).min(within + pages.len() as u32);
        if unit < self.zone_units || self.log.holds_unit(unit) || end <= within {
            return (0, Work::default(), Work::default());
        }
        let (mut work, mut last) = (Work::default(), Work::default());
        for page in within..end {
            last = chip.nand.program(page);
            each(last);
            work += last;
        }
        open.next_page = end;
        let count = end - within;
        chip.programmed += u64::from(count);
        self.data.insert_all(pages.start..pages.start + count);
        (count, work, last)
    }

    fn write_complete_page(&mut self, chip: &mut Chip, page: u32) -> (Work, Work) {
        let (unit, within) = (page / self.pages_per_unit, page % self.pages_per_unit);
        if within == 0 && self.open_units_max > 0 {
            self.open_unit(chip, unit);
        }
        let next = |open: &OpenUnit| open.unit == unit && open.next_page == within;
        match self.open.iter().position(next) {
            Some(at) => (Work::default(), self.append_to_unit(chip, at, page)),
            None => self.append_to_log(chip, page),
        }
    }

    fn append_to_unit(&mut self, chip: &mut Chip, at: usize, page: u32) -> Work {
        self.log.invalidate(page);
        let open = &mut self.open[at];
        let program = chip.program(open.next_page);
        open.next_page += 1;
        if open.next_page == self.pages_per_unit {
            let (unit, block) = (open.unit, open.block);
            self.open.remove(at);
            self.map_unit(chip, unit, block);
        }
        program
    }

    /// Opens a unit in a fresh block. If the unit is open already, closes it first; if the limit of open
    /// units is reached, closes the oldest one first.
    fn open_unit(&mut self, chip: &mut Chip, unit: u32) {
        if let Some(at) = self.open.iter().position(|open| open.unit == unit) {
            self.close_unit(chip, at);
        } else if self.open.len() == self.open_units_max {
            self.close_unit(chip, 0);
        }
        if let Some(block) = chip.pool.allocate() {
            self.open.push_back(OpenUnit {
                unit,
                next_page: 0,
                block,
            });
        }
    }

    /// Copies the pages with data that the fresh block lacks (partial merge) and erases the old block. If a page of
    /// the fresh block has been rewritten since, its newest version is in the log; because flash cannot
    /// program it twice, all pages then go to another block (full merge).
    fn close_unit(&mut self, chip: &mut Chip, at: usize) {
        let Some(open) = self.open.remove(at) else {
            return;
        };
        let first = open.unit * self.pages_per_unit;
        if self.log.holds_any(open.unit, first..first + open.next_page) {
            self.merge_unit(chip, open.unit);
            return chip.erase(open.block);
        }
        self.log.invalidate_unit(open.unit);
        chip.copy(self.held(chip, open.unit, open.next_page));
        self.map_unit(chip, open.unit, open.block);
    }

    fn append_to_log(&mut self, chip: &mut Chip, page: u32) -> (Work, Work) {
        let mut room = Work::default();
        if self.log.is_full() {
            room = chip.debt.run_for_block();
            let Some(block) = chip.pool.allocate() else {
                return (room, chip.program_log());
            };
            self.log.extend(block);
            let limit = self.log_limit(chip);
            if limit == 0 {
                chip.pool.wear_out();
            }
            if self.log.blocks() > limit {
                let excess = self.log.blocks() - limit;
                let free = self.gc_log_blocks.max(excess).min(self.log.blocks() - 1);
                (0..free).for_each(|_| self.free_oldest_log_block(chip));
                chip.debt.blocks = free.into();
            }
        }
        self.log.push(page);
        (room, chip.program_log())
    }

    /// Merges every unit that has a valid page in the oldest log block.
    fn free_oldest_log_block(&mut self, chip: &mut Chip) {
        let mut from = 0;
        while let Some((slot, page)) = self.log.next_in_oldest(from) {
            from = slot + 1;
            let unit = page / self.pages_per_unit;
            match self.open.iter().position(|open| open.unit == unit) {
                Some(at) => self.close_unit(chip, at),
                None => self.merge_unit(chip, unit),
            }
        }
        if let Some(block) = self.log.drop_oldest() {
            chip.erase(block);
        }
    }

    /// Frees the oldest log block while the host is idle; returns false if there is none.
    pub(super) fn collect(&mut self, chip: &mut Chip) -> bool {
        let has_any = self.log.blocks() > 0;
        if has_any {
            self.free_oldest_log_block(chip);
        }
        has_any
    }

    /// Returns true if the log can grow by the given number of blocks, or is empty.
    pub(super) fn has_room(&self, chip: &Chip, blocks: u32) -> bool {
        self.log.blocks() == 0 || self.log.blocks() + blocks <= self.log_limit(chip)
    }

    /// Performs a full merge: copies the newest version of every page of the unit that holds data to a fresh block.
    pub(super) fn merge_unit(&mut self, chip: &mut Chip, unit: u32) {
        self.log.invalidate_unit(unit);
        let held = self.held(chip, unit, 0);
        if held == [0; KINDS_MAX] {
            return self.map_unit(chip, unit, NONE);
        }
        if let Some(block) = chip.pool.allocate() {
            chip.copy(held);
            self.map_unit(chip, unit, block);
        }
    }

    /// Returns how many pages of a unit, from its page `from` on, hold data, for each kind of pages.
    fn held(&self, chip: &Chip, unit: u32, from: u32) -> [u32; KINDS_MAX] {
        let first = unit * self.pages_per_unit;
        let pages = first + from..first + self.pages_per_unit;
        self.data.count_kinds(pages, first, chip.nand.kinds())
    }

    /// Maps a unit to another block, and erases the old one.
    fn map_unit(&mut self, chip: &mut Chip, unit: u32, block: u32) {
        let old = std::mem::replace(&mut self.block_of_unit[unit as usize], block);
        chip.map(unit);
        if old != NONE {
            chip.erase(old);
        }
    }

    /// Appends a page to the fast zone, which is mapped page by page so that no unit of it is ever merged.
    fn append_to_zone(&mut self, chip: &mut Chip, page: u32) -> (Work, Work) {
        let mut room = Work::default();
        // If all pages of the oldest block are valid, they fill the new block at once, and the next oldest
        // block is freed as well. At most half of all pages are valid, so the loop ends.
        while self.zone.is_full() {
            room += chip.debt.run_all();
            let Some(block) = chip.pool.allocate() else {
                return (room, chip.program_log());
            };
            self.zone.extend(block);
            if self.zone.blocks() > self.zone_blocks_max {
                self.free_oldest_zone_block(chip);
            }
        }
        self.zone.push(page);
        (room, chip.program_log())
    }

    /// Copies the valid pages of the oldest block to the block just added.
    fn free_oldest_zone_block(&mut self, chip: &mut Chip) {
        let (mut copied, mut from) = (0, 0);
        while let Some((slot, page)) = self.zone.next_in_oldest(from) {
            self.zone.push(page);
            (copied, from) = (copied + 1, slot + 1);
        }
        chip.copy_to_log(copied);
        if let Some(block) = self.zone.drop_oldest() {
            chip.erase(block);
        }
    }

    /// Forgets the data of pages. Blocks of units without any data are erased later, with the next merge.
    pub(super) fn discard(&mut self, chip: &mut Chip, pages: Range<u32>) {
        let zone_pages = self.zone_units * self.pages_per_unit;
        self.log.invalidate_range(pages.clone());
        self.zone
            .invalidate_range(pages.start.min(zone_pages)..pages.end.min(zone_pages));
        self.data.remove_all(pages.clone());
        let whole = pages.start.div_ceil(self.pages_per_unit)..pages.end / self.pages_per_unit;
        for unit in whole {
            let is_open = self.open.iter().any(|open| open.unit == unit);
            if !is_open && self.block_of_unit[unit as usize] != NONE {
                self.map_unit(chip, unit, NONE);
            }
        }
    }

    /// Moves the data of a block that was read too often.
    pub(super) fn refresh(&mut self, chip: &mut Chip, block: u32) {
        let unit = self.block_of_unit.iter().position(|known| *known == block);
        if let Some(unit) = unit {
            self.merge_or_close(chip, unit as u32);
        }
    }

    fn merge_or_close(&mut self, chip: &mut Chip, unit: u32) {
        match self.open.iter().position(|open| open.unit == unit) {
            Some(at) => self.close_unit(chip, at),
            None => self.merge_unit(chip, unit),
        }
    }

    /// Moves the data of a rarely written unit to a worn block, so that the block that it leaves is used for
    /// other data. Successive calls go through all units.
    pub(super) fn level_wear(&mut self, chip: &mut Chip) {
        let unit = self.next_cold_unit;
        self.next_cold_unit = (unit + 1) % self.units();
        let is_open = self.open.iter().any(|open| open.unit == unit);
        if is_open || self.block_of_unit[unit as usize] == NONE {
            return;
        }
        if let Some(block) = chip.pool.allocate_most_worn() {
            self.log.invalidate_unit(unit);
            chip.copy(self.held(chip, unit, 0));
            self.map_unit(chip, unit, block);
        }
    }
}
