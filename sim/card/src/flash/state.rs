//! The state of the flash as bytes; `crate::state` describes the format.

use super::bits::Bits;
use super::ftl::{Ftl, Mapping};
use super::hybrid::{Hybrid, NONE, OpenUnit};
use super::paged::Paged;
use crate::StateError;
use crate::nand::Work;
use crate::state::{Reader, Writer};

impl Ftl {
    /// Writes the state of a card without power.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        let chip = &self.chip;
        chip.nand.write_state(to);
        chip.pool.write_state(to);
        to.u32(chip.table.entries_left);
        write_bits(to, &chip.table.dirty);
        write_work(to, chip.debt.due);
        to.u64(chip.debt.blocks);
        write_work(to, chip.debt.idle);
        to.u64(chip.debt.overdue_ns);
        to.u64(chip.programmed);
        to.u64(self.next_wear_move);
        match &self.mapping {
            Mapping::Hybrid(hybrid) => hybrid.write_state(to),
            Mapping::Paged(paged) => paged.write_state(to),
        }
    }

    /// Replaces the state of a new card by a saved one.
    pub(crate) fn read_state(&mut self, from: &mut Reader) -> Result<(), StateError> {
        let chip = &mut self.chip;
        chip.nand.read_state(from)?;
        chip.pool.read_state(from)?;
        let journal = chip.table.journal_entries();
        chip.table.entries_left = from.below(journal + 1, "journal of the tables")?.max(1);
        read_bits(from, &mut chip.table.dirty)?;
        chip.table.dirty_pages = chip
            .table
            .dirty
            .words()
            .iter()
            .map(|w| w.count_ones())
            .sum();
        let debt = &mut chip.debt;
        (debt.due, debt.blocks, debt.idle) = (read_work(from)?, from.u64()?, read_work(from)?);
        debt.overdue_ns = from.u64()?;
        chip.programmed = from.u64()?;
        self.next_wear_move = from.u64()?;
        let blocks = chip.pool.all();
        match &mut self.mapping {
            Mapping::Hybrid(hybrid) => hybrid.read_state(from, blocks),
            Mapping::Paged(paged) => paged.read_state(from, blocks),
        }
    }
}

impl Hybrid {
    fn write_state(&self, to: &mut Writer) {
        write_bits(to, &self.data);
        to.list(self.block_of_unit.iter().copied());
        self.log.write_state(to);
        self.zone.write_state(to);
        to.u32(self.open.len() as u32);
        for open in &self.open {
            to.u32(open.unit);
            to.u32(open.next_page);
            to.u32(open.block);
        }
        to.u32(self.next_cold_unit);
    }

    fn read_state(&mut self, from: &mut Reader, blocks: u32) -> Result<(), StateError> {
        let (units, per_unit) = (self.units(), self.pages_per_unit);
        read_bits(from, &mut self.data)?;
        let is_block = |block| block < blocks || block == NONE;
        self.block_of_unit = from.list(units as usize, "flash block", is_block)?;
        if self.block_of_unit.len() != units as usize {
            return Err(StateError::OutOfRange {
                what: "number of units",
            });
        }
        let pages = units * per_unit;
        self.log.read_state(from, blocks, pages)?;
        self.zone.read_state(from, blocks, pages)?;
        self.open.clear();
        let open_units = from.below(self.open_units_max as u32 + 1, "number of open units")?;
        for _ in 0..open_units {
            self.open.push_back(OpenUnit {
                unit: from.below(units, "open unit")?,
                next_page: from.below(per_unit, "page of an open unit")?,
                block: from.below(blocks, "flash block of an open unit")?,
            });
        }
        self.next_cold_unit = from.below(units, "unit of wear levelling")?;
        Ok(())
    }
}

impl Paged {
    fn write_state(&self, to: &mut Writer) {
        to.list(self.page_of_slot.iter().copied());
        to.u32(self.closed.len() as u32);
        for (block, programmed) in &self.closed {
            to.u32(*block);
            to.u64(*programmed);
        }
        to.u32(self.head.unwrap_or(NONE));
        to.u32(self.next);
    }

    fn read_state(&mut self, from: &mut Reader, blocks: u32) -> Result<(), StateError> {
        let (slots, per_block) = (self.page_of_slot.len(), self.pages_per_block());
        let pages = self.slot_of_page.len() as u32;
        self.page_of_slot = from.list(slots, "page of a slot", |page| page <= pages)?;
        if self.page_of_slot.len() != slots {
            return Err(StateError::OutOfRange {
                what: "number of slots",
            });
        }
        self.slot_of_page.fill(0);
        self.valid.fill(0);
        for (slot, page) in (0u32..).zip(&self.page_of_slot) {
            let Some(page) = page.checked_sub(1) else {
                continue;
            };
            if std::mem::replace(&mut self.slot_of_page[page as usize], slot + 1) != 0 {
                return Err(StateError::OutOfRange {
                    what: "page in two slots",
                });
            }
            self.valid[(slot / per_block) as usize] += 1;
        }
        self.closed.clear();
        for _ in 0..from.below(blocks + 1, "number of full blocks")? {
            let block = from.below(blocks, "full block")?;
            self.closed.push_back((block, from.u64()?));
        }
        self.head = match from.u32()? {
            NONE => None,
            block if block < blocks => Some(block),
            _ => {
                return Err(StateError::OutOfRange {
                    what: "block being written",
                });
            }
        };
        self.next = from.below(per_block + 1, "page being written")?;
        Ok(())
    }
}

fn write_bits(to: &mut Writer, bits: &Bits) {
    bits.words().iter().for_each(|word| to.u64(*word));
}

fn read_bits(from: &mut Reader, bits: &mut Bits) -> Result<(), StateError> {
    for at in 0..bits.words().len() {
        bits.set_word(at, from.u64()?);
    }
    Ok(())
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
