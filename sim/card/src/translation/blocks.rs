//! Physical blocks: the mapping of units, erase counts, and free blocks.

use crate::nand::{Nand, Work};
use crate::profile::Flash;
use crate::state::{Reader, Writer};
use crate::{Profile, StateError};
use cardiograph_sim_world::Seed;
use std::collections::VecDeque;

/// Blocks in use in addition to those of units, logs and open units: the destination of garbage collection,
/// and a block that is in use while the last spare wears out.
const WORKING_BLOCKS: u32 = 2;

/// Physical blocks. Every block is in use, free, or retired.
#[derive(Clone)]
pub(crate) struct Blocks {
    /// Number of erases of each block so far, during the simulation.
    cycles: Vec<u32>,
    /// Number of erases of each block before the simulation.
    cycles_used: u32,
    block_of_unit: Vec<u32>,
    /// Free blocks, in the order in which they became free, so that all blocks are used in turn
    /// and wear evenly.
    free: VecDeque<u32>,
    spares_left: u32,
    is_worn_out: bool,
    endurance: Endurance,
    erases: u64,
}

/// Endurance in erases: differs from block to block, as on a real chip.
#[derive(Clone)]
pub(crate) struct Endurance {
    mean_cycles: u64,
    spread_percent: u64,
    seed: Seed,
}

impl Endurance {
    pub(crate) fn new(flash: &Flash, seed: Seed) -> Endurance {
        Endurance {
            mean_cycles: flash.endurance_cycles.into(),
            spread_percent: flash.endurance_spread_percent.into(),
            seed: seed.child("endurance"),
        }
    }

    pub(crate) fn seed(&self) -> Seed {
        self.seed
    }

    pub(crate) fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    pub(crate) fn of(&self, block: u32) -> u64 {
        // A random stream per block, derived again at each erase, needs no memory.
        let mut random = self.seed.nth(block.into());
        let width = self.mean_cycles * self.spread_percent / 50;
        self.mean_cycles - width / 2 + random.below(width + 1)
    }
}

impl Blocks {
    /// Creates the blocks for a profile whose logs and open units take `other_blocks` blocks.
    pub(crate) fn new(profile: &Profile, other_blocks: u32, seed: Seed) -> Blocks {
        let flash = &profile.flash;
        let units = profile.units();
        let all = units + other_blocks + WORKING_BLOCKS + flash.spare_blocks;
        Blocks {
            cycles: vec![0; all as usize],
            cycles_used: flash.cycles_used,
            block_of_unit: (0..units).collect(),
            free: (units..all).collect(),
            spares_left: flash.spare_blocks,
            is_worn_out: false,
            endurance: Endurance::new(flash, seed),
            erases: 0,
        }
    }

    /// Writes the state.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        to.list(self.cycles.iter().copied());
        to.list(self.block_of_unit.iter().copied());
        to.list(self.free.iter().copied());
        to.u32(self.spares_left);
        to.u32(self.is_worn_out.into());
        to.u64(self.endurance.seed.number());
        to.u64(self.erases);
    }

    /// Replaces the state of new blocks by a saved one.
    pub(crate) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        let (all, units) = (self.cycles.len(), self.block_of_unit.len());
        self.cycles = from.list(all, "number of erases", |_| true)?;
        self.block_of_unit = from.list(units, "flash block", |block| (block as usize) < all)?;
        if self.cycles.len() != all || self.block_of_unit.len() != units {
            return Err(StateError::OutOfRange {
                what: "number of flash blocks",
            });
        }
        self.free = from
            .list(all, "free flash block", |block| (block as usize) < all)?
            .into();
        self.spares_left = from.u32()?;
        self.is_worn_out = from.below(2, "mark of a worn-out card")? == 1;
        self.endurance.seed = Seed::new(from.u64()?);
        self.erases = from.u64()?;
        Ok(())
    }

    /// Returns the number of flash blocks.
    pub(crate) fn all(&self) -> u32 {
        self.cycles.len() as u32
    }

    /// Allocates a free block.
    pub(crate) fn allocate(&mut self) -> u32 {
        // Without a free block, the card accepts no more writes; the write in progress still completes.
        self.free.pop_front().unwrap_or_else(|| {
            self.is_worn_out = true;
            0
        })
    }

    /// Allocates the free block with the most erases, for rarely written data, so that the block is erased
    /// less often.
    pub(crate) fn allocate_most_worn(&mut self) -> u32 {
        let worn = |at: &usize| self.cycles[self.free[*at] as usize];
        match (0..self.free.len()).max_by_key(worn) {
            Some(at) => self.free.remove(at).unwrap_or_default(),
            None => self.allocate(),
        }
    }

    /// Erases a block, which is then free again, or retired if it is worn out.
    pub(crate) fn erase(&mut self, block: u32, nand: &mut Nand) -> Work {
        let cycles = &mut self.cycles[block as usize];
        let before = self.cycles_used.saturating_add(*cycles);
        *cycles += 1;
        self.erases += 1;
        if u64::from(before) < self.endurance.of(block) {
            self.free.push_back(block);
        } else {
            self.is_worn_out |= self.spares_left == 0;
            self.spares_left = self.spares_left.saturating_sub(1);
        }
        nand.erase(before)
    }

    /// Maps a unit to another block; returns the old block.
    pub(crate) fn map_unit(&mut self, unit: u32, block: u32) -> u32 {
        std::mem::replace(&mut self.block_of_unit[unit as usize], block)
    }

    /// Returns the number of units.
    pub(crate) fn units(&self) -> u32 {
        self.block_of_unit.len() as u32
    }

    /// Returns true if more blocks are worn out than there were spares.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.is_worn_out
    }

    /// Returns the number of spare blocks left.
    pub(crate) fn spares_left(&self) -> u32 {
        self.spares_left
    }

    /// Returns the total number of erases.
    pub(crate) fn erases(&self) -> u64 {
        self.erases
    }

    /// Returns the lowest and the highest number of erases of any block during the simulation.
    pub(crate) fn cycles(&self) -> std::ops::RangeInclusive<u32> {
        let least = self.cycles.iter().min().copied().unwrap_or_default();
        let most = self.cycles.iter().max().copied().unwrap_or_default();
        least..=most
    }
}
