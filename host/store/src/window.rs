//! A window of one sector in front of a card, like that of FatFs.
//!
//! ```text
//!   part of a sector ── window ──┐   written back when another sector is needed or at a sync;
//!                                ├── card          a FAT sector is then written to both FATs
//!   whole sectors ───────────────┘   immediately, as one burst
//! ```
//!
//! The crate fatfs writes every change of the FAT to both copies; the window ignores writes to the
//! second copy, so that a change takes as long as with FatFs.

use crate::card_device::{CardDevice, DriverError};
use crate::volume::{Layout, SectorCache, io_error};
use cardiograph_sim_card::BLOCK_BYTES;
use embedded_sdmmc::Block;
use std::io;

/// Constant fields of the FSInfo sector as (offset, value) (FAT specification, 5): three signatures, and the
/// next free cluster, which is marked unknown.
const FS_INFO_CONSTANTS: [(usize, u32); 4] = [
    (0, 0x4161_5252),
    (484, 0x6141_7272),
    (492, u32::MAX),
    (508, 0xAA55_0000),
];
const FREE_CLUSTERS_AT: usize = 488;

pub(crate) struct Window {
    device: CardDevice,
    layout: Layout,
    /// Number of the volume sector that the window holds, if any.
    sector: Option<u32>,
    is_dirty: bool,
    data: Block,
    /// True if the FAT changed after the last sync, so the FSInfo sector is out of date.
    fat_changed: bool,
    /// Transfer buffer for whole sectors.
    burst: Vec<Block>,
}

impl Window {
    pub(crate) fn new(device: CardDevice, layout: Layout) -> Window {
        Window {
            device,
            layout,
            sector: None,
            is_dirty: false,
            data: Block::new(),
            fat_changed: false,
            burst: Vec::new(),
        }
    }

    pub(crate) fn card(&self) -> &CardDevice {
        &self.device
    }

    /// Returns the card, without what has not been written back.
    pub(crate) fn into_card(self) -> CardDevice {
        self.device
    }

    /// Writes the sector in the window if it has changed.
    pub(crate) fn write_back(&mut self) -> Result<(), DriverError> {
        let Some(sector) = self.sector.filter(|_| self.is_dirty) else {
            return Ok(());
        };
        let block = std::slice::from_ref(&self.data);
        self.device.write(self.layout.start + sector, block)?;
        if let Some(mirror) = self.layout.mirror_of(sector) {
            self.device.write(self.layout.start + mirror, block)?;
        }
        self.is_dirty = false;
        Ok(())
    }

    /// Loads a sector into the window, and returns it.
    #[inline]
    pub(crate) fn load(&mut self, sector: u32) -> Result<&Block, DriverError> {
        if self.sector != Some(sector) {
            self.write_back()?;
            self.sector = None;
            let block = std::slice::from_mut(&mut self.data);
            self.device.read(self.layout.start + sector, block)?;
            self.sector = Some(sector);
        }
        Ok(&self.data)
    }

    /// Replaces a whole sector, without reading it before.
    pub(crate) fn replace(&mut self, sector: u32, block: &Block) -> Result<(), DriverError> {
        if self.sector != Some(sector) {
            self.write_back()?;
        }
        self.data = block.clone();
        (self.sector, self.is_dirty) = (Some(sector), true);
        self.fat_changed |= self.layout.mirror_of(sector).is_some();
        Ok(())
    }

    /// Returns true if the FAT has changed since the last call.
    pub(crate) fn take_fat_changed(&mut self) -> bool {
        std::mem::take(&mut self.fat_changed)
    }
}

impl SectorCache for Window {
    #[inline]
    fn read_part(&mut self, sector: u32, within: usize, data: &mut [u8]) -> io::Result<()> {
        self.load(sector).map_err(io_error)?;
        data.copy_from_slice(&self.data.contents[within..within + data.len()]);
        Ok(())
    }

    fn write_part(&mut self, sector: u32, within: usize, data: &[u8]) -> io::Result<()> {
        if self.layout.is_second_fat(sector) {
            return Ok(());
        }
        self.load(sector).map_err(io_error)?;
        self.data.contents[within..within + data.len()].copy_from_slice(data);
        self.is_dirty = true;
        self.fat_changed |= self.layout.mirror_of(sector).is_some();
        Ok(())
    }

    fn read_whole(&mut self, sector: u32, data: &mut [u8]) -> io::Result<()> {
        let (sectors, _) = data.as_chunks_mut::<BLOCK_BYTES>();
        self.burst.resize_with(sectors.len(), Block::new);
        let read = self
            .device
            .read(self.layout.start + sector, &mut self.burst);
        read.map_err(io_error)?;
        for (data, block) in sectors.iter_mut().zip(&self.burst) {
            *data = block.contents;
        }
        // The window may hold newer data of one of these sectors.
        if let Some(at) = self
            .sector
            .and_then(|in_window| in_window.checked_sub(sector))
            && let Some(data) = sectors.get_mut(at as usize)
        {
            *data = self.data.contents;
        }
        Ok(())
    }

    fn write_whole(&mut self, sector: u32, data: &[u8]) -> io::Result<()> {
        let (sectors, _) = data.as_chunks::<BLOCK_BYTES>();
        if let Some(at) = self
            .sector
            .and_then(|in_window| in_window.checked_sub(sector))
            && let Some(data) = sectors.get(at as usize)
        {
            self.data.contents = *data;
            self.is_dirty = false;
        }
        self.burst.resize_with(sectors.len(), Block::new);
        for (block, data) in self.burst.iter_mut().zip(sectors) {
            block.contents = *data;
        }
        let written = self.device.write(self.layout.start + sector, &self.burst);
        written.map_err(io_error)
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.write_back().map_err(io_error)
    }

    fn wants_fs_info(&self) -> bool {
        self.fat_changed && self.layout.fs_info.is_some()
    }

    fn update_fs_info(&mut self, free_clusters: u32) -> io::Result<()> {
        self.fat_changed = false;
        self.write_back().map_err(io_error)?;
        // The sector is built in the window; reading it is not necessary.
        self.data.contents = [0; BLOCK_BYTES];
        let free_clusters = (FREE_CLUSTERS_AT, free_clusters);
        for (at, value) in FS_INFO_CONSTANTS.into_iter().chain([free_clusters]) {
            self.data.contents[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        (self.sector, self.is_dirty) = (self.layout.fs_info, true);
        Ok(())
    }

    fn is_synced_at_close(&self) -> bool {
        true
    }

    fn device(&self) -> &CardDevice {
        &self.device
    }

    fn into_device(self: Box<Self>) -> CardDevice {
        self.device
    }
}
