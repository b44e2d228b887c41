//! A log: log blocks that take pages in the order of writing, whatever their addresses.
//!
//! ```text
//!   oldest                         newest
//!   ┌───────┬───────┬───────┬──────────┐
//!   │ 7 - 9 │ 4 7 - │ 5 8 9 │ 4 head─> │     numbers: pages whose newest version is here
//!   └───────┴───────┴───────┴──────────┘     dashes: pages rewritten since
//! ```
//!
//! The pages of a unit are linked, so that a merge finds them without a search.

use crate::StateError;
use crate::state::{Reader, Writer};
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

/// Value that stands for an empty slot or the end of a list.
const NONE: u32 = u32::MAX;

/// A hasher that multiplies by the golden ratio, which is sufficient for page numbers. It returns the upper
/// half of the product as the lower bits, because this half is better distributed and the table uses the
/// lower bits.
#[derive(Default)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(byte.into()));
    }

    fn write_u32(&mut self, page: u32) {
        self.0 = (self.0 ^ u64::from(page)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[derive(Clone, Copy)]
struct Slot {
    /// Number of the page whose newest version is in this slot, or `NONE`.
    page: u32,
    /// Neighbours, newer and older, in the list of slots that hold pages of the same unit.
    newer: u32,
    older: u32,
}

const EMPTY: Slot = Slot {
    page: NONE,
    newer: NONE,
    older: NONE,
};

#[derive(Clone)]
pub(crate) struct Log {
    pages_per_block: u32,
    pages_per_unit: u32,
    /// Slots of all blocks, used as a ring.
    slots: Vec<Slot>,
    /// Physical blocks in use, oldest first; the head is in the last block.
    blocks: VecDeque<u32>,
    /// Ring index of the oldest block.
    oldest: u32,
    /// Number of free pages in the newest block.
    room: u32,
    slot_of_page: HashMap<u32, u32, BuildHasherDefault<PageHasher>>,
    newest_of_unit: Vec<u32>,
}

impl Log {
    /// Creates a log of at most `blocks_max` blocks for the first `units` units of a card.
    pub(crate) fn new(
        blocks_max: u32,
        pages_per_block: u32,
        pages_per_unit: u32,
        units: u32,
    ) -> Log {
        Log {
            pages_per_block,
            pages_per_unit,
            slots: vec![EMPTY; (blocks_max * pages_per_block) as usize],
            blocks: VecDeque::new(),
            oldest: 0,
            room: 0,
            slot_of_page: HashMap::default(),
            newest_of_unit: vec![NONE; units as usize],
        }
    }

    /// Writes the state.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        to.list(self.blocks.iter().copied());
        let first = (self.oldest * self.pages_per_block) as usize;
        let used = self.blocks() * self.pages_per_block - self.room;
        let slots = self.slots.iter().cycle().skip(first).take(used as usize);
        let pages: Vec<u32> = slots.map(|slot| slot.page).collect();
        to.list(pages.into_iter());
        to.u32(self.room);
    }

    /// Replaces the state of a new log by a saved one. `blocks` is the number of flash blocks, `pages` that of pages.
    pub(crate) fn read_state(
        &mut self,
        from: &mut Reader,
        blocks: u32,
        pages: u32,
    ) -> Result<(), StateError> {
        let units = self.newest_of_unit.len() as u32;
        let (per_block, slots) = (self.pages_per_block, self.slots.len() as u32);
        let per_unit = self.pages_per_unit;
        *self = Log::new(slots / per_block, per_block, per_unit, units);
        let blocks = from.list((slots / per_block) as usize, "log block", |block| {
            block < blocks
        })?;
        let is_page = |page| page == NONE || page < pages && page / per_unit < units;
        let saved = from.list(slots as usize, "page in a log", is_page)?;
        let room = from.below(per_block + 1, "free pages of a log")?;
        if saved.len() + room as usize != blocks.len() * per_block as usize {
            return Err(StateError::OutOfRange {
                what: "length of a log",
            });
        }
        let mut blocks = blocks.into_iter();
        for page in saved {
            if self.is_full() {
                blocks
                    .next()
                    .into_iter()
                    .for_each(|block| self.extend(block));
            }
            match page {
                NONE => self.room -= 1,
                page => self.push(page),
            }
        }
        // A block that was just added is empty.
        blocks.for_each(|block| self.extend(block));
        Ok(())
    }

    /// Returns the number of pages of a block.
    pub(crate) fn pages_per_block(&self) -> u32 {
        self.pages_per_block
    }

    /// Returns the number of blocks in use.
    pub(crate) fn blocks(&self) -> u32 {
        self.blocks.len() as u32
    }

    /// Returns true if the next page needs a new block.
    pub(crate) fn is_full(&self) -> bool {
        self.room == 0
    }

    /// Adds a physical block, which is written to next.
    pub(crate) fn extend(&mut self, block: u32) {
        self.blocks.push_back(block);
        self.room = self.pages_per_block;
    }

    /// Appends the newest version of a page at the head; there must be room.
    pub(crate) fn push(&mut self, page: u32) {
        self.invalidate(page);
        let at = (self.oldest + self.blocks()) * self.pages_per_block - self.room;
        let slot = at % self.slots.len() as u32;
        self.room -= 1;
        let newest = &mut self.newest_of_unit[(page / self.pages_per_unit) as usize];
        let older = std::mem::replace(newest, slot);
        if older != NONE {
            self.slots[older as usize].newer = slot;
        }
        self.slots[slot as usize] = Slot {
            page,
            newer: NONE,
            older,
        };
        self.slot_of_page.insert(page, slot);
    }

    /// Invalidates a page whose newest version is no longer in the log.
    pub(crate) fn invalidate(&mut self, page: u32) {
        let Some(slot) = self.slot_of_page.remove(&page) else {
            return;
        };
        let Slot { newer, older, .. } = self.slots[slot as usize];
        self.slots[slot as usize] = EMPTY;
        match newer {
            NONE => self.newest_of_unit[(page / self.pages_per_unit) as usize] = older,
            _ => self.slots[newer as usize].older = older,
        }
        if older != NONE {
            self.slots[older as usize].newer = newer;
        }
    }

    /// Invalidates all pages of a unit.
    pub(crate) fn invalidate_unit(&mut self, unit: u32) {
        let mut slot = std::mem::replace(&mut self.newest_of_unit[unit as usize], NONE);
        while slot != NONE {
            let Slot { page, older, .. } = std::mem::replace(&mut self.slots[slot as usize], EMPTY);
            self.slot_of_page.remove(&page);
            slot = older;
        }
    }

    /// Invalidates consecutive pages.
    pub(crate) fn invalidate_range(&mut self, pages: Range<u32>) {
        if (pages.len()) < self.slots.len() {
            return pages.for_each(|page| self.invalidate(page));
        }
        let logged = self.slot_of_page.keys().copied();
        let invalidated: Vec<u32> = logged.filter(|page| pages.contains(page)).collect();
        invalidated
            .into_iter()
            .for_each(|page| self.invalidate(page));
    }

    /// Returns true if the log holds the newest version of any page of a unit.
    pub(crate) fn holds_unit(&self, unit: u32) -> bool {
        self.newest_of_unit[unit as usize] != NONE
    }

    /// Returns the block that holds the newest version of a page, if the log holds it.
    pub(crate) fn block_of(&self, page: u32) -> Option<u32> {
        let slot = *self.slot_of_page.get(&page)?;
        let slots = self.slots.len() as u32;
        let first = self.oldest * self.pages_per_block;
        let at = (slot + slots - first) % slots / self.pages_per_block;
        self.blocks.get(at as usize).copied()
    }

    /// Returns true if the log holds the newest version of any of the given pages, all of which belong to
    /// `unit`.
    pub(crate) fn holds_any(&self, unit: u32, pages: Range<u32>) -> bool {
        let mut slot = self.newest_of_unit[unit as usize];
        while slot != NONE {
            let Slot { page, older, .. } = self.slots[slot as usize];
            if pages.contains(&page) {
                return true;
            }
            slot = older;
        }
        false
    }

    /// Returns the first valid page of the oldest block, starting from slot `from`, with its slot.
    pub(crate) fn next_in_oldest(&self, from: u32) -> Option<(u32, u32)> {
        let first = self.oldest * self.pages_per_block;
        let block = first + from..first + self.pages_per_block;
        let page = |slot: u32| self.slots[slot as usize].page;
        let slot = block.into_iter().find(|&slot| page(slot) != NONE)?;
        Some((slot - first, page(slot)))
    }

    /// Removes the oldest block, which must hold no valid page.
    pub(crate) fn drop_oldest(&mut self) -> Option<u32> {
        let block = self.blocks.pop_front()?;
        if self.blocks.is_empty() {
            self.room = 0;
        }
        let blocks_max = self.slots.len() as u32 / self.pages_per_block;
        self.oldest = (self.oldest + 1) % blocks_max;
        Some(block)
    }
}
