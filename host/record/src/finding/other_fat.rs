//! FAT file systems that the recorder does not use.

use cardiograph_card::{BLOCK_BYTES, Block};
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Property of a FAT file system that the recorder does not use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherFat {
    /// The sectors have this number of bytes.
    SectorBytes(u16),
    /// There is this number of allocation tables.
    Tables(u8),
    /// The file system is in a logical partition.
    Logical,
}

impl fmt::Display for OtherFat {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            OtherFat::SectorBytes(bytes) => write!(f, "FAT with sectors of {bytes} B"),
            OtherFat::Tables(tables) => write!(f, "FAT with {tables} allocation tables"),
            OtherFat::Logical => f.write_str("FAT in a logical partition"),
        }
    }
}

/// Partition types with FAT, and those with further partitions.
const FAT_TYPES: [u8; 6] = [0x01, 0x04, 0x06, 0x0B, 0x0C, 0x0E];
const EXTENDED_TYPES: [u8; 3] = [0x05, 0x0F, 0x85];
/// Most logical partitions that are searched.
const LOGICAL_MAX: u32 = 64;

/// Finds a FAT file system that the recorder does not use, at the beginning of a card or in a partition.
pub(super) fn find(path: &Path) -> Option<OtherFat> {
    let mut file = File::open(path).ok()?;
    let first = read(&mut file, 0)?;
    if let Some(fat) = fat_in(&first) {
        return fat;
    }
    let table = partitions(&first)?;
    for (kind, start) in table {
        if FAT_TYPES.contains(&kind)
            && let Some(boot) = read(&mut file, start)
            && let Some(fat) = fat_in(&boot)
        {
            return fat;
        }
    }
    let (_, extended) = table
        .into_iter()
        .find(|(kind, _)| EXTENDED_TYPES.contains(kind))?;
    has_logical_fat(&mut file, extended).then_some(OtherFat::Logical)
}

/// Returns true if one of the logical partitions has a type of FAT. Each has a table with itself and the next table.
fn has_logical_fat(file: &mut File, extended: u32) -> bool {
    let mut next = 0;
    for _ in 0..LOGICAL_MAX {
        let table = read(file, extended.saturating_add(next));
        let Some([(kind, _), (link, start), ..]) = table.as_ref().and_then(partitions) else {
            return false;
        };
        if FAT_TYPES.contains(&kind) {
            return true;
        }
        if !EXTENDED_TYPES.contains(&link) {
            return false;
        }
        next = start;
    }
    false
}

/// Returns types and first blocks of the partitions in a table.
fn partitions(block: &Block) -> Option<[(u8, u32); 4]> {
    let is_signed = block[510..] == [0x55, 0xAA];
    is_signed.then(|| {
        std::array::from_fn(|index| {
            let entry = &block[446 + 16 * index..][..16];
            let start = [entry[8], entry[9], entry[10], entry[11]];
            (entry[4], u32::from_le_bytes(start))
        })
    })
}

/// Returns the property of the FAT file system with this boot sector that the recorder does not use, `Some(None)` if
/// there is no such property, and `None` if this is no boot sector of FAT.
fn fat_in(block: &Block) -> Option<Option<OtherFat>> {
    let sector_bytes = u16::from_le_bytes([block[11], block[12]]);
    let (cluster_sectors, reserved, tables) = (block[13], &block[14..16], block[16]);
    let is_fat = matches!(block[0], 0xEB | 0xE9)
        && block[510..] == [0x55, 0xAA]
        && matches!(sector_bytes, 512 | 1024 | 2048 | 4096)
        && cluster_sectors.is_power_of_two()
        && reserved != [0; 2]
        && tables > 0;
    is_fat.then_some(match (sector_bytes, tables) {
        (512, 1 | 2) => None,
        (512, tables) => Some(OtherFat::Tables(tables)),
        _ => Some(OtherFat::SectorBytes(sector_bytes)),
    })
}

fn read(file: &mut File, block: u32) -> Option<Block> {
    let mut bytes = [0; BLOCK_BYTES];
    let at = u64::from(block) * BLOCK_BYTES as u64;
    file.seek(SeekFrom::Start(at)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes)
}
