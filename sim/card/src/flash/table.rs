//! Mapping tables. They are kept in flash; changes since they were written are in a journal of limited length.
//!
//! ```text
//!   change ──> journal entry, programmed along with the data
//!                   │  journal full
//!                   v
//!              write back: read and program every page of the tables that changed
//! ```
//!
//! Random writes change many pages of the tables, sequential ones few: write-backs are rare, and their length
//! depends on the writes before.

use super::bits::Bits;
use crate::nand::{Nand, Work};

/// Bytes of an entry: the number of a flash page or block.
const ENTRY_BYTES: u64 = 4;

#[derive(Clone)]
pub(super) struct Table {
    entries_per_page: u32,
    pub(super) dirty: Bits,
    pub(super) dirty_pages: u32,
    journal_entries: u32,
    pub(super) entries_left: u32,
    written_pages: u64,
}

impl Table {
    /// Creates the tables for `entries` units or pages; the journal is empty.
    pub(super) fn new(entries: u32, page_bytes: u64, journal_entries: u32) -> Table {
        let entries_per_page = (page_bytes / ENTRY_BYTES) as u32;
        Table {
            entries_per_page,
            dirty: Bits::new(entries.div_ceil(entries_per_page)),
            dirty_pages: 0,
            journal_entries,
            entries_left: journal_entries,
            written_pages: 0,
        }
    }

    /// Records that an entry changed; returns the work of writing the tables back if the journal is full.
    pub(super) fn change(&mut self, entry: u32, nand: &mut Nand) -> Work {
        let page = entry / self.entries_per_page;
        if !self.dirty.contains(page) {
            self.dirty.insert(page);
            self.dirty_pages += 1;
        }
        self.entries_left -= 1;
        if self.entries_left > 0 {
            return Work::default();
        }
        self.written_pages += u64::from(self.dirty_pages);
        let work = nand.copy_to_log(self.dirty_pages.into());
        self.dirty = Bits::new(self.dirty.words().len() as u32 * u64::BITS);
        (self.dirty_pages, self.entries_left) = (0, self.journal_entries);
        work
    }

    /// Returns the number of changes that the journal takes between two write-backs.
    pub(super) fn journal_entries(&self) -> u32 {
        self.journal_entries
    }

    /// Returns the number of pages written back so far.
    pub(super) fn written_pages(&self) -> u64 {
        self.written_pages
    }
}
