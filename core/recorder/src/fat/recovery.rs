//! After a cut: what was under way is brought to its end, or undone.

use super::record::{File, Intent};
use super::table::Chain;
use super::{Error, FatVolume};
use crate::volume::{Blocks, Name};
use hadris_fat_raw::ATTR_SYSTEM;

/// No entry has this name.
const NOBODY: Name = [0; 11];

impl FatVolume {
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
    pub(super) async fn is_own<B: Blocks>(
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
