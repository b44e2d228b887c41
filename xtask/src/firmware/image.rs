//! The card of the firmware: a partition with a file system, and blocks behind it that are nobody's.

use super::recording;
use crate::run::check;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes in a block.
pub const BLOCK_BYTES: usize = 512;
/// QEMU wants a power of two.
const CARD_BLOCKS: usize = 128 << 10;
/// The blocks of the partition.
const FAT: Range<usize> = 2048..66 << 10;
/// FAT of 16 bits, counted in blocks.
const FAT_TYPE: u8 = 0x0E;

/// A card in a folder of this computer, and what was on it when it was made.
pub struct Image {
    path: PathBuf,
    made: Vec<u8>,
}

impl Image {
    /// Makes a new card.
    pub fn make(folder: &Path) -> Result<Self, String> {
        let mut made = vec![0; CARD_BLOCKS * BLOCK_BYTES];
        made[..BLOCK_BYTES].copy_from_slice(&partition_table());
        made[fat_bytes()].copy_from_slice(&file_system(folder)?);
        let path = folder.join("card.img");
        fs::write(&path, &made).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Image { path, made })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is in the partition.
    pub fn fat(&self) -> Result<Vec<u8>, String> {
        Ok(read(&self.path)?[fat_bytes()].to_vec())
    }

    /// Checks that outside the partition these blocks, and no others, were written.
    pub fn holds(&self, start: usize, blocks: &[[u8; BLOCK_BYTES]]) -> Result<(), String> {
        let card = read(&self.path)?;
        let old = self.made.chunks_exact(BLOCK_BYTES);
        for (index, (block, old)) in card.chunks_exact(BLOCK_BYTES).zip(old).enumerate() {
            if FAT.contains(&index) {
                continue;
            }
            let new = index.checked_sub(start).and_then(|i| blocks.get(i));
            if block != new.map_or(old, |new| new) {
                return Err(format!("block {index} of {} is wrong", self.path.display()));
            }
        }
        Ok(())
    }
}

fn fat_bytes() -> Range<usize> {
    FAT.start * BLOCK_BYTES..FAT.end * BLOCK_BYTES
}

fn file_system(folder: &Path) -> Result<Vec<u8>, String> {
    let path = folder.join("fat.img");
    let _ = fs::remove_file(&path);
    let mut command = Command::new(super::MKFS);
    // The same serial number every time.
    command.args(["-C", "-F", "16", "-i", "0CA5D106"]);
    command.args(["-h", &FAT.start.to_string()]);
    command.arg(&path).arg((FAT.len() / 2).to_string());
    check(&mut command)?;
    recording::put_other(&path)?;
    read(&path)
}

fn read(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
}

/// The first block of a card with one partition.
fn partition_table() -> [u8; BLOCK_BYTES] {
    let mut table = [0; BLOCK_BYTES];
    let entry = &mut table[446..];
    entry[4] = FAT_TYPE;
    entry[8..12].copy_from_slice(&(FAT.start as u32).to_le_bytes());
    entry[12..16].copy_from_slice(&(FAT.len() as u32).to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xAA]);
    table
}
