//! A reference model with the same rules and no optimisations: it searches every table from end to end. The
//! tests compare the translation layer with this model.

/// Operation times in us of a chip without spread, and the sizes that the rules depend on.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) pages_per_unit: u32,
    pub(super) blocks_per_page: u64,
    pub(super) open_units: usize,
    pub(super) ram_pages: usize,
    pub(super) log_blocks: u32,
    pub(super) gc_log_blocks: u32,
    pub(super) wear_levelling_erases: u64,
    pub(super) read_us: u64,
    pub(super) program_us: u64,
    pub(super) log_program_us: u64,
    pub(super) erase_us: u64,
}

pub(super) struct Reference {
    rules: Rules,
    /// Log blocks, oldest first; one page per slot, in the order of writing.
    log: Vec<Vec<u32>>,
    open: Vec<(u32, u32)>,
    ram: Vec<(u32, Vec<bool>)>,
    pub(super) erases: u64,
    next_wear_move: u64,
    us: u64,
}

impl Reference {
    pub(super) fn new(rules: Rules) -> Reference {
        Reference {
            rules,
            log: Vec::new(),
            open: Vec::new(),
            ram: Vec::new(),
            erases: 0,
            next_wear_move: rules.wear_levelling_erases,
            us: 0,
        }
    }

    /// Writes consecutive blocks; returns how long this takes, in us.
    pub(super) fn write_us(&mut self, start: u64, count: u64) -> u64 {
        self.us = 0;
        let per_page = self.rules.blocks_per_page;
        let mut block = start;
        while block < start + count {
            let page = (block / per_page) as u32;
            let end = (start + count).min((u64::from(page) + 1) * per_page);
            let within: Vec<usize> = (block..end).map(|b| (b % per_page) as usize).collect();
            self.write_page(page, &within);
            block = end;
        }
        if self.erases >= self.next_wear_move {
            self.copy(self.rules.pages_per_unit);
            self.erase();
            self.next_wear_move = self.erases + self.rules.wear_levelling_erases;
        }
        self.us
    }

    fn write_page(&mut self, page: u32, blocks: &[usize]) {
        let complete = self.rules.blocks_per_page as usize;
        let mut written = match self.ram.iter().position(|(known, _)| *known == page) {
            Some(at) => self.ram.remove(at).1,
            None => {
                if blocks.len() < complete {
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
        match is_complete {
            true => self.write_complete_page(page),
            false => self.append_to_log(page),
        }
    }

    fn write_complete_page(&mut self, page: u32) {
        let (unit, within) = (
            page / self.rules.pages_per_unit,
            page % self.rules.pages_per_unit,
        );
        if within == 0 && self.rules.open_units > 0 {
            let again = self.open.iter().position(|&(known, _)| known == unit);
            let full = self.open.len() == self.rules.open_units;
            if let Some(at) = again.or(full.then_some(0)) {
                self.close(at);
            }
            self.open.push((unit, 0));
        }
        match self.open.iter().position(|&open| open == (unit, within)) {
            Some(at) => {
                self.invalidate(|other| other == page);
                self.us += self.rules.program_us;
                self.open[at].1 += 1;
                if self.open[at].1 == self.rules.pages_per_unit {
                    self.open.remove(at);
                    self.erase();
                }
            }
            None => self.append_to_log(page),
        }
    }

    fn append_to_log(&mut self, page: u32) {
        let block_is_full = |block: &Vec<u32>| block.len() as u32 == self.rules.pages_per_unit;
        if self.log.last().is_none_or(block_is_full) {
            self.log.push(Vec::new());
            if self.log.len() as u32 > self.rules.log_blocks {
                (0..self.rules.gc_log_blocks).for_each(|_| self.free_oldest());
            }
        }
        self.invalidate(|other| other == page);
        if let Some(newest) = self.log.last_mut() {
            newest.push(page);
        }
        self.us += self.rules.log_program_us;
    }

    fn free_oldest(&mut self) {
        while let Some(&page) = self.log[0].iter().find(|&&page| page != u32::MAX) {
            let unit = page / self.rules.pages_per_unit;
            match self.open.iter().position(|&(known, _)| known == unit) {
                Some(at) => self.close(at),
                None => self.merge(unit),
            }
        }
        self.log.remove(0);
        self.erase();
    }

    fn merge(&mut self, unit: u32) {
        let per_unit = self.rules.pages_per_unit;
        self.invalidate(|page| page / per_unit == unit);
        self.copy(per_unit);
        self.erase();
    }

    fn close(&mut self, at: usize) {
        let (unit, next) = self.open.remove(at);
        let first = unit * self.rules.pages_per_unit;
        let again = |&page: &u32| (first..first + next).contains(&page);
        if self.log.iter().flatten().any(again) {
            self.merge(unit);
            return self.erase();
        }
        let per_unit = self.rules.pages_per_unit;
        self.invalidate(|page| page / per_unit == unit);
        self.copy(per_unit - next);
        self.erase();
    }

    /// Marks log pages as rewritten elsewhere.
    fn invalidate(&mut self, is: impl Fn(u32) -> bool) {
        let pages = self.log.iter_mut().flatten();
        pages
            .filter(|page| **page != u32::MAX && is(**page))
            .for_each(|page| *page = u32::MAX);
    }

    fn copy(&mut self, pages: u32) {
        self.us += u64::from(pages) * (self.rules.read_us + self.rules.program_us);
    }

    fn erase(&mut self) {
        self.erases += 1;
        self.us += self.rules.erase_us;
    }
}
