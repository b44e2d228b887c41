//! The flash behind the controller: which pages hold data, what a write costs, and when garbage is collected.
//!
//! ```text
//!   Controller ── Flash ──┬── Translation: profiles with `model = 1`           (translation.rs)
//!                         └── Ftl: RAM pages, commits, idle time                (ftl.rs)
//!                               ├── Mapping ── Hybrid: log blocks over units    (hybrid.rs)
//!                               │         └─── Paged: page by page              (paged.rs)
//!                               └── Chip: the parts that both mappings share    (chip.rs)
//!                                     ├── Nand: operation times                (nand.rs)
//!                                     ├── Pool: free blocks, wear, spares      (pool.rs)
//!                                     ├── Table: mapping tables kept in flash  (table.rs)
//!                                     └── Debt: work that writes wait for      (debt.rs)
//! ```
//!
//! Every stall follows from a cause: blocks to free, mapping tables to write back, a block to move because it
//! was read or because others wore more. Garbage collection copies only pages that hold data, so that its cost
//! depends on how full the card is, and on what was discarded.
//!
//! Tests in `tests/laws.rs` compare the write amplification of hybrid and page mapping with published formulas.

mod bits;
mod chip;
mod debt;
mod ftl;
mod hybrid;
mod paged;
mod pool;
mod start;
mod state;
mod table;

use crate::Profile;
use crate::StateError;
use crate::nand::Work;
use crate::profile::MODEL_OF_FIXTURES;
use crate::state::{Reader, Writer};
use crate::translation::{Translation, Written};
pub(crate) use bits::KINDS_MAX;
use cardiograph_sim_world::Seed;
use ftl::Ftl;
pub(crate) use hybrid::reserved_blocks;
use std::ops::{Range, RangeInclusive};

/// The flash of either model.
#[derive(Clone)]
pub(crate) enum Flash {
    /// The flash model of test fixtures.
    First(Box<Translation>),
    /// The present flash model.
    Second(Box<Ftl>),
}

macro_rules! of_either {
    ($flash:expr, $inner:ident => $call:expr) => {
        match $flash {
            Flash::First($inner) => $call,
            Flash::Second($inner) => $call,
        }
    };
}

impl Flash {
    pub(crate) fn new(profile: &Profile, seed: Seed) -> Flash {
        match profile.model {
            MODEL_OF_FIXTURES => Flash::First(Box::new(Translation::new(profile, seed))),
            _ => Flash::Second(Box::new(Ftl::new(profile, seed))),
        }
    }

    /// Writes the state of a card without power.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        of_either!(self, flash => flash.write_state(to));
    }

    /// Replaces the state of a new card by a saved one.
    pub(crate) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        of_either!(self, flash => flash.read_state(from))
    }

    /// Begins a command: the first write after it is committed.
    pub(crate) fn begin_command(&mut self) {
        if let Flash::Second(flash) = self {
            flash.begin_command();
        }
    }

    /// Fetches consecutive blocks.
    pub(crate) fn read(&mut self, start: u64, count: u64) -> Work {
        of_either!(self, flash => flash.read(start, count))
    }

    /// Writes consecutive blocks that were received with one command; they are durable when the work is done.
    pub(crate) fn write(&mut self, start: u64, count: u64) -> Written {
        of_either!(self, flash => flash.write(start, count))
    }

    /// Writes complete pages as by a write each, with idle time between them; see [`Ftl::write_spaced`].
    pub(crate) fn write_spaced(
        &mut self,
        pages: Range<u32>,
        collects_idle: bool,
        each: &mut impl FnMut(Work),
    ) -> Option<(u32, Work, Work)> {
        match self {
            Flash::First(_) => None,
            Flash::Second(flash) => flash.write_spaced(pages, collects_idle, each),
        }
    }

    /// Returns the longest time that programming a page can take, in ns; `None` for a profile with `model = 1`.
    pub(crate) fn program_max_ns(&self) -> Option<u64> {
        match self {
            Flash::First(_) => None,
            Flash::Second(flash) => Some(flash.program_max_ns()),
        }
    }

    /// Marks consecutive blocks as empty.
    pub(crate) fn discard(&mut self, start: u64, count: u64) -> Work {
        of_either!(self, flash => flash.discard(start, count))
    }

    /// Runs garbage collection while the host is idle for `idle_ns`; returns the work done.
    pub(crate) fn idle(&mut self, idle_ns: u64) -> Work {
        of_either!(self, flash => flash.idle(idle_ns))
    }

    /// Discards the contents of the RAM, which are in flash already.
    pub(crate) fn power_cut(&mut self) {
        of_either!(self, flash => flash.power_cut());
    }

    pub(crate) fn erases(&self) -> u64 {
        of_either!(self, flash => flash.erases())
    }

    pub(crate) fn cycles(&self) -> RangeInclusive<u32> {
        of_either!(self, flash => flash.cycles())
    }

    pub(crate) fn spares_left(&self) -> u32 {
        of_either!(self, flash => flash.spares_left())
    }

    pub(crate) fn is_worn_out(&self) -> bool {
        of_either!(self, flash => flash.is_worn_out())
    }

    /// Returns the number of blocks per page.
    pub(crate) fn blocks_per_page(&self) -> u64 {
        of_either!(self, flash => flash.blocks_per_page())
    }

    /// Returns the number of pages programmed so far, by the host's writes and by garbage collection.
    pub(crate) fn pages_programmed(&self) -> Option<u64> {
        match self {
            Flash::First(_) => None,
            Flash::Second(flash) => Some(flash.pages_programmed()),
        }
    }
}

#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;
