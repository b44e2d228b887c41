//! Blocks in flight, and their rollback after a power cut.

use crate::Block;
use crate::storage::Storage;
use std::collections::{HashSet, VecDeque};

/// Old contents of blocks whose new contents may not be in flash yet.
#[derive(Clone)]
pub(super) struct InFlight {
    /// Number of blocks that the card reports as durable although they are only in RAM.
    volatile_blocks: usize,
    /// Old contents of blocks, oldest first; the last `current` entries belong to the page being
    /// programmed.
    old_blocks: VecDeque<OldBlock>,
    current: usize,
    program_ns: std::ops::Range<u64>,
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
    pub(super) fn new(volatile_blocks: u32) -> InFlight {
        InFlight {
            volatile_blocks: volatile_blocks as usize,
            old_blocks: VecDeque::new(),
            current: 0,
            program_ns: 0..0,
        }
    }

    /// Starts programming a page; the previous page is complete.
    pub(super) fn begin(&mut self, program_ns: std::ops::Range<u64>) {
        self.complete();
        self.program_ns = program_ns;
    }

    /// Extends the programming in progress; a completed page stays complete.
    pub(super) fn extend_busy(&mut self, now_ns: u64, extra_ns: u64) {
        if now_ns < self.program_ns.end {
            self.program_ns.end = self.program_ns.end.saturating_add(extra_ns);
        }
    }

    /// Completes the page in flight, if any.
    pub(super) fn complete(&mut self) {
        self.current = 0;
        let surplus = self.old_blocks.len().saturating_sub(self.volatile_blocks);
        self.old_blocks.drain(..surplus);
    }

    /// Saves the old contents of a block on the page that is being programmed.
    pub(super) fn save_old(
        &mut self,
        block: u64,
        physical_block: u64,
        storage: &Storage,
        unreadable: &HashSet<u64>,
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
        self.current += 1;
    }

    /// Rolls back blocks that are not in flash at `now_ns`; returns the torn page, if any.
    pub(super) fn roll_back(
        &mut self,
        now_ns: u64,
        storage: &mut Storage,
        unreadable: &mut HashSet<u64>,
        mut ideal: Option<&mut Storage>,
    ) -> Option<Torn> {
        if now_ns >= self.program_ns.end {
            self.complete();
        }
        let current = std::mem::take(&mut self.current);
        let mut blocks = Vec::new();
        for (age, old) in self.old_blocks.drain(..).rev().enumerate() {
            if age < current {
                let mut new = [0; _];
                storage.read(old.physical_block, &mut new);
                blocks.push((old.physical_block, new));
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
        let begun = self.program_ns.contains(&now_ns) && !blocks.is_empty();
        begun.then(|| Torn {
            blocks,
            done: done_of_2_16(now_ns, &self.program_ns),
        })
    }
}

/// Returns the elapsed fraction of a time span that has begun, in units of 2^-16.
fn done_of_2_16(now_ns: u64, program_ns: &std::ops::Range<u64>) -> u64 {
    let done_ns = u128::from(now_ns - program_ns.start) << 16;
    (done_ns / u128::from(program_ns.end - program_ns.start)) as u64
}
