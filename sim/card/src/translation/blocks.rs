//! Physical blocks: which unit lies where, how often each was erased, and which are left.

use crate::Profile;
use crate::nand::{Nand, Work};
use cardiograph_sim_world::Seed;
use std::collections::VecDeque;

/// Blocks that may be in use beside those of units, logs and open units: one that clean-up copies to,
/// and one that stands in while the last spare gives out.
const WORKING_BLOCKS: u32 = 2;

/// Every block is in use, free, or retired.
#[derive(Clone)]
pub(crate) struct Blocks {
    /// Erases of each block so far.
    cycles: Vec<u32>,
    /// Erases behind each block when the card was new to us.
    cycles_used: u32,
    of_unit: Vec<u32>,
    /// Longest free first: so each has its turn, and none wears ahead of the others.
    free: VecDeque<u32>,
    spares_left: u32,
    is_worn_out: bool,
    endurance: Endurance,
    erases: u64,
}

/// How many erases a block bears: each its own number, as blocks of one chip differ.
#[derive(Clone)]
struct Endurance {
    mean_cycles: u64,
    spread_percent: u64,
    seed: Seed,
}

impl Endurance {
    fn of(&self, block: u32) -> u64 {
        // A stream for each block costs no memory; it is asked for once an erase.
        let mut random = self.seed.nth(block.into());
        let width = self.mean_cycles * self.spread_percent / 50;
        self.mean_cycles - width / 2 + random.below(width + 1)
    }
}

impl Blocks {
    /// Blocks for a profile whose logs and open units take `beside_units`.
    pub(crate) fn new(profile: &Profile, beside_units: u32, seed: Seed) -> Blocks {
        let flash = &profile.flash;
        let units = profile.units();
        let all = units + beside_units + WORKING_BLOCKS + flash.spare_blocks;
        Blocks {
            cycles: vec![0; all as usize],
            cycles_used: flash.cycles_used,
            of_unit: (0..units).collect(),
            free: (units..all).collect(),
            spares_left: flash.spare_blocks,
            is_worn_out: false,
            endurance: Endurance {
                mean_cycles: flash.endurance_cycles.into(),
                spread_percent: flash.endurance_spread_percent.into(),
                seed: seed.child("endurance"),
            },
            erases: 0,
        }
    }

    /// Takes a free block.
    pub(crate) fn take(&mut self) -> u32 {
        // Where none is left the card takes no writes from now on; the one under way still ends.
        self.free.pop_front().unwrap_or_else(|| {
            self.is_worn_out = true;
            0
        })
    }

    /// Takes the free block that was erased most often: data that is seldom written lets it rest.
    pub(crate) fn take_most_worn(&mut self) -> u32 {
        let worn = |at: &usize| self.cycles[self.free[*at] as usize];
        match (0..self.free.len()).max_by_key(worn) {
            Some(at) => self.free.remove(at).unwrap_or_default(),
            None => self.take(),
        }
    }

    /// Erases a block; it is free again, or retired if it has given out.
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

    /// Lets a unit lie in another block from now on; returns the one it lay in.
    pub(crate) fn place_unit(&mut self, unit: u32, block: u32) -> u32 {
        std::mem::replace(&mut self.of_unit[unit as usize], block)
    }

    /// Units there are.
    pub(crate) fn units(&self) -> u32 {
        self.of_unit.len() as u32
    }

    /// Whether more blocks have given out than there are spares.
    pub(crate) fn is_worn_out(&self) -> bool {
        self.is_worn_out
    }

    /// Spare blocks that are left.
    pub(crate) fn spares_left(&self) -> u32 {
        self.spares_left
    }

    /// Erases of all blocks together.
    pub(crate) fn erases(&self) -> u64 {
        self.erases
    }

    /// Least and most erases of a block since the card was new to us.
    pub(crate) fn cycles(&self) -> std::ops::RangeInclusive<u32> {
        let least = self.cycles.iter().min().copied().unwrap_or_default();
        let most = self.cycles.iter().max().copied().unwrap_or_default();
        least..=most
    }
}
