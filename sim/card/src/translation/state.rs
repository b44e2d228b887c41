//! The state of the translation layer as bytes; `crate::state` describes the format.

use super::{OpenUnit, Translation, Work};
use crate::StateError;
use crate::state::{Reader, Writer};

impl Translation {
    /// Writes the state of a card without power.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        self.nand.write_state(to);
        self.blocks.write_state(to);
        self.log.write_state(to);
        self.zone.write_state(to);
        to.u32(self.open.len() as u32);
        for open in &self.open {
            to.u32(open.unit);
            to.u32(open.next_page);
            to.u32(open.block);
        }
        write_work(to, self.gc_debt);
        to.u64(self.debt_blocks);
        write_work(to, self.idle_gc);
        to.u64(self.next_wear_move);
        to.u32(self.next_cold_unit);
    }

    /// Replaces the state of a new card by a saved one.
    pub(crate) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        self.nand.read_state(from)?;
        self.blocks.read_state(from)?;
        let (blocks, units) = (self.blocks.all(), self.blocks.units());
        let pages = units * self.pages_per_unit;
        self.log.read_state(from, blocks, pages)?;
        self.zone.read_state(from, blocks, pages)?;
        self.open.clear();
        let open_units = from.below(self.open_units_max as u32 + 1, "number of open units")?;
        for _ in 0..open_units {
            self.open.push_back(OpenUnit {
                unit: from.below(units, "open unit")?,
                next_page: from.below(self.pages_per_unit, "page of an open unit")?,
                block: from.below(blocks, "flash block of an open unit")?,
            });
        }
        self.gc_debt = read_work(from)?;
        self.debt_blocks = from.u64()?;
        self.idle_gc = read_work(from)?;
        self.next_wear_move = from.u64()?;
        self.next_cold_unit = from.below(units, "unit of wear levelling")?;
        Ok(())
    }
}

fn write_work(to: &mut Writer, work: Work) {
    to.u64(work.ns);
    to.u64(work.nj);
}

fn read_work(from: &mut Reader) -> Result<Work, StateError> {
    Ok(Work {
        ns: from.u64()?,
        nj: from.u64()?,
    })
}
