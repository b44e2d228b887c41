//! Boards whose library accesses the card as FatFs does: files keep their data, and volumes are clean.

use crate::common::{fsck, image};
use cardiograph_sim_card::{Board, Card, Profile, Random, Seed};
use cardiograph_store::FatCard;
use cardiograph_workload::{Flush, Store};
use std::io::Read;

/// Length of appended and overwritten data.
const LENGTH_BYTES_MAX: u64 = 6000;
const NAMES: [&str; 3] = ["LOG/A.TXT", "LOG/B.TXT", "C.TXT"];

fn mounted(capacity_mib: u64, cluster_bytes: u32, burst_blocks: u32) -> FatCard {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = capacity_mib << 20;
    let mut board = Board::named("esp32").unwrap();
    board.library.window = true;
    board.library.cluster_bytes = cluster_bytes;
    board.driver.burst_blocks = burst_blocks;
    FatCard::mount(Card::new(&profile, Seed::new(1)), &board).unwrap()
}

fn read_from(store: &mut FatCard, file: &mut <FatCard as Store>::File, at: usize) -> Vec<u8> {
    let mut data = vec![0; 5000];
    let mut length = 0;
    while length < data.len() {
        match store.read(file, (at + length) as u64, &mut data[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) => panic!("{error}"),
        }
    }
    data.truncate(length);
    data
}

fn write_at(data: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    data.resize(data.len().max(at + bytes.len()), 0);
    data[at..at + bytes.len()].copy_from_slice(bytes);
}

/// Appends, overwrites, reads, flushes and reopens files at random; returns the card and the expected contents.
fn random_accesses(mut store: FatCard, random: &mut Random) -> (Card, [Vec<u8>; 3]) {
    store.mkdir("LOG").unwrap();
    let mut expected: [Vec<u8>; 3] = Default::default();
    let mut open = NAMES.map(|name| Some(store.create(name).unwrap()));
    for _ in 0..600 {
        let at = random.below(3) as usize;
        let content = &mut expected[at];
        let file = open[at].get_or_insert_with(|| store.append(NAMES[at]).unwrap());
        let inside = random.below(content.len() as u64 + 1) as usize;
        let length = match random.below(3) {
            0 => 512 * (1 + random.below(LENGTH_BYTES_MAX / 512)),
            1 => 1 + random.below(100),
            _ => 1 + random.below(LENGTH_BYTES_MAX),
        };
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        match random.below(8) {
            0 => store.flush(file, Flush::Wait).unwrap(),
            1 => store.close(open[at].take().unwrap()).unwrap(),
            2 => {
                let found = read_from(&mut store, file, inside);
                assert!(content[inside..].starts_with(&found));
                assert_eq!(found.len(), (content.len() - inside).min(5000));
            }
            3 => {
                store.write(file, inside as u64, &bytes).unwrap();
                write_at(content, inside, &bytes);
            }
            _ => {
                store.write(file, content.len() as u64, &bytes).unwrap();
                content.extend(bytes);
            }
        }
    }
    for file in open.into_iter().flatten() {
        store.close(file).unwrap();
    }
    (store.unmount().unwrap(), expected)
}

#[test]
#[ignore = "needs fsck.fat"]
fn files_keep_their_data_and_volumes_are_clean() {
    // FAT16 and FAT32, clusters of one sector and more.
    let volumes = [(64, 512), (64, 4096), (256, 2048), (1024, 8192)];
    for (capacity_mib, cluster_bytes) in volumes {
        for burst_blocks in [1, 7, 128] {
            let name = format!("window-{capacity_mib}-{cluster_bytes}-{burst_blocks}");
            println!("{name}");
            let store = mounted(capacity_mib, cluster_bytes, burst_blocks);
            let mut random = Seed::new(1).stream(&name);
            let (card, expected) = random_accesses(store, &mut random);
            let path = image(&card, &(name + ".img"));
            fsck(&path);
            let volume = std::fs::File::options().read(true).write(true).open(&path);
            let volume = fatfs::FileSystem::new(volume.unwrap(), fatfs::FsOptions::new()).unwrap();
            for (name, expected) in NAMES.iter().zip(&expected) {
                let mut found = Vec::new();
                let mut file = volume.root_dir().open_file(name).unwrap();
                file.read_to_end(&mut found).unwrap();
                assert!(found == *expected, "{name}");
            }
            std::fs::remove_file(path).unwrap();
        }
    }
}

/// The library updates the number of free clusters last, which FatFs does at each sync.
#[test]
#[ignore = "needs fsck.fat"]
fn a_new_folder_is_counted() {
    let mut store = mounted(1024, 8192, 128);
    store.mkdir("LOG").unwrap();
    let path = image(&store.unmount().unwrap(), "window-folder.img");
    assert!(!fsck(&path).contains("summary"));
    std::fs::remove_file(path).unwrap();
}
