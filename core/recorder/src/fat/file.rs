//! Files of consecutive clusters: allocation, directory entries, and trimming.

use super::layout::Layout;
use super::record::{File, Intent, Kind, Place};
use super::root::Room;
use super::table::{Chain, Search};
use super::{DosTime, Error, FatVolume};
use crate::units::whole_units;
use crate::volume::{Blocks, FileId, FileRecord, Name, Request};
use hadris_fat_raw::{ATTR_ARCHIVE, ATTR_SYSTEM, ShortEntry};

impl File {
    /// Returns the chain of the file, of which the first `kept` clusters stay allocated.
    pub(super) fn chain(&self, layout: &Layout, kept: u32) -> Chain {
        Chain {
            first: self.first,
            clusters: self.clusters,
            kept,
            head: match self.kind {
                Kind::Folder => layout.directory_clusters(),
                _ => self.clusters,
            },
        }
    }
}

impl FatVolume {
    /// Returns the number of clusters that `bytes` bytes need.
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

    /// Finds a slot for a new entry in the root directory, which grows if necessary.
    pub(super) async fn place_for_entry<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<Place, Error<B::Error>> {
        let last = match self.room(card).await? {
            Room::At(place) => return Ok(place),
            Room::Full(end) => end.last,
        };
        self.append_to_directory(card, last).await
    }

    /// Finds a free run for a request: of the requested length, of at least half of it, or the longest available.
    ///
    /// Files that were left early have gaps of almost the requested length between them. To find a longer run, the whole
    /// FAT would have to be read for each file, which takes thousands of steps.
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
        let shares = u32::from(request.shares.max(1));
        let all = wanted.saturating_mul(shares).min(self.layout.clusters_end);
        let mut search = Search {
            enough: least.max(all / 2),
            wanted: all,
            unit: self.unit_for(wanted),
        };
        // A full card is asked again and again, and a search reads the whole FAT, unless it knows when to stop.
        let longest_max = u32::from(self.longest_run_max);
        let is_known = self.longest_run_max < u16::MAX;
        if is_known && longest_max <= search.enough {
            (search.enough, search.unit) = (longest_max, 1);
        }
        let enough = search.enough;
        let (first, clusters) = match is_known && longest_max < least {
            true => (0, longest_max),
            false => self.find_run(card, search).await?,
        };
        if clusters < enough {
            self.longest_run_max = u16::try_from(clusters).unwrap_or(u16::MAX);
        }
        if clusters < least {
            return Err(Error::NoSpace {
                longest_blocks: clusters * blocks,
            });
        }
        let share = match clusters < all {
            true if shares > 1 => whole_units(clusters / shares * blocks) / blocks,
            _ => clusters,
        };
        Ok((first, share.max(least).min(wanted).min(clusters)))
    }

    /// Deletes a file's entry if it exists, and frees its clusters.
    pub(super) async fn erase<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<(), Error<B::Error>> {
        if self.entry_of(card, &file, file.first).await?.is_some() {
            self.delete_entry(card, file.place).await?;
        }
        self.write_chain(card, file.chain(&self.layout, 0), 0).await
    }

    /// Moves a prepared file's entry into its folder.
    pub(super) async fn name_file<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: u8,
        id: FileId,
        session: &str,
    ) -> Result<(), Error<B::Error>> {
        if !self.is_unnamed(slot, id)? {
            return Ok(());
        }
        self.know_series(card, id.prefix).await?;
        let folder = self.folder_for(card, id).await?;
        self.move_to_folder(card, slot, id, session, folder).await
    }

    /// Returns true if the file has to be given this name, and false if it already has it.
    fn is_unnamed<E>(&self, slot: u8, id: FileId) -> Result<bool, Error<E>> {
        let file = self.file(slot)?;
        match file.id() {
            Some(_) if file.kind == Kind::Version0_1 => return Ok(false),
            Some(known) if known == id => return Ok(false),
            Some(known) => return Err(Error::AlreadyNamed(known)),
            None => (),
        }
        let is_good = (id.prefix, id.extension) == (file.prefix, file.extension) && id.is_valid();
        is_good.then_some(true).ok_or(Error::BadName)
    }

    /// Moves a prepared file's entry into this folder.
    async fn move_to_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: u8,
        id: FileId,
        session: &str,
        folder: u32,
    ) -> Result<(), Error<B::Error>> {
        let file = self.file(slot)?;
        let long = Self::long_name(id, session)?;
        let entries = long.entries();
        let begin = self.place_for_name(card, folder, id, entries + 1).await?;
        let named = File {
            kind: Kind::Named,
            number: id.number,
            place: Place {
                index: begin.index + entries as u8,
                ..begin
            },
            ..file
        };
        let mut entry = self.new_entry(named.name(), ATTR_ARCHIVE | ATTR_SYSTEM);
        entry.set_first_cluster(self.layout.kind, file.first);
        entry.set_size(file.clusters * self.layout.cluster_bytes());
        self.begin(card, Intent::Name { slot, file: named }).await?;
        self.write_name(card, begin, &long, &entry).await?;
        self.finish_name(card, slot, file, named).await?;
        self.done_unchanged(card).await
    }

    /// Names a file that recovery closes. If another file has taken its name, raises the next number to a
    /// free one.
    async fn name_recovered<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), Error<B::Error>> {
        let mut named = self.check_name(card, record.id).await;
        if named.is_ok() {
            let session = record.session.as_str();
            named = self.name_file(card, slot, record.id, session).await;
        }
        if let Err(Error::NameTaken(_)) = named {
            self.pass_taken(card, record.id).await?;
        }
        named
    }

    /// Removes the hidden entry of a file that has been named.
    pub(super) async fn finish_name<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: u8,
        hidden: File,
        named: File,
    ) -> Result<(), Error<B::Error>> {
        self.delete_if_own(card, hidden).await?;
        self.record.reserved[usize::from(slot)] = Some(named);
        if let Some(id) = named.id() {
            self.use_number(id);
        }
        Ok(())
    }

    /// Deletes a file's entry if it still belongs to the file, or if a repair tool has truncated it to length
    /// 0.
    pub(super) async fn delete_if_own<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<(), Error<B::Error>> {
        let is_whole = self.entry_of(card, &file, file.first).await?.is_some();
        let is_emptied = |entry: ShortEntry| entry.size() == 0;
        if is_whole || self.entry_of(card, &file, 0).await?.is_some_and(is_emptied) {
            self.delete_entry(card, file.place).await?;
        }
        Ok(())
    }

    /// Trims a file to its actual length, and lists it in the index.
    pub(super) async fn close_file<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: u8,
        record: &FileRecord,
    ) -> Result<(), Error<B::Error>> {
        let kept = self.clusters_of(record.bytes);
        let bytes = u32::try_from(record.bytes).map_err(|_| Error::TooLong)?;
        if kept > self.file(slot)?.clusters {
            return Err(Error::TooLong);
        }
        let is_named = self.file(slot)?.kind == Kind::Named;
        if record.is_recovered && self.file(slot)?.id().is_none() {
            self.name_recovered(card, slot, record).await?;
        } else {
            let session = record.session.as_str();
            self.name_file(card, slot, record.id, session).await?;
        }
        let file = self.file(slot)?;
        if file.kind == Kind::Named {
            // The creation date is unknown for a file that recovery names: it may have begun on any day.
            let is_dated = is_named || !record.is_recovered;
            self.list(card, file, record, is_dated).await?;
        }
        if let Some(series) = self.series_mut(record.id.prefix) {
            // Recordings may be closed in any order.
            series.low = series.low.min(record.id.number);
        }
        self.begin(card, Intent::Close { slot, bytes }).await?;
        if !self.shorten(card, file, bytes).await? {
            return Err(Error::Changed(file.name()));
        }
        self.record.reserved[usize::from(slot)] = None;
        self.done_freeing(card, file, kept).await
    }

    /// Removes an unfinished file from the table, and frees its number.
    pub(super) fn forget_discarded(&mut self, slot: u8) {
        let file = self.record.reserved.get_mut(usize::from(slot));
        if let Some(file) = file.and_then(Option::take)
            && let Some(id) = file.id()
            && file.kind == Kind::Named
        {
            self.free_number(id);
        }
    }

    /// Sets an unfinished file's length and frees the clusters after its end. Returns false if its entry is gone.
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
            self.write_chain(card, file.chain(&self.layout, kept), from)
                .await?;
        }
        Ok(true)
    }

    /// Completes an operation that freed a file's clusters from number `kept` on.
    pub(super) async fn done_freeing<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        kept: u32,
    ) -> Result<(), Error<B::Error>> {
        // If this file was reserved last, its free clusters are used next.
        if self.record.hint == file.first + file.clusters {
            self.record.hint = file.first + kept;
        }
        let free = self
            .record
            .free
            .map(|free| free.saturating_add(file.clusters - kept));
        self.done(card, free).await
    }

    /// Returns true if a file has exactly the clusters that its entry implies, in one run.
    pub(super) async fn is_consecutive<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<bool, Error<B::Error>> {
        if file.clusters == 0 {
            return Ok(file.first == 0);
        }
        Ok(self.layout.has(file.first, file.clusters)
            && self
                .is_chain(card, file.chain(&self.layout, file.clusters))
                .await?)
    }
}
