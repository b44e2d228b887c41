//! The file allocation table: free runs and chains.

use super::{Error, FatVolume};
use crate::units::unit_of_start;
use crate::volume::Blocks;
use core::ops::Range;
use core::slice::from_mut;
use hadris_fat_raw::{FIRST_DATA_CLUSTER, FatKind};

/// Maximum number of blocks per write command, so that samples can be written in between.
pub(super) const SLICE_BLOCKS: u32 = 16;

/// A run of consecutive clusters. The first `kept` clusters stay allocated: the first `head` of them form one
/// chain and the others a second one. The rest is free.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    pub(super) first: u32,
    pub(super) clusters: u32,
    pub(super) kept: u32,
    pub(super) head: u32,
}

impl Chain {
    fn end(&self) -> u32 {
        self.first + self.clusters
    }

    fn entry(&self, kind: FatKind, cluster: u32) -> u32 {
        let end = cluster + 1 - self.first;
        match end.cmp(&self.kept) {
            core::cmp::Ordering::Less if end == self.head => kind.mask(),
            core::cmp::Ordering::Less => cluster + 1,
            core::cmp::Ordering::Equal => kind.mask(),
            core::cmp::Ordering::Greater => 0,
        }
    }
}

/// A run of consecutive clusters: the first one, and their number.
pub(super) type Run = (u32, u32);

/// A search for a run of free clusters.
pub(super) struct Search {
    /// Length at which the search ends when the run does.
    pub(super) enough: u32,
    /// Length at which the search ends within the run.
    pub(super) wanted: u32,
    /// Preferably, the run begins at a multiple of this number of clusters of the card. With 1 it begins anywhere, because
    /// clusters need not be aligned to their own size.
    pub(super) unit: u32,
}

impl Search {
    /// Returns the run that is used if the later part of the card has one of these and the earlier part the other.
    fn choose(&self, behind: Run, before: Run) -> Run {
        match before.1 >= behind.1 && behind.1 < self.enough {
            true => before,
            false => behind,
        }
    }
}

/// Runs of free clusters: each is the first that is long enough, or the longest.
struct Found {
    /// The run that begins at a multiple of the unit.
    aligned: Run,
    /// The run that begins anywhere.
    any: Run,
}

impl FatVolume {
    /// Reads the FAT block with this cluster's entry, and returns the entry with all its bits.
    pub(super) async fn entry<B: Blocks>(
        &mut self,
        card: &mut B,
        cluster: u32,
    ) -> Result<u32, Error<B::Error>> {
        let block = cluster / self.layout.entries_of_block();
        self.read(card, self.layout.fat + block).await?;
        Ok(self.entry_here(cluster))
    }

    /// Returns an entry from the block that was read last.
    fn entry_here(&self, cluster: u32) -> u32 {
        let kind = self.layout.kind;
        let at = (cluster % self.layout.entries_of_block()) as usize * kind.entry_len();
        kind.decode(cluster.into(), &self.block[at..])
    }

    /// Returns true if `is_right` accepts all entries of the given clusters.
    pub(super) async fn all_entries<B: Blocks>(
        &mut self,
        card: &mut B,
        first: u32,
        clusters: u32,
        is_right: impl Fn(u32, u32) -> bool,
    ) -> Result<bool, Error<B::Error>> {
        let per_block = self.layout.entries_of_block();
        for cluster in first..first + clusters {
            let entry = if cluster == first || cluster % per_block == 0 {
                self.entry(card, cluster).await?
            } else {
                self.entry_here(cluster)
            };
            if !is_right(cluster, entry) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns true if the FAT contains exactly this chain.
    pub(super) async fn is_chain<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: Chain,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        self.all_entries(card, chain.first, chain.clusters, |cluster, entry| {
            let due = chain.entry(kind, cluster);
            entry == due || due == kind.mask() && is_end(kind, entry)
        })
        .await
    }

    /// Returns true if each cluster is free, or linked as in the whole chain, or linked as in the kept part:
    /// the states that an interrupted operation leaves. Detects another file that has taken some of the
    /// clusters, unless it ends at the same cluster as the chain.
    pub(super) async fn is_part_done<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: Chain,
    ) -> Result<bool, Error<B::Error>> {
        let kind = self.layout.kind;
        let whole = Chain {
            kept: chain.clusters,
            ..chain
        };
        self.all_entries(card, chain.first, chain.clusters, |cluster, entry| {
            let is_due = |due| entry == due || due == kind.mask() && is_end(kind, entry);
            entry == 0 || is_due(whole.entry(kind, cluster)) || is_due(chain.entry(kind, cluster))
        })
        .await
    }

    /// Writes a chain to the FATs, from its cluster number `from` on. Requires that no entry of the chain has bits
    /// above its value: only blocks that also contain other entries are read and preserved.
    pub(super) async fn write_chain<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: Chain,
        from: u32,
    ) -> Result<(), Error<B::Error>> {
        let (begin, end) = (chain.first + from, chain.end());
        if begin >= end {
            return Ok(());
        }
        let longest_max = match chain.kept < chain.clusters {
            true => core::mem::replace(&mut self.longest_run_max, u16::MAX),
            false => u16::MAX,
        };
        let per_block = self.layout.entries_of_block();
        let is_part = |block: u32| block * per_block < begin || (block + 1) * per_block > end;
        let last = (end - 1) / per_block;
        let mut at = begin / per_block;
        while at <= last {
            let mut count = (last - at + 1).min(SLICE_BLOCKS);
            // The buffer holds only one block that has to be preserved.
            if count > 1 && is_part(at) && is_part(at + count - 1) {
                count -= 1;
            }
            let read = [at, at + count - 1]
                .into_iter()
                .find(|block| is_part(*block));
            if let Some(block) = read {
                self.read(card, self.layout.fat + block).await?;
            }
            self.write_slice(card, chain, begin..end, at..at + count, read)
                .await?;
            at += count;
        }
        if longest_max < u16::MAX {
            self.note_freed(card, chain.first + chain.kept..end, longest_max)
                .await?;
        }
        Ok(())
    }

    /// Takes note of the free run that these clusters, now free, belong to. If it is the longest of the card, the next
    /// search begins there, and need not read the rest of the FAT.
    async fn note_freed<B: Blocks>(
        &mut self,
        card: &mut B,
        freed: Range<u32>,
        longest_max: u16,
    ) -> Result<(), Error<B::Error>> {
        let before = self.free_beside(card, freed.start - 1, false).await?;
        let after = self.free_beside(card, freed.end, true).await?;
        let length = before + (freed.end - freed.start) + after;
        let length = u16::try_from(length).unwrap_or(u16::MAX);
        self.longest_run_max = length.max(longest_max);
        if length > longest_max {
            self.record.hint = freed.start - before;
        }
        Ok(())
    }

    /// Returns the number of free clusters from this one on, upwards or downwards. Stops at `u16::MAX`.
    async fn free_beside<B: Blocks>(
        &mut self,
        card: &mut B,
        from: u32,
        is_up: bool,
    ) -> Result<u32, Error<B::Error>> {
        let per_block = self.layout.entries_of_block();
        let edge = if is_up { 0 } else { per_block - 1 };
        let (mut at, mut count) = (from, 0);
        while self.layout.has(at, 1) && count < u16::MAX.into() {
            let entry = if at == from || at % per_block == edge {
                self.entry(card, at).await?
            } else {
                self.entry_here(at)
            };
            if entry != 0 {
                break;
            }
            count += 1;
            at = if is_up { at + 1 } else { at - 1 };
        }
        Ok(count)
    }

    /// Writes the given blocks to the FATs, with the entries of the given clusters.
    async fn write_slice<B: Blocks>(
        &mut self,
        card: &mut B,
        chain: Chain,
        clusters: Range<u32>,
        blocks: Range<u32>,
        read: Option<u32>,
    ) -> Result<(), Error<B::Error>> {
        let kind = self.layout.kind;
        let per_block = self.layout.entries_of_block();
        let old = &self.block;
        for fat in self.layout.fats() {
            card.write(
                fat + blocks.start,
                blocks.end - blocks.start,
                &mut |index, out| {
                    let block = blocks.start + index;
                    match read {
                        Some(read) if read == block => out.copy_from_slice(old),
                        _ => out.fill(0),
                    }
                    let begin = clusters.start.max(block * per_block);
                    let end = clusters.end.min((block + 1) * per_block);
                    for cluster in begin..end {
                        let at = (cluster % per_block) as usize * kind.entry_len();
                        kind.encode(cluster.into(), chain.entry(kind, cluster), &mut out[at..]);
                    }
                },
            )
            .await
            .map_err(Error::Card)?;
        }
        Ok(())
    }

    /// Links a cluster to the next one, or ends its chain.
    pub(super) async fn link<B: Blocks>(
        &mut self,
        card: &mut B,
        cluster: u32,
        next: Option<u32>,
    ) -> Result<(), Error<B::Error>> {
        let kind = self.layout.kind;
        let per_block = self.layout.entries_of_block();
        self.entry(card, cluster).await?;
        let at = (cluster % per_block) as usize * kind.entry_len();
        let value = next.unwrap_or(kind.mask());
        kind.encode(cluster.into(), value, &mut self.block[at..]);
        for fat in self.layout.fats() {
            self.write_back(card, fat + cluster / per_block).await?;
        }
        Ok(())
    }

    /// Returns the first cluster and the length of the first free run of at least `enough` clusters from the hint on,
    /// cut to `wanted`, or of the longest if none is long enough. The length is 0 if no cluster is free.
    ///
    /// A long run begins at a multiple of the card's allocation unit if there is such a run: on many cards a
    /// unit is slower when it is not written from its beginning.
    pub(super) async fn free_run<B: Blocks>(
        &mut self,
        card: &mut B,
        enough: u32,
        wanted: u32,
    ) -> Result<Run, Error<B::Error>> {
        let unit = self.unit_for(wanted);
        self.find_run(
            card,
            Search {
                enough,
                wanted,
                unit,
            },
        )
        .await
    }

    /// Returns the unit of flash with which a run of this length begins, in clusters.
    pub(super) fn unit_for(&self, wanted: u32) -> u32 {
        let blocks = wanted.saturating_mul(self.layout.cluster_blocks);
        let card_blocks =
            (self.layout.clusters_end - FIRST_DATA_CLUSTER) * self.layout.cluster_blocks;
        let clusters = unit_of_start(blocks, card_blocks) / self.layout.cluster_blocks;
        let is_aligned = self
            .layout
            .block_of(FIRST_DATA_CLUSTER)
            .is_multiple_of(self.layout.cluster_blocks);
        if is_aligned { clusters.max(1) } else { 1 }
    }

    /// Like [`free_run`](Self::free_run).
    pub(super) async fn find_run<B: Blocks>(
        &mut self,
        card: &mut B,
        search: Search,
    ) -> Result<Run, Error<B::Error>> {
        let enough = search.enough;
        // From the hint on, then before it.
        let end = self.layout.clusters_end;
        let hint = self.record.hint;
        let hint = if self.layout.has(hint, 1) {
            hint
        } else {
            FIRST_DATA_CLUSTER
        };
        let behind = self.free_run_in(card, hint..end, &search).await?;
        if behind.aligned.1 >= enough {
            return Ok(behind.aligned);
        }
        if hint == FIRST_DATA_CLUSTER {
            return Ok(behind.any);
        }
        // A run may begin before the hint and end after it.
        let overlap = hint.saturating_add(search.wanted).min(end);
        let before = self
            .free_run_in(card, FIRST_DATA_CLUSTER..overlap, &search)
            .await?;
        let aligned = search.choose(behind.aligned, before.aligned);
        Ok(match aligned.1 >= enough {
            true => aligned,
            false => search.choose(behind.any, before.any),
        })
    }

    /// Reads the FAT once, for the aligned run and for the one that begins anywhere: a card that is nearly full may have
    /// no aligned one.
    async fn free_run_in<B: Blocks>(
        &mut self,
        card: &mut B,
        clusters: Range<u32>,
        search: &Search,
    ) -> Result<Found, Error<B::Error>> {
        let unit_blocks = search.unit * self.layout.cluster_blocks;
        let per_block = self.layout.entries_of_block();
        let mut found = Found {
            aligned: (clusters.start, 0),
            any: (clusters.start, 0),
        };
        let (mut run, mut aligned) = (0, 0);
        for cluster in clusters.clone() {
            let entry = if cluster == clusters.start || cluster % per_block == 0 {
                self.entry(card, cluster).await?
            } else {
                self.entry_here(cluster)
            };
            let is_aligned =
                search.unit == 1 || self.layout.block_of(cluster).is_multiple_of(unit_blocks);
            // A nonzero reserved upper nibble counts as used, because rewriting the entry would clear it.
            if entry == 0 {
                run += 1;
                aligned += u32::from(aligned > 0 || is_aligned);
            } else {
                (run, aligned) = (0, 0);
            }
            note_run(&mut found.any, cluster, run, search);
            note_run(&mut found.aligned, cluster, aligned, search);
            let length = found.aligned.1;
            if length == search.wanted || aligned == 0 && length >= search.enough {
                break;
            }
        }
        Ok(found)
    }

    /// Reads a block into the buffer.
    pub(super) async fn read<B: Blocks>(
        &mut self,
        card: &mut B,
        block: u32,
    ) -> Result<(), Error<B::Error>> {
        let read = card.read(block, from_mut(&mut self.block)).await;
        read.map_err(Error::Card)
    }

    /// Writes the buffered block back.
    pub(super) async fn write_back<B: Blocks>(
        &mut self,
        card: &mut B,
        block: u32,
    ) -> Result<(), Error<B::Error>> {
        let data = &self.block;
        card.write(block, 1, &mut |_, out| out.copy_from_slice(data))
            .await
            .map_err(Error::Card)
    }
}

/// Notes a run of free clusters that ends with this one, unless an earlier one is long enough, or longer.
fn note_run(noted: &mut Run, last: u32, length: u32, search: &Search) {
    let first = last + 1 - length;
    let is_same = noted.0 == first && noted.1 < search.wanted;
    if length > noted.1 && (is_same || noted.1 < search.enough) {
        *noted = (first, length);
    }
}

/// Returns true if an entry ends a chain and has no bits above its value.
fn is_end(kind: FatKind, entry: u32) -> bool {
    entry <= kind.mask() && kind.is_end_of_chain(entry)
}
