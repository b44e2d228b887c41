//! Frees chains that may be fragmented, run by run, and deletes names that may extend over several blocks.
//!
//! ```text
//!              journal:                                         FSInfo,
//!              this run, the chain after it                     journal: next run, or done
//!   erase ───────(1)────── name ─────(2)────── run ─────(3)───────(4)──────> (1) ...
//! ```
//!
//! The name is deleted with the first run only. A mount that finds such a record continues with the chain after the run
//! if that chain still has the recorded number of clusters and checksum; otherwise another program has changed the
//! chain.

use super::guest_record::{FirstRun, NamePlace, WholeChain};
use super::record::{ENTRIES_OF_BLOCK, Intent};
use super::table::Chain;
use super::{Error, FatVolume, mix};
use crate::volume::Blocks;
use hadris_fat_raw::{ENTRY_FREE, ENTRY_SIZE, ShortEntry, Slot};

impl FatVolume {
    /// Follows a chain to its end.
    ///
    /// # Errors
    /// [`Error::DamagedChain`], or a card error.
    pub(super) async fn survey<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
    ) -> Result<WholeChain, Error<B::Error>> {
        let mut chain = WholeChain::NONE;
        if first == 0 {
            return Ok(chain);
        }
        if !self.layout.has(first, 1) {
            return Err(Error::DamagedChain);
        }
        let most = self.layout.clusters_end;
        let mut walk = self.walk(card);
        let mut next = Some(first);
        while let Some(cluster) = next {
            chain.clusters += 1;
            chain.sum = chain.sum.wrapping_add(mix(cluster));
            if chain.clusters >= most {
                return Err(Error::DamagedChain);
            }
            next = walk.next_cluster(cluster).await?;
        }
        Ok(WholeChain { first, ..chain })
    }

    async fn first_run<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: WholeChain,
    ) -> Result<FirstRun, Error<B::Error>> {
        let mut rest = chain;
        let mut walk = self.walk(card);
        while rest.clusters > 0 {
            let cluster = rest.first;
            rest.clusters -= 1;
            rest.sum = rest.sum.wrapping_sub(mix(cluster));
            rest.first = walk.next_cluster(cluster).await?.unwrap_or(0);
            if rest.first != cluster + 1 {
                break;
            }
        }
        Ok(FirstRun {
            first: chain.first,
            clusters: chain.clusters - rest.clusters,
            rest,
        })
    }

    /// Deletes a name if there is one, ends a chain at cluster `end` unless that is 0, and frees the chain
    /// that belongs to the name or follows the cluster.
    pub(super) async fn free_chain<B: Blocks>(
        &mut self,
        card: &mut B,
        mut name: Option<NamePlace>,
        mut end: u32,
        mut chain: WholeChain,
    ) -> Result<(), Error<B::Error>> {
        loop {
            let run = self.first_run(card, chain).await?;
            self.begin(card, Intent::Erase { name, end, run }).await?;
            self.erase_run(card, name, end, run).await?;
            let free = self.record.free;
            let free = free.map(|free| free.saturating_add(run.clusters));
            if run.rest.clusters == 0 {
                return self.done(card, free).await;
            }
            self.count_free(card, free).await?;
            (name, end, chain) = (None, 0, run.rest);
        }
    }

    /// Stores the number of free clusters between two operations.
    pub(super) async fn count_free<B: Blocks>(
        &mut self,
        card: &mut B,
        free: Option<u32>,
    ) -> Result<(), Error<B::Error>> {
        self.write_free(card, free).await?;
        self.record.free = free;
        Ok(())
    }

    async fn erase_run<B: Blocks>(
        &mut self,
        card: &mut B,
        name: Option<NamePlace>,
        end: u32,
        run: FirstRun,
    ) -> Result<(), Error<B::Error>> {
        if let Some(name) = name {
            self.delete_name(card, name, run.first).await?;
        }
        if end != 0 {
            self.link(card, end, None).await?;
        }
        self.write_chain(card, whole(run), 0).await?;
        // If this run was allocated last, its clusters are used next.
        if self.record.hint == run.first + run.clusters {
            self.record.hint = run.first;
        }
        Ok(())
    }

    /// Deletes a name, if its short entry still has this first cluster or is already gone: first the entries in the
    /// block of the short entry, then the remaining entries of the long name in the blocks before it.
    pub(super) async fn delete_name<B: Blocks>(
        &mut self,
        card: &mut B,
        name: NamePlace,
        first: u32,
    ) -> Result<(), Error<B::Error>> {
        let short = match self.slot(card, name.place()).await? {
            Slot::Short(entry) => Some(entry),
            _ => None,
        };
        if short.is_some_and(|entry| !self.is_entry_of(&entry, name.sum, first)) {
            return Ok(());
        }
        let mut left = usize::from(name.long_entries);
        let index = usize::from(name.place().index);
        let here = left.min(index);
        if short.is_some() {
            let (entries, _) = self.block.as_chunks_mut::<ENTRY_SIZE>();
            entries[index][0] = ENTRY_FREE;
            free_parts(&mut entries[index - here..index], name.sum);
            self.write_back(card, name.place().block).await?;
        }
        left -= here;
        for block in name.before {
            let here = left.min(ENTRIES_OF_BLOCK);
            left -= here;
            if block == 0 || here == 0 {
                continue;
            }
            self.read(card, block).await?;
            let (entries, _) = self.block.as_chunks_mut::<ENTRY_SIZE>();
            if free_parts(&mut entries[ENTRIES_OF_BLOCK - here..], name.sum) {
                self.write_back(card, block).await?;
            }
        }
        Ok(())
    }

    /// Returns true if an entry has this checksum and either this first cluster or, truncated by a repair
    /// tool, none.
    pub(super) fn is_entry_of(&self, entry: &ShortEntry, sum: u8, first: u32) -> bool {
        let found = entry.first_cluster(self.layout.kind);
        let is_emptied = found == 0 && entry.size() == 0;
        entry.lfn_checksum() == sum && (found == first || is_emptied)
    }

    /// Completes the removal of a run after a power cut. Returns false if another program has changed it.
    pub(super) async fn finish_run<B: Blocks>(
        &mut self,
        card: &mut B,
        name: Option<NamePlace>,
        end: u32,
        run: FirstRun,
    ) -> Result<bool, Error<B::Error>> {
        if !self.is_run_own(card, run, name).await? {
            return Ok(false);
        }
        if end != 0 {
            let kind = self.layout.kind;
            let next = self.entry(card, end).await? & kind.mask();
            if next != run.first && !kind.is_end_of_chain(next) {
                return Ok(false);
            }
        }
        self.erase_run(card, name, end, run).await?;
        Ok(true)
    }

    /// Returns true if each cluster of a run is free or linked as before, no entry of the root directory
    /// other than `own` begins in it, and the chain after it is unchanged.
    pub(super) async fn is_run_own<B: Blocks>(
        &mut self,
        card: &mut B,
        run: FirstRun,
        own: Option<NamePlace>,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let last = run.first.wrapping_add(run.clusters).wrapping_sub(1);
        let is_linked = |cluster: u32, entry: u32| {
            let entry = entry & kind.mask();
            let is_next = match (cluster == last, run.rest.first) {
                (false, _) => entry == cluster + 1,
                (true, 0) => kind.is_end_of_chain(entry),
                (true, next) => entry == next,
            };
            entry == 0 || is_next
        };
        Ok(self
            .all_entries(card, run.first, run.clusters, is_linked)
            .await?
            && !self
                .begins_elsewhere(card, run.first, run.clusters, own)
                .await?
            && self.is_unchanged(card, run.rest).await?)
    }

    /// Returns true if a chain is unchanged, and no entry of the root directory begins with it.
    pub(super) async fn is_unchanged<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: WholeChain,
    ) -> Result<bool, Error<B::Error>> {
        if chain.clusters == 0 {
            return Ok(true);
        }
        let now = match self.survey(card, chain.first).await {
            Err(Error::DamagedChain) => return Ok(false),
            now => now?,
        };
        Ok(now == chain && !self.begins_elsewhere(card, chain.first, 1, None).await?)
    }

    /// Returns true if an entry of the root directory other than `own` begins in a run.
    pub(super) async fn begins_elsewhere<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        clusters: u32,
        own: Option<NamePlace>,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let mut is_found = false;
        self.scan_root(card, &mut |place, slot| {
            if let Slot::Short(entry) = slot {
                let is_in = entry.first_cluster(kind).wrapping_sub(first) < clusters;
                // A repair tool may have put its own entry there.
                let is_own =
                    |own: NamePlace| (own.place(), own.sum) == (place, entry.lfn_checksum());
                is_found |= is_in && !own.is_some_and(is_own);
            }
            !is_found
        })
        .await?;
        Ok(is_found)
    }
}

/// Frees the entries of a long name. Returns true if there were any.
fn free_parts(entries: &mut [[u8; ENTRY_SIZE]], sum: u8) -> bool {
    let mut are_any = false;
    for raw in entries {
        if matches!(Slot::parse(raw), Slot::Long(long) if long.checksum() == sum) {
            raw[0] = ENTRY_FREE;
            are_any = true;
        }
    }
    are_any
}

/// Returns the change of the FAT that frees a run.
fn whole(run: FirstRun) -> Chain {
    Chain {
        first: run.first,
        clusters: run.clusters,
        kept: 0,
        head: run.clusters,
    }
}
