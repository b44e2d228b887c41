//! The journal: where it is, making it, and bringing to an end what it says was under way.

use super::record::{
    File, Intent, JOURNAL_BLOCKS, PLACE_STEP_BLOCKS, Place, Record, epochs_of, is_whole,
    sequence_of,
};
use super::root::{JOURNAL, Room, Seen};
use super::table::Chain;
use super::{Error, FatVolume};
use crate::volume::{Blocks, Name};
use cardiograph_card::BLOCK_BYTES;
use hadris_fat_raw::{ATTR_HIDDEN, ATTR_SYSTEM, ShortEntry};

/// No entry has this name.
const NOBODY: Name = [0; 11];

impl FatVolume {
    /// Writes what is known now to the place whose turn it is.
    pub(super) async fn commit<B: Blocks>(&mut self, card: &mut B) -> Result<(), Error<B::Error>> {
        self.record.sequence = self.record.sequence.wrapping_add(1);
        let place = self.places[(self.record.sequence % 2) as usize];
        let (record, layout) = (&self.record, &self.layout);
        card.write(place, 1, &mut |_, out| record.encode(layout, out))
            .await
            .map_err(Error::Card)
    }

    /// Says what is under way from now on.
    pub(super) async fn begin<B: Blocks>(
        &mut self,
        card: &mut B,
        intent: Intent,
    ) -> Result<(), Error<B::Error>> {
        self.is_ready = false;
        self.record.intent = intent;
        self.commit(card).await
    }

    /// Says that it is done.
    pub(super) async fn done<B: Blocks>(
        &mut self,
        card: &mut B,
        free: Option<u32>,
    ) -> Result<(), Error<B::Error>> {
        self.write_free(card, free).await?;
        self.record.free = free;
        self.record.intent = Intent::Nothing;
        self.commit(card).await?;
        self.is_ready = true;
        Ok(())
    }

    /// Reads the journal, or makes one.
    pub(super) async fn load_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        seen: &Seen,
    ) -> Result<(), Error<B::Error>> {
        if let Some((place, entry)) = seen.journal {
            if self.is_journal(card, &entry, seen).await? {
                return Ok(());
            }
            self.remove_journal(card, place, &entry).await?;
        }
        if seen.open_end.is_some() {
            return Err(Error::DamagedRoot);
        }
        self.make_journal(card).await
    }

    /// Whether this file is a journal, or can be: it is then in use.
    async fn is_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        entry: &ShortEntry,
        seen: &Seen,
    ) -> Result<bool, Error<B::Error>> {
        let first = entry.first_cluster(self.layout.kind);
        let bytes_min = (PLACE_STEP_BLOCKS + 1) * BLOCK_BYTES as u32;
        if !self.layout.has(first, 1) || entry.size() < bytes_min {
            return Ok(false);
        }
        let start = self.layout.block_of(first);
        let second = self.second_place(card, first, entry.size()).await?;
        let is_run = self.layout.has(first, self.journal_clusters());
        if second.is_none() && !is_run {
            return Ok(false);
        }
        self.places = [start, second.unwrap_or(start + PLACE_STEP_BLOCKS)];
        let mut is_found = self.load_newest(card, first).await?;
        if let Intent::MakeJournal { new, .. } = self.record.intent {
            let is_open_end = seen.open_end.is_none_or(|last| last == new);
            let chain = self.journal_chain();
            if is_open_end && self.is_own(card, chain, &JOURNAL).await? {
                return Ok(true);
            }
            // A computer has made of it what it could.
            is_found = false;
        }
        if second.is_none() || seen.open_end.is_some() {
            return Ok(false);
        }
        if !is_found {
            self.record.journal = first;
            self.start_journal(card, Intent::Nothing).await?;
        }
        Ok(true)
    }

    /// Where the journal's second place is, if its file is long enough and its chain just as long. It need
    /// not be consecutive: a computer may have copied it.
    async fn second_place<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        bytes: u32,
    ) -> Result<Option<u32>, Error<B::Error>> {
        let index = PLACE_STEP_BLOCKS / self.layout.cluster_blocks;
        let within = PLACE_STEP_BLOCKS % self.layout.cluster_blocks;
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

    /// Removes a file that cannot be the journal. Its clusters are freed only if all are surely its own.
    async fn remove_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        place: Place,
        entry: &ShortEntry,
    ) -> Result<(), Error<B::Error>> {
        let file = File {
            name: JOURNAL,
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

    /// Loads the record that was written last, if there is any.
    async fn load_newest<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
    ) -> Result<bool, Error<B::Error>> {
        self.record = Record::NEW;
        let mut is_found = false;
        for place in self.places {
            self.read(card, place).await?;
            let age = self.record.sequence.wrapping_sub(sequence_of(&self.block));
            // Of two records the later one's number is ahead, also when it has wrapped.
            if is_found && age < u32::MAX / 2 {
                continue;
            }
            if let Some(record) = Record::decode(&self.block, &self.layout, first) {
                self.record = record;
                is_found = true;
            }
        }
        Ok(is_found)
    }

    /// Writes the first record of a journal. What was in the other place counts no more, but for its
    /// count of epochs. Each recording takes a number and an epoch, so that the highest number tells of
    /// as many epochs, at least, if the journal before was elsewhere.
    async fn start_journal<B: Blocks>(
        &mut self,
        card: &mut B,
        intent: Intent,
    ) -> Result<(), Error<B::Error>> {
        let journal = self.record.journal;
        let mut epochs = self.number_least;
        for place in self.places {
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
            hint: self.record.hint,
            number_first: self.number_least,
            number_next: self.number_least,
            ..Record::NEW
        };
        self.block.fill(0);
        self.write_back(card, self.places[0]).await?;
        self.commit(card).await
    }

    /// Makes the journal's file: its contents, its entry, then its chain. From the entry on a mount goes
    /// on with it.
    async fn make_journal<B: Blocks>(&mut self, card: &mut B) -> Result<(), Error<B::Error>> {
        self.record = Record::NEW;
        let clusters = self.journal_clusters();
        let room = self.room(card).await?;
        let more = u32::from(matches!(room, Room::Full(_)));
        let (first, found) = self.free_run(card, clusters + more).await?;
        if found < clusters + more {
            return Err(Error::NoSpace {
                longest_blocks: found * self.layout.cluster_blocks,
            });
        }
        let start = self.layout.block_of(first);
        self.places = [start, start + PLACE_STEP_BLOCKS];
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

    fn journal_chain(&self) -> Chain {
        let clusters = self.journal_clusters();
        Chain {
            first: self.record.journal,
            clusters,
            kept: clusters,
        }
    }

    /// Brings to an end, or undoes, what was under way when power went.
    pub(super) async fn recover<B: Blocks>(&mut self, card: &mut B) -> Result<(), Error<B::Error>> {
        let now = self.read_free(card).await?;
        let before = self.record.free;
        let intent = self.record.intent;
        let Some(change) = self.finish(card, intent).await? else {
            // Somebody else worked on the card in between, and has brought it in order.
            self.forget(intent);
            return self.done(card, now).await;
        };
        let whole = before.map(|free| free.wrapping_add_signed(change));
        let is_undone = matches!(intent, Intent::Reserve(_));
        let free = if is_undone { before } else { whole };
        self.forget(intent);
        // Another count is somebody else's, who did not know of what was under way.
        let is_own = now == before || now == whole;
        self.done(card, free.filter(|_| is_own)).await
    }

    fn forget(&mut self, intent: Intent) {
        if let Intent::Close { slot, .. } | Intent::Discard { slot } = intent
            && let Some(file) = self.record.reserved.get_mut(usize::from(slot))
        {
            *file = None;
        }
    }

    /// Ends an operation, or undoes it, and gives what the whole of it changes in the number of free
    /// clusters. None if the card is not as the operation left it.
    async fn finish<B: Blocks>(
        &mut self,
        card: &mut B,
        intent: Intent,
    ) -> Result<Option<i32>, Error<B::Error>> {
        match intent {
            Intent::Nothing => Ok(Some(0)),
            Intent::Reserve(file) => {
                let is_done = self.finish_erasing(card, file).await?;
                Ok(is_done.then_some(-(file.clusters as i32)))
            }
            Intent::Remove(file) => {
                let is_done = self.finish_erasing(card, file).await?;
                Ok(is_done.then_some(file.clusters as i32))
            }
            Intent::Discard { slot } => {
                let Some(file) = self.record.file(slot) else {
                    return Ok(None);
                };
                let is_done = self.finish_erasing(card, file).await?;
                Ok(is_done.then_some(file.clusters as i32))
            }
            Intent::Close { slot, bytes } => match self.record.file(slot) {
                Some(file) => self.finish_closing(card, file, bytes).await,
                None => Ok(None),
            },
            Intent::ExtendRoot { last, new } => self.finish_extending(card, last, new).await,
            Intent::MakeJournal { last, new } => {
                // A computer may have made the directory longer.
                if new != 0 && self.is_last(card, new).await? {
                    self.link(card, last, Some(new)).await?;
                    self.link(card, new, None).await?;
                }
                let chain = self.journal_chain();
                self.write_chain(card, chain, 0).await?;
                self.record.hint = chain.first + chain.clusters;
                let more = u32::from(new != 0);
                Ok(Some(-((chain.clusters + more) as i32)))
            }
        }
    }

    /// Whether nothing follows a cluster, marked or not.
    async fn is_last<B: Blocks>(
        &mut self,
        card: &mut B,
        cluster: u32,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let entry = self.entry(card, cluster).await? & kind.mask();
        Ok(entry == 0 || kind.is_end_of_chain(entry))
    }

    /// Whether clusters are as an operation on this file left them.
    async fn is_own<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: Chain,
        name: &Name,
    ) -> Result<bool, Error<B::Error>> {
        let is_claimed = self.is_claimed(card, chain.first, chain.clusters, name);
        Ok(!is_claimed.await? && self.is_part_done(card, chain).await?)
    }

    async fn finish_erasing<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<bool, Error<B::Error>> {
        let is_own = self.is_own(card, file.chain(0), &file.name).await?;
        if is_own {
            self.erase(card, file).await?;
        }
        Ok(is_own)
    }

    async fn finish_closing<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        bytes: u32,
    ) -> Result<Option<i32>, Error<B::Error>> {
        let kept = self.clusters_of(bytes.into());
        let is_own =
            kept <= file.clusters && self.is_own(card, file.chain(kept), &file.name).await?;
        if !is_own || !self.shorten(card, file, bytes).await? {
            return Ok(None);
        }
        Ok(Some((file.clusters - kept) as i32))
    }

    async fn finish_extending<B: Blocks>(
        &mut self,
        card: &mut B,
        last: u32,
        new: u32,
    ) -> Result<Option<i32>, Error<B::Error>> {
        let kind = self.layout.kind;
        let from = self.entry(card, last).await? & kind.mask();
        let is_linked = from == new;
        let is_end = is_linked || kind.is_end_of_chain(from);
        let is_own = is_end
            && self.is_last(card, new).await?
            && !self.is_claimed(card, new, 1, &NOBODY).await?;
        if !is_own {
            return Ok(None);
        }
        // Once it is linked somebody may have put entries into it.
        if !is_linked {
            self.write_directory(card, new, None).await?;
        }
        self.link(card, new, None).await?;
        self.link(card, last, Some(new)).await?;
        Ok(Some(-1))
    }

    /// Forgets unfinished files that are not as they were left.
    pub(super) async fn forget_changed<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<(), Error<B::Error>> {
        let mut are_same = true;
        for slot in 0..self.record.reserved.len() {
            if let Some(file) = self.record.reserved[slot]
                && !self.is_unfinished(card, file).await?
            {
                self.record.reserved[slot] = None;
                are_same = false;
            }
        }
        if are_same {
            Ok(())
        } else {
            self.commit(card).await
        }
    }

    /// Whether a file is as it was reserved: its entry, and both ends of its chain.
    async fn is_unfinished<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
    ) -> Result<bool, Error<B::Error>> {
        let entry = self.entry_of(card, &file, file.first).await?;
        let bytes = file.clusters * self.layout.cluster_bytes();
        let is_entry = entry
            .is_some_and(|entry| entry.attributes() & ATTR_SYSTEM != 0 && entry.size() == bytes);
        if !is_entry {
            return Ok(false);
        }
        let part = file.clusters.min(self.layout.entries_of_block());
        let tail = file.first + file.clusters - part;
        let is_link = |cluster: u32, entry: u32| entry == cluster + 1;
        let is_head = self
            .all_entries(card, file.first, part - 1, is_link)
            .await?;
        let chain = Chain {
            first: tail,
            clusters: part,
            kept: part,
        };
        Ok(is_head && self.is_chain(card, chain).await?)
    }
}
