//! Recovery after a power cut: a mount completes or undoes the interrupted operation.

use super::guest_record::WholeChain;
use super::record::{File, Intent, Kind};
use super::table::Chain;
use super::{Error, FatVolume};
use crate::volume::{Blocks, Name};
use hadris_fat_raw::ATTR_SYSTEM;

/// A name that no entry has.
const NOBODY: Name = [0; 11];

/// Change of the number of free clusters.
struct Change {
    /// Change if the whole operation is completed.
    whole: i32,
    is_undone: bool,
    /// The chain that is freed next.
    rest: WholeChain,
}

impl Change {
    fn new(whole: i32, is_undone: bool) -> Change {
        Change {
            whole,
            is_undone,
            rest: WholeChain::NONE,
        }
    }
}

impl FatVolume {
    /// Completes or undoes the operation that a power cut interrupted.
    pub(super) async fn recover<B: Blocks>(&mut self, card: &mut B) -> Result<(), Error<B::Error>> {
        let now = self.read_free(card).await?;
        let before = self.record.free;
        let Some(change) = self.finish(card).await? else {
            // Another program has repaired the card in the meantime. It may have used the name.
            if let Intent::Close { slot, .. } | Intent::Discard { slot } = self.record.intent {
                self.forget(slot);
            }
            return self.done(card, now).await;
        };
        let whole = before.map(|free| free.wrapping_add_signed(change.whole));
        let free = if change.is_undone { before } else { whole };
        match self.record.intent {
            Intent::Close { slot, .. } => self.forget(slot),
            Intent::Discard { slot } => self.forget_discarded(slot),
            _ => (),
        }
        // Any other count was written by a system that did not know of the operation.
        let is_own = now == before || now == whole;
        let free = free.filter(|_| is_own);
        if change.rest.clusters == 0 {
            return self.done(card, free).await;
        }
        self.count_free(card, free).await?;
        self.free_chain(card, None, 0, change.rest).await
    }

    fn forget(&mut self, slot: u8) {
        if let Some(file) = self.record.reserved.get_mut(usize::from(slot)) {
            *file = None;
        }
    }

    /// Completes or undoes an operation. Returns `None` if the card is not in a state that the operation
    /// leaves.
    async fn finish<B: Blocks>(&mut self, card: &mut B) -> Result<Option<Change>, Error<B::Error>> {
        let change = match self.record.intent {
            Intent::Nothing => Some(0),
            Intent::Reserve(file) => {
                let is_undone = self.finish_erasing(card, file).await?;
                let whole = -(file.clusters as i32);
                return Ok(is_undone.then_some(Change::new(whole, is_undone)));
            }
            Intent::Erase { name, end, run } => {
                let is_done = self.finish_run(card, name, end, run).await?;
                let change = Change {
                    rest: run.rest,
                    ..Change::new(run.clusters as i32, false)
                };
                return Ok(is_done.then_some(change));
            }
            Intent::Move {
                from,
                to,
                first,
                parent,
                old,
            } => {
                let rest = self.finish_move(card, from, to, first, parent, old).await?;
                let change = Change::new(0, false);
                return Ok(Some(Change { rest, ..change }));
            }
            Intent::Grow {
                last,
                first,
                clusters,
            } => {
                let grown = self.finish_growing(card, last, first, clusters).await?;
                return Ok(grown.map(|(whole, is_undone)| Change::new(whole, is_undone)));
            }
            Intent::MakeDirectory { to, first } => {
                let is_undone = self.finish_directory(card, to, first).await?;
                return Ok(is_undone.map(|is_undone| Change::new(-1, is_undone)));
            }
            Intent::MakeFolder(file) => {
                let whole = -(file.clusters as i32);
                return self.finish_folder(card, file, whole, false).await;
            }
            Intent::RemoveFolder(file) => {
                let whole = file.clusters as i32;
                return self.finish_folder(card, file, whole, true).await;
            }
            Intent::Remove(file) => {
                let is_done = self.finish_erasing(card, file).await?;
                if self.entry_of(card, &file, file.first).await?.is_none() {
                    self.unlist(card, file).await?;
                    self.removed = file.id();
                }
                is_done.then_some(file.clusters as i32)
            }
            Intent::Discard { slot } => match self.record.file(slot) {
                Some(file) => {
                    let is_done = self.finish_erasing(card, file).await?;
                    is_done.then_some(file.clusters as i32)
                }
                None => None,
            },
            Intent::Close { slot, bytes } => match self.record.file(slot) {
                Some(file) => self.finish_closing(card, file, bytes).await?,
                None => None,
            },
            Intent::Name { slot, file } => match self.record.file(slot) {
                Some(hidden) => self.finish_naming(card, slot, hidden, file).await?,
                None => None,
            },
            Intent::ExtendDirectory { last, new } => self.finish_extending(card, last, new).await?,
            Intent::MakeJournal { last, new } => {
                // A computer may have extended the directory.
                if new != 0 && self.is_last(card, new).await? {
                    self.link(card, last, Some(new)).await?;
                    self.link(card, new, None).await?;
                }
                let chain = self.journal_chain();
                self.write_chain(card, chain, 0).await?;
                self.record.hint = chain.first + chain.clusters;
                let more = u32::from(new != 0);
                Some(-((chain.clusters + more) as i32))
            }
        };
        Ok(change.map(|whole| Change::new(whole, false)))
    }

    /// Leaves a folder as it is if its entry exists, because a computer may have put something into it.
    /// Otherwise frees its clusters.
    async fn finish_folder<B: Blocks>(
        &mut self,
        card: &mut B,
        file: File,
        whole: i32,
        is_removal: bool,
    ) -> Result<Option<Change>, Error<B::Error>> {
        let is_there = self.entry_of(card, &file, file.first).await?.is_some();
        if !is_there && !self.finish_erasing(card, file).await? {
            return Ok(None);
        }
        let is_undone = is_there == is_removal;
        Ok(Some(Change::new(whole, is_undone)))
    }

    /// Completes a name if its entry exists. Otherwise the file stays under its hidden entry.
    async fn finish_naming<B: Blocks>(
        &mut self,
        card: &mut B,
        slot: u8,
        hidden: File,
        named: File,
    ) -> Result<Option<i32>, Error<B::Error>> {
        let is_same = hidden.kind == Kind::Prepared
            && (hidden.first, hidden.clusters) == (named.first, named.clusters);
        if !is_same {
            return Ok(None);
        }
        let chain = named.chain(&self.layout, named.clusters);
        let is_there = self.entry_of(card, &named, named.first).await?.is_some();
        if is_there && self.is_chain(card, chain).await? {
            self.finish_name(card, slot, hidden, named).await?;
        } else if !is_there {
            // A repair tool may have truncated the entry, because both entries had the same clusters.
            self.delete_if_own(card, named).await?;
        }
        Ok(Some(0))
    }

    /// Returns true if no cluster follows this one, with or without an end mark.
    async fn is_last<B: Blocks>(
        &mut self,
        card: &mut B,
        cluster: u32,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let entry = self.entry(card, cluster).await? & kind.mask();
        Ok(entry == 0 || kind.is_end_of_chain(entry))
    }

    /// Returns true if the clusters are in a state that an operation on this file leaves.
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
        let is_own = self
            .is_own(card, file.chain(&self.layout, 0), &file.name())
            .await?;
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
        let chain = file.chain(&self.layout, kept);
        let is_own = kept <= file.clusters && self.is_own(card, chain, &file.name()).await?;
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
        // Once it is linked, another program may have put entries into it.
        if !is_linked {
            self.write_directory(card, new, None).await?;
        }
        self.link(card, new, None).await?;
        self.link(card, last, Some(new)).await?;
        Ok(Some(-1))
    }

    /// Removes unfinished files that have changed from the table.
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

    /// Returns true if a file is unchanged since it was reserved: its entry, and both ends of its chain.
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
            head: part,
        };
        Ok(is_head && self.is_chain(card, chain).await?)
    }
}
