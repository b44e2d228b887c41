//! A page cache in front of a card, like that of Linux.
//!
//! ```text
//!   write ──> dirty pages ── all at a sync, some when too many are dirty ──> card, by address, in bursts
//!   read <── clean pages <── bursts, with read-ahead for sequential reads ── card
//! ```

use crate::card_device::{CardDevice, DriverError};
use crate::volume::{Layout, SectorCache, io_error};
use cardiograph_sim_card::BLOCK_BYTES;
use embedded_sdmmc::Block;
use std::collections::HashMap;
use std::io;

const PAGE_BYTES: usize = 4096;
const PAGE_SECTORS: u32 = (PAGE_BYTES / BLOCK_BYTES) as u32;
/// Number of pages written out at a time when too many are dirty (MAX_WRITEBACK_PAGES of Linux 2.6). The FAT has the lowest
/// addresses, so its dirty pages go out before each further part of a file.
const PIECE_PAGES: usize = 1024;
/// Maximum number of clean pages; if it is exceeded, all clean pages are discarded.
const CLEAN_PAGES_MAX: usize = 4096;

#[derive(Default)]
struct Page {
    /// Contents of the page; `None` if all bytes are zero, so that gigabytes of zeros take no memory.
    data: Option<Box<[u8; PAGE_BYTES]>>,
    /// Bit mask of the sectors whose contents are valid.
    valid: u8,
    /// Bit mask of the sectors that are not on the card yet.
    dirty: u8,
}

impl Page {
    /// Fills the sectors that are not valid yet with the card's blocks.
    fn fill(&mut self, blocks: &[Block]) {
        for (sector, block) in blocks.iter().enumerate() {
            let is_missing = self.valid >> sector & 1 == 0;
            if is_missing && (self.data.is_some() || block.contents != [0; BLOCK_BYTES]) {
                let at = sector * BLOCK_BYTES;
                self.bytes()[at..at + BLOCK_BYTES].copy_from_slice(&block.contents);
            }
        }
        self.valid = u8::MAX;
    }

    fn write(&mut self, within: usize, data: &[u8]) {
        let sectors = sectors_of(within, data.len());
        self.valid |= sectors;
        self.dirty |= sectors;
        if data.len() == PAGE_BYTES && is_zero(data) {
            self.data = None;
        } else {
            self.bytes()[within..within + data.len()].copy_from_slice(data);
        }
    }

    fn read(&self, within: usize, data: &mut [u8]) {
        match &self.data {
            Some(bytes) => data.copy_from_slice(&bytes[within..within + data.len()]),
            None => data.fill(0),
        }
    }

    fn bytes(&mut self) -> &mut [u8; PAGE_BYTES] {
        self.data.get_or_insert_with(|| Box::new([0; PAGE_BYTES]))
    }
}

pub(crate) struct PageCache {
    device: CardDevice,
    layout: Layout,
    /// Pages by number. Numbers count from the start of the card, to which clusters are aligned.
    pages: HashMap<u32, Page>,
    /// Numbers of the dirty pages.
    dirty: Vec<u32>,
    dirty_pages_max: usize,
    /// Page after the last page read; a read that starts at this page is sequential.
    read_next: u32,
    burst: Vec<Block>,
    burst_blocks: usize,
}

impl PageCache {
    pub(crate) fn new(
        device: CardDevice,
        layout: Layout,
        dirty_bytes_max: u32,
        burst_blocks: u32,
    ) -> PageCache {
        PageCache {
            device,
            layout,
            pages: HashMap::new(),
            dirty: Vec::new(),
            dirty_pages_max: (dirty_bytes_max as usize / PAGE_BYTES).max(1),
            read_next: u32::MAX,
            burst: Vec::new(),
            burst_blocks: burst_blocks as usize,
        }
    }

    fn write(&mut self, mut at: u64, mut data: &[u8]) -> Result<(), DriverError> {
        while !data.is_empty() {
            let (page, within, length) = self.locate(at, data.len());
            let is_whole = (within | length).is_multiple_of(BLOCK_BYTES);
            if !is_whole {
                self.load(page, within, length, 1)?;
            }
            let held = self.pages.entry(page).or_default();
            if held.dirty == 0 {
                self.dirty.push(page);
            }
            held.write(within, &data[..length]);
            if self.dirty.len() > self.dirty_pages_max {
                self.write_out(PIECE_PAGES)?;
            }
            at += length as u64;
            data = &data[length..];
        }
        Ok(())
    }

    fn read(&mut self, mut at: u64, mut data: &mut [u8]) -> Result<(), DriverError> {
        while !data.is_empty() {
            let (page, within, length) = self.locate(at, data.len());
            let pages = (within + data.len()).div_ceil(PAGE_BYTES);
            self.load(page, within, length, pages)?;
            let (now, rest) = data.split_at_mut(length);
            if let Some(held) = self.pages.get(&page) {
                held.read(within, now);
            }
            at += length as u64;
            data = rest;
        }
        Ok(())
    }

    /// Returns the page that contains byte `at` of the volume, the offset in this page, and how many of the
    /// `wanted` bytes the page holds.
    fn locate(&self, at: u64, wanted: usize) -> (u32, usize, usize) {
        let at = at + u64::from(self.layout.start) * BLOCK_BYTES as u64;
        let within = (at % PAGE_BYTES as u64) as usize;
        let page = (at / PAGE_BYTES as u64) as u32;
        (page, within, wanted.min(PAGE_BYTES - within))
    }

    /// Ensures that the sectors of a page are valid. If they are not, reads the page together with the pages
    /// wanted next, or with as many pages as a burst holds if the read is sequential.
    fn load(
        &mut self,
        page: u32,
        within: usize,
        length: usize,
        pages_wanted: usize,
    ) -> Result<(), DriverError> {
        let needed = sectors_of(within, length);
        if let Some(held) = self.pages.get(&page)
            && held.valid & needed == needed
        {
            return Ok(());
        }
        let most = (self.burst_blocks / PAGE_SECTORS as usize).max(1);
        let end = self.layout.start.saturating_add(self.layout.sectors);
        let left = end.div_ceil(PAGE_SECTORS).saturating_sub(page) as usize;
        let pages = match page == self.read_next {
            true => most,
            false => pages_wanted.min(most),
        };
        let pages = pages.min(left).max(1);
        if self.pages.len() + pages > self.dirty.len() + CLEAN_PAGES_MAX {
            self.pages.retain(|_, page| page.dirty != 0);
        }
        self.burst
            .resize_with(pages * PAGE_SECTORS as usize, Block::new);
        self.device.read(page * PAGE_SECTORS, &mut self.burst)?;
        let blocks = self.burst.chunks(PAGE_SECTORS as usize);
        for (page, blocks) in (page..).zip(blocks) {
            self.pages.entry(page).or_default().fill(blocks);
        }
        self.read_next = page + pages as u32;
        Ok(())
    }

    /// Writes the dirty sectors of at most the given number of pages, in order of address.
    fn write_out(&mut self, pages_max: usize) -> Result<(), DriverError> {
        let mut dirty = std::mem::take(&mut self.dirty);
        dirty.sort_unstable();
        if dirty.len() > pages_max {
            self.dirty = dirty.split_off(pages_max);
        }
        self.burst.clear();
        let mut start = 0;
        for number in dirty {
            let Some(page) = self.pages.get_mut(&number) else {
                continue;
            };
            for sector in (0..PAGE_SECTORS).filter(|sector| page.dirty >> sector & 1 == 1) {
                let block = number * PAGE_SECTORS + sector;
                let follows = start + self.burst.len() as u32 == block;
                if !follows || self.burst.len() == self.burst_blocks {
                    send(&self.device, start, &mut self.burst)?;
                    start = block;
                }
                let mut contents = [0; BLOCK_BYTES];
                page.read(sector as usize * BLOCK_BYTES, &mut contents);
                self.burst.push(Block { contents });
            }
            page.dirty = 0;
        }
        send(&self.device, start, &mut self.burst)?;
        if self.pages.len() > self.dirty.len() + CLEAN_PAGES_MAX {
            self.pages.retain(|_, page| page.dirty != 0);
        }
        Ok(())
    }
}

fn send(device: &CardDevice, start: u32, burst: &mut Vec<Block>) -> Result<(), DriverError> {
    if !burst.is_empty() {
        device.write(start, burst)?;
        burst.clear();
    }
    Ok(())
}

/// Returns the bit mask of the sectors in a page that the given bytes touch.
fn sectors_of(within: usize, length: usize) -> u8 {
    let (first, end) = (
        within / BLOCK_BYTES,
        (within + length).div_ceil(BLOCK_BYTES),
    );
    ((1u16 << end) - (1 << first)) as u8
}

fn is_zero(data: &[u8]) -> bool {
    let (sectors, rest) = data.as_chunks::<BLOCK_BYTES>();
    rest.is_empty() && sectors.iter().all(|sector| *sector == [0; BLOCK_BYTES])
}

impl SectorCache for PageCache {
    fn read_part(&mut self, sector: u32, within: usize, data: &mut [u8]) -> io::Result<()> {
        let at = u64::from(sector) * BLOCK_BYTES as u64 + within as u64;
        self.read(at, data).map_err(io_error)
    }

    fn write_part(&mut self, sector: u32, within: usize, data: &[u8]) -> io::Result<()> {
        let at = u64::from(sector) * BLOCK_BYTES as u64 + within as u64;
        self.write(at, data).map_err(io_error)
    }

    fn read_whole(&mut self, sector: u32, data: &mut [u8]) -> io::Result<()> {
        self.read_part(sector, 0, data)
    }

    fn write_whole(&mut self, sector: u32, data: &[u8]) -> io::Result<()> {
        self.write_part(sector, 0, data)
    }

    fn sync_all(&mut self) -> io::Result<()> {
        self.write_out(usize::MAX).map_err(io_error)
    }

    fn wants_fs_info(&self) -> bool {
        // The library writes the FSInfo sector only when it unmounts the volume.
        false
    }

    fn update_fs_info(&mut self, _free_clusters: u32) -> io::Result<()> {
        Ok(())
    }

    fn is_synced_at_close(&self) -> bool {
        false
    }

    fn device(&self) -> &CardDevice {
        &self.device
    }

    fn into_device(self: Box<Self>) -> CardDevice {
        self.device
    }
}
