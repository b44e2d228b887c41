//! What a power cut takes back.

use crate::Block;
use crate::medium::Medium;
use std::collections::{HashSet, VecDeque};

/// Blocks as they were before they were written, for as long as their flash may not hold them.
#[derive(Clone)]
pub(super) struct InFlight {
    /// Blocks that are said to be durable and are not.
    volatile_blocks: usize,
    /// Oldest first; the last `current` belong to the page being programmed.
    before: VecDeque<Before>,
    current: usize,
    program_ns: std::ops::Range<u64>,
}

#[derive(Clone)]
struct Before {
    block: u64,
    place: u64,
    held: Block,
    was_unreadable: bool,
    promised: Option<Box<Block>>,
}

/// A page that was being programmed when power failed.
pub(super) struct Torn {
    /// Blocks of it that were to be new: where they lie, and what.
    pub(super) blocks: Vec<(u64, Block)>,
    /// How far it had come, of 2^16.
    pub(super) done: u64,
}

impl Torn {
    pub(super) fn new_data(&self, place: u64) -> Option<&Block> {
        let found = self.blocks.iter().find(|(known, _)| *known == place);
        found.map(|(_, data)| data)
    }
}

impl InFlight {
    pub(super) fn new(volatile_blocks: u32) -> InFlight {
        InFlight {
            volatile_blocks: volatile_blocks as usize,
            before: VecDeque::new(),
            current: 0,
            program_ns: 0..0,
        }
    }

    /// Begins to program a page; the one before it is done.
    pub(super) fn begin(&mut self, program_ns: std::ops::Range<u64>) {
        self.settle();
        self.program_ns = program_ns;
    }

    /// Lets the page under way take longer; one that is done stays so.
    pub(super) fn stall(&mut self, now_ns: u64, extra_ns: u64) {
        if now_ns < self.program_ns.end {
            self.program_ns.end = self.program_ns.end.saturating_add(extra_ns);
        }
    }

    /// Nothing is in flight any more.
    pub(super) fn settle(&mut self) {
        self.current = 0;
        let surplus = self.before.len().saturating_sub(self.volatile_blocks);
        self.before.drain(..surplus);
    }

    /// Keeps a block of the page as it was before.
    pub(super) fn note(
        &mut self,
        block: u64,
        place: u64,
        medium: &Medium,
        unreadable: &HashSet<u64>,
        promised: Option<&Medium>,
    ) {
        let mut before = Before {
            block,
            place,
            held: [0; _],
            was_unreadable: unreadable.contains(&place),
            promised: promised.map(|medium| {
                let mut data = Box::new([0; _]);
                medium.read(block, &mut data);
                data
            }),
        };
        medium.read(place, &mut before.held);
        self.before.push_back(before);
        self.current += 1;
    }

    /// Takes back what flash does not hold at this time; tells which page was torn.
    pub(super) fn undo(
        &mut self,
        now_ns: u64,
        medium: &mut Medium,
        unreadable: &mut HashSet<u64>,
        mut promised: Option<&mut Medium>,
    ) -> Option<Torn> {
        if now_ns >= self.program_ns.end {
            self.settle();
        }
        let current = std::mem::take(&mut self.current);
        let mut blocks = Vec::new();
        for (age, before) in self.before.drain(..).rev().enumerate() {
            if age < current {
                let mut new = [0; _];
                medium.read(before.place, &mut new);
                blocks.push((before.place, new));
                if let Some(promised) = promised.as_mut() {
                    // Both were the same as long as only one was kept.
                    let data = before.promised.as_deref().unwrap_or(&before.held);
                    promised.write(before.block, data);
                }
            }
            medium.write(before.place, &before.held);
            if before.was_unreadable {
                unreadable.insert(before.place);
            }
        }
        let begun = self.program_ns.contains(&now_ns) && !blocks.is_empty();
        begun.then(|| Torn {
            blocks,
            done: done_of_2_16(now_ns, &self.program_ns),
        })
    }
}

/// How much of a time that has begun is over, of 2^16.
fn done_of_2_16(now_ns: u64, program_ns: &std::ops::Range<u64>) -> u64 {
    let done_ns = u128::from(now_ns - program_ns.start) << 16;
    (done_ns / u128::from(program_ns.end - program_ns.start)) as u64
}
