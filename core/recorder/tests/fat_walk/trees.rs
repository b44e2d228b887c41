//! Undamaged volumes: reading finds everything that the crate fatfs has written, and nothing else.

use super::*;
use proptest::prelude::*;
use std::io::{Seek, SeekFrom, Write};

/// A change by the other program: the numbers choose among the directories and files that exist.
#[derive(Clone, Debug)]
enum Change {
    MakeDirectory(usize, String),
    /// Appends to a new file, or to one that exists.
    Append(usize, String, usize),
    AppendAgain(usize, usize),
    Remove(usize),
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Z]{1,8}(\\.[A-Z]{1,3})?",
        "[a-z]{1,8}\\.[a-z]{1,3}",
        "[a-zA-Z0-9 ._+,;=-]{1,40}",
        "[äöüÄßéøλЖ漢字😀a ]{1,30}",
        "[x😀]{240,250}",
    ]
    .prop_map(|name| name.trim_matches(['.', ' ']).to_owned())
    // fatfs counts characters, FAT counts units of UTF-16.
    .prop_map(|mut name| {
        while name.encode_utf16().count() > 255 {
            name.pop();
        }
        name
    })
    .prop_filter("a name", |name| !name.is_empty())
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        (any::<usize>(), names()).prop_map(|(at, name)| Change::MakeDirectory(at, name)),
        (any::<usize>(), names(), 0_usize..3000)
            .prop_map(|(at, name, n)| Change::Append(at, name, n)),
        (any::<usize>(), 1_usize..3000).prop_map(|(at, n)| Change::AppendAgain(at, n)),
        any::<usize>().prop_map(Change::Remove),
    ];
    prop::collection::vec(change, 1..60)
}

fn nth(tree: &Tree, number: usize, is_file: bool) -> Option<&String> {
    let all = || tree.iter().filter(|(_, file)| file.is_some() == is_file);
    let count = all().count();
    (count > 0).then(|| all().nth(number % count).unwrap().0)
}

fn place(tree: &Tree, number: usize, name: &str) -> String {
    // One of the places is the root directory.
    match nth(tree, number / 2, false).filter(|_| number.is_multiple_of(2)) {
        Some(path) => format!("{path}/{name}"),
        None => name.to_owned(),
    }
}

fn append(volume: &FileSystem, tree: &mut Tree, path: String, count: usize) {
    let Ok(mut file) = volume.root_dir().create_file(&path) else {
        return;
    };
    let old = tree.keys().find(|it| fold(it) == fold(&path)).cloned();
    let path = old.unwrap_or(path);
    let data: Vec<u8> = (0..count)
        .map(|at| (at * 7 + path.len() + count) as u8)
        .collect();
    file.seek(SeekFrom::End(0)).unwrap();
    file.write_all(&data).unwrap();
    let whole = tree.entry(path).or_insert(Some(Vec::new()));
    whole.as_mut().unwrap().extend(data);
}

/// Maps a path to one spelling. The crate fatfs ignores the case of ASCII letters only or of all letters, so names here
/// never differ in case alone.
fn fold(path: &str) -> String {
    path.to_uppercase()
}

fn apply(volume: &FileSystem, tree: &mut Tree, change: Change) {
    match change {
        Change::MakeDirectory(at, name) => {
            let path = place(tree, at, &name);
            let is_new = !tree.keys().any(|it| fold(it) == fold(&path));
            if is_new && volume.root_dir().create_dir(&path).is_ok() {
                tree.insert(path, None);
            }
        }
        Change::Append(at, name, count) => {
            let path = place(tree, at, &name);
            let is_taken = tree
                .iter()
                .any(|(it, file)| fold(it) == fold(&path) && (file.is_none() || *it != path));
            if !is_taken {
                append(volume, tree, path, count);
            }
        }
        Change::AppendAgain(at, count) => {
            if let Some(path) = nth(tree, at, true).cloned() {
                append(volume, tree, path, count);
            }
        }
        Change::Remove(at) => {
            if let Some(path) = nth(tree, at, true).cloned() {
                volume.root_dir().remove(&path).unwrap();
                tree.remove(&path);
            }
        }
    }
}

/// Returns the short name of every file, as the crate fatfs sees it.
fn aliases(volume: &FileSystem) -> Vec<(String, String)> {
    let (mut found, mut todo) = (Vec::new(), vec![(String::new(), volume.root_dir())]);
    while let Some((path, directory)) = todo.pop() {
        for file in directory.iter().map(Result::unwrap) {
            let (short, long) = (file.short_file_name(), file.file_name());
            if short.starts_with('.') {
                continue;
            }
            if file.is_dir() {
                todo.push((format!("{path}{long}/"), file.to_dir()));
            }
            found.push((format!("{path}{short}"), format!("{path}{long}")));
        }
    }
    found
}

/// Changes the case of a character, if the other case is one character too.
fn swap_case(character: char) -> char {
    let single = |mut all: std::vec::IntoIter<char>| (all.len() == 1).then(|| all.next().unwrap());
    let upper = |it: char| single(it.to_uppercase().collect::<Vec<_>>().into_iter());
    let lower = single(character.to_lowercase().collect::<Vec<_>>().into_iter());
    match upper(character) {
        Some(other) if other != character => other,
        _ => lower
            .filter(|it| upper(*it) == Some(character) && u32::from(*it) < 0x10000)
            .unwrap_or(character),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn everything_is_found(changes in changes(), is_32: bool) {
        let kind = if is_32 { fatfs::FatType::Fat32 } else { fatfs::FatType::Fat16 };
        let (bytes, (tree, aliases)) = written(kind, |volume| {
            let mut tree = Tree::new();
            changes.into_iter().for_each(|change| apply(volume, &mut tree, change));
            (tree, aliases(volume))
        });
        let mut rig = mounted(&bytes);
        prop_assert_eq!(&walk(&mut rig).unwrap(), &tree);
        for (short, long) in aliases {
            let whole = entry_at(&mut rig, &long);
            prop_assert_eq!(entry_at(&mut rig, &format!("/{short}")), whole);
            prop_assert_eq!(entry_at(&mut rig, &short.to_lowercase()), whole);
            let other_case: String = long.chars().map(swap_case).collect();
            prop_assert_eq!(entry_at(&mut rig, &other_case), whole);
            let longer = format!("{long}x");
            let is_taken = tree.keys().any(|it| fold(it) == fold(&longer));
            let is_short = longer.encode_utf16().count() < 200;
            if is_short && !is_taken {
                prop_assert_eq!(lookup(&mut rig, &longer), Err(Error::NotFound));
            }
        }
    }
}

#[test]
fn paths_have_one_meaning() {
    let (bytes, ()) = written(fatfs::FatType::Fat16, |volume| {
        let root = volume.root_dir();
        root.create_dir("Some folder").unwrap();
        root.create_file("Some folder/a file.txt").unwrap();
    });
    let mut rig = mounted(&bytes);
    assert_eq!(lookup(&mut rig, ""), Ok(Node::Root));
    assert_eq!(lookup(&mut rig, "/"), Ok(Node::Root));
    let folder = entry_at(&mut rig, "/some FOLDER/");
    assert!(folder.is_directory());
    assert_eq!(entry_at(&mut rig, "SOMEFO~1"), folder);
    assert!(!entry_at(&mut rig, "some folder/A FILE.TXT").is_directory());
    for (path, due) in [
        ("some folder//a file.txt", Error::NameInvalid),
        ("//some folder", Error::NameInvalid),
        ("some folder/.", Error::NameInvalid),
        ("some folder/..", Error::NameInvalid),
        ("some folder/a file.txt.", Error::NameInvalid),
        ("some folder/a file.txt ", Error::NameInvalid),
        ("some\\folder", Error::NameInvalid),
        ("some folder/a\0", Error::NameInvalid),
        ("some folder/a file.tx", Error::NotFound),
        ("some folder/a file.txt/b", Error::NotDirectory),
        ("another/a file.txt", Error::NotFound),
    ] {
        assert_eq!(lookup(&mut rig, path), Err(due), "{path}");
    }
    // The recorder's own files are hidden under every name.
    for path in ["CARDIOGR.JNL", "cardiogr.jnl"] {
        assert!(entry_at(&mut rig, path).is_hidden);
    }
    rig.reserve(REQUEST).unwrap();
    assert!(entry_at(&mut rig, "CARDIOGR.R00").is_hidden);
    let id = rig.next(REQUEST);
    rig.name(0, id, "flight").unwrap();
    let recording = entry_at(&mut rig, "rec00000/REC00001 flight.csv");
    assert!(recording.is_unfinished() && !recording.is_hidden);
    assert_eq!(entry_at(&mut rig, "REC00000/REC00001.CSV"), recording);
    assert!(entry_at(&mut rig, "REC00000/CARDIOGR.IDX").is_hidden);
}

#[test]
fn ten_thousand_names_take_one_read_per_block() {
    const NAMES: usize = 10_000;
    // The other program makes the directory long enough; it would take minutes to create all names.
    let (mut bytes, ()) = written(fatfs::FatType::Fat32, |volume| {
        volume.root_dir().create_dir("many").unwrap();
        let folder = volume.root_dir().open_dir("many").unwrap();
        let blocks = NAMES.div_ceil(5);
        let name = |at: usize| format!("{at:04}{}", "x".repeat(236));
        (0..blocks * 16 / 20 + 20).for_each(|at| drop(folder.create_file(&name(at)).unwrap()));
    });
    let mut rig = mounted(&bytes);
    let many = entry_at(&mut rig, "many");
    let mut position = many.contents();
    let mut blocks = Vec::new();
    while let Ok(extent) =
        done(
            rig.volume
                .extent_at(&mut rig.disk, &mut position, blocks.len() as u32, 16),
        )
    {
        blocks.extend(extent.start..extent.start + extent.blocks);
    }
    for (number, block) in blocks.iter().enumerate() {
        let data = &mut bytes[*block as usize * 512..][..512];
        let skipped = if number == 0 { 2 } else { 0 };
        data[skipped * 32..].fill(0);
        if number == 0 || number * 5 > NAMES {
            data[skipped * 32..]
                .iter_mut()
                .step_by(32)
                .for_each(|it| *it = 0xE5);
            continue;
        }
        let entries = data.as_chunks_mut::<32>().0;
        for (at, entries) in entries.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            put_name(entries, (number - 1) * 5 + at);
        }
        entries[15][0] = 0xE5;
    }
    let mut rig = mounted(&bytes);
    let many = Node::Entry(entry_at(&mut rig, "many"));
    let reads = rig.disk.reads;
    let names = list(&mut rig, &many).unwrap();
    let reads = rig.disk.reads - reads;
    assert_eq!(names.len(), NAMES);
    for (at, (entry, name)) in names.iter().enumerate() {
        assert_eq!((name, entry.bytes), (&long_name_of(at), at as u32));
    }
    // Each block of the directory, and of the FAT once per cluster.
    assert!(reads <= 2 * blocks.len() as u64, "{reads} reads");
    let last = format!("many/{}", long_name_of(NAMES - 1));
    assert_eq!(entry_at(&mut rig, &last).bytes, NAMES as u32 - 1);
}

fn long_name_of(at: usize) -> String {
    format!("sample number {at:05}.dat")
}

/// Puts two entries of a long name and the short one.
fn put_name(entries: &mut [[u8; 32]; 3], at: usize) {
    let [second, first, short] = entries;
    short[..11].copy_from_slice(format!("S{at:05}~1DAT").as_bytes());
    short[11] = 0x20;
    short[28..].copy_from_slice(&(at as u32).to_le_bytes());
    let sum = short[..11].iter().fold(0_u8, |sum, byte| {
        (sum << 7).wrapping_add(sum >> 1).wrapping_add(*byte)
    });
    let mut units: Vec<u16> = long_name_of(at).encode_utf16().collect();
    units.push(0);
    units.resize(26, 0xFFFF);
    for (number, entry, units) in [(1, first, &units[..13]), (0x42, second, &units[13..])] {
        let bytes: Vec<u8> = units.iter().flat_map(|unit| unit.to_le_bytes()).collect();
        *entry = [0; 32];
        entry[0] = number;
        entry[1..11].copy_from_slice(&bytes[..10]);
        entry[11] = 0x0F;
        entry[13] = sum;
        entry[14..26].copy_from_slice(&bytes[10..22]);
        entry[28..].copy_from_slice(&bytes[22..]);
    }
}

#[test]
fn a_name_that_does_not_fit_is_replaced_by_the_short_one() {
    let (bytes, ()) = written(fatfs::FatType::Fat16, |volume| {
        volume
            .root_dir()
            .create_file("A rather long name.text")
            .unwrap();
    });
    let mut rig = mounted(&bytes);
    for (room, due) in [
        (23, "A rather long name.text"),
        (22, "ARATHE~1.TEX"),
        (5, ""),
    ] {
        let (volume, disk) = (&mut rig.volume, &mut rig.disk);
        let mut cursor = volume.open_directory(disk, &Node::Root).unwrap();
        let mut name = vec![0; room];
        let mut found = Vec::new();
        done(
            volume.list_directory(disk, &mut cursor, &mut name, |entry, name| {
                if !entry.is_hidden {
                    found.push(name.to_owned());
                }
                true
            }),
        )
        .unwrap();
        assert_eq!(found, [due]);
    }
}

#[test]
fn pieces_are_as_long_as_the_file_is_contiguous() {
    let data: Vec<u8> = (0..200_000_u32).map(|at| (at / 7) as u8).collect();
    let (bytes, ()) = written(fatfs::FatType::Fat16, |volume| {
        let root = volume.root_dir();
        let mut whole = root.create_file("WHOLE.BIN").unwrap();
        whole.write_all(&data).unwrap();
        for part in data.chunks(700) {
            for name in ["ONE.BIN", "TWO.BIN"] {
                let mut file = root.create_file(name).unwrap();
                file.seek(SeekFrom::End(0)).unwrap();
                file.write_all(part).unwrap();
            }
        }
    });
    let mut rig = mounted(&bytes);
    for (name, reads_max) in [("whole.bin", 60), ("one.bin", 900), ("two.bin", 900)] {
        let entry = entry_at(&mut rig, name);
        let before = rig.disk.reads;
        assert!(read(&mut rig, &entry, 16).unwrap() == data, "{name}");
        let reads = rig.disk.reads - before;
        assert!(reads < reads_max, "{name}: {reads} reads of the FAT");
        // Backwards, from anywhere.
        let mut position = entry.contents();
        for block in (0..390).rev().step_by(37) {
            let (volume, disk) = (&mut rig.volume, &mut rig.disk);
            let extent = done(volume.extent_at(disk, &mut position, block, 1)).unwrap();
            let due = &data[block as usize * 512..][..512];
            assert!(rig.disk.block(extent.start) == due);
        }
        let (volume, disk) = (&mut rig.volume, &mut rig.disk);
        let behind = done(volume.extent_at(disk, &mut position, 391, 16));
        assert_eq!(behind, Err(Error::DamagedChain));
    }
}

#[test]
fn a_listing_continues_where_it_was_refused() {
    let (bytes, ()) = written(fatfs::FatType::Fat16, |volume| {
        for at in 0..45 {
            let name = format!("{}{at}.txt", "long ".repeat(at));
            volume.root_dir().create_file(&name).unwrap();
        }
    });
    let mut rig = mounted(&bytes);
    let all = list(&mut rig, &Node::Root).unwrap();
    let (volume, disk) = (&mut rig.volume, &mut rig.disk);
    let mut cursor = volume.open_directory(disk, &Node::Root).unwrap();
    let mut name = [0; ENTRY_NAME_BYTES_MAX];
    let mut again = Vec::new();
    let mut is_end = false;
    while !is_end {
        let mut room = 7;
        is_end = done(
            volume.list_directory(disk, &mut cursor, &mut name, |entry, name| {
                room -= 1;
                if room > 0 {
                    again.push((*entry, name.to_owned()));
                }
                room > 0
            }),
        )
        .unwrap();
    }
    assert_eq!(again, all);
}
