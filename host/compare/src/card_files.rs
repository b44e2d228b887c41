//! Access to the files of a simulated card through an independent FAT library, without advancing virtual time.

use cardiograph_sim_card::{BLOCK_BYTES, Block, Card};
use fatfs::{FileSystem, FsOptions};
use std::cell::RefCell;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;

/// Ranges of blocks that the FAT library has read.
type Runs = RefCell<Vec<Range<u64>>>;

/// Calls `look` with a reader of a file; returns its result and the file's blocks on the card.
///
/// # Errors
/// Errors of the library, such as a missing file system or file.
pub(crate) fn with_file<T>(
    card: &Card,
    path: &str,
    look: impl FnOnce(&mut dyn Read) -> T,
) -> io::Result<(T, Vec<Range<u64>>)> {
    let runs = Runs::default();
    let volume = Volume::of(card, &runs);
    let partition = volume.blocks.clone();
    let file_system = FileSystem::new(volume, FsOptions::new())?;
    let root = file_system.root_dir();
    let mut file = root.open_file(path)?;
    let data = partition.start + blocks_before_data(card, partition.start);
    runs.borrow_mut().clear();
    let result = look(&mut file);
    let mut runs = runs.take();
    // Blocks before the data area belong to the allocation tables.
    runs.retain(|run| run.start >= data);
    Ok((result, runs))
}

fn block_of(card: &Card, block: u64) -> Block {
    let mut data = [[0; BLOCK_BYTES]];
    card.load(block, &mut data);
    data[0]
}

fn u32_at(block: &Block, at: usize) -> u64 {
    let bytes = [block[at], block[at + 1], block[at + 2], block[at + 3]];
    u32::from_le_bytes(bytes).into()
}

fn u16_at(block: &Block, at: usize) -> u64 {
    u16::from_le_bytes([block[at], block[at + 1]]).into()
}

/// Returns the number of reserved and allocation table blocks, from the boot sector. The fixed root
/// directory of FAT16 is not included: once a file is open, reading its data does not touch the root
/// directory.
fn blocks_before_data(card: &Card, start: u64) -> u64 {
    let boot = block_of(card, start);
    let table_blocks = match u16_at(&boot, 22) {
        0 => u32_at(&boot, 36),
        blocks => blocks,
    };
    u16_at(&boot, 14) + u64::from(boot[16]) * table_blocks
}

/// The first partition of a card, read-only.
struct Volume<'a> {
    card: &'a Card,
    blocks: Range<u64>,
    at: u64,
    runs: &'a Runs,
}

impl<'a> Volume<'a> {
    fn of(card: &'a Card, runs: &'a Runs) -> Self {
        let table = block_of(card, 0);
        let start = u32_at(&table, 454);
        Volume {
            card,
            blocks: start..start + u32_at(&table, 458),
            at: 0,
            runs,
        }
    }

    fn note(&self, block: u64) {
        let mut runs = self.runs.borrow_mut();
        match runs.last_mut() {
            Some(run) if run.contains(&block) => (),
            Some(run) if run.end == block => run.end += 1,
            _ => runs.push(block..block + 1),
        }
    }
}

impl Read for Volume<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            let block = self.blocks.start + self.at / BLOCK_BYTES as u64;
            if block >= self.blocks.end {
                break;
            }
            let within = (self.at % BLOCK_BYTES as u64) as usize;
            let length = (BLOCK_BYTES - within).min(buffer.len() - done);
            let data = block_of(self.card, block);
            buffer[done..done + length].copy_from_slice(&data[within..within + length]);
            self.note(block);
            self.at += length as u64;
            done += length;
        }
        Ok(done)
    }
}

impl Write for Volume<'_> {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Volume<'_> {
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
