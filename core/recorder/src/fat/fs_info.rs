//! FSInfo, where FAT32 stores the number of free clusters.

use super::record::{UNKNOWN, get, put};
use super::{Error, FatVolume};
use crate::volume::Blocks;
use hadris_fat_raw::{FIRST_DATA_CLUSTER, FSINFO_LEAD_SIG, FSINFO_STRUC_SIG, FSINFO_TRAIL_SIG};

/// Offsets in FSInfo.
const LEAD_AT: usize = 0;
const STRUCTURE_AT: usize = 484;
const FREE_AT: usize = 488;
const NEXT_AT: usize = 492;
const TRAIL_AT: usize = 508;

impl FatVolume {
    /// Reads the number of free clusters from FSInfo; `None` if there is no FSInfo or it does not state the number.
    pub(super) async fn read_free<B: Blocks>(
        &mut self,
        card: &mut B,
    ) -> Result<Option<u32>, Error<B::Error>> {
        let Some(fs_info) = self.layout.fs_info else {
            return Ok(None);
        };
        self.read(card, fs_info).await?;
        let free = get(&self.block, FREE_AT);
        let most = self.layout.clusters_end - FIRST_DATA_CLUSTER;
        Ok((self.is_fs_info() && free <= most).then_some(free))
    }

    /// Writes the number of free clusters and the next cluster to search to FSInfo.
    pub(super) async fn write_free<B: Blocks>(
        &mut self,
        card: &mut B,
        free: Option<u32>,
    ) -> Result<(), Error<B::Error>> {
        let Some(fs_info) = self.layout.fs_info else {
            return Ok(());
        };
        self.read(card, fs_info).await?;
        if !self.is_fs_info() {
            return Ok(());
        }
        put(&mut self.block, FREE_AT, free.unwrap_or(UNKNOWN));
        let hint = self.record.hint;
        let next = if self.layout.has(hint, 1) {
            hint
        } else {
            UNKNOWN
        };
        put(&mut self.block, NEXT_AT, next);
        self.write_back(card, fs_info).await
    }

    fn is_fs_info(&self) -> bool {
        [
            (LEAD_AT, FSINFO_LEAD_SIG),
            (STRUCTURE_AT, FSINFO_STRUC_SIG),
            (TRAIL_AT, FSINFO_TRAIL_SIG),
        ]
        .into_iter()
        .all(|(at, signature)| get(&self.block, at) == signature)
    }
}
