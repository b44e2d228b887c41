//! Removal of recordings, changes made by a computer, and the volume as a whole.

use super::*;

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

/// A computer that copies a card puts the journal elsewhere, in clusters that are not consecutive.
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
    assert!(rig.disk.block(copy[64]).starts_with(b"CARDIOJ3"));
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

/// A block without all three signatures of FSInfo may belong to something else.
#[test]
fn a_block_that_is_not_fs_info_is_neither_used_nor_written() {
    for at in [0, 484, 510] {
        let mut image = FAT32.make();
        let fs_info = image.start + 1;
        let mut block = *image.disk.block(fs_info);
        block[at] ^= 1;
        image.disk.put(fs_info, block);
        let mut rig = Rig::mounted(image.disk.clone());
        rig.record(10, 100);
        assert!(*rig.disk.block(fs_info) == block, "signature at {at}");
        let free = Volume::<Disk>::free_blocks(&rig.volume);
        assert_eq!(free, None, "signature at {at}");
    }
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

#[test]
fn a_volume_has_a_file_system_once_it_is_mounted() {
    let image = FAT32.make();
    let mut rig = Rig::new(image.disk);
    assert!(Volume::<Disk>::file_system(&rig.volume).is_none());
    rig.mount().unwrap();
    assert!(Volume::<Disk>::file_system(&rig.volume).is_some());
}
