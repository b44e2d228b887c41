//! Names that guests neither see nor change, and names that the recorder needs.

use super::*;
use cardiograph_recorder::{FatError, FileRecord, Refusal};

const HIDDEN: Result<(), Error> = Err(FatError::Forbidden(Refusal::Hidden));
const RECORDINGS: Result<(), Error> = Err(FatError::Forbidden(Refusal::Recordings));

/// Protected names that another program creates.
const PROTECTED: &[&str] = &[
    ".wifi.txt",
    ".a.b",
    "LOG00001.CSV.part",
    "A rather long name.PART",
    "CARDIOGR.TXT",
    "Cardiogr.text",
];

/// Returns the names of an entry of the root directory, as the crate fatfs reads them.
fn names_of(disk: &Disk, start: u32, long: &str) -> [String; 2] {
    let mut bytes = disk.bytes(start..disk.used());
    bytes.resize((disk.count() - start) as usize * 512, 0);
    let volume = fatfs::FileSystem::new(Cursor::new(bytes), fatfs::FsOptions::new()).unwrap();
    let mut entries = volume.root_dir().iter().map(Result::unwrap);
    let entry = entries.find(|entry| entry.file_name() == long);
    let entry = entry.unwrap_or_else(|| panic!("{long} is gone"));
    [long.to_owned(), entry.short_file_name()]
}

#[test]
fn no_name_of_a_protected_file_reaches_it() {
    for spec in [FAT16, FAT32] {
        let mut image = spec.make();
        for (number, name) in PROTECTED.iter().enumerate() {
            let data = data(number as u64, 700);
            image.disk = with_file(&image.disk, image.start, name, &data);
        }
        let mut rig = Rig::mounted(image.disk.clone());
        let visible = rig.names("");
        for name in PROTECTED {
            let names = names_of(&rig.disk, image.start, name);
            assert!(!visible.contains(&names[0]) && !visible.contains(&names[1]));
            for name in names {
                for path in [name.to_lowercase(), name] {
                    let found = rig.find(&path).unwrap();
                    assert!(
                        matches!(found, Node::Entry(entry) if entry.is_hidden),
                        "{path}"
                    );
                    assert_eq!(rig.put(&path, &[1], true), HIDDEN, "{path}");
                    assert_eq!(rig.remove(&path), HIDDEN, "{path}");
                    assert_eq!(rig.make_directory(&path), HIDDEN, "{path}");
                    assert_eq!(rig.rename(&path, "x", false), HIDDEN, "{path}");
                    assert_eq!(rig.rename("DSC00041.JPG", &path, true), HIDDEN, "{path}");
                }
            }
        }
        // Other names get other short names, and the protected files stay as they were.
        for name in ["wi fi.txt", "lo g00001.csv.par", "car diogr.text", "a .b"] {
            rig.put(name, b"mine", false).unwrap();
        }
        fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
        let tree = tree(&rig.disk, image.start);
        for (number, name) in PROTECTED.iter().enumerate() {
            assert_eq!(tree[*name], Some(data(number as u64, 700)), "{name}");
        }
    }
}

#[test]
fn guests_create_no_protected_names() {
    let image = FAT32.make();
    let mut rig = Rig::mounted(image.disk.clone());
    rig.put("a", b"mine", false).unwrap();
    for path in [
        ".a",
        "a.part",
        "a.b.PART",
        "cardiogr.b",
        "CARDIOGR.a long one",
    ] {
        assert_eq!(rig.put(path, &[1], false), HIDDEN, "{path}");
        assert_eq!(rig.make_directory(path), HIDDEN, "{path}");
        assert_eq!(rig.rename("a", path, false), HIDDEN, "{path}");
    }
    assert_eq!(rig.find("a").map(|_| ()), Ok(()));
}

/// FAT compares without regard to case, and the recorder looks for its names among the short ones.
#[test]
fn a_name_in_another_case_has_the_short_name() {
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        for (name, short) in [
            ("Rec00007.Csv", "REC00007.CSV"),
            ("Rec00008.csv", "REC00008.CSV"),
            ("rec00009.CSV", "REC00009.CSV"),
            ("Some", "SOME"),
            ("Some more", "SOMEMO~1"),
        ] {
            rig.put(name, &[1], false).unwrap();
            let names = names_of(&rig.disk, image.start, name);
            assert_eq!(names[1], short, "{name}");
            assert_eq!(
                rig.put(&short.to_lowercase(), &[1], false),
                Err(Error::Exists)
            );
        }
        rig.rename("Some", "sOmE", false).unwrap();
        assert!(rig.names("").contains(&"sOmE".to_owned()));
        fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    }
}

#[test]
fn names_of_later_recordings_are_reserved_however_they_are_written() {
    for spec in [FAT16, FAT32] {
        let image = spec.make();
        let mut rig = Rig::mounted(image.disk.clone());
        let first = rig.record(4, 1000);
        rig.reserve(REQUEST).unwrap();
        for path in [
            "REC00000/REC00002.CSV",
            "REC00000/rec00002.csv",
            "REC00000/Rec00007.csv",
            "REC00000/REC00007 flight.CSV",
            "REC00000/rec00123 a.csv",
            "REC00000/REC00002.TEXT",
            "REC00001",
            "rec00001",
            "Rec00099",
        ] {
            assert_eq!(rig.put(path, &[1], false), RECORDINGS, "{path}");
            assert_eq!(rig.make_directory(path), RECORDINGS, "{path}");
            assert_eq!(
                rig.rename("DSC00041.JPG", path, false),
                RECORDINGS,
                "{path}"
            );
        }
        // A finished recording may be changed, and so may names that the recorder will not use again.
        let path = "REC00000/REC00001.CSV";
        rig.put(path, b"new", true).unwrap();
        rig.rename(path, "REC00000/REC00001 flight.CSV", false)
            .unwrap();
        rig.put(path, b"another", false).unwrap();
        rig.rename("REC00000/REC00001 flight.CSV", path, true)
            .unwrap();
        assert_eq!(tree(&rig.disk, image.start)[path], Some(b"new".to_vec()));
        // The recording continues.
        let id = rig.next(REQUEST);
        assert_eq!(id.number, first.number + 1);
        rig.name(0, id, "flight").unwrap();
        rig.close(0, FileRecord::of_length(id, 900)).unwrap();
        fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
    }
}

/// Another program may have used the hidden name of an upload.
#[test]
fn an_upload_leaves_files_of_other_programs_alone() {
    for spec in [FAT16, FAT32] {
        let mut image = spec.make();
        image.disk = with_file(&image.disk, image.start, "CARDIOGR.U00", b"not an upload");
        let mut rig = Rig::mounted(image.disk.clone());
        let one = rig.begin(100).unwrap();
        assert_eq!(rig.begin(100), Err(Error::TooManyUploads));
        rig.drop_upload(one).unwrap();
        rig.put("a", b"mine", false).unwrap();
        let interrupted = rig.begin(100).unwrap();
        assert_eq!(interrupted.number(), 1);
        rig.remount();
        fsck(&rig.disk, image.start).unwrap_or_else(|text| panic!("{text}"));
        let tree = tree(&rig.disk, image.start);
        assert_eq!(tree["CARDIOGR.U00"], Some(b"not an upload".to_vec()));
        assert_eq!(tree["a"], Some(b"mine".to_vec()));
        assert!(!tree.contains_key("CARDIOGR.U01"));
    }
}
