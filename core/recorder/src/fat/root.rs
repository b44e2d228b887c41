//! The root directory: finding entries, slots for new ones, and changing them.

use super::layout::Root;
use super::names::{HIDDEN_NAMES, hidden_number, number_of, upload_name};
use super::record::{ENTRIES_OF_BLOCK, File, Kind, Place};
use super::table::SLICE_BLOCKS;
use super::upload::UPLOADS_MAX;
use super::{Error, FatVolume};
use crate::volume::{Blocks, Name, RESERVED_MAX};
use hadris_fat_raw::{
    ATTR_DIRECTORY, ATTR_VOLUME_ID, ENTRY_END, ENTRY_FREE, ENTRY_SIZE, MAX_DIR_ENTRIES, ShortEntry,
    Slot,
};

/// Name of the journal's file.
pub(super) const JOURNAL: Name = *b"CARDIOGRJNL";
/// Name by which errors refer to the root directory.
pub(super) const ROOT: Name = *b"           ";

const BLOCKS_MAX: u32 = MAX_DIR_ENTRIES / ENTRIES_OF_BLOCK as u32;

/// End of a root directory without an end mark.
#[derive(Clone, Copy)]
pub(super) struct RootEnd {
    /// Its last cluster, or 0 if it has a fixed location.
    pub(super) last: u32,
    /// True if it has the maximum number of entries of a directory.
    pub(super) is_longest: bool,
}

/// Position for a new entry.
pub(super) enum Room {
    At(Place),
    Full(RootEnd),
}

/// Contents of the root directory.
pub(super) struct RootContents {
    /// File or directory with the name of the journal.
    pub(super) journal: Option<(Place, ShortEntry)>,
    /// True if there are interrupted uploads.
    pub(super) has_uploads: bool,
    /// Highest number in a name of the pattern LLLddddd.
    pub(super) number_last: u32,
}

impl FatVolume {
    /// Calls `pass` for every entry up to and including the end mark, or until `pass` returns false. Returns
    /// the end of a directory that was scanned completely and has no end mark.
    pub(super) async fn scan_root<B: Blocks>(
        &mut self,
        card: &mut B,
        pass: &mut dyn FnMut(Place, Slot) -> bool,
    ) -> Result<Option<RootEnd>, Error<B::Error>> {
        let (mut start, blocks, mut cluster) = match self.layout.root {
            Root::Fixed { start, blocks } => (start, blocks, 0),
            Root::Cluster(first) => (
                self.layout.block_of(first),
                self.layout.cluster_blocks,
                first,
            ),
        };
        let mut seen_blocks = 0;
        loop {
            for block in start..start + blocks {
                self.read(card, block).await?;
                for (index, raw) in self.block.as_chunks::<ENTRY_SIZE>().0.iter().enumerate() {
                    let slot = Slot::parse(raw);
                    let index = index as u8;
                    if !pass(Place { block, index }, slot) || slot == Slot::End {
                        return Ok(None);
                    }
                }
            }
            seen_blocks += blocks;
            let end = RootEnd {
                last: cluster,
                is_longest: seen_blocks + blocks > BLOCKS_MAX,
            };
            if cluster == 0 {
                return Ok(Some(end));
            }
            let entry = self.entry(card, cluster).await?;
            let next = self.layout.kind.next(entry, self.layout.clusters_end - 1);
            match next {
                Ok(None) => return Ok(Some(end)),
                Ok(Some(next)) if !end.is_longest => cluster = next,
                _ => return Err(Error::DamagedRoot),
            }
            start = self.layout.block_of(cluster);
        }
    }

    /// Finds the journal, and the numbers that version 0.1 has used.
    pub(super) async fn survey_root<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<RootContents, Error<B::Error>> {
        let mut journal = None;
        let mut number_last = 0;
        let mut has_uploads = false;
        let uploads: [Name; UPLOADS_MAX] =
            core::array::from_fn(|number| upload_name(number as u32));
        self.scan_root(card, &mut |place, slot| {
            if let Slot::Short(entry) = slot {
                if entry.name() == JOURNAL && entry.attributes() & ATTR_VOLUME_ID == 0 {
                    journal = Some((place, entry));
                }
                number_last = number_last.max(number_of(&entry.name()).unwrap_or(0));
                has_uploads |= uploads.contains(&entry.name());
            }
            true
        })
        .await?;
        Ok(RootContents {
            journal,
            has_uploads,
            number_last,
        })
    }

    /// Finds a position for a new entry.
    pub(super) async fn room<B: Blocks>(&mut self, card: &mut B) -> Result<Room, Error<B::Error>> {
        let mut place = None;
        let end = self
            .scan_root(card, &mut |at, slot| {
                let is_free = matches!(slot, Slot::Free | Slot::End);
                if is_free {
                    place = Some(at);
                }
                !is_free
            })
            .await?;
        match (place, end) {
            (Some(place), _) => Ok(Room::At(place)),
            (None, Some(end)) if end.last != 0 && !end.is_longest => Ok(Room::Full(end)),
            _ => Err(Error::DirectoryFull(ROOT)),
        }
    }

    /// Finds an entry of the root directory.
    pub(super) async fn root_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        name: &Name,
    ) -> Result<Option<(Place, ShortEntry)>, Error<B::Error>> {
        let mut found = None;
        self.scan_root(card, &mut |place, slot| {
            if let Slot::Short(entry) = slot
                && entry.name() == *name
                && entry.attributes() & ATTR_VOLUME_ID == 0
            {
                found = Some((place, entry));
            }
            found.is_none()
        })
        .await?;
        Ok(found)
    }

    /// Returns a hidden name for this slot that no entry has. Entries of lost journals may remain.
    pub(super) async fn hidden_name_for<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: usize,
    ) -> Result<u32, Error<B::Error>> {
        let mut taken: u128 = 0;
        self.scan_root(card, &mut |_, slot| {
            if let Slot::Short(entry) = slot
                && let Some(number) = hidden_number(&entry.name())
            {
                taken |= 1 << number;
            }
            true
        })
        .await?;
        (slot as u32..HIDDEN_NAMES)
            .step_by(RESERVED_MAX)
            .find(|number| taken & 1 << number == 0)
            .ok_or(Error::NameTaken(super::names::hidden_name(slot as u32)))
    }

    /// Returns true if an entry with another name begins at one of these clusters: repair tools turn orphaned
    /// chains into files.
    pub(super) async fn is_claimed<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        clusters: u32,
        own: &Name,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let mut is_claimed = false;
        self.scan_root(card, &mut |_, slot| {
            if let Slot::Short(entry) = slot {
                let is_in = entry.first_cluster(kind).wrapping_sub(first) < clusters;
                is_claimed |= is_in && entry.name() != *own;
            }
            !is_claimed
        })
        .await?;
        Ok(is_claimed)
    }

    /// Reads an entry and leaves its block in the buffer.
    pub(super) async fn slot<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
    ) -> Result<Slot, Error<B::Error>> {
        self.read(card, place.block).await?;
        let (entries, _) = self.block.as_chunks::<ENTRY_SIZE>();
        Ok(Slot::parse(&entries[usize::from(place.index)]))
    }

    /// Returns the entry of a file, if it still exists.
    pub(super) async fn entry_of<B: Blocks>(
        &mut self,
        card: &mut B,
        file: &File,
        first: u32,
    ) -> Result<Option<ShortEntry>, Error<B::Error>> {
        let slot = self.slot(card, file.place).await?;
        let Slot::Short(entry) = slot else {
            return Ok(None);
        };
        let is_kind = match file.kind {
            Kind::Folder => entry.attributes() & ATTR_DIRECTORY != 0,
            _ => is_file(&entry),
        };
        let is_it = entry.name() == file.name()
            && is_kind
            && entry.first_cluster(self.layout.kind) == first;
        Ok(is_it.then_some(entry))
    }

    /// Writes an entry whose block is in the buffer.
    pub(super) async fn write_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
        entry: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let at = usize::from(place.index) * ENTRY_SIZE;
        self.block[at..at + ENTRY_SIZE].copy_from_slice(&entry.encode());
        self.write_back(card, place.block).await
    }

    /// Deletes an entry whose block is in the buffer, and its long name.
    pub(super) async fn delete_entry<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
    ) -> Result<(), Error<B::Error>> {
        let (entries, _) = self.block.as_chunks_mut::<ENTRY_SIZE>();
        let (before, entry) = entries.split_at_mut(usize::from(place.index));
        if let Slot::Short(short) = Slot::parse(&entry[0]) {
            for raw in before.iter_mut().rev() {
                match Slot::parse(raw) {
                    Slot::Long(long) if long.checksum() == short.lfn_checksum() => {
                        raw[0] = ENTRY_FREE;
                    }
                    _ => break,
                }
            }
        }
        entry[0][0] = ENTRY_FREE;
        self.write_back(card, place.block).await
    }

    /// Clears a cluster, except for an optional entry at its start.
    pub(super) async fn write_directory<B: Blocks>(
        &mut self,
        card: &mut B,
        cluster: u32,
        entry: Option<ShortEntry>,
    ) -> Result<(), Error<B::Error>> {
        let start = self.layout.block_of(cluster);
        let blocks = self.layout.cluster_blocks;
        // Both are powers of two.
        let count = SLICE_BLOCKS.min(blocks);
        for at in (0..blocks).step_by(count as usize) {
            card.write(start + at, count, &mut |index, out| {
                out.fill(0);
                if let Some(entry) = entry
                    && at + index == 0
                {
                    out[..ENTRY_SIZE].copy_from_slice(&entry.encode());
                }
            })
            .await
            .map_err(Error::Card)?;
        }
        Ok(())
    }
}

pub(super) fn is_file(entry: &ShortEntry) -> bool {
    entry.attributes() & (ATTR_DIRECTORY | ATTR_VOLUME_ID) == 0
}

/// Returns true if the entry is free.
pub(super) fn is_free(raw: &[u8; ENTRY_SIZE]) -> bool {
    matches!(raw[0], ENTRY_FREE | ENTRY_END)
}
