//! A log: log blocks that take pages in the order of writing, whatever their addresses.
//!
//! ```text
//!   oldest                         newest
//!   ┌───────┬───────┬───────┬──────────┐
//!   │ 7 - 9 │ 4 7 - │ 5 8 9 │ 4 head─> │     numbers: pages whose newest version is here
//!   └───────┴───────┴───────┴──────────┘     dashes: pages rewritten since
//! ```
//!
//! The pages of a unit are linked, so that a merge finds them without a search. The pages with the same hash are linked as
//! well: this hash table needs fewer steps per page than that of the standard library, and most writes of single blocks
//! use it three times.

use crate::StateError;
use crate::state::{Reader, Writer};
use std::collections::VecDeque;
use std::ops::Range;

/// Value that stands for an empty slot or the end of a list.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Slot {
    /// Number of the page whose newest version is in this slot, or `NONE`.
    page: u32,
    /// Neighbours, newer and older, in the list of slots that hold pages of the same unit.
    newer: u32,
    older: u32,
    /// Next slot in the list of slots that hold pages with the same hash.
    next: u32,
}

const EMPTY: Slot = Slot {
    page: NONE,
    newer: NONE,
    older: NONE,
    next: NONE,
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
    /// First slot of the list for each hash. With four lists per slot, few pages share a list.
    first_of_hash: Vec<u32>,
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
        let slots = (blocks_max * pages_per_block) as usize;
        Log {
            pages_per_block,
            pages_per_unit,
            slots: vec![EMPTY; slots],
            blocks: VecDeque::new(),
            oldest: 0,
            room: 0,
            first_of_hash: vec![NONE; 4 * slots.next_power_of_two()],
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
        let hash = self.hash(page);
        let next = std::mem::replace(&mut self.first_of_hash[hash], slot);
        self.slots[slot as usize] = Slot {
            page,
            newer: NONE,
            older,
            next,
        };
    }

    /// Returns the hash of a page: the upper bits of the product with the golden ratio, which are the best distributed.
    fn hash(&self, page: u32) -> usize {
        let bits = self.first_of_hash.len().ilog2();
        (page.wrapping_mul(0x9E37_79B9) >> (u32::BITS - bits)) as usize
    }

    /// Returns the slot that holds the newest version of a page, if the log holds it.
    fn slot_of(&self, page: u32) -> Option<u32> {
        // Most units have no page in the log; then this is faster than a search.
        if !self.holds_unit(page / self.pages_per_unit) {
            return None;
        }
        let mut slot = self.first_of_hash[self.hash(page)];
        while slot != NONE && self.slots[slot as usize].page != page {
            slot = self.slots[slot as usize].next;
        }
        (slot != NONE).then_some(slot)
    }

    /// Empties a slot that holds a page, and removes it from the list of its hash, but not from that of its unit. Returns
    /// its contents.
    fn empty(&mut self, slot: u32) -> Slot {
        let emptied = std::mem::replace(&mut self.slots[slot as usize], EMPTY);
        let hash = self.hash(emptied.page);
        let mut at = self.first_of_hash[hash];
        if at == slot {
            self.first_of_hash[hash] = emptied.next;
            return emptied;
        }
        while self.slots[at as usize].next != slot {
            at = self.slots[at as usize].next;
        }
        self.slots[at as usize].next = emptied.next;
        emptied
    }

    /// Invalidates a page whose newest version is no longer in the log.
    pub(crate) fn invalidate(&mut self, page: u32) {
        let Some(slot) = self.slot_of(page) else {
            return;
        };
        let Slot { newer, older, .. } = self.empty(slot);
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
            slot = self.empty(slot).older;
        }
    }

    /// Invalidates consecutive pages.
    pub(crate) fn invalidate_range(&mut self, pages: Range<u32>) {
        if (pages.len()) < self.slots.len() {
            return pages.for_each(|page| self.invalidate(page));
        }
        for at in 0..self.slots.len() {
            let page = self.slots[at].page;
            if pages.contains(&page) {
                self.invalidate(page);
            }
        }
    }

    /// Returns true if the log holds the newest version of any page of a unit.
    pub(crate) fn holds_unit(&self, unit: u32) -> bool {
        self.newest_of_unit[unit as usize] != NONE
    }

    /// Returns the block that holds the newest version of a page, if the log holds it.
    pub(crate) fn block_of(&self, page: u32) -> Option<u32> {
        let slot = self.slot_of(page)?;
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
