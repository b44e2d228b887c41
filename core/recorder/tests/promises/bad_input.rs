//! Invalid input, cards full of other files, and broken clocks.

use crate::fat_rig::{Spec, check};
use crate::logger_rig::{Case, Files, Input, line, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event, Format, MAGOD2};

/// Returns the wrong length of the sample at this index, if it has one.
fn wrong_at(index: u64) -> Option<usize> {
    [(0, 99), (100, 101), (101, 0), (250, 1), (299, 250)]
        .into_iter()
        .find_map(|(at, bytes)| (at == index).then_some(bytes))
}

#[test]
fn a_sample_that_does_not_fit_its_schema_is_a_gap_and_shifts_nothing() {
    for format in [Format::Csv(&[MAGOD2]), Format::Binary(&[MAGOD2])] {
        println!("{}", String::from_utf8_lossy(&format.extension()));
        let control = Control::new();
        let input = Input {
            format,
            make: Box::new(|index| vec![index as u8; wrong_at(index).unwrap_or(100)]),
            ..lines(16_384, LINE_BYTES, 5_000, 300)
        };
        let outcome = record(Case::new(&control), [input], |_| ());
        let gaps = reported_gaps(&outcome, 0).into_iter();
        let lost = gaps.flat_map(|(first, count)| first..first + count);
        assert_eq!(Vec::from_iter(lost), [0, 100, 101, 250, 299]);
        let [summary] = outcome.summaries.unwrap();
        assert_eq!((summary.written, summary.lost), (295, 5));
    }
}

#[test]
fn invalid_lines_become_gaps() {
    let control = Control::new();
    let make = |index: u64| match index % 50 {
        10 => b"no end".to_vec(),
        20 => b"two\nlines\n".to_vec(),
        30 => vec![b'\n'; 61],
        40 => Vec::new(),
        _ => line(index, LINE_BYTES.into()),
    };
    let input = Input {
        make: Box::new(make),
        ..lines(16_384, LINE_BYTES, 500, 3_000)
    };
    let outcome = record(Case::new(&control), [input], |_| ());
    assert_kept(&outcome, 0);
    let expected = (0..3_000).filter(|index| matches!(index % 50, 10 | 20 | 30 | 40));
    let gaps = files(&outcome.disk, 0).gaps;
    assert!(expected.map(|first| (first, 1)).eq(gaps));
}

#[test]
fn a_clock_that_stops_neither_hangs_the_recorder_nor_loses_samples() {
    let control = Control::new();
    let mut case = case(&control, 256 << 10, 20_000);
    case.clock = |now_us| now_us.min(2_000_000);
    let outcome = record(case, [lines(65_536, LINE_BYTES, 1_000, 6_000)], |_| ());
    assert_all_written(&outcome, 0);
}

#[test]
fn a_clock_that_never_runs_does_not_hang_the_recorder() {
    let control = Control::new();
    let mut case = case(&control, 256 << 10, 20_000);
    case.clock = |_| 0;
    let outcome = record(case, [lines(65_536, LINE_BYTES, 1_000, 6_000)], |_| ());
    assert_all_written(&outcome, 0);
}

#[test]
fn a_clock_that_jumps_forward_loses_nothing() {
    for jump_us in [1_000_000_u64, 3_600_000_000, 1 << 45] {
        println!("{jump_us} us forward");
        let control = Control::new();
        let mut case = case(&control, 256 << 10, 20_000);
        case.config.rotate_us = Some(10_000_000);
        case.clock = match jump_us {
            1_000_000 => |now_us| now_us + if now_us > 3_000_000 { 1_000_000 } else { 0 },
            3_600_000_000 => |now_us| now_us + if now_us > 3_000_000 { 3_600_000_000 } else { 0 },
            _ => |now_us| now_us + if now_us > 3_000_000 { 1 << 45 } else { 0 },
        };
        let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 6_000)], |_| ());
        assert_all_written(&outcome, 0);
    }
}

#[test]
fn gaps_after_72_minutes_have_the_right_times() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    // Beyond 2^32 us.
    case.clock = |now_us| now_us + 7_200_000_000;
    case.faults.write_stall = Some((3_000_000, 500_000));
    let outcome = record(case, [lines(4_096, LINE_BYTES, 1_000, 5_000)], |_| ());
    assert_kept(&outcome, 0);
    let times = outcome.events.iter().filter_map(|(_, event)| match event {
        Event::Lost { gap, .. } => Some(gap.at_us),
        _ => None,
    });
    let times = Vec::from_iter(times);
    assert!(!times.is_empty());
    let stall_us = 7_203_000_000..7_203_600_000;
    assert!(
        times.iter().all(|at_us| stall_us.contains(at_us)),
        "{times:?}"
    );
}

#[test]
fn a_fragmented_card_is_recorded_to_in_shorter_files() {
    let mut disk = card(20_000);
    let before = check(&disk, 0).unwrap();
    // Every 200th cluster belongs to another file, in both FATs: runs of 199 blocks are free.
    let boot = *disk.block(0);
    let of = |at: usize| u32::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let (reserved, fat_blocks) = (of(14), of(22));
    let mut root = *disk.block(before.root_blocks[0]);
    let taken = Vec::from_iter((300..19_000).step_by(200));
    for (at, cluster) in taken.iter().enumerate() {
        let next = taken.get(at + 1).map_or(0xFFFF, |next| *next as u16);
        for fat in 0..2 {
            let block = reserved + fat * fat_blocks + cluster / 256;
            let mut data = *disk.block(block);
            let place = *cluster as usize % 256 * 2;
            data[place..place + 2].copy_from_slice(&next.to_le_bytes());
            disk.put(block, data);
        }
    }
    let entry = root
        .as_chunks_mut::<32>()
        .0
        .iter_mut()
        .find(|it| it[0] == 0)
        .unwrap();
    entry[..11].copy_from_slice(b"SPREAD  BIN");
    entry[11] = 0x20;
    entry[26..28].copy_from_slice(&(taken[0] as u16).to_le_bytes());
    entry[28..32].copy_from_slice(&(taken.len() as u32 * 512).to_le_bytes());
    disk.put(before.root_blocks[0], root);
    let theirs = check(&disk, 0).unwrap().files["SPREAD  BIN"].clone();
    let control = Control::new();
    let case = Case {
        disk: Some(disk),
        ..case(&control, 1 << 20, SMALL_BLOCKS)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 20_000)], |_| ());
    assert_all_written(&outcome, 0);
    assert_eq!(
        check(&outcome.disk, 0).unwrap().files["SPREAD  BIN"],
        theirs
    );
    assert!(count(&outcome, |it| matches!(it, Event::Short { .. })) > 0);
}

#[test]
fn a_card_full_of_other_files_is_refused_and_left_alone() {
    let spec = Spec {
        blocks: SMALL_BLOCKS,
        fat_bits: 16,
        fats: 2,
        cluster_blocks: 1,
        has_table: false,
        has_files: false,
    };
    let mut disk = spec.make().disk;
    let boot = *disk.block(0);
    let of = |at: usize| u32::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let (reserved, fat_blocks) = (of(14), of(22));
    // One file owns all clusters.
    let root = check(&disk, 0).unwrap().root_blocks;
    let clusters = check(&disk, 0).unwrap().free_clusters;
    for fat in 0..2 {
        for cluster in 2..clusters + 2 {
            let next = if cluster == clusters + 1 {
                0xFFFF
            } else {
                cluster as u16 + 1
            };
            let block = reserved + fat * fat_blocks + cluster / 256;
            let mut data = *disk.block(block);
            let place = cluster as usize % 256 * 2;
            data[place..place + 2].copy_from_slice(&next.to_le_bytes());
            disk.put(block, data);
        }
    }
    let mut data = *disk.block(root[0]);
    data[32..43].copy_from_slice(b"ALL     BIN");
    data[43] = 0x20;
    data[32 + 26] = 2;
    data[32 + 28..32 + 32].copy_from_slice(&(clusters * 512).to_le_bytes());
    let is_label = data[11] & 8 != 0;
    if !is_label {
        data.copy_within(32..64, 0);
        data[32..64].fill(0);
    }
    disk.put(root[0], data);
    let before = check(&disk, 0).unwrap();
    assert_eq!(before.free_clusters, 0);
    let control = Control::new();
    let case = Case {
        disk: Some(disk),
        ..case(&control, 1 << 20, SMALL_BLOCKS)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 2_000)], |_| ());
    assert_eq!(check(&outcome.disk, 0).unwrap(), before);
    assert!(outcome.summaries.is_err());
    assert_eq!(Files::read(&outcome.disk, 0, 60).samples, []);
}

/// Returns the reason why a recording does not start; `None` if it starts.
fn refusal<const N: usize>(file_bytes: u32, inputs: [Input; N]) -> Option<String> {
    let control = Control::new();
    record(case(&control, file_bytes, 20_000), inputs, |_| ())
        .summaries
        .err()
}

#[test]
fn recordings_outside_the_limits_do_not_start() {
    let input = |ring_bytes| lines(ring_bytes, LINE_BYTES, 10_000, 20);
    let refused = |reason: &str| Some(reason.to_string());
    assert_eq!(refusal(1 << 20, []), refused("Streams"));
    let five = std::array::from_fn::<_, 5, _>(|_| input(4_096));
    assert_eq!(refusal(1 << 20, five), refused("Streams"));
    let four = std::array::from_fn::<_, 4, _>(|_| input(4_096));
    assert_eq!(refusal(1 << 20, four), None);
    // Two blocks.
    assert_eq!(refusal(1 << 20, [input(1_024)]), None);
    assert_eq!(
        refusal(1 << 20, [input(4_096), input(1_023)]),
        refused("RingTooSmall")
    );
    assert_eq!(refusal(64 << 10, [input(4_096)]), None);
    assert_eq!(
        refusal((64 << 10) - 1, [input(4_096)]),
        refused("FileTooSmall")
    );
    let long = |line_bytes_max| Input {
        format: Format::Lines {
            header: "",
            line_bytes_max,
        },
        ..input(4_096)
    };
    let longest = cardiograph_recorder::LINE_BYTES_MAX as u16;
    assert_eq!(refusal(1 << 20, [long(longest)]), None);
    assert_eq!(
        refusal(1 << 20, [input(4_096), long(longest + 1)]),
        refused("LineTooLong")
    );
}
