//! Files of consecutive clusters: room for them, their entries, and their ends.

use super::record::{File, Intent, Place};
use super::root::Room;
use super::table::Chain;
use super::{DosTime, Error, FatVolume};
use crate::volume::{Blocks, Name, Request};
use hadris_fat_raw::{ATTR_ARCHIVE, ShortEntry};

impl File {
    /// The chain of the file if so many of its clusters are kept.
    pub(super) fn chain(&self, kept: u32) -> Chain {
        Chain {
            first: self.first,
            clusters: self.clusters,
            kept,
        }
    }
}

impl FatVolume {
    /// Clusters for so many bytes.
    pub(super) fn clusters_of(&self, bytes: u64) -> u32 {
        bytes.div_ceil(self.layout.cluster_bytes().into()) as u32
    }

    pub(super) fn new_entry(&self, name: Name, attributes: u8) -> ShortEntry {
        let DosTime { date, time } = (self.clock)();
        let mut entry = ShortEntry::new(name, attributes);
        entry.set_created(date, time, 0);
        entry.set_modified(date, time);
        entry.set_accessed_date(date);
        entry
    }

    /// Where a new entry goes; the root directory is made longer for it if need be.
    pub(super) async fn place_for_entry<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<Place, Error<B::Error>> {
        let last = match self.room(card).await? {
            Room::At(place) => return Ok(place),
            Room::Full(end) => end.last,
        };
        let (new, found) = self.free_run(card, 1).await?;
        if found == 0 {
            return Err(Error::NoSpace { longest_blocks: 0 });
        }
        self.begin(card, Intent::ExtendRoot { last, new }).await?;
        self.write_directory(card, new, None).await?;
        self.link(card, new, None).await?;
        self.link(card, last, Some(new)).await?;
        self.record.hint = new + 1;
        let free = self.record.free.map(|free| free.saturating_sub(1));
        self.done(card, free).await?;
        Ok(Place {
            block: self.layout.block_of(new),
            index: 0,
        })
    }

    /// The longest run that a request can have, and needs not exceed.
    pub(super) async fn run_for<B: Blocks>(
        &mut self,
        card: &mut B,
        request: &Request,
    ) -> Result<(u32, u32), Error<B::Error>> {
        let blocks = self.layout.cluster_blocks;
        let most = u32::MAX / self.layout.cluster_bytes();
        let least = request.blocks_min.div_ceil(blocks).max(1);
        let wanted = request.blocks.div_ceil(blocks).max(least).min(most);
        if least > most {
            return Err(Error::TooLong);
        }
        let (first, clusters) = self.free_run(card, wanted).await?;
        if clusters < least {
            return Err(Error::NoSpace {
                longest_blocks: clusters * blocks,
            });
        }
        Ok((first, clusters))
    }

    /// Deletes a file's entry, if it is there, and frees its clusters.
    pub(super) async fn erase<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<(), Error<B::Error>> {
        if self.entry_of(card, &file, file.first).await?.is_some() {
            self.delete_entry(card, file.place).await?;
        }
        self.write_chain(card, file.chain(0), 0).await
    }

    /// Gives an unfinished file its length, and frees what is behind. Says whether the file is there.
    pub(super) async fn shorten<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        bytes: u32,
    ) -> Result<bool, Error<B::Error>> {
        let kept = self.clusters_of(bytes.into());
        let first = if kept == 0 { 0 } else { file.first };
        let mut entry = self.entry_of(card, &file, file.first).await?;
        if entry.is_none() {
            entry = self.entry_of(card, &file, first).await?;
        }
        let Some(mut entry) = entry else {
            return Ok(false);
        };
        let DosTime { date, time } = (self.clock)();
        entry.set_attributes(ATTR_ARCHIVE);
        entry.set_modified(date, time);
        entry.set_first_cluster(self.layout.kind, first);
        entry.set_size(bytes);
        self.write_entry(card, file.place, &entry).await?;
        if kept < file.clusters {
            let from = kept.saturating_sub(1);
            self.write_chain(card, file.chain(kept), from).await?;
        }
        Ok(true)
    }

    /// Notes that a file's clusters are free again, from its cluster number `kept` on.
    pub(super) async fn done_freeing<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        kept: u32,
    ) -> Result<(), Error<B::Error>> {
        // What was reserved last is taken again at once.
        if self.record.hint == file.first + file.clusters {
            self.record.hint = file.first + kept;
        }
        let free = self
            .record
            .free
            .map(|free| free.saturating_add(file.clusters - kept));
        self.done(card, free).await
    }

    /// Whether a file has just the clusters that its entry says, one behind the other.
    pub(super) async fn is_consecutive<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<bool, Error<B::Error>> {
        if file.clusters == 0 {
            return Ok(file.first == 0);
        }
        Ok(self.layout.has(file.first, file.clusters)
            && self.is_chain(card, file.chain(file.clusters)).await?)
    }
}
