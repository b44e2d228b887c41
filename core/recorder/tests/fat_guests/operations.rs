//! Results of each operation.

use super::*;
use cardiograph_recorder::{FatError, FileRecord, Refusal, Request, UPLOADS_MAX, Volume};

fn judge(rig: &Rig, image: &Image) -> Listing {
    fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    let listing = check(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    if let Some(free_blocks) = Volume::<Disk>::free_blocks(&rig.volume) {
        assert_eq!(free_blocks, listing.free_clusters * listing.cluster_blocks);
    }
    listing
}

fn rigs(test: impl Fn(&mut Rig, &Image)) {
    for spec in [FAT16, FAT32, Spec { fats: 1, ..FAT16 }] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        test(&mut rig, &image);
        judge(&rig, &image);
        // FAT16 has no count of free clusters.
        let is_counted = Volume::<Disk>::free_blocks(&rig.volume).is_some();
        assert_eq!(is_counted, spec.fat_bits == 32);
    }
}

#[test]
fn an_upload_has_the_name_length_and_time_of_its_commit() {
    rigs(|rig, image| {
        rig.make_directory("A folder").unwrap();
        for (number, path) in [
            "short.bin",
            "UPPER.TXT",
            "A folder/With a long name.html",
            "A folder/Ünïcödé 漢字 😀.dat",
            "a folder/-hidden",
        ]
        .into_iter()
        .enumerate()
        {
            let data = data(number as u64, 700 * number);
            rig.put(path, &data, false).unwrap();
            assert_eq!(rig.put(path, &data, false), Err(Error::Exists));
            judge(rig, image);
            let path = path.replace("a folder", "A folder");
            assert_eq!(tree(&rig.disk, image.start)[&path], Some(data));
            let Ok(Node::Entry(entry)) = rig.find(&path) else {
                panic!("{path} was not found");
            };
            assert_eq!(entry.bytes, 700 * number as u32);
            assert_eq!(entry.modified, TIME);
            assert_eq!(entry.attributes, 0x20);
        }
        assert_eq!(rig.put("a folder", &[1], true), Err(Error::IsDirectory));
        assert_eq!(rig.put("nothing/x", &[1], true), Err(Error::NotFound));
        assert_eq!(rig.put("short.bin/x", &[1], true), Err(Error::NotDirectory));
        assert_eq!(rig.put("a:b", &[1], true), Err(Error::NameInvalid));
        let long = "x".repeat(196);
        assert_eq!(rig.put(&long, &[1], true), Err(Error::NameInvalid));
        rig.put(&long[1..], &[1], true).unwrap();
    });
}

#[test]
fn a_replaced_file_has_the_new_contents_and_the_old_name() {
    rigs(|rig, image| {
        let free = judge(rig, image).free_clusters;
        for (number, bytes) in [3000, 100, 9000, 0, 512, 0].into_iter().enumerate() {
            let path = ["Some name.txt", "SOME NAME.TXT"][number % 2];
            rig.put(path, &data(number as u64, bytes), true).unwrap();
            let listing = judge(rig, image);
            let clusters = bytes.div_ceil(512) as u32;
            assert_eq!(listing.free_clusters, free - clusters);
            let tree = tree(&rig.disk, image.start);
            assert_eq!(tree["Some name.txt"], Some(data(number as u64, bytes)));
        }
        rig.remove("some name.txt").unwrap();
        assert_eq!(judge(rig, image).free_clusters, free);
    });
}

#[test]
fn uploads_of_unknown_length_grow_in_pieces() {
    rigs(|rig, image| {
        let free = judge(rig, image).free_clusters;
        let mut one = rig.begin(0).unwrap();
        let mut two = rig.begin(0).unwrap();
        assert_eq!(rig.begin(0), Err(Error::TooManyUploads));
        for piece in 1..20 {
            rig.grow(&mut one, piece * 1500).unwrap();
            rig.grow(&mut two, piece * 700).unwrap();
            judge(rig, image);
        }
        rig.write(&mut one, &data(1, 19 * 1500)).unwrap();
        rig.write(&mut two, &data(2, 5000)).unwrap();
        let too_long = 19 * 1500 + 1024;
        assert_eq!(
            rig.commit(&mut one, "one", too_long, false),
            Err(Error::TooLong)
        );
        rig.commit(&mut one, "one", 19 * 1500, false).unwrap();
        assert_eq!(rig.commit(&mut two, "one", 5000, false), Err(Error::Exists));
        rig.commit(&mut two, "two", 5000, false).unwrap();
        judge(rig, image);
        let found = tree(&rig.disk, image.start);
        assert_eq!(found["one"], Some(data(1, 19 * 1500)));
        assert_eq!(found["two"], Some(data(2, 5000)));
        rig.remove("one").unwrap();
        rig.remove("two").unwrap();
        let three = rig.begin(100_000).unwrap();
        rig.drop_upload(three).unwrap();
        assert_eq!(judge(rig, image).free_clusters, free);
        // An upload ends with the mount in which it began.
        let mut four = rig.begin(100_000).unwrap();
        let mut five = rig.begin(100).unwrap();
        rig.mount().unwrap();
        assert_eq!(judge(rig, image).free_clusters, free);
        let six = rig.begin(100_000).unwrap();
        assert_eq!(
            rig.commit(&mut four, "four", 3, false),
            Err(Error::NoSuchUpload)
        );
        assert_eq!(rig.grow(&mut five, 1000), Err(Error::NoSuchUpload));
        assert_eq!(rig.drop_upload(four), Err(Error::NoSuchUpload));
        rig.drop_upload(six).unwrap();
        for _ in 0..UPLOADS_MAX {
            rig.begin(1).unwrap();
        }
        rig.remount();
        assert_eq!(judge(rig, image).free_clusters, free);
    });
}

#[test]
fn a_full_card_refuses_uploads_and_stays_usable() {
    rigs(|rig, image| {
        let free = judge(rig, image).free_clusters;
        let bytes = u64::from(free) * 512;
        assert!(matches!(rig.begin(bytes + 1), Err(Error::NoSpace { .. })));
        assert_eq!(rig.begin(1 << 32), Err(Error::TooLong));
        assert_eq!(judge(rig, image).free_clusters, free);
        let mut all = rig.begin(bytes).unwrap();
        judge(rig, image);
        assert!(matches!(
            rig.grow(&mut all, bytes + 1),
            Err(Error::NoSpace { .. })
        ));
        assert!(matches!(
            rig.make_directory("x"),
            Err(Error::NoSpace { .. })
        ));
        rig.commit(&mut all, "all", bytes as usize, false).unwrap();
        assert!(matches!(rig.begin(1), Err(Error::NoSpace { .. })));
        rig.rename("all", "everything", false).unwrap();
        judge(rig, image);
        rig.remove("everything").unwrap();
        assert_eq!(judge(rig, image).free_clusters, free);
    });
}

#[test]
fn names_move_with_everything_in_them() {
    rigs(|rig, image| {
        rig.make_directory("one").unwrap();
        rig.make_directory("one/two").unwrap();
        rig.make_directory("three").unwrap();
        rig.put("one/two/file with a long name", &data(1, 5000), false)
            .unwrap();
        rig.put("x", &data(2, 3000), false).unwrap();
        rig.rename("one/two", "three/renamed two", false).unwrap();
        judge(rig, image);
        rig.rename("three", "Three", false).unwrap();
        rig.rename("x", "Three/renamed two/y", false).unwrap();
        rig.rename("three/renamed TWO", "two", false).unwrap();
        judge(rig, image);
        let found = tree(&rig.disk, image.start);
        assert_eq!(found["two/file with a long name"], Some(data(1, 5000)));
        assert_eq!(found["two/y"], Some(data(2, 3000)));
        assert!(found.contains_key("Three") && !found.contains_key("three"));
        assert!(rig.find("two/y").is_ok());
        assert_eq!(rig.find("x"), Err(Error::NotFound));
        for (from, to, due) in [
            ("nothing", "a", Error::NotFound),
            ("two/y", "one", Error::Exists),
            ("two/y", "two/file with a long name", Error::Exists),
            ("two", "Three", Error::Exists),
            ("two", "two/inside", Error::Forbidden(Refusal::IntoItself)),
            ("two", "two/y", Error::Forbidden(Refusal::IntoItself)),
            ("", "a", Error::Forbidden(Refusal::Root)),
            ("two/y", "/", Error::Forbidden(Refusal::Root)),
            ("two/y", "two/y/z", Error::NotDirectory),
            ("two/y", "no/z", Error::NotFound),
            ("two/y", "z.", Error::NameInvalid),
        ] {
            assert_eq!(rig.rename(from, to, false), Err(due), "{from} to {to}");
        }
        rig.rename("two/y", "two/file with a long name", true)
            .unwrap();
        judge(rig, image);
        let found = tree(&rig.disk, image.start);
        assert_eq!(found["two/file with a long name"], Some(data(2, 3000)));
        assert!(!found.contains_key("two/y"));
        rig.rename(
            "two/file with a long name",
            "two/FILE with a long name",
            false,
        )
        .unwrap();
        assert_eq!(rig.names("two"), ["FILE with a long name"]);
    });
}

#[test]
fn only_empty_directories_are_removed() {
    rigs(|rig, image| {
        let free = judge(rig, image).free_clusters;
        rig.make_directory("one").unwrap();
        assert_eq!(rig.make_directory("ONE"), Err(Error::Exists));
        assert_eq!(rig.make_directory("no/one"), Err(Error::NotFound));
        // The directory grows beyond a cluster.
        for at in 0..30 {
            rig.put(&format!("one/another file, number {at}"), &[at], false)
                .unwrap();
        }
        judge(rig, image);
        assert_eq!(rig.names("one").len(), 30);
        for at in 0..30 {
            assert_eq!(rig.remove("one"), Err(Error::NotEmpty));
            rig.remove(&format!("one/another file, number {at}"))
                .unwrap();
        }
        judge(rig, image);
        rig.remove("one").unwrap();
        assert_eq!(judge(rig, image).free_clusters, free);
    });
}

#[test]
fn fragmented_files_of_other_programs_are_removed_and_replaced() {
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        let listing = judge(&rig, &image);
        rig.put("a long name of somebody.txt", &data(1, 20), true)
            .unwrap();
        judge(&rig, &image);
        rig.remove("dsc00041.jpg").unwrap();
        let all = judge(&rig, &image);
        let (one, two) = (&listing.files["ALONGN~1TXT"], &listing.files["DSC00041JPG"]);
        let freed = (one.blocks.len() + two.blocks.len()) as u32 - 1;
        assert_eq!(all.free_clusters, listing.free_clusters + freed);
        let found = tree(&rig.disk, image.start);
        assert_eq!(found["a long name of somebody.txt"], Some(data(1, 20)));
    }
}

#[test]
fn long_names_of_other_programs_over_several_blocks_are_deleted_whole() {
    for spec in [FAT16, FAT32] {
        let mut image = spec.make();
        for at in 0..9 {
            let name = format!("{}{at}", "n".repeat(180 + 9 * at));
            image.disk = with_file(&image.disk, image.start, &name, &data(at as u64, 900));
        }
        let mut rig = Rig::mounted(image.disk.clone());
        for at in [3, 0, 8, 1, 6, 4, 2, 7, 5] {
            let name = format!("{}{at}", "n".repeat(180 + 9 * at));
            match at % 2 {
                0 => rig.remove(&name).unwrap(),
                _ => rig.rename(&name, &format!("{at}"), false).unwrap(),
            }
            judge(&rig, &image);
        }
        let found = tree(&rig.disk, image.start);
        assert_eq!(found["7"], Some(data(7, 900)));
    }
}

#[test]
fn what_the_recorder_uses_is_not_changed() {
    rigs(|rig, image| {
        rig.reserve(REQUEST).unwrap();
        rig.reserve(REQUEST).unwrap();
        let id = rig.next(REQUEST);
        rig.name(0, id, "a-session").unwrap();
        let hidden = Err(Error::Forbidden(Refusal::Hidden));
        let recordings = Err(Error::Forbidden(Refusal::Recordings));
        for path in [
            "CARDIOGR.JNL",
            "cardiogr.r01",
            "REC00000/CARDIOGR.IDX",
            "cardiogr.u00",
        ] {
            let upload = (path == "cardiogr.u00").then(|| rig.begin(1).unwrap());
            assert_eq!(rig.remove(path), hidden, "{path}");
            assert_eq!(rig.rename(path, "x", false), hidden, "{path}");
            assert_eq!(rig.rename("DSC00041.JPG", path, true), hidden, "{path}");
            if let Some(upload) = upload {
                rig.drop_upload(upload).unwrap();
                continue;
            }
            assert_eq!(rig.put(path, &[1], true), hidden, "{path}");
        }
        let unfinished = Err(Error::Forbidden(Refusal::Unfinished));
        for path in ["rec00000/REC00001 a-session.CSV", "REC00000/REC00001.CSV"] {
            assert_eq!(rig.remove(path), unfinished);
            assert_eq!(rig.rename(path, "x", false), unfinished);
            assert_eq!(rig.put(path, &[1], true), unfinished);
        }
        assert_eq!(rig.remove("REC00000"), recordings);
        assert_eq!(rig.rename("REC00000", "other", false), recordings);
        // Names that the recorder will use.
        assert_eq!(rig.put("REC00000/REC00007.CSV", &[1], false), recordings);
        assert_eq!(rig.put("REC00000/rec00007.txt", &[1], false), recordings);
        assert_eq!(rig.make_directory("REC00001"), recordings);
        rig.put("REC00001.CSV", &[1], false).unwrap();
        rig.make_directory("ABC00001").unwrap();
        judge(rig, image);
        rig.close(0, FileRecord::of_length(id, 5000)).unwrap();
        assert_eq!(rig.remove("REC00000"), recordings);
    });
}

#[test]
fn finished_recordings_may_be_removed_and_renamed() {
    rigs(|rig, image| {
        let ids: Vec<_> = (0..6).map(|_| rig.record(40, 9000)).collect();
        let name = |at: usize| format!("REC00000/REC{:05}.CSV", ids[at].number);
        rig.remove(&name(1)).unwrap();
        rig.rename(&name(2), "REC00000/a flight.csv", false)
            .unwrap();
        rig.rename(&name(3), "kept.csv", false).unwrap();
        rig.put(&name(4), &data(4, 100), true).unwrap();
        judge(rig, image);
        let listed: Vec<_> = rig.list(0).iter().map(|it| it.record.id).collect();
        assert_eq!(listed, [ids[0], ids[5]]);
        // The numbers continue, even after a mount.
        assert_eq!(rig.next(REQUEST).number, 7);
        rig.remount();
        assert_eq!(rig.next(REQUEST).number, 7);
        assert_eq!(rig.remove_oldest(), Ok(Some(ids[0])));
        // Neither the renamed nor the replaced recordings are the recorder's to remove.
        assert_eq!(rig.remove_oldest(), Ok(Some(ids[5])));
        assert_eq!(rig.remove_oldest(), Ok(None));
        let found = tree(&rig.disk, image.start);
        assert!(found.contains_key("kept.csv"));
        assert!(found.contains_key("REC00000/a flight.csv"));
        assert_eq!(found[&name(4)], Some(data(4, 100)));
        assert_eq!(rig.record(40, 100).number, 7);
    });
}

#[test]
fn guests_leave_room_for_every_recording_of_a_folder() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    for _ in 0..4 {
        rig.record(1, 100);
    }
    let mut count = 0;
    // The first block, and the free entries next to recordings 0 to 2.
    while rig.put(&format!("REC00000/{count}"), &[], false).is_ok() {
        count += 1;
    }
    let error = rig.put("REC00000/x", &[], false).unwrap_err();
    assert_eq!(error, FatError::DirectoryFull(*b"REC00000   "));
    assert!((13..40).contains(&count), "{count}");
    for number in 5..1000 {
        assert_eq!(rig.record(1, 100).number, number);
    }
    judge(&rig, &image);
    assert_eq!(rig.names("REC00000").len(), count + 999);
}

#[test]
fn the_generation_changes_with_every_change() {
    let image = FAT16.make();
    let mut rig = Rig::new(image.disk.clone());
    let mut last = rig.volume.generation();
    let mut upload = None;
    for step in 0..15 {
        match step {
            0 => rig.mount().unwrap(),
            1 => drop(rig.reserve(REQUEST).unwrap()),
            2 => rig.name(0, rec(1), "").unwrap(),
            3 => rig.close(0, FileRecord::of_length(rec(1), 10)).unwrap(),
            4 => drop(
                rig.reserve(Request {
                    blocks: 9,
                    ..REQUEST
                })
                .unwrap(),
            ),
            5 => rig.discard(0).unwrap(),
            6 => drop(rig.remove_oldest().unwrap()),
            7 => upload = Some(rig.begin(1).unwrap()),
            8 => rig.grow(upload.as_mut().unwrap(), 5000).unwrap(),
            9 => rig
                .commit(upload.as_mut().unwrap(), "a", 700, false)
                .unwrap(),
            10 => rig.rename("a", "b", false).unwrap(),
            11 => rig.remove("b").unwrap(),
            12 => rig.make_directory("c").unwrap(),
            13 => rig.remove("c").unwrap(),
            _ => {
                let upload = rig.begin(1).unwrap();
                last = rig.volume.generation();
                rig.drop_upload(upload).unwrap();
            }
        }
        assert_ne!(rig.volume.generation(), last, "step {step}");
        last = rig.volume.generation();
    }
    rig.find("DSC00041.JPG").unwrap();
    assert_eq!(rig.volume.generation(), last);
}

fn bytes_of<F: Future>(future: F) -> usize {
    size_of_val(&future)
}

#[test]
fn the_futures_are_small() {
    const BYTES_MAX: usize = 1536;
    let image = FAT16.make();
    let mut rig = Rig::mounted(image.disk.clone());
    let mut upload = rig.begin(1).unwrap();
    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
    let sizes = [
        ("lookup", bytes_of(volume.lookup(disk, ""))),
        ("begin", bytes_of(volume.begin_upload(disk, 1))),
        ("grow", bytes_of(volume.grow_upload(disk, &mut upload, 1))),
        (
            "commit",
            bytes_of(volume.commit_upload(disk, &mut upload, "", 1, TIME, true)),
        ),
        ("rename", bytes_of(volume.rename(disk, "", "", true))),
        ("remove", bytes_of(volume.remove(disk, ""))),
        ("make_directory", bytes_of(volume.make_directory(disk, ""))),
    ];
    println!("{sizes:?}");
    for (what, bytes) in sizes {
        assert!(bytes < BYTES_MAX, "{what} takes {bytes} bytes");
    }
}
