//! The journal: creating, finding and writing it.

use super::old_journal::decode_unplaced;
use super::record::{
    COPY_STEP_BLOCKS, File, Intent, JOURNAL_BLOCKS, Kind, Place, Record, epochs_of,
    has_card_addresses, is_whole, sequence_of,
};
use super::root::{JOURNAL, Room, RootContents, is_file};
use super::table::Chain;
use super::{Error, FatVolume};
use crate::volume::Blocks;
use cardiograph_card::BLOCK_BYTES;
use hadris_fat_raw::{ATTR_HIDDEN, ATTR_SYSTEM, ShortEntry};

impl FatVolume {
    /// Writes the record to the older of the two copies.
    pub(super) async fn commit<B: Blocks>(&mut self, card: &mut B) -> Result<(), Error<B::Error>> {
        self.record.sequence = self.record.sequence.wrapping_add(1);
        self.generation = self.generation.wrapping_add(1);
        let place = self.copies[(self.record.sequence % 2) as usize];
        let (record, layout) = (&self.record, &self.layout);
        card.write(place, 1, &mut |_, out| record.encode(layout, out))
            .await
            .map_err(Error::Card)
    }

    /// Records an operation before it begins: until it is done, only a mount may follow.
    pub(super) async fn begin<B: Blocks>(
        &mut self,
        card: &mut B,
        intent: Intent,
    ) -> Result<(), Error<B::Error>> {
        self.is_ready = false;
        self.record.intent = intent;
        self.commit(card).await
    }

    /// Records that the operation is done.
    pub(super) async fn done<B: Blocks>(
        &mut self,
        card: &mut B,
        free: Option<u32>,
    ) -> Result<(), Error<B::Error>> {
        self.write_free(card, free).await?;
        self.record.free = free;
        self.done_unchanged(card).await
    }

    /// Records that the operation is done, with an unchanged number of free clusters.
    pub(super) async fn done_unchanged<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<(), Error<B::Error>> {
        self.record.intent = Intent::Nothing;
        self.commit(card).await?;
        self.is_ready = true;
        Ok(())
    }

    /// Loads the journal, or creates one.
    pub(super) async fn load_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        seen: &RootContents,
    ) -> Result<(), Error<B::Error>> {
        if let Some((place, entry)) = seen.journal {
            if !is_file(&entry) {
                return Err(Error::NameTaken(JOURNAL));
            }
            if self.is_journal(card, &entry).await? {
                return Ok(());
            }
            if !self.makes_journal {
                return Err(Error::DamagedJournal);
            }
            if !is_hidden(&entry) {
                return Err(Error::NameTaken(JOURNAL));
            }
            self.remove_journal(card, place, &entry).await?;
        }
        if !self.makes_journal {
            return Err(Error::NoJournal);
        }
        self.make_journal(card).await
    }

    /// Returns true if this file is a usable journal, and loads it. Fails for a file of another program, which is left
    /// alone: it contains no record, and lacks the attributes with which the recorder creates a journal. A computer that
    /// copies a journal may drop these attributes.
    async fn is_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        entry: &ShortEntry,
    ) -> Result<bool, Error<B::Error>> {
        let first = entry.first_cluster(self.layout.kind);
        let bytes_min = (COPY_STEP_BLOCKS + 1) * BLOCK_BYTES as u32;
        if !self.layout.has(first, 1) || entry.size() < bytes_min {
            return Ok(false);
        }
        let start = self.layout.block_of(first);
        let second = self.second_copy(card, first, entry.size()).await?;
        let is_run = self.layout.has(first, self.journal_clusters());
        if second.is_none() && !is_run {
            return Ok(false);
        }
        self.copies = [start, second.unwrap_or(start + COPY_STEP_BLOCKS)];
        let mut is_found = self.load_newest(card, first).await?;
        if let Intent::MakeJournal { .. } = self.record.intent {
            let chain = self.journal_chain();
            if self.is_own(card, chain, &JOURNAL).await? {
                return Ok(true);
            }
            // Another program has repaired the file, so its record is not valid.
            is_found = false;
        }
        if second.is_none() {
            return Ok(false);
        }
        if !is_found && !self.makes_journal {
            return Err(self.why_unusable(card).await?);
        }
        if !is_found {
            if !is_hidden(entry)
                && let Error::DamagedJournal = self.why_unusable(card).await?
            {
                return Err(Error::NameTaken(JOURNAL));
            }
            self.record.journal = first;
            self.start_journal(card, Intent::Nothing).await?;
        }
        Ok(true)
    }

    /// Returns the error for a journal without a record for this volume.
    async fn why_unusable<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<Error<B::Error>, Error<B::Error>> {
        for place in self.copies {
            self.read(card, place).await?;
            if is_whole(&self.block) {
                return Ok(Error::ForeignJournal);
            }
        }
        Ok(Error::DamagedJournal)
    }

    /// Returns the block address of the journal's second copy, if the file is long enough and its chain
    /// matches its length. The chain need not be consecutive: a computer may have copied the file.
    async fn second_copy<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        bytes: u32,
    ) -> Result<Option<u32>, Error<B::Error>> {
        let index = COPY_STEP_BLOCKS / self.layout.cluster_blocks;
        let within = COPY_STEP_BLOCKS % self.layout.cluster_blocks;
        let clusters = self.clusters_of(bytes.into());
        let mut second = None;
        let mut cluster = first;
        for at in 0..clusters {
            if at == index {
                second = Some(self.layout.block_of(cluster) + within);
            }
            let entry = self.entry(card, cluster).await?;
            match self.layout.kind.next(entry, self.layout.clusters_end - 1) {
                Ok(Some(next)) => cluster = next,
                Ok(None) if at + 1 == clusters => return Ok(second),
                _ => return Ok(None),
            }
        }
        Ok(None)
    }

    /// Removes a file that cannot be the journal. Frees its clusters only if all of them are certainly its
    /// own.
    async fn remove_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
        entry: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let file = File {
            kind: Kind::Journal,
            prefix: [0; 3],
            extension: [0; 3],
            number: 0,
            place,
            first: entry.first_cluster(self.layout.kind),
            clusters: self.clusters_of(entry.size().into()),
            epoch: 0,
            note: 0,
        };
        let (first, clusters) = (file.first, file.clusters);
        let is_own = self.is_consecutive(card, file).await?
            && !self.is_claimed(card, first, clusters, &JOURNAL).await?;
        if !is_own {
            self.slot(card, place).await?;
            return self.delete_entry(card, place).await;
        }
        self.erase(card, file).await?;
        let free = self.read_free(card).await?;
        self.write_free(card, free.map(|free| free.saturating_add(clusters)))
            .await
    }

    /// Loads the newer record, if there is any.
    async fn load_newest<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        self.record = Record::NEW;
        let mut is_found = false;
        let mut old = None;
        for place in self.copies {
            self.read(card, place).await?;
            let age = self.record.sequence.wrapping_sub(sequence_of(&self.block));
            // The sequence number wraps; the newer of two records is less than half the range ahead.
            if is_found && age < u32::MAX / 2 {
                continue;
            }
            let is_old = has_card_addresses(&self.block);
            let record = match is_old {
                true => decode_unplaced(&self.block, &self.layout, first),
                false => Record::decode(&self.block, &self.layout, first, 0),
            };
            if let Some(record) = record {
                self.record = record;
                is_found = true;
                old = is_old.then_some(place);
            }
        }
        if let Some(copy) = old {
            self.load_old(card, copy, first).await?;
        }
        Ok(is_found)
    }

    /// Writes the first record of a journal. Of older records, only the epoch count is used. If the previous journal
    /// was elsewhere, the highest recording number of version 0.1 is a lower bound of the epoch count, because each
    /// recording of that version took one number and one epoch. For later recordings, the index gives the lower bound.
    async fn start_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        intent: Intent,
    ) -> Result<(), Error<B::Error>> {
        let journal = self.record.journal;
        let mut epochs = self.epochs_least;
        for place in self.copies {
            self.read(card, place).await?;
            if is_whole(&self.block) {
                epochs = epochs_of(&self.block).max(epochs);
            }
        }
        self.record = Record {
            journal,
            epochs,
            intent,
            free: self.read_free(card).await?,
            ..Record::NEW
        };
        self.block.fill(0);
        self.write_back(card, self.copies[0]).await?;
        self.commit(card).await
    }

    /// Creates the journal's file: writes its contents, its entry, then its chain. Once the entry is written,
    /// a mount completes the rest.
    async fn make_journal<B: Blocks>(&mut self, card: &mut B) -> Result<(), Error<B::Error>> {
        self.record = Record::NEW;
        let clusters = self.journal_clusters();
        let room = self.room(card).await?;
        let more = u32::from(matches!(room, Room::Full(_)));
        let needed = clusters + more;
        let (first, found) = self.free_run(card, needed, needed).await?;
        if found < needed {
            return Err(Error::NoSpace {
                longest_blocks: found * self.layout.cluster_blocks,
            });
        }
        let start = self.layout.block_of(first);
        self.copies = [start, start + COPY_STEP_BLOCKS];
        self.record.journal = first;
        let mut entry = self.new_entry(JOURNAL, ATTR_HIDDEN | ATTR_SYSTEM);
        entry.set_first_cluster(self.layout.kind, first);
        entry.set_size(clusters * self.layout.cluster_bytes());
        let (last, new) = match room {
            Room::At(_) => (0, 0),
            Room::Full(end) => (end.last, first + clusters),
        };
        self.start_journal(card, Intent::MakeJournal { last, new })
            .await?;
        match room {
            Room::At(place) => {
                self.slot(card, place).await?;
                self.write_entry(card, place, &entry).await
            }
            Room::Full(_) => {
                self.write_directory(card, new, Some(entry)).await?;
                self.link(card, last, Some(new)).await
            }
        }
    }

    fn journal_clusters(&self) -> u32 {
        JOURNAL_BLOCKS.div_ceil(self.layout.cluster_blocks)
    }

    /// Returns the chain of a journal that is being created.
    pub(super) fn journal_chain(&self) -> Chain {
        let clusters = self.journal_clusters();
        Chain {
            first: self.record.journal,
            clusters,
            kept: clusters,
            head: clusters,
        }
    }
}

/// Returns true if an entry has the attributes of the recorder's own files.
fn is_hidden(entry: &ShortEntry) -> bool {
    let hidden = ATTR_HIDDEN | ATTR_SYSTEM;
    entry.attributes() & hidden == hidden
}
