//! The pool of flash blocks: every block is in use, free, or retired because it is worn out.
//!
//! Spare blocks are not set aside: they are blocks beyond those that the capacity takes, and all blocks are
//! used in turn. A block that wears out makes the pool smaller, which leaves less room for garbage.

use crate::nand::{Nand, Work};
use crate::state::{Reader, Writer};
use crate::translation::blocks::Endurance;
use crate::{Profile, StateError};
use cardiograph_sim_world::Seed;
use std::collections::VecDeque;
use std::ops::RangeInclusive;

#[derive(Clone)]
pub(super) struct Pool {
    counts: Vec<Counts>,
    /// Number of erases of each block before the simulation.
    cycles_used: u32,
    /// Free blocks, in the order in which they became free, so that all blocks are used in turn.
    free: VecDeque<Free>,
    spares: u32,
    retired: u32,
    is_worn_out: bool,
    endurance: Endurance,
    erases: u64,
}

/// Counters of a block, together because an operation needs both.
#[derive(Clone, Copy, Default)]
struct Counts {
    /// Erases so far, during the simulation.
    cycles: u32,
    /// Pages read since it was erased.
    reads: u32,
}

/// A free block. Its erases are next to those of the other free blocks because wear levelling compares them all.
#[derive(Clone, Copy)]
struct Free {
    block: u32,
    cycles: u32,
}

impl Pool {
    /// Creates a pool in which every block is free.
    pub(super) fn new(profile: &Profile, seed: Seed) -> Pool {
        let flash = &profile.flash;
        let all = profile.blocks() as usize;
        Pool {
            counts: vec![Counts::default(); all],
            cycles_used: flash.cycles_used,
            free: (0..all as u32)
                .map(|block| Free { block, cycles: 0 })
                .collect(),
            spares: flash.spare_blocks,
            retired: 0,
            is_worn_out: false,
            endurance: Endurance::new(flash, seed),
            erases: 0,
        }
    }

    /// Returns the number of blocks.
    pub(super) fn all(&self) -> u32 {
        self.counts.len() as u32
    }

    pub(super) fn free(&self) -> u32 {
        self.free.len() as u32
    }

    pub(super) fn retired(&self) -> u32 {
        self.retired
    }

    pub(super) fn spares_left(&self) -> u32 {
        self.spares.saturating_sub(self.retired)
    }

    /// Allocates a free block. Without one, the card is worn out; only the write in progress completes.
    pub(super) fn allocate(&mut self) -> Option<u32> {
        let block = self.free.pop_front().map(|free| free.block);
        self.is_worn_out |= block.is_none();
        block
    }

    /// Allocates the free block with the most erases, for rarely written data.
    pub(super) fn allocate_most_worn(&mut self) -> Option<u32> {
        let all = self.free.iter().enumerate();
        let (at, _) = all.max_by_key(|(_, free)| free.cycles)?;
        self.free.remove(at).map(|free| free.block)
    }

    /// Erases a block, which is then free again, or retired if it is worn out.
    pub(super) fn erase(&mut self, block: u32, nand: &mut Nand) -> Work {
        let counts = &mut self.counts[block as usize];
        let before = self.cycles_used.saturating_add(counts.cycles);
        *counts = Counts {
            cycles: counts.cycles + 1,
            reads: 0,
        };
        self.erases += 1;
        if u64::from(before) < self.endurance.of(block) {
            let cycles = counts.cycles;
            self.free.push_back(Free { block, cycles });
        } else {
            self.is_worn_out |= self.spares_left() == 0;
            self.retired += 1;
        }
        nand.erase(before)
    }

    /// Returns the number of erases of a block in its life.
    pub(super) fn life_cycles(&self, block: u32) -> u32 {
        let cycles = self.counts[block as usize].cycles;
        self.cycles_used.saturating_add(cycles)
    }

    /// Counts a read of a page of a block; returns true if the block has now been read `reads_max` times.
    pub(super) fn count_read(&mut self, block: u32, reads_max: u32) -> bool {
        let reads = &mut self.counts[block as usize].reads;
        *reads += 1;
        *reads >= reads_max
    }

    /// Declares the card worn out: no room is left for garbage.
    pub(super) fn wear_out(&mut self) {
        self.is_worn_out = true;
    }

    pub(super) fn is_worn_out(&self) -> bool {
        self.is_worn_out
    }

    pub(super) fn erases(&self) -> u64 {
        self.erases
    }

    /// Returns the lowest and the highest number of erases of any block during the simulation.
    pub(super) fn cycles(&self) -> RangeInclusive<u32> {
        let cycles = || self.counts.iter().map(|counts| counts.cycles);
        let least = cycles().min().unwrap_or_default();
        let most = cycles().max().unwrap_or_default();
        least..=most
    }

    pub(super) fn write_state(&self, to: &mut Writer) {
        to.list(self.counts.iter().map(|counts| counts.cycles));
        to.list(self.free.iter().map(|free| free.block));
        to.list(self.counts.iter().map(|counts| counts.reads));
        to.u32(self.retired);
        to.u32(self.is_worn_out.into());
        to.u64(self.endurance.seed().number());
        to.u64(self.erases);
    }

    pub(super) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        let all = self.counts.len();
        let is_block = |block| (block as usize) < all;
        let cycles = from.list(all, "number of erases", |_| true)?;
        let free = from.list(all, "free flash block", is_block)?;
        let reads = from.list(all, "number of reads", |_| true)?;
        if cycles.len() != all || reads.len() != all {
            return Err(StateError::OutOfRange {
                what: "number of flash blocks",
            });
        }
        let free_block = |block| Free {
            block,
            cycles: cycles[block as usize],
        };
        self.free = free.into_iter().map(free_block).collect();
        let counts = cycles.into_iter().zip(reads);
        self.counts = counts
            .map(|(cycles, reads)| Counts { cycles, reads })
            .collect();
        self.retired = from.below(all as u32 + 1, "number of retired blocks")?;
        self.is_worn_out = from.below(2, "mark of a worn-out card")? == 1;
        self.endurance.set_seed(Seed::new(from.u64()?));
        self.erases = from.u64()?;
        Ok(())
    }
}
