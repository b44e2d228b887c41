//! Checks entries that readers of the card found earlier.

use super::entry::DirEntry;
use super::index::INDEX_BLOCKS;
use super::layout::Layout;
use super::names::INDEX;
use super::root::is_file;
use super::walk::Walk;
use super::{Error, FatVolume};
use crate::guest::FileSystem;
use crate::recover::Reader;
use crate::volume::Name;
use cardiograph_card::BLOCK_BYTES;
use hadris_fat_raw::{ATTR_DIRECTORY, FIRST_DATA_CLUSTER, ShortEntry, Slot};

/// Position of the index's entry in a folder.
const INDEX_ENTRY: u8 = 2;

impl Layout {
    /// Returns true if the cluster exists.
    pub(crate) fn is_cluster(&self, cluster: u32) -> bool {
        self.has(cluster, 1)
    }

    /// Returns the number of blocks of all clusters.
    pub(crate) fn data_blocks(&self) -> u32 {
        let clusters = self.clusters_end.saturating_sub(FIRST_DATA_CLUSTER);
        clusters.saturating_mul(self.cluster_blocks)
    }

    pub(crate) fn first_block(&self, cluster: u32) -> u32 {
        self.block_of(cluster)
    }
}

impl DirEntry {
    pub(crate) fn short_name(&self) -> Name {
        self.short
    }
}

impl<R: Reader> Walk<'_, R> {
    /// Returns true if the directory still has this entry, with the same first cluster and length.
    pub(crate) async fn is_entry(&mut self, entry: &DirEntry) -> Result<bool, Error<R::Error>> {
        let kind = self.layout().kind;
        let found = self.short_at(entry.place.block, entry.place.index).await?;
        Ok(found.is_some_and(|found| {
            found.name() == entry.short
                && found.first_cluster(kind) == entry.first
                && found.size() == entry.bytes
                && (found.attributes() ^ entry.attributes) & ATTR_DIRECTORY == 0
        }))
    }

    /// Returns the first block of a directory's index, if it is a folder of recordings.
    pub(crate) async fn index_of(
        &mut self,
        entry: &DirEntry,
    ) -> Result<Option<u32>, Error<R::Error>> {
        let layout = *self.layout();
        if !entry.is_directory() || !layout.has(entry.first, layout.folder_clusters()) {
            return Ok(None);
        }
        let first_block = layout.block_of(entry.first);
        let found = self.short_at(first_block, INDEX_ENTRY).await?;
        let first = entry.first + layout.directory_clusters();
        let is_index = found.is_some_and(|index| {
            index.name() == INDEX
                && is_file(&index)
                && index.first_cluster(layout.kind) == first
                && index.size() == INDEX_BLOCKS * BLOCK_BYTES as u32
        });
        Ok(is_index.then(|| layout.block_of(first)))
    }

    /// Returns the short entry at a place of a directory.
    async fn short_at(
        &mut self,
        block: u32,
        index: u8,
    ) -> Result<Option<ShortEntry>, Error<R::Error>> {
        Ok(match self.slot_at(block, index, 1).await? {
            Slot::Short(entry) => Some(entry),
            _ => None,
        })
    }
}

impl FatVolume {
    /// Returns the mounted file system.
    pub(super) fn file_system_here(&self) -> Option<FileSystem> {
        let is_mounted = self.layout.clusters_end > FIRST_DATA_CLUSTER;
        is_mounted.then_some(FileSystem(self.layout))
    }
}
