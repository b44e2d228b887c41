//! Unusable and damaged cards: mounting returns a specific error, never panics, and writes nothing outside
//! the volume.

use crate::fat_rig;

use cardiograph_recorder::{FileRecord, Request};
use cardiograph_sim_world::{Random, Seed};
use fat_rig::*;

const FAT32: Spec = Spec {
    blocks: 20_000,
    fat_bits: 32,
    cluster_blocks: 2,
    has_table: true,
    has_files: false,
    ..FAT16
};

fn card(bytes: &[u8]) -> Disk {
    let blocks = bytes.as_chunks::<512>().0.to_vec();
    let count = blocks.len() as u32;
    Disk::new(blocks, count)
}

/// Returns a card with this as its only partition.
fn in_partition(kind: u8, bytes: &[u8]) -> Disk {
    let mut blocks = vec![[0; 512]; 8];
    blocks.extend_from_slice(bytes.as_chunks::<512>().0);
    blocks[0] = table(8, blocks.len() as u32 - 8, kind);
    let count = blocks.len() as u32;
    Disk::new(blocks, count)
}

/// Returns the error of a failed mount, which must have written nothing.
fn refused(disk: Disk) -> Error {
    let mut rig = Rig::new(disk);
    let error = rig.mount().unwrap_err();
    assert_eq!(rig.disk.writes, 0);
    let text = error.to_string();
    assert!(text.len() > 30 && !text.ends_with('.'), "{text}");
    error
}

#[test]
fn other_file_systems_are_named_in_the_error() {
    let exfat = made_by("mkfs.exfat", &[], 16_384);
    assert_eq!(refused(card(&exfat)), Error::ExFat);
    for kind in [0x07, 0x0C] {
        assert_eq!(refused(in_partition(kind, &exfat)), Error::ExFat);
    }
    let mut ntfs = vec![0; 64 * 512];
    ntfs[..16].copy_from_slice(b"\xEB\x52\x90NTFS    \x00\x02\x08\x00\x00");
    ntfs[510..512].copy_from_slice(&[0x55, 0xAA]);
    assert_eq!(refused(card(&ntfs)), Error::Ntfs);
    assert_eq!(refused(in_partition(0x07, &ntfs)), Error::Ntfs);

    let fat12 = made_by("mkfs.fat", &["-F", "12"], 2880);
    assert_eq!(refused(card(&fat12)), Error::Fat12);
    assert_eq!(refused(in_partition(0x01, &fat12)), Error::Fat12);
    let large = made_by("mkfs.fat", &["-F", "16", "-S", "2048", "-s", "1"], 20_000);
    assert_eq!(refused(card(&large)), Error::SectorBytes(2048));
}

#[test]
fn cards_without_a_volume_return_specific_errors() {
    let zeros = || vec![[0; 512]; 64];
    assert_eq!(refused(Disk::new(zeros(), 64)), Error::NoFileSystem);
    assert_eq!(
        refused(Disk::new(vec![[0xFF; 512]; 64], 64)),
        Error::NoFileSystem
    );
    let with_first = |first| {
        let mut blocks = zeros();
        blocks[0] = first;
        Disk::new(blocks, 64)
    };
    assert_eq!(refused(with_first(table(1, 63, 0xEE))), Error::Gpt);
    assert_eq!(
        refused(with_first(table(8, 56, 0x83))),
        Error::NoFatPartition(0x83)
    );
    assert_eq!(refused(with_first(table(8, 56, 0x0C))), Error::NoFileSystem);
    let beyond = refused(with_first(table(500, 56, 0x0C)));
    let end = 501;
    assert_eq!(
        beyond,
        Error::LargerThanCard {
            end,
            card_blocks: 64
        }
    );
}

#[test]
fn a_damaged_volume_is_reported_as_damaged() {
    let mut image = FAT16.make();
    let whole = image.disk.clone();
    let mut boot = *whole.block(0);
    // The volume has no FATs.
    boot[16] = 0;
    image.disk.put(0, boot);
    assert!(matches!(refused(image.disk), Error::DamagedBootSector(_)));
    let short: Vec<_> = (0..3000).map(|block| *whole.block(block)).collect();
    assert!(matches!(
        refused(Disk::new(short, 3000)),
        Error::LargerThanCard {
            card_blocks: 3000,
            ..
        }
    ));

    let mut image = FAT32.make();
    let root = check(&image.disk, image.start).unwrap().root_blocks;
    for block in root {
        image.disk.put(block, [b'A'; 512]);
    }
    // Link the root directory's cluster to itself.
    let fat = image.start + u32::from(image.disk.block(image.start)[14]);
    let mut first = *image.disk.block(fat);
    first[8] = 2;
    first[9..12].fill(0);
    image.disk.put(fat, first);
    assert_eq!(refused(image.disk), Error::DamagedRoot);
}

#[test]
fn a_root_directory_without_an_end_is_not_touched() {
    let mut image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 100);
    image.disk = rig.disk.powered_up();
    put_root_entries(&mut image, 0);
    // Link its only cluster to a free one.
    let fat = image.start + u32::from(image.disk.block(image.start)[14]);
    let mut first = *image.disk.block(fat);
    first[8..12].copy_from_slice(&5000_u32.to_le_bytes());
    image.disk.put(fat, first);
    let root = check(&rig.disk, image.start).unwrap().root_blocks;
    for block in root {
        image.disk.put(block + 2 * (5000 - 2), [b'A'; 512]);
    }
    assert_eq!(refused(image.disk), Error::DamagedRoot);
}

/// Runs random operations on a volume as long as it mounts.
fn use_up(mut rig: Rig, random: &mut Random) -> Disk {
    for _ in 0..4 {
        if rig.mount().is_err() {
            continue;
        }
        for _ in 0..6 {
            let blocks = random.below(600) as u32;
            let slot = random.below(8) as u8;
            let id = match random.below(8) {
                0 => rec(random.below(3000) as u32),
                _ => rig.next(REQUEST),
            };
            let record = FileRecord::of_length(id, random.below(600 * 512));
            let _ = match random.below(6) {
                0 | 1 => rig.reserve(Request { blocks, ..REQUEST }).map(drop),
                2 => rig.name(slot, id, "session"),
                3 => rig.close(slot, record),
                4 => rig.discard(slot),
                _ => rig.remove_oldest().map(drop),
            };
        }
    }
    rig.disk
}

fn garble(disk: &mut Disk, block: u32, random: &mut Random) {
    let mut data = *disk.block(block);
    for _ in 0..=random.below(8) {
        let at = random.below(512) as usize;
        data[at] = match random.below(3) {
            0 => 0,
            1 => 0xFF,
            _ => random.next_u64() as u8,
        };
    }
    disk.put(block, data);
}

#[test]
fn random_blocks_cause_no_panic() {
    let seed = 20_261_124;
    println!("seed {seed}");
    for number in 0..2000 {
        let mut random = Seed::new(seed).nth(number);
        let mut blocks = vec![[0; 512]; 64];
        for block in &mut blocks {
            block.fill_with(|| random.next_u64() as u8);
        }
        blocks[0][510..].copy_from_slice(&[0x55, 0xAA]);
        match number % 3 {
            0 => blocks[0][0] = 0xEB,
            1 => {
                blocks[0] = table(random.below(80) as u32, 9, 0x0C);
                blocks.iter_mut().skip(1).for_each(|block| block[0] = 0xE9);
            }
            _ => {}
        }
        let disk = use_up(Rig::new(Disk::new(blocks, 64)), &mut random);
        assert_eq!(disk.written().count(), 0, "number {number}");
    }
}

#[test]
fn a_corrupted_volume_causes_no_panic_and_no_write_outside_it() {
    let seed = 20_261_125;
    println!("seed {seed}");
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        for slot in 0..4 {
            rig.record(30, 5000);
            rig.reserve(REQUEST).unwrap();
            if slot % 2 == 0 {
                rig.name(slot, rig.next(REQUEST), "a-session").unwrap();
            }
        }
        let listing = check(&rig.disk, image.start).unwrap();
        let journal = &listing.files["CARDIOGRJNL"].blocks;
        let boot = rig.disk.block(image.start);
        let fat = image.start + u32::from(boot[14]);
        let folder = &listing.files["REC00000"].blocks;
        let index = &listing.files["REC00000/CARDIOGRIDX"].blocks;
        let blocks = [
            fat,
            fat + 1,
            listing.root_blocks[0],
            journal[0],
            journal[64],
            folder[0],
            folder[1],
            index[0],
        ];
        for number in 0..1500 {
            let mut random = Seed::new(seed).nth(number);
            let mut disk = rig.disk.powered_up();
            let is_boot = number % 4 == 0;
            if is_boot {
                garble(&mut disk, image.start, &mut random);
            }
            for _ in 0..random.below(3) {
                let block = blocks[random.below(8) as usize];
                garble(&mut disk, block, &mut random);
            }
            if random.below(2) == 0 {
                mend_records(&mut disk, &[journal[0], journal[64]]);
            }
            let before = disk.clone();
            let after = use_up(Rig::new(disk), &mut random);
            // Without damage to the boot sector, nothing else determines where the volume begins and ends.
            for block in 0..=image.start {
                assert_eq!(after.block(block), before.block(block), "number {number}");
            }
        }
    }
}

/// Gives corrupted journal records a valid checksum.
fn mend_records(disk: &mut Disk, places: &[u32]) {
    for place in places {
        let mut data = *disk.block(*place);
        data[16..20].fill(0);
        let crc = crc32(&data);
        data[16..20].copy_from_slice(&crc.to_le_bytes());
        disk.put(*place, data);
    }
}

/// CRC-32 (IEEE 802.3) as polynomial division: bits in transmission order, the first 32 inverted.
fn crc32(bytes: &[u8]) -> u32 {
    let bits = bytes
        .iter()
        .flat_map(|byte| (0..8).map(move |bit| byte >> bit & 1));
    let bits: Vec<u8> = bits.chain([0; 32]).collect();
    let mut rest: u64 = 0;
    for (at, bit) in bits.into_iter().enumerate() {
        rest = rest << 1 | u64::from(bit ^ u8::from(at < 32));
        if rest >> 32 != 0 {
            rest ^= 0x1_04C1_1DB7;
        }
    }
    !(rest as u32).reverse_bits()
}
