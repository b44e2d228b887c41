//! Boot sectors and partition tables, built byte by byte.

use super::*;
use crate::fat::Error;
use crate::fat::layout::{First, identify_first};
use core::num::NonZeroU32;

/// Blocks of a volume, from its boot sector to its end.
pub(super) const BLOCKS: u32 = 9000;
const CARD_BLOCKS: u32 = 20_000;
const RESERVED: u32 = 9;
const FAT_BLOCKS: u32 = 80;
const ROOTS: u32 = 64;

fn put16(block: &mut Block, at: usize, value: u32) {
    block[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
}

fn put32(block: &mut Block, at: usize, value: u32) {
    block[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

/// Returns a boot sector with one block per cluster (FAT specification, section 3).
pub(super) fn boot(is_32: bool, fats: u8) -> Block {
    let mut block = [0; 512];
    block[..3].copy_from_slice(&[0xEB, 0x3C, 0x90]);
    put16(&mut block, 11, 512);
    block[13] = 1;
    put16(&mut block, 14, RESERVED);
    block[16] = fats;
    block[21] = 0xF8;
    put32(&mut block, 32, BLOCKS);
    if is_32 {
        put32(&mut block, 36, FAT_BLOCKS);
        put32(&mut block, 44, 5);
        put16(&mut block, 48, 1);
        block[66] = 0x29;
        put32(&mut block, 67, 0xCA4D_1064);
    } else {
        put16(&mut block, 17, ROOTS);
        put16(&mut block, 22, FAT_BLOCKS);
        block[38] = 0x29;
        put32(&mut block, 39, 0xCA4D_1064);
    }
    block[510..].copy_from_slice(&[0x55, 0xAA]);
    block
}

/// Writes types and first blocks of four partitions.
fn with_table(mut block: Block, partitions: [(u8, u32); 4]) -> Block {
    for (at, (kind, start)) in (446..).step_by(16).zip(partitions) {
        block[at..at + 16].fill(0);
        block[at] = 0x80;
        block[at + 4] = kind;
        put32(&mut block, at + 8, start);
    }
    block[510..].copy_from_slice(&[0x55, 0xAA]);
    block
}

/// Returns the first block of the volume that begins with, or is listed in, block 0.
fn first_of(block: &Block) -> Result<u32, Error<NoPower>> {
    identify_first(block).map(|first| match first {
        First::Boot => 0,
        First::Partition(start) => start,
    })
}

#[test]
fn every_part_of_a_volume_is_where_its_boot_sector_says() {
    const START: u32 = 63;
    for is_32 in [false, true] {
        for fats in [1, 2] {
            // BPB_ExtFlags: mirrored, or only the FAT with this number is active.
            for flags in [0, 0x80, 0x81] {
                let active = flags & 1;
                if active >= fats.into() || flags != 0 && !is_32 {
                    continue;
                }
                let mut block = boot(is_32, fats);
                if is_32 {
                    put16(&mut block, 40, flags);
                }
                let layout = Layout::of::<NoPower>(&block, START, CARD_BLOCKS).unwrap();
                let fat = START + RESERVED;
                let behind = RESERVED + u32::from(fats) * FAT_BLOCKS;
                let roots = if is_32 { 0 } else { ROOTS / 16 };
                let kind = [FatKind::Fat16, FatKind::Fat32][usize::from(is_32)];
                assert_eq!((layout.kind, layout.start), (kind, START));
                assert_eq!(layout.fat, fat + active * FAT_BLOCKS);
                let is_mirrored = fats == 2 && flags == 0;
                let mirror = layout.mirror.map(NonZeroU32::get);
                assert_eq!(mirror, is_mirrored.then_some(fat + FAT_BLOCKS));
                let root = match is_32 {
                    true => Root::Cluster(5),
                    false => Root::Fixed {
                        start: START + behind,
                        blocks: roots,
                    },
                };
                assert_eq!(layout.root, root);
                assert_eq!(layout.data, START + behind + roots);
                assert_eq!(layout.clusters_end, BLOCKS - behind - roots + 2);
                assert_eq!(layout.cluster_blocks, 1);
                assert_eq!(layout.fs_info, is_32.then_some(START + 1));
                assert_eq!(layout.serial, 0xCA4D_1064);
                // The volume may end with the card.
                let end = START + BLOCKS;
                assert!(Layout::of::<NoPower>(&block, START, end).is_ok());
                let error = Layout::of::<NoPower>(&block, START, end - 1).unwrap_err();
                let end = end.into();
                let card_blocks = START + BLOCKS - 1;
                assert_eq!(error, Error::LargerThanCard { end, card_blocks });
            }
        }
    }
}

#[test]
fn the_volume_is_found_in_any_partition() {
    const NOTHING: (u8, u32) = (0, 0);
    for kind in [0x01, 0x04, 0x06, 0x0B, 0x0C, 0x0E, 0x07] {
        for at in 0..4 {
            let mut partitions = [NOTHING; 4];
            partitions[at] = (kind, 700 + at as u32);
            let block = with_table([0; 512], partitions);
            assert_eq!(first_of(&block), Ok(700 + at as u32), "{kind:#x} {at}");
            // All partitions are in use.
            let others = partitions.map(|it| if it == NOTHING { (0x83, 5) } else { it });
            assert_eq!(first_of(&with_table([0; 512], others)), Ok(700 + at as u32));
            // A partition in block 0 does not exist.
            partitions[at].1 = 0;
            let block = with_table([0; 512], partitions);
            assert_eq!(first_of(&block), Err(Error::NoFatPartition(kind)));
        }
    }
    // A FAT is preferred to what may be exFAT; the protective partition of a GPT comes first.
    let mut partitions = [(0x07, 100), (0x0C, 200), NOTHING, NOTHING];
    assert_eq!(first_of(&with_table([0; 512], partitions)), Ok(200));
    partitions[3] = (0xEE, 1);
    let block = with_table([0; 512], partitions);
    assert_eq!(first_of(&block), Err(Error::Gpt));
}

/// A boot sector contains code where a partition table would be, and a partition table may begin with code.
#[test]
fn a_boot_sector_and_a_partition_table_are_not_confused() {
    let table = [(0x0C, 777), (0, 0), (0, 0), (0, 0)];
    let other = |name: &[u8; 8], is_table: bool| {
        let mut block = [0; 512];
        block[..3].copy_from_slice(&[0xEB, 0x76, 0x90]);
        block[3..11].copy_from_slice(name);
        block[510..].copy_from_slice(&[0x55, 0xAA]);
        first_of(&match is_table {
            true => with_table(block, table),
            false => block,
        })
    };
    for is_table in [false, true] {
        assert_eq!(other(b"EXFAT   ", is_table), Err(Error::ExFat));
        assert_eq!(other(b"NTFS    ", is_table), Err(Error::Ntfs));
    }
    for is_32 in [false, true] {
        let volume = boot(is_32, 2);
        assert_eq!(first_of(&volume), Ok(0));
        assert_eq!(first_of(&with_table(volume, table)), Ok(0));
        // Without a jump it is no boot sector.
        let mut block = volume;
        block[0] = 0;
        assert_eq!(first_of(&block), Err(Error::NoFileSystem));
        assert_eq!(first_of(&with_table(block, table)), Ok(777));
        // Without a signature it is neither.
        let mut block = with_table([0; 512], table);
        block[511] = 0;
        assert_eq!(first_of(&block), Err(Error::NoFileSystem));
        // The status of a partition is 00 or 80.
        let mut block = with_table([0; 512], table);
        block[446 + 32] = 1;
        assert_eq!(first_of(&block), Err(Error::NoFileSystem));
    }
}

#[test]
fn the_error_names_the_damaged_field() {
    let error_of = |change: &dyn Fn(&mut Block)| {
        let mut block = boot(true, 2);
        change(&mut block);
        Layout::of::<NoPower>(&block, 0, CARD_BLOCKS).unwrap_err()
    };
    let named = |error: Error<NoPower>| match error {
        Error::DamagedBootSector(what) => what,
        error => panic!("{error:?}"),
    };
    assert!(named(error_of(&|block| block[13] = 3)).contains("sectors_per_cluster"));
    assert!(named(error_of(&|block| block[16] = 0)).contains("fat_count"));
    assert_eq!(named(error_of(&|block| block[44] = 1)), "BPB_RootClus");
    assert!(named(error_of(&|block| block[510] = 0)).contains("signature"));
    // Code that begins with a jump, without the parameters of a volume.
    let is_no_volume = |block: &mut Block| {
        block[13] = 3;
        block[510] = 0;
    };
    assert_eq!(error_of(&is_no_volume), Error::NoFileSystem);
    let kibibytes = |block: &mut Block| {
        put16(block, 11, 1024);
        put32(block, 32, BLOCKS / 2);
    };
    assert_eq!(error_of(&kibibytes), Error::SectorBytes(1024));
}
