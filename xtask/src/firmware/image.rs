//! Card image for the firmware: a partition with a file system, and unused blocks after the partition.

use super::recording;
use crate::run::check;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes in a block.
pub const BLOCK_BYTES: usize = 512;
/// Number of blocks on the card; QEMU requires a power of two.
pub const CARD_BLOCKS: usize = 128 << 10;
/// First block of the partition, which takes half of the card.
const FAT_START: usize = 2048;
/// Code of the partition type FAT16 with LBA.
const FAT_TYPE: u8 = 0x0E;

/// A card image in a file, and its initial contents.
pub struct Image {
    path: PathBuf,
    initial: Vec<u8>,
    /// Block range of the partition.
    fat: Range<usize>,
}

impl Image {
    /// Creates a new card image.
    pub fn create(folder: &Path) -> Result<Self, String> {
        Image::of_size(folder, CARD_BLOCKS)
    }

    /// Creates an image of another card.
    pub fn of_size(folder: &Path, blocks: usize) -> Result<Self, String> {
        let fat = FAT_START..FAT_START + blocks / 2;
        let mut initial = vec![0; blocks * BLOCK_BYTES];
        initial[..BLOCK_BYTES].copy_from_slice(&partition_table(&fat));
        initial[bytes_of(&fat)].copy_from_slice(&file_system(folder, &fat)?);
        let path = folder.join("card.img");
        fs::write(&path, &initial).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Image { path, initial, fat })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the contents of the partition.
    pub fn fat(&self) -> Result<Vec<u8>, String> {
        partition(&self.path)
    }

    /// Checks that, outside the partition, exactly the given blocks were written.
    pub fn check_blocks(&self, start: usize, blocks: &[[u8; BLOCK_BYTES]]) -> Result<(), String> {
        let card = read(&self.path)?;
        let old = self.initial.chunks_exact(BLOCK_BYTES);
        for (index, (block, old)) in card.chunks_exact(BLOCK_BYTES).zip(old).enumerate() {
            if self.fat.contains(&index) {
                continue;
            }
            let new = index.checked_sub(start).and_then(|i| blocks.get(i));
            if block != new.map_or(old, |new| new) {
                return Err(format!(
                    "block {index} of {} has unexpected contents",
                    self.path.display()
                ));
            }
        }
        Ok(())
    }
}

/// Returns the contents of the partition of an image.
pub fn partition(image: &Path) -> Result<Vec<u8>, String> {
    let card = read(image)?;
    let blocks = card.len() / BLOCK_BYTES;
    let partition = card.get(bytes_of(&(FAT_START..FAT_START + blocks / 2)));
    let partition = partition.ok_or_else(|| format!("{}: too short", image.display()))?;
    Ok(partition.to_vec())
}

fn bytes_of(blocks: &Range<usize>) -> Range<usize> {
    blocks.start * BLOCK_BYTES..blocks.end * BLOCK_BYTES
}

fn file_system(folder: &Path, fat: &Range<usize>) -> Result<Vec<u8>, String> {
    let path = folder.join("fat.img");
    let _ = fs::remove_file(&path);
    let mut command = Command::new(super::MKFS);
    // The serial number is fixed, so that every image is the same.
    command.args(["-C", "-F", "16", "-i", "0CA5D106"]);
    command.args(["-h", &fat.start.to_string()]);
    command.arg(&path).arg((fat.len() / 2).to_string());
    check(&mut command)?;
    recording::add_other_file(&path)?;
    read(&path)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns the partition table of a card with one partition.
fn partition_table(fat: &Range<usize>) -> [u8; BLOCK_BYTES] {
    let mut table = [0; BLOCK_BYTES];
    let entry = &mut table[446..];
    entry[4] = FAT_TYPE;
    entry[8..12].copy_from_slice(&(fat.start as u32).to_le_bytes());
    entry[12..16].copy_from_slice(&(fat.len() as u32).to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    table
}
