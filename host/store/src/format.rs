//! Formatting of simulated cards.

use cardiograph_sim_card::{BLOCK_BYTES, Block, Card};
use fatfs::{FatType, FileSystem, FormatVolumeOptions, FsOptions};
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// Alignment of the file system's data region, in blocks (4 MiB). Manufacturers format cards this way so that
/// clusters do not straddle erase units of the flash.
const ALIGNMENT_BLOCKS: u64 = 8192;

/// Granularity of the capacity in the CSD register, in blocks (512 KiB).
const CSD_STEP_BLOCKS: u64 = 1024;

/// Minimum number of blocks before the partition; the first holds the partition table.
const FIRST_BLOCK_MIN: u64 = 1;

/// Error while formatting a card.
#[derive(Debug)]
pub struct FormatError(io::Error);

impl std::error::Error for FormatError {}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "cannot format the card ({}); choose another capacity or cluster size",
            self.0
        )
    }
}

/// Formats a card as manufacturers do: one FAT partition with its data region aligned to 4 MiB. Takes no
/// virtual time. Returns the block range of the partition.
///
/// # Errors
/// If no FAT file system with this cluster size fits the card.
pub fn format(card: &mut Card, cluster_bytes: u32) -> Result<Range<u64>, FormatError> {
    // Format once anywhere to find out the size of the area before the data, then again at the aligned
    // position.
    let blocks = card.blocks() / CSD_STEP_BLOCKS * CSD_STEP_BLOCKS;
    let trial = 0..blocks - ALIGNMENT_BLOCKS;
    create_file_system(card, trial.clone(), cluster_bytes).map_err(FormatError)?;
    let before_data = blocks_before_data(card, &trial);
    wipe(card, before_data);
    let first =
        FIRST_BLOCK_MIN + (ALIGNMENT_BLOCKS - (FIRST_BLOCK_MIN + before_data) % ALIGNMENT_BLOCKS);
    let partition = first..first + (blocks - ALIGNMENT_BLOCKS);
    let partition = partition.start..partition.end.min(blocks);
    create_file_system(card, partition.clone(), cluster_bytes).map_err(FormatError)?;
    write_partition_table(card, &partition);
    Ok(partition)
}

fn create_file_system(card: &mut Card, blocks: Range<u64>, cluster_bytes: u32) -> io::Result<()> {
    let options = FormatVolumeOptions::new()
        .total_sectors(u32::try_from(blocks.end - blocks.start).unwrap_or(u32::MAX))
        .bytes_per_cluster(cluster_bytes)
        .volume_id(0x4341_5244)
        .volume_label(*b"CARDIOGRAPH");
    let mut stream = PartitionStream {
        card,
        blocks,
        at: 0,
    };
    fatfs::format_volume(&mut stream, options)?;
    // Mounts the volume to count the free clusters, so that FSInfo holds a valid count for the library under
    // test.
    stream.at = 0;
    let file_system = FileSystem::new(stream, FsOptions::new())?;
    file_system.stats()?;
    if file_system.fat_type() == FatType::Fat12 {
        return Err(io::Error::other(
            "so few clusters make the file system FAT12, which the FAT libraries here do not mount",
        ));
    }
    file_system.unmount()
}

/// Returns the size in blocks of the reserved area, the FATs and, except on FAT32, the root directory, from
/// the boot sector.
fn blocks_before_data(card: &Card, partition: &Range<u64>) -> u64 {
    let mut boot = [[0; BLOCK_BYTES]];
    card.load(partition.start, &mut boot);
    let u16_at = |at: usize| u64::from(u16::from_le_bytes([boot[0][at], boot[0][at + 1]]));
    let (reserved, fats, root_entries) = (u16_at(14), u64::from(boot[0][16]), u16_at(17));
    let fat_blocks = match u16_at(22) {
        0 => u16_at(36) | u16_at(38) << 16,
        blocks => blocks,
    };
    reserved + fats * fat_blocks + (root_entries * 32).div_ceil(BLOCK_BYTES as u64)
}

fn wipe(card: &mut Card, blocks: u64) {
    for block in 0..blocks {
        card.store(block, &[[0; BLOCK_BYTES]]);
    }
}

fn write_partition_table(card: &mut Card, partition: &Range<u64>) {
    const FAT32_LBA: u8 = 0x0C;
    const FAT16_LBA: u8 = 0x0E;
    let mut table: Block = [0; BLOCK_BYTES];
    let mut boot = [[0; BLOCK_BYTES]];
    card.load(partition.start, &mut boot);
    let is_fat32 = boot[0][22..24] == [0, 0];
    let entry = &mut table[446..462];
    entry[4] = if is_fat32 { FAT32_LBA } else { FAT16_LBA };
    entry[8..12].copy_from_slice(&(partition.start as u32).to_le_bytes());
    entry[12..16].copy_from_slice(&((partition.end - partition.start) as u32).to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    card.store(0, &[table]);
}

/// A range of a card's blocks as a byte stream; accesses take no virtual time.
struct PartitionStream<'a> {
    card: &'a mut Card,
    blocks: Range<u64>,
    at: u64,
}

impl PartitionStream<'_> {
    /// Returns the block at the current position, the offset in this block, and how many of the `wanted`
    /// bytes the block holds.
    fn position(&self, wanted: usize) -> (u64, usize, usize) {
        let block = self.blocks.start + self.at / BLOCK_BYTES as u64;
        let within = (self.at % BLOCK_BYTES as u64) as usize;
        let left = if block < self.blocks.end {
            BLOCK_BYTES - within
        } else {
            0
        };
        (block, within, left.min(wanted))
    }
}

impl Read for PartitionStream<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (block, within, length) = self.position(buffer.len());
        let mut data = [[0; BLOCK_BYTES]];
        self.card.load(block, &mut data);
        buffer[..length].copy_from_slice(&data[0][within..within + length]);
        self.at += length as u64;
        Ok(length)
    }
}

impl Write for PartitionStream<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let (block, within, length) = self.position(buffer.len());
        let mut data = [[0; BLOCK_BYTES]];
        self.card.load(block, &mut data);
        data[0][within..within + length].copy_from_slice(&buffer[..length]);
        self.card.store(block, &data);
        self.at += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for PartitionStream<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let length = (self.blocks.end - self.blocks.start) * BLOCK_BYTES as u64;
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        self.at = at.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.at)
    }
}
