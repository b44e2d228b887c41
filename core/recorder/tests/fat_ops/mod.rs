//! Results of each operation on a FAT volume, checked by fsck.fat, the crate fatfs and an independent
//! checker.

use crate::fat_rig;

mod files;
mod folders;
mod places;
mod volume;

use cardiograph_recorder::{
    Extent, FatVolume, FileId, FileRecord, RESERVED_MAX, Request, ShortText, Volume,
};
use fat_rig::*;
use std::collections::BTreeSet;

/// Larger than the largest file.
const LARGE: Spec = Spec {
    blocks: 9 << 20,
    fat_bits: 32,
    cluster_blocks: 128,
    has_files: false,
    ..FAT16
};

const HIDDEN: u8 = 0x26;
const UNFINISHED: u8 = 0x24;
const FINISHED: u8 = 0x20;
/// Number of blocks of a folder and its index.
const FOLDER_BLOCKS: u32 = 335 + 250;

fn judge(rig: &Rig, image: &Image) -> Listing {
    fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    let listing = check(&rig.disk, image.start).unwrap();
    if image.is_for_fatfs {
        let theirs = image.as_fatfs_sees(&rig.disk);
        assert_eq!(theirs.len(), listing.files.len());
        for (name, file) in &listing.files {
            let (long, size) = &theirs[name];
            assert_eq!(*size, u64::from(file.size), "{name}");
            if !file.long_name.is_empty() {
                assert_eq!(*long, file.long_name, "{name}");
            }
        }
    }
    listing
}

fn blocks_of(extent: Extent) -> Vec<u32> {
    (extent.start..extent.start + extent.blocks).collect()
}

/// Returns the path of a recording as the checker lists it.
fn path_of(id: FileId) -> String {
    let folder = String::from_utf8(id.folder_name().to_vec()).unwrap();
    let name = String::from_utf8(id.short_name().to_vec()).unwrap();
    format!("{}/{name}", folder.trim_end())
}

/// Changes an entry of the root directory or of a folder, as a computer would.
fn edit(disk: &mut Disk, start: u32, path: &str, change: impl Fn(&mut [u8; 32])) {
    let listing = check(disk, start).unwrap();
    let (blocks, name) = match path.split_once('/') {
        Some((folder, name)) => (listing.files[folder].blocks.clone(), name),
        None => (listing.root_blocks, path),
    };
    for block in blocks {
        let mut data = *disk.block(block);
        for entry in data.as_chunks_mut::<32>().0 {
            if entry[..11] == *format!("{name:<11}").as_bytes() {
                change(entry);
                disk.put(block, data);
                return;
            }
        }
    }
    panic!("no entry has the name {name}");
}

/// Swaps two one-block clusters of a consecutive chain on FAT32.
fn swap_links(disk: &mut Disk, start: u32, a: u32, b: u32) {
    let boot = *disk.block(start);
    let u16_at = |at: usize| u32::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let (reserved, fat_blocks) = (u16_at(14), u16_at(36));
    let data = start + reserved + 2 * fat_blocks;
    let (a, b) = (a - data + 2, b - data + 2);
    for (from, to) in [(a - 1, b), (b, a + 1), (b - 1, a), (a, b + 1)] {
        for fat in 0..2 {
            let block = start + reserved + fat * fat_blocks + from / 128;
            let mut data = *disk.block(block);
            let at = (from % 128) as usize * 4;
            data[at..at + 4].copy_from_slice(&to.to_le_bytes());
            disk.put(block, data);
        }
    }
}
