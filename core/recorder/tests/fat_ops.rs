//! Results of each operation on a FAT volume, checked by fsck.fat, the crate fatfs and an independent
//! checker.

mod fat_rig;

use cardiograph_recorder::{
    Extent, FatVolume, FileId, FileRecord, RESERVED_MAX, Request, ShortText, Volume,
};
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

#[test]
fn a_file_is_prepared_named_and_closed() {
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        let file = rig.reserve(Request { note: 7, ..REQUEST }).unwrap();
        assert_eq!((file.id, file.note, file.extent.blocks), (None, 7, 200));
        let entry = &judge(&rig, &image).files["CARDIOGRR00"];
        assert_eq!((entry.attributes, entry.size), (HIDDEN, 200 * 512));
        assert_eq!(entry.blocks, blocks_of(file.extent));
        rig.remount();
        assert_eq!(rig.reserved(), [file]);

        // DSC00041.JPG exists and does not affect the numbering.
        assert_eq!(rig.next(REQUEST), rec(1));
        rig.name(file.slot, rec(1), "First-flight_2").unwrap();
        assert_eq!(rig.next(REQUEST), rec(2));
        let listing = judge(&rig, &image);
        assert!(!listing.files.contains_key("CARDIOGRR00"));
        let entry = &listing.files["REC00000/REC00001CSV"];
        assert_eq!((entry.attributes, entry.size), (UNFINISHED, 200 * 512));
        assert_eq!(entry.blocks, blocks_of(file.extent));
        assert_eq!(entry.long_name, "REC00001 First-flight_2.CSV");
        rig.remount();
        assert_eq!(rig.reserved()[0].id, Some(rec(1)));

        let record = FileRecord {
            session: ShortText::new("First-flight_2").unwrap(),
            first_us: 5,
            last_us: 1 << 40,
            samples: 300,
            gaps: 2,
            lost: 9,
            ..FileRecord::of_length(rec(1), 12_345)
        };
        rig.close(file.slot, record).unwrap();
        assert_eq!(rig.reserved(), []);
        let listing = judge(&rig, &image);
        let entry = &listing.files["REC00000/REC00001CSV"];
        assert_eq!((entry.attributes, entry.size), (FINISHED, 12_345));
        assert_eq!(entry.blocks, blocks_of(file.extent)[..25]);
        rig.remount();
        let list = rig.list(0);
        assert_eq!(list.len(), 1);
        assert_eq!((list[0].record, list[0].created), (record, Some(noon())));
        assert_eq!(listing.files["REC00000/CARDIOGRIDX"].size, 128_000);
    }
}

#[test]
fn a_file_without_a_session_has_a_short_name_alone_and_close_names_it() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let file = rig.reserve(REQUEST).unwrap();
    let record = FileRecord {
        is_recovered: true,
        ..FileRecord::of_length(rec(1), 700)
    };
    rig.close(file.slot, record).unwrap();
    let entry = &judge(&rig, &image).files["REC00000/REC00001CSV"];
    assert_eq!((entry.size, entry.long_name.as_str()), (700, ""));
    // The creation date is unknown.
    assert_eq!(rig.list(0)[0].created, None);
    assert_eq!(rig.list(0)[0].record, record);
}

#[test]
fn without_a_clock_the_date_is_unknown() {
    let mut rig = Rig::mounted(FAT16.make().disk);
    rig.volume = FatVolume::new(|| cardiograph_recorder::DosTime::NO_CLOCK, 1);
    rig.mount().unwrap();
    let id = rig.record(10, 100);
    assert_eq!(rig.list(0)[0].created, None);
    assert_eq!(rig.list(0)[0].record.id, id);
}

#[test]
fn a_mount_only_creates_the_journal() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let free = check(&image.disk, image.start).unwrap().free_clusters;
    let listing = judge(&rig, &image);
    let journal = &listing.files["CARDIOGRJNL"];
    assert_eq!((journal.attributes, journal.size), (0x06, 129 * 512));
    assert_eq!(listing.free_clusters, free - 129);
    rig.remount();
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
            rig.remount();
        }
    }
    // Without its journal the volume does not repeat epochs, wherever the next journal is.
    let file = rig.reserve(REQUEST).unwrap();
    assert!(epochs.insert(file.epoch));
    let id = rig.next(REQUEST);
    rig.close(file.slot, FileRecord::of_length(id, 5000))
        .unwrap();
    edit(&mut rig.disk, image.start, "CARDIOGRJNL", |entry| {
        entry[0] = 0xE5
    });
    rig.disk = repaired(&rig.disk, image.start, "A", &[]);
    rig.remount();
    assert!(epochs.insert(rig.reserve(REQUEST).unwrap().epoch));
}

#[test]
fn a_request_larger_than_the_card_gets_the_longest_run() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let all = check(&rig.disk, image.start).unwrap().free_clusters;
    let whole = rig
        .reserve(Request {
            blocks: u32::MAX,
            ..REQUEST
        })
        .unwrap();
    // Only the holes left by the removed file stay free.
    let left = judge(&rig, &image).free_clusters;
    assert_eq!(whole.extent.blocks, all - left - FOLDER_BLOCKS);
    assert!(left > 20);
    // Reserve several files and discard one of them: the longest free run is then its space.
    rig.discard(whole.slot).unwrap();
    // Each ends at an alignment boundary of the next.
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
    // Free both; the search hint is between them.
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
    rig.remount();
    assert_eq!(rig.reserved(), [file]);
    let bytes = u64::from(u32::MAX) - 65_535 - 700;
    rig.close(file.slot, FileRecord::of_length(rec(1), bytes))
        .unwrap();
    judge(&rig, &image);
    let too_long = Request {
        blocks_min: 4 << 21,
        ..all
    };
    assert_eq!(rig.reserve(too_long).unwrap_err(), Error::TooLong);
}

#[test]
fn invalid_requests_are_refused() {
    let image = FAT16.make();
    let mut rig = Rig::new(image.disk.clone());
    let length = |bytes| FileRecord::of_length(rec(1), bytes);
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
    assert_eq!(rig.close(0, length(513)).unwrap_err(), Error::TooLong);
    assert_eq!(rig.close(0, length(1 << 40)).unwrap_err(), Error::TooLong);
    assert_eq!(
        rig.close(200, length(1)).unwrap_err(),
        Error::NoSuchFile(200)
    );
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
    let other = FileId {
        prefix: *b"ABC",
        ..rec(1)
    };
    let long = "x".repeat(33);
    for (id, session) in [
        (rec(1), "a b"),
        (rec(1), &long),
        (rec(1), "ü"),
        (rec(100_000_000), ""),
        (other, ""),
    ] {
        assert_eq!(rig.name(0, id, session).unwrap_err(), Error::BadName);
    }
    assert!(rig.disk.writes - before < 10);
    rig.name(0, rec(1), "").unwrap();
    assert_eq!(
        rig.name(1, rec(1), "other").unwrap_err(),
        Error::NameTaken(rec(1).short_name())
    );
    let after = rig.disk.writes;
    rig.name(0, rec(1), "").unwrap();
    assert_eq!(
        rig.name(0, rec(2), "").unwrap_err(),
        Error::NamedAlready(rec(1))
    );
    assert_eq!(rig.disk.writes, after);
    judge(&rig, &image);
}

#[test]
fn numbers_continue_past_99999_up_to_the_last_folder() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for number in [99_999, 100_000] {
        let file = rig
            .reserve(Request {
                blocks: 10,
                ..REQUEST
            })
            .unwrap();
        if number == 100_000 {
            assert_eq!(rig.next(REQUEST), rec(number));
        }
        rig.close(file.slot, FileRecord::of_length(rec(number), 100))
            .unwrap();
    }
    let listing = judge(&rig, &image);
    assert!(listing.files.contains_key("REC00099/REC99999CSV"));
    assert!(listing.files.contains_key("REC00100/REC00000CSV"));
    // Without its journal the volume determines the number again.
    edit(&mut rig.disk, 0, "CARDIOGRJNL", |entry| entry[0] = 0xE5);
    rig.disk = repaired(&rig.disk, 0, "A", &[]);
    rig.remount();
    assert_eq!(rig.next(REQUEST), rec(100_001));

    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let last = rec(99_999_999);
    let file = rig
        .reserve(Request {
            blocks: 10,
            ..REQUEST
        })
        .unwrap();
    rig.close(file.slot, FileRecord::of_length(last, 100))
        .unwrap();
    assert_eq!(
        rig.reserve(REQUEST).unwrap_err(),
        Error::NumbersUsedUp(*b"REC")
    );
    judge(&rig, &image);
}

#[test]
fn numbers_of_other_files_do_not_count() {
    let mut image = FAT16.make();
    let taken = [
        ("IMG99988.JPG", 900),
        ("REC99999.CSV", 700),
        ("REC00007.CSV", 0),
    ];
    for (name, bytes) in taken {
        image.disk = with_file(&image.disk, 0, name, &vec![7; bytes]);
        image.files.insert(name.into(), vec![7; bytes]);
    }
    let mut rig = Rig::mounted(image.disk.clone());
    for number in 1..4 {
        assert_eq!(rig.record(10, 100), rec(number));
        rig.remount();
        judge(&rig, &image);
    }
    assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1)));
}

#[test]
fn each_prefix_has_numbers_of_its_own() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let mut expected = Vec::new();
    // More prefixes than the journal stores.
    for letter in b'A'..=b'L' {
        let request = Request {
            prefix: [letter; 3],
            blocks: 10,
            ..REQUEST
        };
        for _ in 0..u32::from(letter % 3 + 1) {
            let file = rig.reserve(request).unwrap();
            let id = rig.next(request);
            rig.close(file.slot, FileRecord::of_length(id, 10)).unwrap();
        }
        expected.push((request, u32::from(letter % 3 + 2)));
    }
    rig.remount();
    for (request, number) in expected {
        let file = rig.reserve(request).unwrap();
        assert_eq!(rig.next(request).number, number, "{:?}", request.prefix);
        rig.discard(file.slot).unwrap();
    }
    judge(&rig, &image);
}

#[test]
fn an_unused_number_is_reused() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 100);
    let (one, two) = (rig.reserve(REQUEST).unwrap(), rig.reserve(REQUEST).unwrap());
    // Preallocated space has no number.
    assert_eq!(rig.next(REQUEST), rec(2));
    rig.name(one.slot, rec(2), "").unwrap();
    rig.name(two.slot, rec(3), "x").unwrap();
    rig.remount();
    assert_eq!(rig.next(REQUEST), rec(4));
    rig.discard(two.slot).unwrap();
    assert_eq!(rig.next(REQUEST), rec(3));
    rig.discard(one.slot).unwrap();
    assert_eq!(rig.next(REQUEST), rec(2));
    rig.remount();
    assert_eq!(rig.next(REQUEST), rec(2));
    assert_eq!(rig.record(10, 100), rec(2));
    let listing = judge(&rig, &image);
    let recordings = listing.files.keys().filter(|name| name.contains("/REC"));
    assert_eq!(recordings.count(), 2);
}

#[test]
fn a_root_directory_grows_if_it_can() {
    let mut image = FAT16.make();
    put_root_entries(&mut image, 3);
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 100);
    let file = rig.reserve(REQUEST).unwrap();
    // The free entries are used by the journal, the folder and one hidden entry.
    let error = rig.reserve(REQUEST).unwrap_err();
    assert!(matches!(error, Error::DirectoryFull(_)), "{error}");
    judge(&rig, &image);
    // Named files need no entry in the root directory.
    rig.name(file.slot, rec(2), "a").unwrap();
    rig.reserve(REQUEST).unwrap();
    judge(&rig, &image);

    let mut image = FAT32.make();
    put_root_entries(&mut image, 0);
    let mut rig = Rig::mounted(image.disk.clone());
    for letter in b'A'..=b'Z' {
        let prefix = [letter; 3];
        let request = Request {
            prefix,
            blocks: 10,
            ..REQUEST
        };
        let file = rig.reserve(request).unwrap();
        rig.close(file.slot, FileRecord::of_length(rig.next(request), 9))
            .unwrap();
    }
    let listing = judge(&rig, &image);
    assert_eq!(listing.root_blocks.len(), 3);
}

#[test]
fn a_full_card_keeps_what_is_prepared() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let ids = [rig.record(10, 100), rig.record(10, 100)];
    let file = rig.reserve(REQUEST).unwrap();
    let rest = Request {
        blocks: 1,
        ..REQUEST
    };
    while rig
        .reserve(Request {
            blocks: u32::MAX,
            ..rest
        })
        .is_ok()
    {}
    let before = judge(&rig, &image);
    // A number far ahead needs another folder, for which there is no room.
    for _ in 0..2 {
        let error = rig.name(file.slot, rec(5000), "x").unwrap_err();
        assert!(matches!(error, Error::NoSpace { .. }), "{error}");
        assert_eq!(judge(&rig, &image), before);
        assert!(rig.reserved().contains(&file));
    }
    rig.remount();
    assert!(rig.reserved().contains(&file));
    // The next number's folder already exists.
    rig.name(file.slot, rec(3), "x").unwrap();
    rig.close(file.slot, FileRecord::of_length(rec(3), 200 * 512))
        .unwrap();
    assert_eq!(rig.remove_oldest().unwrap(), Some(ids[0]));
    judge(&rig, &image);
}

#[test]
fn folders_are_created_ahead_and_removed_when_empty() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let small = Request {
        blocks: 1,
        ..REQUEST
    };
    let file = rig.reserve(small).unwrap();
    rig.close(file.slot, FileRecord::of_length(rec(996), 0))
        .unwrap();
    for (prepared, folders) in [(3, 1), (1, 2), (3, 2)] {
        for _ in 0..prepared {
            rig.reserve(small).unwrap();
        }
        let listing = judge(&rig, &image);
        let made = (0..5).filter(|at| listing.files.contains_key(&format!("REC{at:05}")));
        assert_eq!(made.count(), folders);
    }
    for (slot, number) in (0..7).zip(997..) {
        rig.close(slot, FileRecord::of_length(rec(number), 300))
            .unwrap();
    }
    let free = judge(&rig, &image).free_clusters;
    for number in 996..1003 {
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(number)));
        judge(&rig, &image);
    }
    let listing = judge(&rig, &image);
    assert!(!listing.files.contains_key("REC00000"));
    assert_eq!(listing.free_clusters, free + FOLDER_BLOCKS + 6);
    // The current folder and the last recording remain.
    assert_eq!(rig.list(1).len(), 1);
    assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1003)));
    assert_eq!(rig.remove_oldest().unwrap(), None);
    assert_eq!(rig.record(1, 0), rec(1004));
    assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1004)));
    judge(&rig, &image);
}

#[test]
fn a_folder_with_other_files_stays() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 100);
    rig.disk = with_file(
        &rig.disk,
        0,
        "REC00000/somebody was here too.txt",
        b"theirs",
    );
    rig.remount();
    // Another file occupies the entries of number 2.
    rig.disk = with_file(&rig.disk, 0, "REC00000/x.txt", b"");
    rig.remount();
    let file = rig.reserve(REQUEST).unwrap();
    rig.close(file.slot, FileRecord::of_length(rec(1000), 5))
        .unwrap();
    for id in [rec(1), rec(1000)] {
        assert_eq!(rig.remove_oldest().unwrap(), Some(id));
    }
    assert_eq!(rig.remove_oldest().unwrap(), None);
    let listing = judge(&rig, &image);
    let theirs = |(_, file): (&String, &Entry)| file.long_name == "somebody was here too.txt";
    assert!(listing.files.iter().any(theirs));
}

/// A computer fills a folder's free entries; names are put wherever there is room.
#[test]
fn names_find_room_among_others() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(1, 100);
    // The first block has 13 free entries, so these files reach the entries of the first numbers.
    for number in 0..20 {
        rig.disk = with_file(
            &rig.disk,
            image.start,
            &format!("REC00000/{number}.TXT"),
            b"",
        );
    }
    rig.remount();
    for number in 2..20 {
        let file = rig
            .reserve(Request {
                blocks: 1,
                ..REQUEST
            })
            .unwrap();
        rig.name(file.slot, rec(number), "a-session-of-a-long-name-indeed_")
            .unwrap();
        rig.close(file.slot, FileRecord::of_length(rec(number), 77))
            .unwrap();
    }
    judge(&rig, &image);
    for number in 1..20 {
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(number)));
    }
    judge(&rig, &image);
}

/// A computer that copies a card puts indexes elsewhere, and not in consecutive clusters.
#[test]
fn a_copied_card_is_recorded_to_in_other_folders() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.record(10, 600);
    let index = check(&rig.disk, image.start).unwrap().files["REC00000/CARDIOGRIDX"]
        .blocks
        .clone();
    swap_links(&mut rig.disk, image.start, index[3], index[64]);
    let mut boot = *rig.disk.block(image.start);
    boot[67] ^= 1;
    rig.disk.put(image.start, boot);
    rig.remount();
    assert_eq!(rig.next(REQUEST), rec(1));
    assert_eq!(rig.record(10, 100), rec(1000));
    assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1000)));
    assert_eq!(rig.remove_oldest().unwrap(), None);
    let listing = check(&rig.disk, image.start).unwrap();
    assert_eq!(listing.files["REC00000/REC00001CSV"].size, 600);
    assert!(listing.files.contains_key("REC00001"));
}

#[test]
fn numbers_used_by_a_computer_are_skipped() {
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        rig.record(10, 100);
        rig.disk = with_file(&rig.disk, image.start, "REC00000/REC00005.CSV", b"moved");
        rig.remount();
        assert_eq!(rig.record(10, 100), rec(6));
        // The foreign file is not in the index.
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1)));
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(6)));
        assert_eq!(rig.remove_oldest().unwrap(), None);
        judge(&rig, &image);
    }
}

#[test]
fn the_oldest_recording_goes_first_and_others_stay() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let ids: Vec<_> = (0..8).map(|_| rig.record(100, 20_000)).collect();
    let unfinished = rig.reserve(REQUEST).unwrap();
    rig.name(unfinished.slot, rec(9), "").unwrap();
    let unfinished = rig.reserved();
    let start = image.start;
    let path = |at: usize| path_of(ids[at]);
    // A renamed file, a protected one, one whose clusters are no longer consecutive, and one with another
    // length.
    edit(&mut rig.disk, start, &path(0), |entry| {
        entry[8..11].copy_from_slice(b"TXT")
    });
    edit(&mut rig.disk, start, &path(2), |entry| entry[11] |= 0x01);
    let moved = check(&rig.disk, start).unwrap().files[&path(4)]
        .blocks
        .clone();
    swap_links(&mut rig.disk, start, moved[2], moved[9]);
    edit(&mut rig.disk, start, &path(7), |entry| entry[28] += 1);
    check(&rig.disk, start).unwrap();
    let free = judge(&rig, &image).free_clusters;
    rig.remount();
    for (index, removed) in [1, 3, 5, 6].into_iter().enumerate() {
        assert_eq!(rig.remove_oldest().unwrap(), Some(ids[removed]));
        assert_eq!(
            judge(&rig, &image).free_clusters,
            free + 40 * (index as u32 + 1)
        );
        assert_eq!(rig.take_removed(), None);
    }
    assert_eq!(rig.remove_oldest().unwrap(), None);
    assert_eq!(rig.reserved(), unfinished);
    assert!(judge(&rig, &image).files.contains_key("DSC00041JPG"));
}

#[test]
fn of_two_prefixes_the_recording_finished_first_is_removed_first() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let mut order = Vec::new();
    for prefix in [*b"REC", *b"ABC", *b"REC", *b"REC", *b"REC", *b"ABC"] {
        let request = Request {
            prefix,
            blocks: 10,
            ..REQUEST
        };
        let file = rig.reserve(request).unwrap();
        let id = rig.next(request);
        rig.close(file.slot, FileRecord::of_length(id, 10)).unwrap();
        order.push(id);
    }
    rig.remount();
    for id in order {
        assert_eq!(rig.remove_oldest().unwrap(), Some(id));
    }
    assert_eq!(rig.remove_oldest().unwrap(), None);
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

#[test]
fn an_unfinished_file_changed_by_a_computer_is_left_alone() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for _ in 0..3 {
        rig.reserve(REQUEST).unwrap();
    }
    rig.name(0, rec(1), "one").unwrap();
    edit(&mut rig.disk, 0, "REC00000/REC00001CSV", |entry| {
        entry[11] = FINISHED
    });
    edit(&mut rig.disk, 0, "CARDIOGRR02", |entry| {
        entry[..3].copy_from_slice(b"OLD")
    });
    rig.remount();
    let slots: Vec<_> = rig.reserved().iter().map(|file| file.slot).collect();
    assert_eq!(slots, [1]);
    let listing = judge(&rig, &image);
    assert_eq!(listing.files["OLDDIOGRR02"].size, 200 * 512);
    // Their names are not reused.
    assert_eq!(rig.reserve(REQUEST).unwrap().slot, 0);
    judge(&rig, &image);
}

#[test]
fn a_removed_journal_has_no_effect() {
    for discarded in 0..2 {
        let image = FAT16.make();
        let mut rig = Rig::mounted(image.disk.clone());
        rig.record(10, 100);
        rig.reserve(REQUEST).unwrap();
        let other = rig.reserve(REQUEST).unwrap();
        if discarded == 1 {
            rig.discard(other.slot).unwrap();
        }
        let before = check(&rig.disk, 0).unwrap();
        rig.disk = without(&rig.disk, 0, "CARDIOGR.JNL");
        let removed = rig.disk.clone();
        rig.remount();
        for after in 0..rig.disk.writes {
            let mut cut = Rig::new(removed.cut_after(after, Torn::Prefix));
            assert_eq!(cut.mount(), Err(Error::Card(NoPower)));
            cut.remount();
            assert_eq!(cut.reserved(), [], "cut after {after}");
            judge(&cut, &image);
        }
        let after = judge(&rig, &image);
        // The new journal's records are at the same position as the old one's.
        assert_eq!(before.files["CARDIOGRJNL"], after.files["CARDIOGRJNL"]);
        assert_eq!(rig.reserved(), []);
        // The index lists the earlier recording. Preallocated space keeps its names.
        assert_eq!(rig.record(10, 100), rec(2));
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(1)));
        assert_eq!(rig.remove_oldest().unwrap(), Some(rec(2)));
        assert_eq!(rig.remove_oldest().unwrap(), None);
        judge(&rig, &image);
    }
}

/// A computer that copies a card puts the journal elsewhere, and not in consecutive clusters.
#[test]
fn a_copied_journal_is_started_anew() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.reserve(REQUEST).unwrap();
    let start = image.start;
    let journal = check(&rig.disk, start).unwrap().files["CARDIOGRJNL"]
        .blocks
        .clone();
    swap_links(&mut rig.disk, start, journal[3], journal[64]);
    // Make it another volume.
    let mut boot = *rig.disk.block(start);
    boot[67] ^= 1;
    rig.disk.put(start, boot);
    rig.remount();
    assert_eq!(rig.reserved(), []);
    let file = rig.reserve(REQUEST).unwrap();
    rig.remount();
    assert_eq!(rig.reserved(), [file]);
    let listing = check(&rig.disk, start).unwrap();
    let copy = &listing.files["CARDIOGRJNL"].blocks;
    assert_eq!((copy[3], copy[64]), (journal[64], journal[3]));
    assert!(rig.disk.block(copy[64]).starts_with(b"CARDIOJ2"));
}

#[test]
fn an_unknown_count_of_free_clusters_stays_unknown() {
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
fn only_the_active_fat_is_written_without_mirroring() {
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
    // Check the second FAT in place of the first.
    for block in fat..fat + fat_blocks {
        let active = *rig.disk.block(block + fat_blocks);
        rig.disk.put(block, active);
    }
    check(&rig.disk, image.start).unwrap();
}

#[test]
fn after_an_error_the_volume_has_to_be_mounted_again() {
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.disk = rig.disk.cut_after(3, Torn::Prefix);
    let error = rig.reserve(REQUEST).unwrap_err();
    assert_eq!(error, Error::Card(NoPower));
    assert_eq!(
        std::error::Error::source(&error).unwrap().to_string(),
        "the power was cut"
    );
    rig.disk = rig.disk.powered_up();
    assert_eq!(rig.reserve(REQUEST).unwrap_err(), Error::NotMounted);
    rig.mount().unwrap();
    assert_eq!(rig.reserve(REQUEST).unwrap().slot, 0);
    judge(&rig, &image);
}

fn bytes_of(future: impl Future) -> usize {
    size_of_val(&future)
}

#[test]
fn the_volume_and_its_futures_are_small() {
    const BYTES_MAX: usize = 1536;
    let image = FAT16.make();
    let mut rig = Rig::new(image.disk.clone());
    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
    let sizes = [
        ("the volume", size_of::<FatVolume>()),
        ("mount", bytes_of(volume.mount(disk))),
        ("reserve", bytes_of(volume.reserve(disk, REQUEST))),
        ("name", bytes_of(volume.name(disk, 0, rec(1), ""))),
        (
            "close",
            bytes_of(volume.close(disk, 0, &FileRecord::of_length(rec(1), 0))),
        ),
        ("discard", bytes_of(volume.discard(disk, 0))),
        ("remove_oldest", bytes_of(volume.remove_oldest(disk))),
    ];
    println!("{sizes:?}");
    for (what, bytes) in sizes {
        assert!(bytes < BYTES_MAX, "{what} takes {bytes} bytes");
    }
}
