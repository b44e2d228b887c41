//! Journals of versions 1 and 2, which contain addresses of the card: finds the block at which the volume began when it
//! wrote them. In an image of the partition, or after the partition was moved, the volume begins at another block now.
//!
//! 1. A file of the record determines it if the file's entry can be found by its name.
//! 2. Otherwise, the entry that a guest was changing does: it has the recorded first cluster, even if it is deleted.
//! 3. Otherwise, the boot sector states where the volume began when it was formatted, unless that field is 0.

use super::folder::Found;
use super::layout::{Layout, Root};
use super::record::{ENTRIES_OF_BLOCK, File, Intent, Kind, Place, Record, get};
use super::{Error, FatVolume};
use crate::volume::{Blocks, RESERVED_MAX};
use cardiograph_card::Block;
use hadris_fat_raw::{ENTRY_END, ENTRY_SIZE, Slot};

/// Offset of the number of blocks before the volume in a boot sector (BPB_HiddSec).
const HIDDEN_AT: usize = 28;

impl Layout {
    /// Returns a layout that contains every address of the card, for records of another place.
    fn anywhere(self) -> Layout {
        let root = Root::Fixed {
            start: 0,
            blocks: u32::MAX,
        };
        Layout {
            start: 0,
            root,
            ..self
        }
    }
}

/// Decodes a record of versions 1 and 2 without changing or checking its addresses.
pub(super) fn decode_unplaced(block: &Block, layout: &Layout, journal: u32) -> Option<Record> {
    Record::decode(block, &layout.anywhere(), journal, 0)
}

impl FatVolume {
    /// Loads the record of versions 1 and 2 in block `copy`, which has been decoded without checking its addresses.
    ///
    /// # Errors
    /// [`Error::MovedJournal`] if its addresses cannot be assigned to blocks of this card, or a card error.
    pub(super) async fn load_old<B: Blocks>(
        &mut self,
        card: &mut B,
        copy: u32,
        journal: u32,
    ) -> Result<(), Error<B::Error>> {
        self.read(card, self.layout.start).await?;
        let formatted = get(&self.block, HIDDEN_AT);
        let starts = [formatted, self.layout.start];
        let starts = match self.old_start(card, starts).await? {
            Some(start) => [start; 2],
            None if formatted != 0 => starts,
            // With wrong addresses, the clusters would be freed but not the name.
            None if (self.changed_entry())
                .is_some_and(|(_, _, is_old)| is_old || self.layout.start == 0) =>
            {
                return Err(Error::MovedJournal);
            }
            None => [self.layout.start; 2],
        };
        self.read(card, copy).await?;
        let decode = |start| Record::decode(&self.block, &self.layout, journal, start);
        self.record = (starts.into_iter().find_map(decode)).ok_or(Error::MovedJournal)?;
        Ok(())
    }

    /// Returns the block at which the volume began, if an entry proves it.
    async fn old_start<B: Blocks>(
        &mut self,
        card: &mut B,
        candidates: [u32; 2],
    ) -> Result<Option<u32>, Error<B::Error>> {
        let now = self.layout.start;
        for slot in 0..=RESERVED_MAX {
            let reserved = self.record.reserved.get(slot).copied();
            let file = reserved.unwrap_or_else(|| self.record.intent.file());
            if let Some(file) = file
                && let Some(place) = self.find_entry(card, &file).await?
            {
                let moved = place.block.wrapping_sub(file.place.block);
                return Ok(Some(now.wrapping_sub(moved)));
            }
        }
        let Some((place, first, _)) = self.changed_entry() else {
            return Ok(None);
        };
        for start in candidates {
            let block = place.block.wrapping_sub(start).wrapping_add(now);
            if self.layout.is_block(block)
                && self
                    .began_with(card, Place { block, ..place }, first)
                    .await?
            {
                return Ok(Some(start));
            }
        }
        Ok(None)
    }

    /// Returns an entry that a guest was changing, its first cluster, and true if it existed before the operation.
    fn changed_entry(&self) -> Option<(Place, u32, bool)> {
        match self.record.intent {
            Intent::Erase {
                name: Some(name),
                run,
                ..
            } => Some((name.place(), run.first, true)),
            Intent::Move {
                from: Some(name),
                first,
                ..
            } => Some((name.place(), first, true)),
            Intent::Move { to, first, .. } => Some((to.place(), first, true)),
            Intent::MakeDirectory { to, first } => Some((to.place(), first, false)),
            _ => None,
        }
    }

    /// Returns true if an entry has this first cluster, or had it before it was deleted.
    async fn began_with<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        self.read(card, place.block).await?;
        let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
        let mut raw = entries[usize::from(place.index) % ENTRIES_OF_BLOCK];
        let is_end = raw[0] == ENTRY_END;
        // Only this byte of a deleted entry changes.
        raw[0] = b'X';
        let kind = self.layout.kind;
        Ok(!is_end
            && matches!(Slot::parse(&raw), Slot::Short(entry) if entry.first_cluster(kind) == first))
    }

    /// Finds the entry of a file by its name.
    async fn find_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        file: &File,
    ) -> Result<Option<Place>, Error<B::Error>> {
        let kind = self.layout.kind;
        let name = file.name();
        let Some(id) = file.id().filter(|_| file.kind == Kind::Named) else {
            let found = self.root_entry(card, &name).await?;
            let found = found.filter(|(_, entry)| entry.first_cluster(kind) == file.first);
            return Ok(found.map(|(place, _)| place));
        };
        let Found::Own(folder) = self.find_folder(card, id).await? else {
            return Ok(None);
        };
        let start = self.layout.block_of(folder);
        let blocks = self.layout.directory_clusters() * self.layout.cluster_blocks;
        for block in start..start + blocks {
            self.read(card, block).await?;
            let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
            let is_it = |raw| matches!(Slot::parse(raw), Slot::Short(entry) if entry.name() == name && entry.first_cluster(kind) == file.first);
            if let Some(index) = entries.iter().position(is_it) {
                let index = index as u8;
                return Ok(Some(Place { block, index }));
            }
        }
        Ok(None)
    }
}
