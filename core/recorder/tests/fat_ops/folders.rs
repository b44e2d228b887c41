//! Folders and the numbers of recordings.

use super::*;

#[test]
#[ignore = "needs fsck.fat"]
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

/// A computer that copies a card puts indexes elsewhere, in clusters that are not consecutive.
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
