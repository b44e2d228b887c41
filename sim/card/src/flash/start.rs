//! The state of a used card at the start of a simulation, drawn from the seed: how full the card and its log
//! are, and how long ago tables were written back and wear was levelled. Cards of one kind differ from run to
//! run because they have been used differently.

use super::chip::Chip;
use super::ftl::{Ftl, Mapping};
use super::hybrid::Hybrid;
use super::paged::Paged;
use crate::profile;
use cardiograph_sim_world::{Random, Seed};

/// Largest number of runs of pages that share a log block at the start.
const RUNS_PER_LOG_BLOCK_MAX: u64 = 4;
/// Largest number of units whose pages are in the log at the start: those of the files written last.
const UNITS_IN_LOG_MAX: u64 = 8;

impl Ftl {
    /// Puts a new card into a state drawn from the seed.
    pub(super) fn use_before(&mut self, ftl: &profile::Ftl, seed: Seed) {
        let mut random = seed.stream("use before");
        let [fill, log] = [ftl.fill_percent, ftl.log_percent].map(|[least, most]| {
            let thousandths = u64::from(most - least) * 10;
            u64::from(least) * 10 + random.below(thousandths + 1)
        });
        let journal = self.chip.table.journal_entries();
        self.chip.table.entries_left = 1 + random.below(journal.into()) as u32;
        self.next_wear_move = 1 + random.below(self.wear_levelling_erases());
        match &mut self.mapping {
            Mapping::Hybrid(hybrid) => {
                hybrid.fill(&mut self.chip, fill, &mut random);
                hybrid.fill_log(&mut self.chip, log, &mut random);
            }
            Mapping::Paged(paged) => paged.fill(&mut self.chip, fill, log, &mut random),
        }
    }
}

impl Hybrid {
    /// Gives data to the given share of the units, in thousandths.
    fn fill(&mut self, chip: &mut Chip, thousandths: u64, random: &mut Random) {
        for unit in 0..self.units() {
            if random.below(1000) >= thousandths {
                continue;
            }
            let first = unit * self.pages_per_unit;
            let pages = first..first + self.pages_per_unit;
            if unit < self.zone_units {
                pages.clone().for_each(|page| {
                    self.fill_zone(chip, page);
                });
            } else if let Some(block) = chip.pool.allocate() {
                self.block_of_unit[unit as usize] = block;
            }
            self.data.insert_all(pages);
        }
    }

    fn fill_zone(&mut self, chip: &mut Chip, page: u32) {
        if self.zone.is_full() {
            chip.pool
                .allocate()
                .into_iter()
                .for_each(|block| self.zone.extend(block));
        }
        self.zone.push(page);
    }

    /// Fills the given share of the log, in thousandths. Each of its blocks holds runs of pages of a few units: what was
    /// written last was a few files, and each merge of a unit makes all of its pages in the log stale.
    fn fill_log(&mut self, chip: &mut Chip, thousandths: u64, random: &mut Random) {
        let per_block = self.log.pages_per_block();
        let all = u64::from(self.log_limit(chip)) * u64::from(per_block);
        let mut left = all * thousandths / 1000;
        let others = u64::from(self.units() - self.zone_units);
        let recent: Vec<u64> = (0..1 + random.below(UNITS_IN_LOG_MAX))
            .map(|_| u64::from(self.zone_units) + random.below(others))
            .collect();
        let mut run = (0, 0);
        while left > 0 {
            if self.log.is_full() {
                let Some(block) = chip.pool.allocate() else {
                    return;
                };
                self.log.extend(block);
                run.1 = 0;
            }
            if run.1 == 0 {
                let unit = recent[random.below(recent.len() as u64) as usize];
                let length = u64::from(per_block) / (1 + random.below(RUNS_PER_LOG_BLOCK_MAX));
                let length = length.clamp(1, u64::from(self.pages_per_unit));
                let within = random.below(u64::from(self.pages_per_unit) - length + 1);
                run = (
                    unit as u32 * self.pages_per_unit + within as u32,
                    length as u32,
                );
            }
            self.log.push(run.0);
            self.data.insert(run.0);
            run = (run.0 + 1, run.1 - 1);
            left -= 1;
        }
    }
}

impl Paged {
    /// Gives data to the given share of the pages, and rewrites pages until the given share of the spare
    /// blocks holds garbage, both in thousandths.
    fn fill(&mut self, chip: &mut Chip, fill: u64, garbage: u64, random: &mut Random) {
        let per_block = self.pages_per_block();
        let units = self.slot_of_page.len() as u32 / per_block;
        let full: Vec<u32> = (0..units).filter(|_| random.below(1000) < fill).collect();
        for unit in &full {
            let first = unit * per_block;
            (first..first + per_block).for_each(|page| self.fill_page(chip, page));
        }
        let spare = u64::from(chip.pool.free().saturating_sub(2)) * u64::from(per_block);
        if full.is_empty() {
            return;
        }
        for _ in 0..spare * garbage / 1000 {
            let unit = full[random.below(full.len() as u64) as usize];
            let within = random.below(per_block.into()) as u32;
            self.fill_page(chip, unit * per_block + within);
        }
    }

    fn fill_page(&mut self, chip: &mut Chip, page: u32) {
        if self.next == self.pages_per_block() {
            self.change_head(chip);
        }
        self.append(page);
    }
}
