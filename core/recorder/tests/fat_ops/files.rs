//! Files: preparing, naming and closing them, and requests that cannot be met.

use super::*;

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
#[ignore = "needs fsck.fat"]
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
        Error::AlreadyNamed(rec(1))
    );
    assert_eq!(rig.disk.writes, after);
    judge(&rig, &image);
}
