//! Reference models with the same rules and no optimisations: they search every list from end to end. The tests
//! compare both mappings with them.

use super::tests::Rules;
use std::collections::{BTreeSet, VecDeque};

/// Pages in RAM, and the time so far; the same for both mappings.
struct Shared {
    rules: Rules,
    ram: Vec<(u32, Vec<bool>)>,
    /// Pages of the mapping tables that changed.
    changed: BTreeSet<u32>,
    entries_left: u32,
    erases: u64,
    next_wear_move: u64,
    us: u64,
}

impl Shared {
    fn new(rules: Rules, entries_left: u32, next_wear_move: u64) -> Shared {
        Shared {
            rules,
            ram: Vec::new(),
            changed: BTreeSet::new(),
            entries_left,
            erases: 0,
            next_wear_move,
            us: 0,
        }
    }

    fn map(&mut self, entry: u32) {
        self.changed.insert(entry / self.rules.entries_per_page);
        self.entries_left -= 1;
        if self.entries_left == 0 {
            let each_us = self.rules.read_us + self.rules.log_program_us;
            self.us += self.changed.len() as u64 * each_us;
            self.changed.clear();
            self.entries_left = self.rules.map_journal_entries;
        }
    }

    fn copy(&mut self, pages: usize) {
        self.us += pages as u64 * (self.rules.read_us + self.rules.program_us);
    }

    fn erase(&mut self) {
        self.erases += 1;
        self.us += self.rules.erase_us;
    }

    /// Puts blocks of a page into RAM; returns true if the page is complete.
    fn buffer(&mut self, page: u32, blocks: &[usize], holds_data: bool) -> bool {
        let complete = self.rules.blocks_per_page as usize;
        let mut written = match self.ram.iter().position(|(known, _)| *known == page) {
            Some(at) => self.ram.remove(at).1,
            None => {
                if blocks.len() < complete && holds_data {
                    self.us += self.rules.read_us;
                }
                vec![false; complete]
            }
        };
        blocks.iter().for_each(|&block| written[block] = true);
        let is_complete = written.iter().all(|&written| written);
        if is_complete {
            written.fill(false);
        }
        self.ram.push((page, written));
        if self.ram.len() > self.rules.ram_pages {
            self.ram.remove(0);
        }
        is_complete
    }
}

/// Returns the pages of a write, each with the blocks within it.
fn pages_of(rules: &Rules, start: u64, count: u64) -> Vec<(u32, Vec<usize>)> {
    let per_page = rules.blocks_per_page;
    let mut pages: Vec<(u32, Vec<usize>)> = Vec::new();
    for block in start..start + count {
        let (page, within) = ((block / per_page) as u32, (block % per_page) as usize);
        match pages.last_mut() {
            Some((last, blocks)) if *last == page => blocks.push(within),
            _ => pages.push((page, vec![within])),
        }
    }
    pages
}

/// Returns the pages that a discard covers completely.
fn whole_pages(rules: &Rules, start: u64, count: u64) -> Vec<u32> {
    let pages = pages_of(rules, start, count);
    let whole = pages
        .into_iter()
        .filter(|(_, blocks)| blocks.len() as u64 == rules.blocks_per_page);
    whole.map(|(page, _)| page).collect()
}

pub(super) struct Hybrid {
    shared: Shared,
    data: BTreeSet<u32>,
    /// Units that have a data block.
    blocks: BTreeSet<u32>,
    log: Vec<Vec<u32>>,
    open: Vec<(u32, u32)>,
    next_cold_unit: u32,
}

impl Hybrid {
    pub(super) fn new(rules: Rules, entries_left: u32, next_wear_move: u64) -> Hybrid {
        Hybrid {
            shared: Shared::new(rules, entries_left, next_wear_move),
            data: BTreeSet::new(),
            blocks: BTreeSet::new(),
            log: Vec::new(),
            open: Vec::new(),
            next_cold_unit: 0,
        }
    }

    pub(super) fn erases(&self) -> u64 {
        self.shared.erases
    }

    pub(super) fn write_us(&mut self, start: u64, count: u64) -> u64 {
        self.shared.us = self.shared.rules.commit_us;
        for (page, blocks) in pages_of(&self.shared.rules.clone(), start, count) {
            let holds = self.data.contains(&page);
            match self.shared.buffer(page, &blocks, holds) {
                true => self.write_complete(page),
                false => {
                    let parts = blocks.len().div_ceil(self.shared.rules.part_blocks);
                    self.shared.us += (parts as u64 - 1) * self.shared.rules.commit_us;
                    for _ in 0..parts {
                        self.log_page(page);
                        self.data.insert(page);
                    }
                }
            }
            self.data.insert(page);
            if self.shared.erases >= self.shared.next_wear_move {
                self.level_wear();
                self.shared.next_wear_move =
                    self.shared.erases + self.shared.rules.wear_levelling_erases;
            }
        }
        self.shared.us
    }

    pub(super) fn discard(&mut self, start: u64, count: u64) {
        let per_unit = self.shared.rules.pages_per_unit;
        let pages = whole_pages(&self.shared.rules, start, count);
        self.forget(|page| pages.contains(&page));
        self.data.retain(|page| !pages.contains(page));
        self.shared.ram.retain(|(page, _)| !pages.contains(page));
        let units: BTreeSet<u32> = pages.iter().map(|page| page / per_unit).collect();
        for unit in units {
            let all = (unit * per_unit..(unit + 1) * per_unit).all(|page| pages.contains(&page));
            let is_open = self.open.iter().any(|&(open, _)| open == unit);
            if all && !is_open && self.blocks.contains(&unit) {
                self.map(unit, false);
            }
        }
    }

    fn write_complete(&mut self, page: u32) {
        let rules = self.shared.rules.clone();
        let (unit, within) = (page / rules.pages_per_unit, page % rules.pages_per_unit);
        if within == 0 && rules.open_units > 0 {
            let again = self.open.iter().position(|&(known, _)| known == unit);
            let full = self.open.len() == rules.open_units;
            if let Some(at) = again.or(full.then_some(0)) {
                self.close(at);
            }
            self.open.push((unit, 0));
        }
        let Some(at) = self.open.iter().position(|&open| open == (unit, within)) else {
            return self.log_page(page);
        };
        self.forget(|other| other == page);
        self.shared.us += rules.program_us;
        self.open[at].1 += 1;
        if self.open[at].1 == rules.pages_per_unit {
            self.open.remove(at);
            self.map(unit, true);
        }
    }

    fn log_page(&mut self, page: u32) {
        let rules = self.shared.rules.clone();
        let is_full = |block: &Vec<u32>| block.len() == rules.log_pages_per_block;
        if self.log.last().is_none_or(is_full) {
            self.log.push(Vec::new());
            if self.log.len() > rules.log_limit {
                (0..rules.gc_log_blocks).for_each(|_| self.free_oldest());
            }
        }
        self.forget(|other| other == page);
        if let Some(newest) = self.log.last_mut() {
            newest.push(page);
        }
        self.shared.us += rules.log_program_us;
    }

    pub(super) fn free_oldest(&mut self) {
        while let Some(&page) = self.log[0].iter().find(|&&page| page != u32::MAX) {
            let unit = page / self.shared.rules.pages_per_unit;
            match self.open.iter().position(|&(known, _)| known == unit) {
                Some(at) => self.close(at),
                None => self.merge(unit),
            }
        }
        self.log.remove(0);
        self.shared.erase();
    }

    fn held(&self, unit: u32, from: u32) -> usize {
        let per_unit = self.shared.rules.pages_per_unit;
        let pages = unit * per_unit + from..(unit + 1) * per_unit;
        self.data.range(pages).count()
    }

    fn merge(&mut self, unit: u32) {
        let per_unit = self.shared.rules.pages_per_unit;
        self.forget(|page| page / per_unit == unit);
        let held = self.held(unit, 0);
        self.shared.copy(held);
        self.map(unit, held > 0);
    }

    fn close(&mut self, at: usize) {
        let per_unit = self.shared.rules.pages_per_unit;
        let (unit, next) = self.open.remove(at);
        let again = |&page: &u32| (unit * per_unit..unit * per_unit + next).contains(&page);
        if self.log.iter().flatten().any(again) {
            self.merge(unit);
            return self.shared.erase();
        }
        self.forget(|page| page / per_unit == unit);
        self.shared.copy(self.held(unit, next));
        self.map(unit, true);
    }

    fn map(&mut self, unit: u32, has_block: bool) {
        self.shared.map(unit);
        if self.blocks.remove(&unit) {
            self.shared.erase();
        }
        if has_block {
            self.blocks.insert(unit);
        }
    }

    fn level_wear(&mut self) {
        let unit = self.next_cold_unit;
        self.next_cold_unit = (unit + 1) % self.shared.rules.units;
        let is_open = self.open.iter().any(|&(open, _)| open == unit);
        if is_open || !self.blocks.contains(&unit) {
            return;
        }
        let per_unit = self.shared.rules.pages_per_unit;
        self.forget(|page| page / per_unit == unit);
        self.shared.copy(self.held(unit, 0));
        self.map(unit, true);
    }

    fn forget(&mut self, is: impl Fn(u32) -> bool) {
        let pages = self.log.iter_mut().flatten();
        pages
            .filter(|page| **page != u32::MAX && is(**page))
            .for_each(|page| *page = u32::MAX);
    }
}

/// Page mapping. A block is a list of the pages programmed to it; stale ones are `u32::MAX`.
pub(super) struct Paged {
    shared: Shared,
    blocks: Vec<Vec<u32>>,
    free: VecDeque<usize>,
    closed: Vec<usize>,
    head: Option<usize>,
    is_fifo: bool,
}

impl Paged {
    pub(super) fn new(
        rules: Rules,
        entries_left: u32,
        next_wear_move: u64,
        is_fifo: bool,
    ) -> Paged {
        let blocks = rules.blocks as usize;
        Paged {
            shared: Shared::new(rules, entries_left, next_wear_move),
            blocks: vec![Vec::new(); blocks],
            free: (0..blocks).collect(),
            closed: Vec::new(),
            head: None,
            is_fifo,
        }
    }

    pub(super) fn erases(&self) -> u64 {
        self.shared.erases
    }

    pub(super) fn write_us(&mut self, start: u64, count: u64) -> u64 {
        self.shared.us = self.shared.rules.commit_us;
        for (page, blocks) in pages_of(&self.shared.rules.clone(), start, count) {
            let holds = self.blocks.iter().flatten().any(|known| *known == page);
            let parts = match self.shared.buffer(page, &blocks, holds) {
                true => 1,
                false => blocks.len().div_ceil(self.shared.rules.part_blocks),
            };
            self.shared.us += (parts as u64 - 1) * self.shared.rules.commit_us;
            for _ in 0..parts {
                while self.is_head_full() && self.free.len() <= 1 {
                    self.collect();
                }
                self.append(page);
                self.shared.us += self.shared.rules.program_us;
            }
        }
        self.shared.us
    }

    pub(super) fn discard(&mut self, start: u64, count: u64) {
        let pages = whole_pages(&self.shared.rules, start, count);
        self.forget(|page| pages.contains(&page));
        self.shared.ram.retain(|(page, _)| !pages.contains(page));
    }

    fn is_head_full(&self) -> bool {
        let per_block = self.shared.rules.pages_per_unit as usize;
        self.head
            .is_none_or(|head| self.blocks[head].len() == per_block)
    }

    fn append(&mut self, page: u32) {
        if self.is_head_full() {
            self.closed.extend(self.head);
            self.head = self.free.pop_front();
        }
        self.forget(|known| known == page);
        let head = self.head.expect("a free block");
        self.blocks[head].push(page);
        self.shared.map(page);
    }

    fn collect(&mut self) {
        let valid = |block: &usize| {
            self.blocks[*block]
                .iter()
                .filter(|page| **page != u32::MAX)
                .count()
        };
        let per_block = self.shared.rules.pages_per_unit as usize;
        let at = match self.is_fifo {
            true => self
                .closed
                .iter()
                .position(|block| valid(block) < per_block),
            false => (0..self.closed.len()).min_by_key(|&at| valid(&self.closed[at])),
        };
        let victim = self.closed.remove(at.expect("a victim"));
        let pages: Vec<u32> = self.blocks[victim]
            .iter()
            .copied()
            .filter(|page| *page != u32::MAX)
            .collect();
        self.shared.copy(pages.len());
        pages.into_iter().for_each(|page| self.append(page));
        self.blocks[victim].clear();
        self.free.push_back(victim);
        self.shared.erase();
    }

    fn forget(&mut self, is: impl Fn(u32) -> bool) {
        let pages = self.blocks.iter_mut().flatten();
        pages
            .filter(|page| **page != u32::MAX && is(**page))
            .for_each(|page| *page = u32::MAX);
    }
}
