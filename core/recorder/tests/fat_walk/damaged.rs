//! Damaged volumes: reading them terminates, with or without an error.

use super::*;
use proptest::prelude::*;
use std::cell::OnceCell;
use std::io::Write;

/// Far more than all directories and files of the card have.
const READS_MAX: u64 = 2_000_000;

thread_local! {
    static CARD: OnceCell<(Vec<u8>, Vec<u32>)> = const { OnceCell::new() };
}

/// Returns a volume with some files and folders, and its blocks that are not zero.
fn card() -> (Vec<u8>, Vec<u32>) {
    CARD.with(|card| card.get_or_init(make).clone())
}

fn make() -> (Vec<u8>, Vec<u32>) {
    let (bytes, ()) = written(fatfs::FatType::Fat16, |volume| {
        let root = volume.root_dir();
        for folder in ["one", "one/two", "one/two/a folder with a longer name"] {
            root.create_dir(folder).unwrap();
            for file in ["short.bin", "a file with a long name.bin"] {
                let mut file = root.create_file(&format!("{folder}/{file}")).unwrap();
                file.write_all(&[0; 2000]).unwrap();
            }
        }
    });
    let full = bytes.as_chunks::<512>().0.iter().enumerate();
    let full = full.filter(|(_, block)| **block != [0; 512]);
    let full = full.map(|(number, _)| number as u32).collect();
    (bytes, full)
}

/// Visits directories to a limited depth, and reads each file found there.
fn walk_damaged(rig: &mut Rig) {
    let mut todo = vec![(Node::Root, 0)];
    while let Some((node, depth)) = todo.pop() {
        let Ok(entries) = list(rig, &node) else {
            continue;
        };
        for (entry, name) in entries {
            assert!(rig.disk.reads < READS_MAX);
            if entry.is_directory() {
                if depth < 3 && todo.len() < 50 {
                    todo.push((Node::Entry(entry), depth + 1));
                }
                let _ = lookup(rig, &format!("one/{name}/x"));
            } else {
                let mut position = entry.contents();
                for block in [0, 1, 5, u32::MAX / 512, 3] {
                    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
                    if let Ok(extent) = done(volume.extent_at(disk, &mut position, block, 16)) {
                        disk.bytes(extent.start..extent.start + extent.blocks);
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn reading_ends(changes in prop::collection::vec((any::<usize>(), 0_usize..512, any::<u8>()), 1..40)) {
        let (bytes, full) = card();
        let mut rig = mounted(&bytes);
        for (block, at, value) in changes {
            // The volume has read its boot sector already.
            let number = full[1 + block % (full.len() - 1)];
            let mut data = *rig.disk.block(number);
            data[at] = value;
            rig.disk.put(number, data);
        }
        walk_damaged(&mut rig);
    }

    #[test]
    fn garbage_in_directories_ends(seed: u64, count in 1_usize..8) {
        let (bytes, full) = card();
        let mut rig = mounted(&bytes);
        let mut random = cardiograph_sim_world::Seed::new(seed).stream("garbage");
        for _ in 0..count {
            let number = full[1 + random.below(full.len() as u64 - 1) as usize];
            let mut data = [0; 512];
            data.fill_with(|| random.next_u64() as u8);
            rig.disk.put(number, data);
        }
        walk_damaged(&mut rig);
    }
}

fn set_fat(rig: &mut Rig, cluster: u32, next: u16) {
    let boot = *rig.disk.block(0);
    let reserved = u32::from(u16::from_le_bytes([boot[14], boot[15]]));
    let number = reserved + cluster / 256;
    let mut data = *rig.disk.block(number);
    data[cluster as usize % 256 * 2..][..2].copy_from_slice(&next.to_le_bytes());
    rig.disk.put(number, data);
}

/// Returns the first cluster in a directory's own entry.
fn first_of(rig: &Rig, name: &[u8; 11]) -> u32 {
    let blocks = (0..rig.disk.used()).map(|number| *rig.disk.block(number));
    let entries = blocks.flat_map(|block| block.as_chunks::<32>().0.to_vec());
    let entry = entries.into_iter().find(|it| it.starts_with(name)).unwrap();
    u16::from_le_bytes([entry[26], entry[27]]).into()
}

#[test]
fn circles_and_bad_links_are_errors() {
    let (bytes, _) = card();
    let mut rig = mounted(&bytes);
    let folder = first_of(&rig, b"ONE        ");
    let file = first_of(&rig, b"SHORT   BIN");
    // A full directory whose chain is cyclic.
    let node = Node::Entry(entry_at(&mut rig, "one"));
    let mut position = entry_at(&mut rig, "one").contents();
    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
    let block = done(volume.extent_at(disk, &mut position, 0, 1))
        .unwrap()
        .start;
    let mut data = *rig.disk.block(block);
    for entry in data.as_chunks_mut::<32>().0 {
        if entry[0] == 0 {
            entry[0] = 0xE5;
        }
    }
    rig.disk.put(block, data);
    for (next, due) in [
        (folder as u16, Error::DamagedDirectory),
        (0, Error::DamagedDirectory),
        (1, Error::DamagedDirectory),
        (0xFFF0, Error::DamagedDirectory),
        (0xFFF7, Error::DamagedDirectory),
    ] {
        set_fat(&mut rig, folder, next);
        let before = rig.disk.reads;
        assert_eq!(list(&mut rig, &node), Err(due), "{next:#x}");
        assert_eq!(lookup(&mut rig, "one/nothing"), Err(due), "{next:#x}");
        assert!(rig.disk.reads - before < 20_000);
    }
    let entry = entry_at(&mut rig, "one/short.bin");
    for (next, is_readable) in [
        (file as u16, true),
        (0, false),
        (0xFFF0, false),
        (0xFFFF, false),
    ] {
        set_fat(&mut rig, file, next);
        assert_eq!(read(&mut rig, &entry, 16).is_ok(), is_readable, "{next:#x}");
        // No file has that many clusters.
        let (volume, disk) = (&mut rig.volume, &mut rig.disk);
        let mut position = entry.contents();
        let far = done(volume.extent_at(disk, &mut position, u32::MAX / 512, 16));
        assert_eq!(far, Err(Error::DamagedChain));
    }
}
