//! The flash translation layer: RAM pages, the commit of each write command, idle time and wear levelling, in front
//! of either mapping.
//!
//! ```text
//!   blocks ──> page in RAM ── read the missing blocks, if the page holds data ──> mapping programs it
//!                                                                                    │
//!   first page of a command: commit (metadata)          garbage collection that is due, up to the limit
//! ```
//!
//! Complete pages in order are written in one step as long as nothing else can happen (`write_run` of the
//! mapping). The results are those of one page after the other, which a test checks.

use super::chip::Chip;
use super::debt::Debt;
use super::hybrid::Hybrid;
use super::paged::Paged;
use super::pool::Pool;
use super::table::Table;
use crate::nand::{Nand, Work};
use crate::profile::Mapping as MappingName;
use crate::translation::{RamPage, Written};
use crate::{BLOCK_BYTES, Profile};
use cardiograph_sim_world::Seed;
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};

#[derive(Clone)]
pub(super) enum Mapping {
    Hybrid(Box<Hybrid>),
    Paged(Paged),
}

macro_rules! of_mapping {
    ($mapping:expr, $inner:ident => $call:expr) => {
        match $mapping {
            Mapping::Hybrid($inner) => $call,
            Mapping::Paged($inner) => $call,
        }
    };
}

#[derive(Clone)]
pub(crate) struct Ftl {
    pub(super) chip: Chip,
    pub(super) mapping: Mapping,
    /// Buffered pages, least recently written first.
    ram: VecDeque<RamPage>,
    ram_pages_max: usize,
    blocks_per_page: u64,
    /// Largest number of blocks of an incomplete page that are programmed at once.
    part_blocks: u64,
    commit_us: u32,
    /// True if the present command has not been committed.
    is_commit_due: bool,
    /// Longest garbage collection that one write waits for unless it is overdue, in ns.
    step_ns: u64,
    idle_free_blocks: u32,
    wear_levelling_erases: u64,
    pub(super) next_wear_move: u64,
    /// True to write page after page: the judge of writing several in one step.
    #[cfg(test)]
    pub(super) is_slow: bool,
}

impl Ftl {
    pub(crate) fn new(profile: &Profile, seed: Seed) -> Ftl {
        let (ftl, controller) = (profile.ftl(), profile.controller);
        let pages = profile.units() * profile.flash.pages_per_block;
        let (mapping, entries) = match ftl.mapping {
            MappingName::Hybrid => (
                Mapping::Hybrid(Box::new(Hybrid::new(profile))),
                profile.units(),
            ),
            MappingName::Page => (Mapping::Paged(Paged::new(profile)), pages),
        };
        let mut made = Ftl {
            chip: Chip {
                nand: Nand::new(profile, seed),
                pool: Pool::new(profile, seed),
                table: Table::new(entries, profile.page_bytes(), ftl.map_journal_entries),
                debt: Debt::new(u64::from(controller.stall_limit_us) * 1000),
                refresh_reads: ftl.refresh_reads,
                programmed: 0,
            },
            mapping,
            ram: VecDeque::new(),
            ram_pages_max: controller.ram_pages as usize,
            blocks_per_page: profile.page_bytes() / BLOCK_BYTES as u64,
            part_blocks: match ftl.part_blocks {
                0 => u64::MAX,
                blocks => blocks.into(),
            },
            commit_us: ftl.commit_us,
            is_commit_due: false,
            step_ns: u64::from(profile.longest_collection_us()) * 1000,
            idle_free_blocks: controller.idle_free_blocks,
            wear_levelling_erases: controller.wear_levelling_erases.into(),
            next_wear_move: controller.wear_levelling_erases.into(),
            #[cfg(test)]
            is_slow: false,
        };
        made.use_before(&ftl, seed);
        made
    }

    pub(crate) fn begin_command(&mut self) {
        self.is_commit_due = true;
    }

    /// Fetches consecutive blocks. A page without data is not read: the mapping shows that there is none.
    pub(crate) fn read(&mut self, start: u64, count: u64) -> Work {
        let mut work = Work::default();
        for page in self.pages(start, count) {
            if !self.ram.iter().any(|buffer| buffer.page == page) {
                work += self.read_page(page);
            }
        }
        work
    }

    fn read_page(&mut self, page: u32) -> Work {
        let Some(block) = of_mapping!(&self.mapping, mapping => mapping.block_of(page)) else {
            return Work::default();
        };
        let (work, is_disturbed) = self.chip.read(block);
        if is_disturbed {
            let chip = &mut self.chip;
            of_mapping!(&mut self.mapping, mapping => mapping.refresh(chip, block));
        }
        work
    }

    /// Writes consecutive blocks that were received with one command; they are durable when the work is done.
    pub(crate) fn write(&mut self, start: u64, count: u64) -> Written {
        let mut written = Written::default();
        if std::mem::take(&mut self.is_commit_due) && self.commit_us > 0 {
            written.work += self.chip.nand.commit(self.commit_us);
        }
        let (mut block, end) = (start, start + count);
        while block < end {
            let page = (block / self.blocks_per_page) as u32;
            let whole_to = (end / self.blocks_per_page) as u32;
            let is_whole = block.is_multiple_of(self.blocks_per_page) && page < whole_to;
            if is_whole
                && let Some((pages, work, last)) = self.write_run(page..whole_to, &mut |_| ())
            {
                written.work += work;
                written.program_ns = last.ns;
                block += u64::from(pages) * self.blocks_per_page;
                continue;
            }
            let page_end = (u64::from(page + 1) * self.blocks_per_page).min(end);
            let (before, program) =
                self.write_page(page, block % self.blocks_per_page, page_end - block);
            written.work += before + program;
            written.program_ns = program.ns;
            self.level_wear();
            written.work += self.chip.debt.run_for_write(self.step_ns);
            block = page_end;
        }
        written
    }

    /// Writes the first of the given complete pages in one step; calls `each` with the work of each. Returns their
    /// number, the work, and that of the last one; `None` if something else may happen.
    fn write_run(
        &mut self,
        pages: Range<u32>,
        each: &mut impl FnMut(Work),
    ) -> Option<(u32, Work, Work)> {
        #[cfg(test)]
        if self.is_slow {
            return None;
        }
        if !self.chip.debt.is_none() || self.chip.pool.erases() >= self.next_wear_move {
            return None;
        }
        let chip = &mut self.chip;
        let (count, work, last) =
            of_mapping!(&mut self.mapping, mapping => mapping.write_run(chip, pages.clone(), each));
        let end = pages.start + count;
        // Earlier pages of the run would have left the RAM again.
        let buffered = pages
            .start
            .max(end.saturating_sub(self.ram_pages_max as u32))..end;
        for page in buffered {
            self.ram.retain(|buffer| buffer.page != page);
            self.buffer(RamPage { page, written: 0 });
        }
        (count > 0).then_some((count, work, last))
    }

    /// Writes the first of the given complete pages as by a write each, with idle time between them, as long as
    /// nothing but programming can happen; calls `each` with the work of each. Returns their number, the work, and that
    /// of the last one; `None` if something else may happen. `collects_idle` is true if the idle time suffices for
    /// garbage collection.
    pub(crate) fn write_spaced(
        &mut self,
        pages: Range<u32>,
        collects_idle: bool,
        each: &mut impl FnMut(Work),
    ) -> Option<(u32, Work, Work)> {
        let has_commit = self.is_commit_due && self.commit_us > 0;
        if has_commit || collects_idle && !self.is_idle_without_effect() {
            return None;
        }
        let written = self.write_run(pages, each);
        if written.is_some() {
            self.is_commit_due = false;
        }
        written
    }

    pub(crate) fn program_max_ns(&self) -> u64 {
        self.chip.nand.program_max_ns()
    }

    /// Returns true if idle time collects no garbage. Pages that a run writes do not change this.
    fn is_idle_without_effect(&self) -> bool {
        let (chip, free) = (&self.chip, self.idle_free_blocks);
        chip.debt.is_none()
            && (free == 0 || of_mapping!(&self.mapping, mapping => mapping.has_room(chip, free)))
    }

    fn buffer(&mut self, page: RamPage) {
        // The evicted page is in flash already.
        if self.ram.len() == self.ram_pages_max {
            self.ram.pop_front();
        }
        self.ram.push_back(page);
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
                        before = self.read_page(page);
                    }
                    RamPage { page, written: 0 }
                }
            };
            self.buffer(ram_page);
        }
        let mut is_complete = false;
        if let Some(buffer) = self.ram.back_mut() {
            buffer.written |= written;
            is_complete = buffer.written == complete;
            if is_complete {
                buffer.written = 0;
            }
        }
        let parts = match is_complete {
            true => 1,
            false => blocks.div_ceil(self.part_blocks),
        };
        let mut programs = Work::default();
        self.chip.debt.begin_write();
        for part in 0..parts {
            let chip = &mut self.chip;
            // A card that keeps track of parts commits each; the command's own commit is that of the first.
            if part > 0 && self.commit_us > 0 {
                before += chip.nand.commit(self.commit_us);
            }
            let (room, program) = match &mut self.mapping {
                Mapping::Hybrid(mapping) => mapping.write_page(chip, page, is_complete),
                Mapping::Paged(mapping) => mapping.write_page(chip, page),
            };
            before += room;
            programs += program;
        }
        (before, programs)
    }

    /// Marks consecutive blocks as empty: garbage collection no longer copies their pages. One page records
    /// this.
    pub(crate) fn discard(&mut self, start: u64, count: u64) -> Work {
        let first = start.div_ceil(self.blocks_per_page) as u32;
        let end = ((start + count) / self.blocks_per_page) as u32;
        if first < end {
            let chip = &mut self.chip;
            match &mut self.mapping {
                Mapping::Hybrid(mapping) => mapping.discard(chip, first..end),
                Mapping::Paged(mapping) => mapping.discard(first..end),
            }
            self.ram
                .retain(|buffer| !(first..end).contains(&buffer.page));
        }
        self.chip.program_log()
    }

    /// Runs garbage collection while the host is idle for `idle_ns`; returns the work done.
    pub(crate) fn idle(&mut self, idle_ns: u64) -> Work {
        let (mut done, chip) = (Work::default(), &mut self.chip);
        let free = self.idle_free_blocks;
        loop {
            done += chip.debt.run(idle_ns - done.ns);
            done += chip.debt.run_idle(idle_ns - done.ns);
            let has_room = of_mapping!(&self.mapping, mapping => mapping.has_room(chip, free));
            if done.ns == idle_ns || free == 0 || has_room {
                return done;
            }
            if !of_mapping!(&mut self.mapping, mapping => mapping.collect(chip)) {
                return done;
            }
            chip.debt.idle = std::mem::take(&mut chip.debt.due);
        }
    }

    /// Discards the contents of the RAM, which are in flash already.
    pub(crate) fn power_cut(&mut self) {
        self.ram.clear();
        self.is_commit_due = false;
    }

    fn level_wear(&mut self) {
        if self.chip.pool.erases() < self.next_wear_move {
            return;
        }
        let chip = &mut self.chip;
        of_mapping!(&mut self.mapping, mapping => mapping.level_wear(chip));
        self.next_wear_move = self.chip.pool.erases() + self.wear_levelling_erases;
    }

    pub(super) fn wear_levelling_erases(&self) -> u64 {
        self.wear_levelling_erases
    }

    fn pages(&self, start: u64, count: u64) -> Range<u32> {
        let end = (start + count).div_ceil(self.blocks_per_page);
        (start / self.blocks_per_page) as u32..end as u32
    }

    pub(crate) fn erases(&self) -> u64 {
        self.chip.pool.erases()
    }

    pub(crate) fn cycles(&self) -> RangeInclusive<u32> {
        self.chip.pool.cycles()
    }

    pub(crate) fn spares_left(&self) -> u32 {
        self.chip.pool.spares_left()
    }

    pub(crate) fn is_worn_out(&self) -> bool {
        self.chip.pool.is_worn_out()
    }

    pub(crate) fn blocks_per_page(&self) -> u64 {
        self.blocks_per_page
    }

    /// Returns the number of pages programmed so far, the tables included.
    pub(crate) fn pages_programmed(&self) -> u64 {
        self.chip.programmed + self.chip.table.written_pages()
    }

    /// Returns true if a block holds data.
    #[cfg(test)]
    pub(super) fn holds(&self, page: u32) -> bool {
        of_mapping!(&self.mapping, mapping => mapping.holds(page))
    }
}
