//! A volume is recovered in the same way wherever it begins: on the whole card, in an image of the partition, and after
//! the partition was moved.

use crate::fat_rig::*;
use crate::logger_rig::{Case, lines, record};
use cardiograph_recorder::{Config, Control, Event, recover};
use cardiograph_sim_world::Seed;
use std::collections::{BTreeMap, BTreeSet};

/// Cuts of a recording on each volume: together 100.
const VOLUMES: [(Spec, usize); 3] = [
    (
        Spec {
            has_table: true,
            ..FAT16
        },
        45,
    ),
    (FAT32, 35),
    (
        Spec {
            blocks: 40_000,
            cluster_blocks: 8,
            has_table: true,
            ..FAT16
        },
        20,
    ),
];

/// Offset of the number of blocks before a volume in its boot sector.
const HIDDEN_AT: usize = 28;

/// A file without its position: attributes, length, long name and contents.
type File = (u8, u32, String, Vec<u8>);

/// Result of a recovery.
#[derive(Debug, PartialEq)]
struct Left {
    files: BTreeMap<String, File>,
    recovered: Vec<(String, u64)>,
}

/// Recovers a volume, and checks it.
fn recovered(disk: &Disk, start: u32) -> Result<Left, String> {
    let mut rig = Rig::new(disk.powered_up());
    let mut found = Vec::new();
    let report = |_: &mut Disk, event| {
        if let Event::Recovered { record } = event {
            found.push((record.id.to_string(), record.bytes));
        }
    };
    done(recover(&mut rig.volume, &mut rig.disk, report)).map_err(|error| error.to_string())?;
    fsck(&rig.disk, start)?;
    let listing = check(&rig.disk, start)?;
    let mut files = BTreeMap::new();
    for (path, entry) in listing.files {
        let is_own = path == "CARDIOGRJNL" || path.ends_with("/CARDIOGRIDX");
        if entry.attributes & 6 != 0 && !is_own {
            return Err(format!("{path} is hidden"));
        }
        // The index contains positions of entries, which do not depend on the beginning of the volume.
        let is_read = entry.attributes & 0x10 == 0 && path != "CARDIOGRJNL";
        let blocks = entry.blocks.iter().filter(|_| is_read);
        let mut bytes: Vec<u8> = blocks.flat_map(|block| *rig.disk.block(*block)).collect();
        bytes.truncate(entry.size as usize);
        let file = (entry.attributes, entry.size, entry.long_name, bytes);
        files.insert(path, file);
    }
    rig.remount();
    if rig.disk.writes > 0 {
        return Err("a second recovery writes".into());
    }
    let recovered = found;
    Ok(Left { files, recovered })
}

/// Recovers a volume at each place; returns the result, which has to be the same.
fn recovered_anywhere(disk: &Disk, start: u32, what: &str) -> Left {
    let whole = recovered(disk, start).unwrap_or_else(|text| panic!("{what}: {text}"));
    for (disk, start) in elsewhere(disk, start) {
        let left = recovered(&disk, start);
        let left = left.unwrap_or_else(|text| panic!("{what}, from block {start}: {text}"));
        assert_eq!(left.recovered, whole.recovered, "{what}, block {start}");
        assert!(left.files == whole.files, "{what}, from block {start}");
    }
    whole
}

/// Records two streams; returns the card after each of these operations, and the number of operations.
fn cuts(disk: &Disk, at: &BTreeSet<u64>) -> (Vec<Disk>, u64) {
    let control = Control::new();
    let case = Case {
        config: Config {
            file_bytes: 64 << 10,
            ..Config::default()
        },
        disk: Some(disk.clone()),
        ..Case::new(&control)
    };
    let inputs = [60, 45].map(|bytes| lines(16_384, bytes, 1_500, 2_500));
    let (mut disks, mut last) = (Vec::new(), 0);
    let outcome = record(case, inputs, |moment| {
        if moment.operations != last && at.contains(&moment.operations) {
            disks.push(moment.durable.powered_up());
        }
        last = moment.operations;
    });
    outcome.summaries.unwrap();
    (disks, last)
}

#[test]
fn cut_recordings_are_recovered_wherever_the_volume_begins() {
    let seed = 20_261_129;
    println!("seed {seed}");
    let mut random = Seed::new(seed).stream("cuts");
    let (mut unfinished, mut all) = (0, 0);
    for (spec, count) in VOLUMES {
        let mut image = spec.make();
        image.add_stale_data();
        let (_, operations) = cuts(&image.disk, &BTreeSet::new());
        let mut at = BTreeSet::new();
        while at.len() < count {
            at.insert(1 + random.below(operations - 1));
        }
        let (disks, _) = cuts(&image.disk, &at);
        for (disk, at) in disks.iter().zip(at) {
            let what = format!("{spec:?}, operation {at}");
            let left = recovered_anywhere(disk, image.start, &what);
            unfinished += usize::from(!left.recovered.is_empty());
            all += 1;
        }
    }
    assert_eq!(all, 100);
    assert!(unfinished > 25, "{unfinished} cuts left recordings");
}

/// Cards with a partition at block 63 whose power was cut, written by e5abe60, whose journal contained addresses of the
/// card. The file begins with the number of distinct blocks, and their contents. Each card has a label and runs of equal
/// blocks: address, count and index of the contents. All numbers are little endian.
const OLD: &[u8] = include_bytes!("data/addresses-of-card.blocks");
const OLD_START: u32 = 63;
const OLD_BLOCKS: u32 = 63 + 4_200;
/// Lines of the finished recording, AAA00001.CSV, each of 60 bytes.
const OLD_LINES: u64 = 60;

fn old_cards() -> Vec<(String, Disk)> {
    let mut bytes = OLD;
    let mut take = |count: usize| bytes.split_off(..count);
    let number = |bytes: &[u8]| {
        let bytes = bytes.iter().rev();
        bytes.fold(0, |number, byte| number << 8 | u32::from(*byte))
    };
    let count = number(take(4).unwrap()) as usize;
    let contents = take(count * 512).unwrap().as_chunks::<512>().0;
    let mut cards = Vec::new();
    while let Some(len) = take(1) {
        let label = String::from_utf8(take(len[0].into()).unwrap().to_vec()).unwrap();
        let mut disk = Disk::new(Vec::new(), OLD_BLOCKS);
        for _ in 0..number(take(2).unwrap()) {
            let [start, count, at] = [4, 2, 2].map(|it| number(take(it).unwrap()));
            (start..start + count).for_each(|block| disk.put(block, contents[at as usize]));
        }
        cards.push((label, disk));
    }
    cards
}

/// Returns the numbers of the lines in a file.
fn lines_in(file: &File) -> Vec<u64> {
    let text = String::from_utf8(file.3.clone()).unwrap();
    let lines = text.split_inclusive('\n').filter(|it| it.len() == 60);
    let lines = lines.filter(|line| !line.starts_with('#'));
    lines.map(|line| line[..11].parse().unwrap()).collect()
}

/// Returns the texts of guests by their names.
fn texts(left: &Left) -> BTreeMap<&str, &[u8]> {
    let files = left.files.values();
    let texts = files.filter(|file| file.2.to_lowercase().ends_with(".txt"));
    texts.map(|file| (&*file.2, &*file.3)).collect()
}

fn assert_old(label: &str, left: &Left) {
    let finished = &left.files["AAA00000/AAA00001CSV"];
    assert!((0..OLD_LINES).eq(lines_in(finished)), "{label}");
    let interrupted = left.files.get("AAA00000/AAA00002CSV");
    let found = interrupted.map_or(Vec::new(), lines_in);
    assert!((0..found.len() as u64).eq(found), "{label}");
    let note = texts(left).get("a note of the flight.txt").copied();
    match label.split(' ').next().unwrap() {
        "recorder" => assert_eq!(note, None, "{label}"),
        "make" | "put" => assert_eq!(note, Some(&b"windy\n"[..]), "{label}"),
        // Before or after the operation.
        _ => assert!(note.is_none_or(|it| it == b"windy\n"), "{label}"),
    }
}

#[test]
fn cards_with_addresses_of_the_card_are_recovered_wherever_the_volume_begins() {
    let cards = old_cards();
    assert_eq!(cards.len(), 21);
    let mut recordings = 0;
    for (label, disk) in cards {
        let left = recovered_anywhere(&disk, OLD_START, &label);
        assert_old(&label, &left);
        recordings += left.recovered.len();
    }
    assert_eq!(recordings, 2, "the others are empty");
}

/// A formatter that does not know where the partition begins writes 0. Recordings are found by their names. An operation
/// on a file of a guest that cannot be placed is kept.
#[test]
fn nothing_is_forgotten_if_the_boot_sector_does_not_say_where_the_volume_was() {
    let mut kept = 0;
    for (label, mut disk) in old_cards() {
        let mut boot = *disk.block(OLD_START);
        boot[HIDDEN_AT..HIDDEN_AT + 4].fill(0);
        disk.put(OLD_START, boot);
        let whole = recovered(&disk, OLD_START).unwrap_or_else(|text| panic!("{label}: {text}"));
        assert_old(&label, &whole);
        let is_recorder = label.starts_with("recorder");
        for (disk, start) in elsewhere(&disk, OLD_START) {
            let mut rig = Rig::new(disk.powered_up());
            if rig.mount() == Err(Error::MovedJournal) {
                assert!(!is_recorder, "{label}, from block {start}");
                assert_eq!(rig.disk.writes, 0);
                kept += 1;
                continue;
            }
            let left = recovered(&disk, start);
            let left = left.unwrap_or_else(|text| panic!("{label}, from block {start}: {text}"));
            assert!(left == whole, "{label}, from block {start}");
        }
    }
    assert!(kept > 5, "{kept}");
}
