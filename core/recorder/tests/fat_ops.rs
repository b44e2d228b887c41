//! What each operation leaves on a FAT volume, judged by fsck.fat, the crate fatfs and a checker.

mod fat_rig;

use cardiograph_recorder::{Extent, FatVolume, RESERVED_MAX, Request, Volume};
use fat_rig::*;
use std::collections::BTreeSet;

const FAT16: Spec = Spec {
    blocks: 6000,
    fat_bits: 16,
    fats: 2,
    cluster_blocks: 1,
    has_table: false,
    has_files: true,
};
const FAT32: Spec = Spec {
    blocks: 70_000,
    fat_bits: 32,
    has_table: true,
    ..FAT16
};
/// More than a file can have.
const LARGE: Spec = Spec {
    blocks: 9 << 20,
    fat_bits: 32,
    cluster_blocks: 128,
    has_files: false,
    ..FAT16
};

const UNFINISHED: u8 = 0x24;
const FINISHED: u8 = 0x20;

fn judge(rig: &Rig, image: &Image) -> Listing {
    fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    let listing = check(&rig.disk, image.start).unwrap();
    if image.is_for_fatfs {
        let files = image.names_and_sizes(&rig.disk);
        for (name, file) in &listing.files {
            let (base, extension) = name.split_at(8);
            let name = format!("{}.{}", base.trim(), extension.trim());
            assert_eq!(files[&name], u64::from(file.size), "{name}");
        }
    }
    listing
}

fn blocks_of(extent: Extent) -> Vec<u32> {
    (extent.start..extent.start + extent.blocks).collect()
}

/// Changes an entry of the root directory, as a computer would.
fn edit(disk: &mut Disk, start: u32, name: &[u8], change: impl Fn(&mut [u8; 32])) {
    for block in check(disk, start).unwrap().root_blocks {
        let mut data = *disk.block(block);
        for entry in data.as_chunks_mut::<32>().0 {
            if entry[..11] == *name {
                change(entry);
                disk.put(block, data);
                return;
            }
        }
    }
    panic!("no such entry");
}

#[test]
fn a_reserved_file_is_there_in_full_length_until_it_is_closed() {
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        // DSC00041.JPG is there.
        let file = rig.reserve(Request { note: 7, ..REQUEST }).unwrap();
        assert_eq!(
            (&file.name, file.note, file.extent.blocks),
            (b"REC00042CSV", 7, 200)
        );
        let entry = &judge(&rig, &image).files["REC00042CSV"];
        assert_eq!((entry.attributes, entry.size), (UNFINISHED, 200 * 512));
        assert_eq!(entry.blocks, blocks_of(file.extent));

        rig.again();
        assert_eq!(rig.reserved(), [file]);
        rig.close(file.slot, 12_345).unwrap();
        assert_eq!(rig.reserved(), []);
        let entry = &judge(&rig, &image).files["REC00042CSV"];
        assert_eq!((entry.attributes, entry.size), (FINISHED, 12_345));
        assert_eq!(entry.blocks, blocks_of(file.extent)[..25]);
    }
}

#[test]
fn a_mount_changes_nothing_but_to_make_the_journal() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let free = check(&image.disk, image.start).unwrap().free_clusters;
    let listing = judge(&rig, &image);
    let journal = &listing.files["CARDIOGRJNL"];
    assert_eq!((journal.attributes, journal.size), (0x06, 129 * 512));
    assert_eq!(listing.free_clusters, free - 129);
    rig.again();
    assert_eq!(rig.disk.writes, 0);
}

#[test]
fn epochs_differ() {
    let image = FAT16.make();
    let mut epochs = BTreeSet::new();
    let mut rig = Rig::mounted(image.disk.clone());
    let mut other = Rig::of_logger(image.disk.clone(), 1);
    other.mount().unwrap();
    for _ in 0..50 {
        for rig in [&mut rig, &mut other] {
            let file = rig
                .reserve(Request {
                    blocks: 1,
                    ..REQUEST
                })
                .unwrap();
            assert!(epochs.insert(file.epoch));
            rig.discard(file.slot).unwrap();
            rig.again();
        }
    }
    // Without its journal the volume does not begin again where it has been, wherever the next one is.
    let file = rig.reserve(REQUEST).unwrap();
    assert!(epochs.insert(file.epoch));
    rig.close(file.slot, 5000).unwrap();
    edit(&mut rig.disk, image.start, b"CARDIOGRJNL", |entry| {
        entry[0] = 0xE5
    });
    rig.disk = repaired(&rig.disk, image.start, "A", &[]);
    rig.again();
    assert!(epochs.insert(rig.reserve(REQUEST).unwrap().epoch));
}

#[test]
fn as_much_as_there_is_will_do() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let all = check(&rig.disk, image.start).unwrap().free_clusters;
    let whole = rig
        .reserve(Request {
            blocks: u32::MAX,
            ..REQUEST
        })
        .unwrap();
    // The holes of the file that was removed are left.
    let left = judge(&rig, &image).free_clusters;
    assert_eq!(whole.extent.blocks, all - left);
    assert!(left > 20);
    // Several files in the way, then one of them removed: the longest run is its.
    rig.close(whole.slot, 0).unwrap();
    // Each ends where the next may begin.
    for blocks in [704, 320, 896, u32::MAX] {
        rig.reserve(Request { blocks, ..REQUEST }).unwrap();
    }
    let middle = rig.reserved()[1];
    rig.discard(1).unwrap();
    let asked = Request {
        blocks: 400,
        blocks_min: 321,
        ..REQUEST
    };
    let error = rig.reserve(asked).unwrap_err();
    assert_eq!(
        error,
        Error::NoSpace {
            longest_blocks: 320
        }
    );
    let blocks_min = 320;
    let file = rig
        .reserve(Request {
            blocks_min,
            ..asked
        })
        .unwrap();
    assert_eq!(file.extent, middle.extent);
    judge(&rig, &image);
}

#[test]
fn a_run_may_lie_across_the_hint() {
    let image = Spec {
        has_files: false,
        ..FAT16
    }
    .make();
    let mut rig = Rig::mounted(image.disk.clone());
    let first = rig
        .reserve(Request {
            blocks: 1000,
            ..REQUEST
        })
        .unwrap();
    rig.reserve(Request {
        blocks: 1000,
        ..REQUEST
    })
    .unwrap();
    rig.reserve(Request {
        blocks: u32::MAX,
        ..REQUEST
    })
    .unwrap();
    // Both are free again, and the hint is between them.
    rig.discard(0).unwrap();
    let half = rig
        .reserve(Request {
            blocks: 500,
            ..REQUEST
        })
        .unwrap();
    rig.discard(1).unwrap();
    rig.discard(half.slot).unwrap();
    let file = rig
        .reserve(Request {
            blocks: 2000,
            ..REQUEST
        })
        .unwrap();
    assert_eq!(
        (file.extent.start, file.extent.blocks),
        (first.extent.start, 2000)
    );
    judge(&rig, &image);
}

#[test]
fn a_file_is_as_long_as_fat_allows() {
    let image = LARGE.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let all = Request {
        blocks: u32::MAX,
        blocks_min: (4 << 21) - 128,
        ..REQUEST
    };
    let file = rig.reserve(all).unwrap();
    assert_eq!(file.extent.blocks, (4 << 21) - 128);
    judge(&rig, &image);
    rig.again();
    assert_eq!(rig.reserved(), [file]);
    rig.close(file.slot, u64::from(u32::MAX) - 65_535 - 700)
        .unwrap();
    judge(&rig, &image);
    let too_long = Request {
        blocks_min: 4 << 21,
        ..all
    };
    assert_eq!(rig.reserve(too_long).unwrap_err(), Error::TooLong);
}

#[test]
fn what_cannot_be_is_refused() {
    let image = FAT16.make();
    let mut rig = Rig::new(image.disk.clone());
    assert_eq!(rig.reserve(REQUEST).unwrap_err(), Error::NotMounted);
    rig.mount().unwrap();
    let small = Request {
        blocks: 1,
        ..REQUEST
    };
    for _ in 0..RESERVED_MAX {
        rig.reserve(small).unwrap();
    }
    let before = rig.disk.writes;
    assert_eq!(rig.reserve(small).unwrap_err(), Error::TooManyUnfinished);
    assert_eq!(rig.close(0, 513).unwrap_err(), Error::TooLong);
    assert_eq!(rig.close(0, 1 << 40).unwrap_err(), Error::TooLong);
    assert_eq!(rig.close(200, 1).unwrap_err(), Error::NoSuchFile(200));
    rig.discard(3).unwrap();
    assert_eq!(rig.discard(3).unwrap_err(), Error::NoSuchFile(3));
    let prefix = *b"Rec";
    assert_eq!(
        rig.reserve(Request { prefix, ..small }).unwrap_err(),
        Error::BadName
    );
    let extension = *b"C V";
    assert_eq!(
        rig.reserve(Request { extension, ..small }).unwrap_err(),
        Error::BadName
    );
    assert!(rig.disk.writes - before < 10);
    judge(&rig, &image);
}

#[test]
fn numbers_end() {
    let mut image = FAT16.make();
    edit(&mut image.disk, 0, b"DSC00041JPG", |entry| {
        entry[..8].copy_from_slice(b"DSC99998")
    });
    image.files.remove("DSC00041.JPG");
    let mut rig = Rig::mounted(image.disk.clone());
    assert_eq!(rig.reserve(REQUEST).unwrap().name, *b"REC99999CSV");
    assert_eq!(rig.reserve(REQUEST).unwrap_err(), Error::NumbersUsedUp);
    rig.again();
    assert_eq!(rig.reserve(REQUEST).unwrap_err(), Error::NumbersUsedUp);
}

#[test]
fn a_root_directory_grows_if_it_can() {
    let mut image = FAT16.make();
    put_root_entries(&mut image, 2);
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 100);
    assert_eq!(rig.reserve(REQUEST).unwrap_err(), Error::DirectoryFull);
    judge(&rig, &image);

    let mut image = FAT32.make();
    put_root_entries(&mut image, 0);
    let mut rig = Rig::mounted(image.disk.clone());
    for _ in 0..40 {
        rig.record(10, 100);
    }
    let listing = judge(&rig, &image);
    assert_eq!(listing.root_blocks.len(), 4);
}

#[test]
fn the_oldest_recording_goes_first_and_others_stay() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let names: Vec<_> = (0..7).map(|_| rig.record(100, 20_000)).collect();
    let unfinished = rig.reserve(REQUEST).unwrap();
    let start = image.start;
    // A foreign name, a protected one, one that moved where it is no more in one piece.
    edit(&mut rig.disk, start, &names[0], |entry| {
        entry[8..11].copy_from_slice(b"TXT")
    });
    edit(&mut rig.disk, start, &names[2], |entry| entry[11] |= 0x01);
    let moved = check(&rig.disk, start).unwrap().files["REC00046CSV"]
        .blocks
        .clone();
    swap_links(&mut rig.disk, start, moved[2], moved[9]);
    check(&rig.disk, start).unwrap();
    let free = judge(&rig, &image).free_clusters;
    rig.again();
    for (index, removed) in [1, 3, 5, 6].into_iter().enumerate() {
        assert_eq!(rig.remove_oldest().unwrap(), Some(names[removed]));
        assert_eq!(
            judge(&rig, &image).free_clusters,
            free + 40 * (index as u32 + 1)
        );
    }
    assert_eq!(rig.remove_oldest().unwrap(), None);
    assert_eq!(rig.reserved(), [unfinished]);
    assert!(judge(&rig, &image).files.contains_key("DSC00041JPG"));
}

#[test]
fn a_recording_that_got_a_long_name_stays() {
    let image = Spec {
        has_files: false,
        ..FAT16
    }
    .make();
    let mut rig = Rig::mounted(image.disk.clone());
    // One behind the other in the directory.
    let (empty, named) = (rig.record(10, 0), rig.record(10, 700));
    let last = rig.record(10, 0);
    let sum = named
        .iter()
        .fold(0_u8, |sum, byte| sum.rotate_right(1).wrapping_add(*byte));
    edit(&mut rig.disk, 0, &empty, |entry| {
        // "a.csv", padded.
        entry.fill(0xFF);
        entry[..11].copy_from_slice(b"\x41a\0.\0c\0s\0v\0");
        entry[11..16].copy_from_slice(&[0x0F, 0, sum, 0, 0]);
        entry[26..28].fill(0);
    });
    judge(&rig, &image);
    assert_eq!(rig.remove_oldest().unwrap(), Some(last));
    assert_eq!(rig.remove_oldest().unwrap(), None);
}

/// Exchanges two clusters of 1 block in a chain of consecutive ones, on FAT32.
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

#[test]
fn an_unfinished_file_that_somebody_took_is_theirs() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for _ in 0..3 {
        rig.reserve(REQUEST).unwrap();
    }
    edit(&mut rig.disk, 0, b"REC00042CSV", |entry| {
        entry[..3].copy_from_slice(b"OLD")
    });
    edit(&mut rig.disk, 0, b"REC00044CSV", |entry| {
        entry[11] = FINISHED
    });
    rig.again();
    let names: Vec<_> = rig.reserved().iter().map(|file| file.name).collect();
    assert_eq!(names, [*b"REC00043CSV"]);
    let listing = judge(&rig, &image);
    assert_eq!(listing.files["OLD00042CSV"].size, 200 * 512);
}

#[test]
fn a_journal_that_was_removed_says_nothing() {
    for discarded in 0..2 {
        let image = FAT16.make();
        let mut rig = Rig::mounted(image.disk.clone());
        rig.reserve(REQUEST).unwrap();
        let other = rig.reserve(REQUEST).unwrap();
        if discarded == 1 {
            rig.discard(other.slot).unwrap();
        }
        let before = check(&rig.disk, 0).unwrap();
        rig.disk = without(&rig.disk, 0, "CARDIOGR.JNL");
        let removed = rig.disk.clone();
        rig.again();
        for after in 0..rig.disk.writes {
            let mut cut = Rig::new(removed.cut_after(after, Torn::Prefix));
            assert_eq!(cut.mount(), Err(Error::Card(NoPower)));
            cut.again();
            assert_eq!(cut.reserved(), [], "cut after {after}");
            judge(&cut, &image);
        }
        let after = judge(&rig, &image);
        // The records of the one before are where those of this one are.
        assert_eq!(before.files["CARDIOGRJNL"], after.files["CARDIOGRJNL"]);
        assert_eq!(rig.reserved(), []);
        // A recording of before is not this one's to remove.
        rig.record(10, 100);
        assert_eq!(rig.remove_oldest().unwrap(), Some(rig_name(44 - discarded)));
        assert_eq!(rig.remove_oldest().unwrap(), None);
    }
}

fn rig_name(number: u32) -> [u8; 11] {
    format!("REC{number:05}CSV")
        .into_bytes()
        .try_into()
        .unwrap()
}

/// A computer that copies a card puts the journal elsewhere, and not in one piece.
#[test]
fn a_journal_that_was_copied_is_begun_anew() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.reserve(REQUEST).unwrap();
    let start = image.start;
    let journal = check(&rig.disk, start).unwrap().files["CARDIOGRJNL"]
        .blocks
        .clone();
    swap_links(&mut rig.disk, start, journal[3], journal[64]);
    // Another volume's.
    let mut boot = *rig.disk.block(start);
    boot[67] ^= 1;
    rig.disk.put(start, boot);
    rig.again();
    assert_eq!(rig.reserved(), []);
    let file = rig.reserve(REQUEST).unwrap();
    rig.again();
    assert_eq!(rig.reserved(), [file]);
    let listing = check(&rig.disk, start).unwrap();
    let copy = &listing.files["CARDIOGRJNL"].blocks;
    assert_eq!((copy[3], copy[64]), (journal[64], journal[3]));
    assert!(rig.disk.block(copy[64]).starts_with(b"CARDIOJ1"));
}

#[test]
fn a_count_that_is_unknown_stays_unknown() {
    let mut image = FAT32.make();
    let fs_info = image.start + 1;
    let mut block = *image.disk.block(fs_info);
    block[488..492].fill(0xFF);
    image.disk.put(fs_info, block);
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 100);
    assert_eq!(rig.disk.block(fs_info)[488..492], [0xFF; 4]);
    judge(&rig, &image);
}

#[test]
fn only_the_active_fat_is_written_where_they_are_not_the_same() {
    let mut image = FAT32.make();
    let mut boot = *image.disk.block(image.start);
    // BPB_ExtFlags: no mirroring, the second FAT is active.
    boot[40] = 0x81;
    image.disk.put(image.start, boot);
    let fat = image.start + u32::from(boot[14]);
    let fat_blocks = u32::from(u16::from_le_bytes([boot[36], boot[37]]));
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(300, 100_000);
    rig.reserve(REQUEST).unwrap();
    for block in fat..fat + fat_blocks {
        assert_eq!(rig.disk.block(block), image.disk.block(block));
    }
    // Judged as if the second were the first.
    for block in fat..fat + fat_blocks {
        let active = *rig.disk.block(block + fat_blocks);
        rig.disk.put(block, active);
    }
    check(&rig.disk, image.start).unwrap();
}

#[test]
fn after_an_error_it_is_mounted_again() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.disk = rig.disk.cut_after(3, Torn::Prefix);
    let error = rig.reserve(REQUEST).unwrap_err();
    assert_eq!(error, Error::Card(NoPower));
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "there is no power"
    );
    rig.disk = rig.disk.back();
    assert_eq!(rig.reserve(REQUEST).unwrap_err(), Error::NotMounted);
    rig.mount().unwrap();
    assert_eq!(rig.reserve(REQUEST).unwrap().name, *b"REC00042CSV");
    judge(&rig, &image);
}

fn bytes_of(future: impl Future) -> usize {
    size_of_val(&future)
}

#[test]
fn it_and_its_futures_are_small() {
    const BYTES_MAX: usize = 1536;
    let image = FAT16.make();
    let mut rig = Rig::new(image.disk.clone());
    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
    let sizes = [
        ("the volume", size_of::<FatVolume>()),
        ("mount", bytes_of(volume.mount(disk))),
        ("reserve", bytes_of(volume.reserve(disk, REQUEST))),
        ("close", bytes_of(volume.close(disk, 0, 0))),
        ("discard", bytes_of(volume.discard(disk, 0))),
        ("remove_oldest", bytes_of(volume.remove_oldest(disk))),
    ];
    println!("{sizes:?}");
    for (what, bytes) in sizes {
        assert!(bytes < BYTES_MAX, "{what} takes {bytes} bytes");
    }
}
