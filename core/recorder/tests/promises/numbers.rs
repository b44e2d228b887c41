//! File numbers: in order, without holes, and independent of other programs' files.

use crate::fat_rig::{Disk, check};
use crate::logger_rig::{lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event};
use std::cell::RefCell;

/// Puts an empty file of another program into the root directory.
pub fn put_file(disk: &mut Disk, name: &[u8; 11]) {
    let listing = check(disk, 0).unwrap();
    for block in listing.root_blocks {
        let mut data = *disk.block(block);
        let entries = data.as_chunks_mut::<32>().0;
        if let Some(free) = entries.iter_mut().find(|it| matches!(it[0], 0 | 0xE5)) {
            free.fill(0);
            free[..11].copy_from_slice(name);
            free[11] = 0x20;
            disk.put(block, data);
            return;
        }
    }
    panic!("the root directory is full");
}

#[test]
fn files_of_other_programs_do_not_end_a_recording() {
    for name in [
        b"IMG99988JPG",
        b"DSC99999JPG",
        b"AAA99990TXT",
        b"AAA99990CSV",
    ] {
        println!("{}", String::from_utf8_lossy(name));
        let control = Control::new();
        let mut case = case(&control, 64 << 10, 8_000);
        put_file(case.disk.as_mut().unwrap(), name);
        let outcome = record(case, [lines(16_384, LINE_BYTES, 500, 22_000)], |_| ());
        let names = check(&outcome.disk, 0).unwrap().files;
        assert!(names.contains_key(std::str::from_utf8(name).unwrap()));
        let summary = outcome.summaries.as_ref().unwrap()[0];
        assert_eq!((summary.written, summary.lost), (22_000, 0));
        assert!(summary.files > 15);
        let is_failure = |event: &Event| matches!(event, Event::CardLost);
        assert_eq!(count(&outcome, is_failure), 0);
    }
}

#[test]
fn files_of_other_programs_do_not_count() {
    let control = Control::new();
    let mut case = case(&control, 64 << 10, 8_000);
    put_file(case.disk.as_mut().unwrap(), b"IMG00041JPG");
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 5_000)], |_| ());
    let files = numbers(&outcome, 0).len() as u32;
    assert_eq!(numbers(&outcome, 0), Vec::from_iter(1..=files));
}

#[test]
fn each_stream_has_its_own_numbers() {
    let control = Control::new();
    let case = case(&control, 64 << 10, 12_000);
    let inputs = [
        lines(16_384, LINE_BYTES, 1_000, 6_000),
        lines(16_384, LINE_BYTES, 700, 9_000),
    ];
    let outcome = record(case, inputs, |_| ());
    for stream in 0..2 {
        assert_all_written(&outcome, stream);
        let files = numbers(&outcome, stream).len() as u32;
        assert!(files >= 5);
        assert_eq!(numbers(&outcome, stream), Vec::from_iter(1..=files));
    }
}

#[test]
fn a_number_that_never_became_durable_is_reused() {
    let (control, left) = (Control::new(), RefCell::new(None));
    let first = case(&control, 64 << 10, 8_000);
    let cut_after = 40;
    record(first, [lines(16_384, LINE_BYTES, 1_000, 100)], |moment| {
        if moment.pushed[0] == cut_after && left.borrow().is_none() {
            left.replace(Some(moment.durable.clone()));
        }
    });
    let left = left.take().expect("the recording was cut").powered_up();
    let control = Control::new();
    let case = crate::logger_rig::Case {
        disk: Some(left),
        ..case(&control, 64 << 10, SMALL_BLOCKS)
    };
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 5_000)], |_| ());
    let files = numbers(&outcome, 0).len() as u32;
    assert!(files >= 4);
    assert_eq!(numbers(&outcome, 0), Vec::from_iter(1..=files));
}

#[test]
fn a_card_that_refuses_writes_is_retried_slowly_and_uses_up_no_numbers() {
    let control = Control::new();
    let mut case = case(&control, 64 << 10, 12_000);
    case.faults.refuses_streams = Some(1_500_000..6_500_000);
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 10_000)], |_| ());
    let found = files(&outcome.disk, 0);
    found.assert_sound(outcome.pushed[0]);
    assert_eq!(found.missing(outcome.pushed[0]), None);
    // One attempt every 100 ms for 5 s, the first mount, and a few at the edges.
    assert!(
        outcome.acquired <= 55,
        "acquired {} times",
        outcome.acquired
    );
    let files = numbers(&outcome, 0).len() as u32;
    assert_eq!(numbers(&outcome, 0), Vec::from_iter(1..=files));
}
