//! Consecutive files.

use crate::logger_rig::{Costs, Input, line, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event};
use std::cell::Cell;

/// A card whose operations take longer than the time that a fast stream leaves.
const SLOW: Costs = Costs {
    read_us: 2_000,
    begin_us: 1_000,
    push_us: 300,
    end_us: 3_000,
};

#[test]
fn a_file_with_room_is_written_while_there_is_no_room_for_its_successor() {
    // Few files fit at once, and each is left after about 20 kB.
    for (file_bytes, rotate_us) in [(512 << 10, 200_000), (1 << 20, 200_000), (1 << 20, 500_000)] {
        for ring_bytes in [8_192, 16_384, 32_768] {
            println!("files of {file_bytes} bytes and {rotate_us} us, ring of {ring_bytes} bytes");
            let control = Control::new();
            let mut case = case(&control, file_bytes, SMALL_BLOCKS);
            case.config.rotate_us = Some(rotate_us);
            case.costs = SLOW;
            let outcome = record(case, [lines(ring_bytes, LINE_BYTES, 600, 15_000)], |_| ());
            assert_all_written(&outcome, 0);
        }
    }
}

#[test]
fn room_that_becomes_free_is_used() {
    // One file occupies the card until it is left and closed.
    let control = Control::new();
    let mut case = case(&control, 4 << 20, SMALL_BLOCKS);
    case.config.rotate_us = Some(1_000_000);
    let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 10_000)], |_| ());
    assert_all_written(&outcome, 0);
    let is_failure = |event: &Event| matches!(event, Event::CardLost);
    assert_eq!(count(&outcome, is_failure), 0);
}

#[test]
fn new_files_in_quick_succession_lose_nothing() {
    for every_us in [150_000, 400_000] {
        println!("a new file every {every_us} us");
        let (control, next_us) = (Control::new(), Cell::new(1_000_000));
        let case = case(&control, 256 << 10, 20_000);
        let outcome = record(case, [lines(8_192, LINE_BYTES, 1_000, 8_000)], |moment| {
            if moment.now_us > next_us.get() {
                next_us.set(next_us.get() + every_us);
                control.rotate();
            }
        });
        assert_all_written(&outcome, 0);
    }
}

#[test]
fn an_overflow_at_the_end_of_a_file_is_counted_once() {
    let mut overflown = 0;
    for stall_us in (2_000_000..2_600_000).step_by(20_011) {
        let (control, is_rolled) = (Control::new(), Cell::new(false));
        let mut case = case(&control, 64 << 10, 20_000);
        case.faults.write_stall = Some((stall_us, 200_000));
        let outcome = record(case, [lines(4_096, LINE_BYTES, 1_000, 5_000)], |moment| {
            if moment.now_us > stall_us + 100_000 && !is_rolled.replace(true) {
                control.rotate();
            }
        });
        assert_kept(&outcome, 0);
        overflown += usize::from(!reported_gaps(&outcome, 0).is_empty());
    }
    assert!(overflown >= 20, "{overflown}");
}

#[test]
fn lines_of_any_length_end_with_their_file() {
    for line_bytes in [13, 50, 100, 333, 400] {
        println!("lines of {line_bytes} bytes");
        let control = Control::new();
        let input = Input {
            make: Box::new(move |index| line(index, line_bytes.into())),
            ..lines(16_384, line_bytes, 2_000, 300_000 / u64::from(line_bytes))
        };
        let outcome = record(case(&control, 64 << 10, 20_000), [input], |_| ());
        let files = crate::logger_rig::Files::read(&outcome.disk, 0, line_bytes.into());
        files.assert_sound(outcome.pushed[0]);
        assert_in_one_place(&files, &[], outcome.pushed[0]);
        assert!(files.names.len() >= 4, "{:?}", files.names);
    }
}

#[test]
fn steps_of_the_file_system_do_not_end_writes_within_a_page() {
    let (control, next_us) = (Control::new(), Cell::new(2_000_000));
    let case = case(&control, 1 << 20, 40_000);
    // A page fills in 0.14 s.
    let outcome = record(case, [lines(65_536, LINE_BYTES, 250, 60_000)], |moment| {
        if moment.now_us > next_us.get() {
            next_us.set(next_us.get() + 1_000_000);
            control.rotate();
        }
    });
    assert_all_written(&outcome, 0);
    // A file that is left is complete where the requested checkpoint ends.
    let files = numbers(&outcome, 0).len() as u32;
    println!("{} of {files}", outcome.torn);
    assert!(files >= 10, "{files} files");
    assert!(
        outcome.torn <= files,
        "{} writes, {files} files",
        outcome.torn
    );
}
