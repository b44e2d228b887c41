//! Stalls near the limits of a ring and of a window.

use crate::logger_rig::{Input, Readers, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event, ReadError, Window};
use std::cell::Cell;

#[test]
fn reads_leave_room_in_the_ring_for_the_longest_stall() {
    for stall_us in (2_000_000..2_400_000).step_by(20_011) {
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        case.config.stall_budget_us = 100_000;
        case.faults.write_stall = Some((stall_us, 95_000));
        case.readers = Readers {
            count: 2,
            reads: 100_000,
            memory_blocks: 4,
            ..Readers::default()
        };
        // The ring lasts 136 ms.
        let outcome = record(case, [lines(8_192, LINE_BYTES, 1_000, 3_500)], |_| ());
        println!("a stall at {stall_us} us");
        assert_all_written(&outcome, 0);
        assert!(outcome.reads.len() > 100, "{} reads", outcome.reads.len());
    }
}

#[test]
fn checkpoints_begin_early_enough_for_the_longest_stall() {
    for stall_us in (2_000_000..4_000_000).step_by(100_003) {
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        case.config.stall_budget_us = 150_000;
        case.faults.write_stall = Some((stall_us, 140_000));
        // Blocks fill more slowly than the window, so only checkpoints write.
        let input = Input {
            window: Window::Us(400_000),
            ..lines(16_384, LINE_BYTES, 90_000, 60)
        };
        let outcome = record(case, [input], |_| ());
        let summary = outcome.summaries.as_ref().unwrap()[0];
        assert!(summary.at_risk_us_max > 200_000, "{summary:?}");
        assert_eq!(summary.window_breaches, 0, "a stall at {stall_us} us");
        let is_late = |event: &Event| matches!(event, Event::Checkpoint { is_late: true, .. });
        assert_eq!(count(&outcome, is_late), 0);
    }
}

#[test]
fn file_system_steps_leave_room_in_the_ring_for_twice_the_longest_stall() {
    let mut stalled = 0;
    for stall_us in (3_000_000..3_100_000).step_by(2_003) {
        let (control, is_rolled) = (Control::new(), Cell::new(false));
        let mut case = case(&control, 1 << 20, 20_000);
        case.config.stall_budget_us = 400_000;
        case.faults.write_stall = Some((stall_us, 390_000));
        // The first write of the file system after that stall.
        case.faults.step_stall = Some((stall_us + 390_000, 760_000));
        // The ring lasts 1.09 s.
        let input = lines(65_536, LINE_BYTES, 1_000, 7_000);
        let outcome = record(case, [input], |moment| {
            if moment.now_us > 3_000_000 && !is_rolled.replace(true) {
                control.rotate();
            }
        });
        println!("a stall at {stall_us} us");
        assert_all_written(&outcome, 0);
        let peak_bytes = outcome.summaries.unwrap()[0].ring_peak_bytes;
        stalled += usize::from(peak_bytes > 40_000);
    }
    assert!(stalled >= 20, "{stalled}");
}

#[test]
fn a_checkpoint_is_late_if_and_only_if_its_end_is_outside_the_window() {
    let (window_us, mut late) = (200_000, [0, 0]);
    for end_us in [1_000, 60_000, 150_000, 190_000, 210_000, 400_000] {
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        case.costs.end_us = end_us;
        // The long duration also applies to the file system's writes.
        case.until_us = 600_000_000;
        let input = Input {
            window: Window::Us(window_us),
            ..lines(262_144, LINE_BYTES, 1_000, 8_000)
        };
        let outcome = record(case, [input], |_| ());
        let checkpoints = outcome
            .events
            .iter()
            .filter_map(|(now_us, event)| match event {
                Event::Checkpoint {
                    pushed_before_us,
                    is_late,
                    ..
                } => Some((*now_us, *pushed_before_us, *is_late)),
                _ => None,
            });
        let checkpoints = Vec::from_iter(checkpoints);
        for pair in checkpoints.windows(2) {
            let ((_, before_us, _), (done_us, _, is_late)) = (pair[0], pair[1]);
            let age_us = done_us - before_us;
            assert_eq!(
                is_late,
                age_us > window_us,
                "{age_us} us, {end_us} us per end"
            );
            late[usize::from(is_late)] += 1;
        }
    }
    assert!(late.iter().all(|count| *count >= 20), "{late:?}");
}

/// The ring lasts 136 ms, less than a stall. A sixteenth of it counts as room nevertheless: too little for a read.
#[test]
fn reads_that_the_rings_cannot_absorb_fail_after_ten_seconds() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.config.stall_budget_us = 300_000;
    case.costs.read_us = 10_000;
    case.readers = Readers {
        count: 2,
        reads: 100_000,
        memory_blocks: 4,
        ..Readers::default()
    };
    let outcome = record(case, [lines(8_192, LINE_BYTES, 1_000, 45_000)], |_| ());
    let is_busy = |read: &&Result<_, _>| **read == Err(ReadError::Busy);
    // Both readers wait for 10 s, four times.
    assert_eq!(outcome.reads.iter().filter(is_busy).count(), 8);
}
