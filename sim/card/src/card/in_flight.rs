//! Blocks in flight, and their rollback after a power cut.

use crate::Block;
use crate::storage::{BlockSet, Storage};
use std::collections::VecDeque;
use std::ops::Range;

/// Old contents of blocks whose new contents may not be in flash yet.
#[derive(Clone)]
pub(super) struct InFlight {
    /// Number of blocks that the card reports as durable although they are only in RAM.
    volatile_blocks: usize,
    /// True if a page may be received while earlier ones are programmed.
    is_ahead: bool,
    /// Old contents of blocks, oldest first; the last entries belong to `pages`.
    old_blocks: VecDeque<OldBlock>,
    /// Pages that are being programmed, or wait for it, oldest first.
    pages: VecDeque<PageInFlight>,
}

/// A page that is not in flash yet.
#[derive(Clone)]
struct PageInFlight {
    program_ns: Range<u64>,
    blocks: usize,
}

#[derive(Clone)]
struct OldBlock {
    block: u64,
    physical_block: u64,
    stored: Block,
    was_unreadable: bool,
    ideal: Option<Box<Block>>,
}

/// A page whose programming was interrupted by a power failure.
pub(super) struct Torn {
    /// Blocks being written to the page: physical address and new data.
    pub(super) blocks: Vec<(u64, Block)>,
    /// Completed fraction of the programming, in units of 2^-16.
    pub(super) done: u64,
}

impl Torn {
    pub(super) fn new_data(&self, physical_block: u64) -> Option<&Block> {
        let found = self
            .blocks
            .iter()
            .find(|(known, _)| *known == physical_block);
        found.map(|(_, data)| data)
    }
}

impl InFlight {
    pub(super) fn new(volatile_blocks: u32, is_ahead: bool) -> InFlight {
        InFlight {
            volatile_blocks: volatile_blocks as usize,
            is_ahead,
            old_blocks: VecDeque::new(),
            pages: VecDeque::new(),
        }
    }

    /// Starts a page that was received at `now_ns`. The previous pages are complete, unless the card receives ahead.
    pub(super) fn begin(&mut self, now_ns: u64, program_ns: Range<u64>) {
        match self.is_ahead {
            true => self.complete_until(now_ns),
            false => self.complete(),
        }
        self.pages.push_back(PageInFlight {
            program_ns,
            blocks: 0,
        });
    }

    /// Extends the programming in progress; a completed page stays complete.
    pub(super) fn extend_busy(&mut self, now_ns: u64, extra_ns: u64) {
        let in_flight = self.pages.iter_mut();
        for page in in_flight.filter(|page| now_ns < page.program_ns.end) {
            page.program_ns.end = page.program_ns.end.saturating_add(extra_ns);
        }
    }

    /// Completes the pages in flight, if any.
    pub(super) fn complete(&mut self) {
        self.complete_until(u64::MAX);
    }

    fn complete_until(&mut self, now_ns: u64) {
        let is_complete = |page: &PageInFlight| page.program_ns.end <= now_ns;
        while self.pages.front().is_some_and(is_complete) {
            self.pages.pop_front();
        }
        let current: usize = self.pages.iter().map(|page| page.blocks).sum();
        let kept = current + self.volatile_blocks;
        let surplus = self.old_blocks.len().saturating_sub(kept);
        self.old_blocks.drain(..surplus);
    }

    /// Saves the old contents of a block on the page that is being programmed.
    pub(super) fn save_old(
        &mut self,
        block: u64,
        physical_block: u64,
        storage: &Storage,
        unreadable: &BlockSet,
        ideal: Option<&Storage>,
    ) {
        let mut old = OldBlock {
            block,
            physical_block,
            stored: [0; _],
            was_unreadable: unreadable.contains(&physical_block),
            ideal: ideal.map(|storage| {
                let mut data = Box::new([0; _]);
                storage.read(block, &mut data);
                data
            }),
        };
        storage.read(physical_block, &mut old.stored);
        self.old_blocks.push_back(old);
        if let Some(page) = self.pages.back_mut() {
            page.blocks += 1;
        }
    }

    /// Rolls back blocks that are not in flash at `now_ns`; returns the torn page, if any.
    pub(super) fn roll_back(
        &mut self,
        now_ns: u64,
        storage: &mut Storage,
        unreadable: &mut BlockSet,
        mut ideal: Option<&mut Storage>,
    ) -> Option<Torn> {
        self.complete_until(now_ns);
        let mut pages = std::mem::take(&mut self.pages);
        let oldest = pages.front();
        let programmed = oldest.map_or(0, |page| page.blocks);
        let program_ns = oldest.map_or(0..0, |page| page.program_ns.clone());
        let current: usize = pages.drain(..).map(|page| page.blocks).sum();
        let mut blocks = Vec::new();
        for (age, old) in self.old_blocks.drain(..).rev().enumerate() {
            if age < current {
                let mut new = [0; _];
                storage.read(old.physical_block, &mut new);
                // Pages that wait are still complete in their old blocks.
                if age >= current - programmed {
                    blocks.push((old.physical_block, new));
                }
                if let Some(ideal) = ideal.as_mut() {
                    // Without a separate copy, the ideal and the actual contents were the same.
                    let data = old.ideal.as_deref().unwrap_or(&old.stored);
                    ideal.write(old.block, data);
                }
            }
            storage.write(old.physical_block, &old.stored);
            if old.was_unreadable {
                unreadable.insert(old.physical_block);
            }
        }
        let begun = program_ns.contains(&now_ns) && !blocks.is_empty();
        begun.then(|| Torn {
            blocks,
            done: done_of_2_16(now_ns, &program_ns),
        })
    }
}

/// Returns the elapsed fraction of a time span that has begun, in units of 2^-16.
fn done_of_2_16(now_ns: u64, program_ns: &std::ops::Range<u64>) -> u64 {
    let done_ns = u128::from(now_ns - program_ns.start) << 16;
    (done_ns / u128::from(program_ns.end - program_ns.start)) as u64
}
