//! The crate fatfs on a simulated card: a stream of bytes for it, made of whole sectors and parts.

use crate::card_device::{CardDevice, DriverError};
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card};
use std::cell::{Cell, RefCell};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::rc::Rc;

/// What lies between the FAT library and the card. Sectors are counted from the start of the volume.
pub(crate) trait Disk {
    /// Reads within one sector.
    fn read_part(&mut self, sector: u32, within: usize, data: &mut [u8]) -> io::Result<()>;

    /// Writes within one sector.
    fn write_part(&mut self, sector: u32, within: usize, data: &[u8]) -> io::Result<()>;

    /// Reads whole sectors.
    fn read_whole(&mut self, sector: u32, data: &mut [u8]) -> io::Result<()>;

    /// Writes whole sectors.
    fn write_whole(&mut self, sector: u32, data: &[u8]) -> io::Result<()>;

    /// Brings everything written so far to the card.
    fn sync_all(&mut self) -> io::Result<()>;

    /// Whether the FSInfo sector is to be written with the next sync.
    fn wants_fs_info(&self) -> bool;

    /// Notes the number of free clusters in the FSInfo sector.
    fn update_fs_info(&mut self, free_clusters: u32) -> io::Result<()>;

    /// Whether a file that was written is synced when it is closed.
    fn is_synced_at_close(&self) -> bool;

    /// The driver below.
    fn device(&self) -> &CardDevice;

    /// Gives the driver back; what was not synced is lost.
    fn into_device(self: Box<Self>) -> CardDevice;
}

/// A driver's error, as the crate fatfs hands errors through.
pub(crate) fn io_error(error: DriverError) -> io::Error {
    io::Error::other(error)
}

/// Where the parts of a FAT volume are. Sectors are counted from its start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Block of the card at which it starts.
    pub(crate) start: u32,
    /// Sectors in all.
    pub(crate) sectors: u32,
    /// The first sector of the first FAT.
    fat: u32,
    /// Sectors of a FAT.
    fat_sectors: u32,
    /// FATs there are.
    fats: u32,
    /// The FSInfo sector, if there is one.
    pub(crate) fs_info: Option<u32>,
}

impl Layout {
    /// Reads it from the boot sector of a volume, outside time.
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

    /// The sector of the second FAT that goes with this one of the first.
    pub(crate) fn mirror_of(&self, sector: u32) -> Option<u32> {
        let is_in_first = sector.wrapping_sub(self.fat) < self.fat_sectors;
        (is_in_first && self.fats == 2).then(|| sector + self.fat_sectors)
    }

    pub(crate) fn is_second_fat(&self, sector: u32) -> bool {
        let second = self.fat + self.fat_sectors;
        self.fats == 2 && sector.wrapping_sub(second) < self.fat_sectors
    }
}

/// A disk that a file system and its owner both hold.
pub(crate) type SharedDisk = Rc<RefCell<Box<dyn Disk>>>;

/// A disk as the crate fatfs wants it.
pub(crate) struct Bytes {
    disk: SharedDisk,
    length: u64,
    at: u64,
    written_to: Rc<Cell<u64>>,
}

impl Bytes {
    pub(crate) fn new(disk: SharedDisk, layout: Layout) -> Bytes {
        Bytes {
            disk,
            length: u64::from(layout.sectors) * BLOCK_BYTES as u64,
            at: 0,
            written_to: Rc::default(),
        }
    }

    /// Where the last write ended, from now on.
    pub(crate) fn written_to(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.written_to)
    }

    /// Sector and place within it of the next byte, and how many of `wanted` go in one step: whole
    /// sectors, or a part of one.
    #[inline]
    fn here(&self, wanted: usize) -> (u32, usize, usize) {
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

impl Read for Bytes {
    #[inline]
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let (sector, within, step) = self.here(data.len());
        let data = &mut data[..step];
        let mut disk = self.disk.borrow_mut();
        match step {
            0 => return Ok(0),
            1..BLOCK_BYTES => disk.read_part(sector, within, data)?,
            _ => disk.read_whole(sector, data)?,
        }
        self.at += step as u64;
        Ok(step)
    }
}

impl Write for Bytes {
    #[inline]
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let (sector, within, step) = self.here(data.len());
        let data = &data[..step];
        let mut disk = self.disk.borrow_mut();
        match step {
            0 => return Ok(0),
            1..BLOCK_BYTES => disk.write_part(sector, within, data)?,
            _ => disk.write_whole(sector, data)?,
        }
        self.at += step as u64;
        self.written_to.set(self.at);
        Ok(step)
    }

    fn flush(&mut self) -> io::Result<()> {
        // The library flushes with every file that goes out of scope; what costs time is asked for.
        Ok(())
    }
}

impl Seek for Bytes {
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

/// Bytes of an entry of a directory.
const ENTRY_BYTES: usize = 32;
/// Places of the cluster's number in an entry.
const CLUSTER_AT: [usize; 2] = [20, 26];

/// Puts the first entries of a new folder as they must be. The crate fatfs gives `.` and `..` long
/// names, and lets `..` point to the root by its number, where 0 is due: two faults to fsck.fat.
///
/// The crate has just written them, up to `written_to`.
pub(crate) fn mend_new_folder(
    disk: &mut dyn Disk,
    written_to: u64,
    is_in_root: bool,
) -> io::Result<()> {
    let mut entries = [0; 4 * ENTRY_BYTES];
    let start = written_to.saturating_sub(entries.len() as u64);
    let (sector, within) = (start / BLOCK_BYTES as u64, start % BLOCK_BYTES as u64);
    disk.read_part(sector as u32, 0, &mut entries)?;
    let (dot, dot_dot) = (ENTRY_BYTES, 3 * ENTRY_BYTES);
    if within != 0 || !entries[dot..].starts_with(b". ") || !entries[dot_dot..].starts_with(b".. ")
    {
        return Err(io::Error::other("a new folder is not as it was expected"));
    }
    entries.copy_within(dot..dot + ENTRY_BYTES, 0);
    entries.copy_within(dot_dot..dot_dot + ENTRY_BYTES, ENTRY_BYTES);
    entries[2 * ENTRY_BYTES..].fill(0);
    if is_in_root {
        for at in CLUSTER_AT {
            entries[ENTRY_BYTES + at..][..2].fill(0);
        }
    }
    disk.write_part(sector as u32, 0, &entries)
}
