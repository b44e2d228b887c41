//! Byte stream of a FAT volume for the crate fatfs, split into accesses to whole sectors and within sectors.

use crate::card_device::{CardDevice, DriverError};
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card};
use std::cell::{Cell, RefCell};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::rc::Rc;

/// The cache between the FAT library and the card. Sectors are counted from the start of the volume.
pub(crate) trait SectorCache {
    /// Reads bytes within one sector.
    fn read_part(&mut self, sector: u32, within: usize, data: &mut [u8]) -> io::Result<()>;

    /// Writes bytes within one sector.
    fn write_part(&mut self, sector: u32, within: usize, data: &[u8]) -> io::Result<()>;

    /// Reads whole sectors.
    fn read_whole(&mut self, sector: u32, data: &mut [u8]) -> io::Result<()>;

    /// Writes whole sectors.
    fn write_whole(&mut self, sector: u32, data: &[u8]) -> io::Result<()>;

    /// Writes all cached data to the card.
    fn sync_all(&mut self) -> io::Result<()>;

    /// Returns true if the next sync must update the FSInfo sector.
    fn wants_fs_info(&self) -> bool;

    /// Writes the number of free clusters to the FSInfo sector.
    fn update_fs_info(&mut self, free_clusters: u32) -> io::Result<()>;

    /// Returns true if closing a file that was written to syncs it.
    fn is_synced_at_close(&self) -> bool;

    /// Returns the card's driver.
    fn device(&self) -> &CardDevice;

    /// Returns the driver and discards unsynced data.
    fn into_device(self: Box<Self>) -> CardDevice;
}

/// Wraps a driver's error in the error type of the crate fatfs.
pub(crate) fn io_error(error: DriverError) -> io::Error {
    io::Error::other(error)
}

/// Layout of a FAT volume. Sectors are counted from the start of the volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// First block of the volume on the card.
    pub(crate) start: u32,
    /// Number of sectors.
    pub(crate) sectors: u32,
    /// First sector of the first FAT.
    fat: u32,
    /// Number of sectors per FAT.
    fat_sectors: u32,
    /// Number of FATs.
    fats: u32,
    /// FSInfo sector, if the volume has one.
    pub(crate) fs_info: Option<u32>,
}

impl Layout {
    /// Reads the layout from the boot sector of a volume; takes no virtual time.
    pub(crate) fn of(card: &Card, volume: &Range<u64>) -> Layout {
        let mut boot: [Block; 1] = [[0; BLOCK_BYTES]];
        card.load(volume.start, &mut boot);
        let u16_at = |at: usize| u32::from(u16::from_le_bytes([boot[0][at], boot[0][at + 1]]));
        let (fat_sectors, fs_info) = match u16_at(22) {
            0 => (u16_at(36) | u16_at(38) << 16, Some(u16_at(48))),
            sectors => (sectors, None),
        };
        Layout {
            start: volume.start as u32,
            sectors: (volume.end - volume.start) as u32,
            fat: u16_at(14),
            fat_sectors,
            fats: boot[0][16].into(),
            fs_info,
        }
    }

    /// Returns true if a block of the card is behind the FATs.
    pub(crate) fn is_data(&self, block: u32) -> bool {
        block >= self.start + self.fat + self.fats * self.fat_sectors
    }

    /// Returns the sector in the second FAT that mirrors a sector of the first FAT.
    pub(crate) fn mirror_of(&self, sector: u32) -> Option<u32> {
        let is_in_first = sector.wrapping_sub(self.fat) < self.fat_sectors;
        (is_in_first && self.fats == 2).then(|| sector + self.fat_sectors)
    }

    pub(crate) fn is_second_fat(&self, sector: u32) -> bool {
        let second = self.fat + self.fat_sectors;
        self.fats == 2 && sector.wrapping_sub(second) < self.fat_sectors
    }
}

/// Offset of the byte with the dirty flag in the boot sector, on FAT16 and FAT32.
const DIRTY_AT: [usize; 2] = [37, 65];

/// Clears the flag of an interrupted session; takes no virtual time. The modelled libraries ignore it, but the crate
/// fatfs would count all free clusters, which takes seconds.
pub(crate) fn clear_dirty_flag(card: &mut Card, volume: &Range<u64>) {
    let mut boot: [Block; 1] = [[0; BLOCK_BYTES]];
    card.load(volume.start, &mut boot);
    let is_fat32 = boot[0][22..24] == [0, 0];
    boot[0][DIRTY_AT[usize::from(is_fat32)]] &= !1;
    card.store(volume.start, &boot);
}

/// A cache shared by a file system and its owner.
pub(crate) type SharedCache = Rc<RefCell<Box<dyn SectorCache>>>;

/// Byte stream of a volume, as the crate fatfs requires.
pub(crate) struct VolumeStream {
    cache: SharedCache,
    length: u64,
    at: u64,
    last_write_end: Rc<Cell<u64>>,
}

impl VolumeStream {
    pub(crate) fn new(cache: SharedCache, layout: Layout) -> VolumeStream {
        VolumeStream {
            cache,
            length: u64::from(layout.sectors) * BLOCK_BYTES as u64,
            at: 0,
            last_write_end: Rc::default(),
        }
    }

    /// Returns a handle to the end offset of the last write.
    pub(crate) fn last_write_end(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.last_write_end)
    }

    /// Returns the sector at the current position, the offset in this sector, and how many of the `wanted`
    /// bytes to transfer in one step: whole sectors, or bytes within one sector.
    #[inline]
    fn position(&self, wanted: usize) -> (u32, usize, usize) {
        let left = (self.length - self.at).min(wanted as u64) as usize;
        let sector = (self.at / BLOCK_BYTES as u64) as u32;
        let within = (self.at % BLOCK_BYTES as u64) as usize;
        let step = match within {
            0 if left >= BLOCK_BYTES => left / BLOCK_BYTES * BLOCK_BYTES,
            _ => left.min(BLOCK_BYTES - within),
        };
        (sector, within, step)
    }
}

impl Read for VolumeStream {
    #[inline]
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let (sector, within, step) = self.position(data.len());
        let data = &mut data[..step];
        let mut cache = self.cache.borrow_mut();
        match step {
            0 => return Ok(0),
            1..BLOCK_BYTES => cache.read_part(sector, within, data)?,
            _ => cache.read_whole(sector, data)?,
        }
        self.at += step as u64;
        Ok(step)
    }
}

impl Write for VolumeStream {
    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let (sector, within, step) = self.position(data.len());
        let data = &data[..step];
        let mut cache = self.cache.borrow_mut();
        match step {
            0 => return Ok(0),
            1..BLOCK_BYTES => cache.write_part(sector, within, data)?,
            _ => cache.write_whole(sector, data)?,
        }
        self.at += step as u64;
        self.last_write_end.set(self.at);
        Ok(step)
    }

    fn flush(&mut self) -> io::Result<()> {
        // The library flushes whenever a file is dropped; explicit syncs go to the cache directly.
        Ok(())
    }
}

impl Seek for VolumeStream {
    #[inline]
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let at = at.filter(|at| *at <= self.length);
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}

/// Size of a directory entry.
const ENTRY_BYTES: usize = 32;
/// Offsets of the two halves of the cluster number in an entry.
const CLUSTER_AT: [usize; 2] = [20, 26];

/// Corrects the first entries of a new folder. The crate fatfs gives `.` and `..` long names, and stores the
/// root directory's cluster number in `..` where 0 is required; fsck.fat reports both as errors.
///
/// Must be called directly after the crate has written the entries, which end at `last_write_end`.
pub(crate) fn repair_new_folder(
    cache: &mut dyn SectorCache,
    last_write_end: u64,
    is_in_root: bool,
) -> io::Result<()> {
    let mut entries = [0; 4 * ENTRY_BYTES];
    let start = last_write_end.saturating_sub(entries.len() as u64);
    let (sector, within) = (start / BLOCK_BYTES as u64, start % BLOCK_BYTES as u64);
    cache.read_part(sector as u32, 0, &mut entries)?;
    let (dot, dot_dot) = (ENTRY_BYTES, 3 * ENTRY_BYTES);
    if within != 0 || !entries[dot..].starts_with(b". ") || !entries[dot_dot..].starts_with(b".. ")
    {
        return Err(io::Error::other("unexpected entries in a new folder"));
    }
    entries.copy_within(dot..dot + ENTRY_BYTES, 0);
    entries.copy_within(dot_dot..dot_dot + ENTRY_BYTES, ENTRY_BYTES);
    entries[2 * ENTRY_BYTES..].fill(0);
    if is_in_root {
        for at in CLUSTER_AT {
            entries[ENTRY_BYTES + at..][..2].fill(0);
        }
    }
    cache.write_part(sector as u32, 0, &entries)
}
