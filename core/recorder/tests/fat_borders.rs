//! Chains that begin or end at the boundaries of FAT blocks, between chains of other files.

use crate::fat_rig;

use cardiograph_recorder::Request;
use fat_rig::{Disk, REQUEST, Rig, Spec, check};

/// FAT16 entries per block.
const PER_BLOCK: u32 = 256;

/// Returns a card with FAT16, one block per cluster and a journal.
fn mounted() -> Disk {
    let spec = Spec {
        blocks: 6_000,
        fat_bits: 16,
        fats: 2,
        cluster_blocks: 1,
        has_table: false,
        has_files: false,
    };
    let mut rig = Rig::mounted(spec.make().disk);
    // Reserving a first file creates the folder of the first recordings.
    let file = rig.reserve(REQUEST).unwrap();
    rig.discard(file.slot).unwrap();
    rig.disk
}

fn get16(block: &[u8], at: usize) -> u32 {
    u16::from_le_bytes([block[at], block[at + 1]]).into()
}

/// Returns the first blocks of both FATs, and the number of clusters of the volume.
fn fats(disk: &Disk) -> ([u32; 2], u32) {
    let boot = *disk.block(0);
    let (reserved, fat_blocks) = (get16(&boot, 14), get16(&boot, 22));
    let data = reserved + 2 * fat_blocks + get16(&boot, 17) / 16;
    ([reserved, reserved + fat_blocks], 6_000 - data)
}

fn entry(disk: &Disk, cluster: u32) -> u32 {
    let ([fat, _], _) = fats(disk);
    let at = (cluster % PER_BLOCK) as usize * 2;
    get16(disk.block(fat + cluster / PER_BLOCK), at)
}

fn set_entry(disk: &mut Disk, cluster: u32, value: u32) {
    for fat in fats(disk).0 {
        let mut block = *disk.block(fat + cluster / PER_BLOCK);
        let at = (cluster % PER_BLOCK) as usize * 2;
        block[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
        disk.put(fat + cluster / PER_BLOCK, block);
    }
}

/// Assigns all free clusters except these to another file.
fn fill_all_but(disk: &mut Disk, left: std::ops::Range<u32>) {
    let end = fats(disk).1 + 2;
    let taken: Vec<u32> = (2..end)
        .filter(|cluster| !left.contains(cluster) && entry(disk, *cluster) == 0)
        .collect();
    for (at, cluster) in taken.iter().enumerate() {
        set_entry(disk, *cluster, *taken.get(at + 1).unwrap_or(&0xFFFF));
    }
    let boot = *disk.block(0);
    let root = get16(&boot, 14) + 2 * get16(&boot, 22);
    let mut block = *disk.block(root);
    let entries = block.as_chunks_mut::<32>().0;
    let free = entries.iter_mut().find(|it| it[0] == 0).unwrap();
    free[..11].copy_from_slice(b"THEIRS  BIN");
    free[11] = 0x20;
    free[26..28].copy_from_slice(&(taken[0] as u16).to_le_bytes());
    free[28..32].copy_from_slice(&(taken.len() as u32 * 512).to_le_bytes());
    disk.put(root, block);
}

#[test]
fn chains_next_to_a_new_one_stay_intact_wherever_it_begins_and_ends() {
    let before = mounted();
    let borders = [4 * PER_BLOCK - 1, 4 * PER_BLOCK, 4 * PER_BLOCK + 1];
    // The chains occupy one FAT block, two, and more than fit into one write command.
    for clusters in [100, 255, 256, 257, 400, 512, 600, 4_200] {
        for first in borders {
            println!("{clusters} clusters from {first}");
            let mut disk = before.powered_up();
            if first + clusters + 1 > fats(&disk).1 {
                continue;
            }
            fill_all_but(&mut disk, first..first + clusters);
            let theirs = check(&disk, 0).unwrap().files["THEIRS  BIN"].clone();
            let mut rig = Rig::mounted(disk);
            let request = Request {
                blocks: clusters,
                blocks_min: clusters,
                ..REQUEST
            };
            let file = rig.reserve(request).unwrap();
            let listing = check(&rig.disk, 0).unwrap();
            assert_eq!(listing.files["THEIRS  BIN"], theirs);
            assert_eq!(listing.free_clusters, 0);
            rig.discard(file.slot).unwrap();
            let listing = check(&rig.disk, 0).unwrap();
            assert_eq!(listing.files["THEIRS  BIN"], theirs);
            assert_eq!(listing.free_clusters, clusters);
        }
    }
}
