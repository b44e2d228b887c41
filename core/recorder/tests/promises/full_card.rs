//! Cards without room for another file.

use crate::logger_rig::{lines, record};
use crate::promise::*;
use cardiograph_recorder::{Cause, Control, Event, WhenFull, Window};
use std::cell::RefCell;

#[test]
fn the_only_file_that_fits_holds_all_samples() {
    for when_full in [WhenFull::Wait, WhenFull::RemoveOldest] {
        println!("{when_full:?}");
        let control = Control::new();
        let mut case = case(&control, 4 << 20, SMALL_BLOCKS);
        case.config.when_full = when_full;
        let outcome = record(case, [lines(16_384, LINE_BYTES, 1_000, 3_000)], |_| ());
        assert_all_written(&outcome, 0);
        assert_eq!(count(&outcome, |it| matches!(it, Event::Full { .. })), 0);
    }
}

#[test]
fn a_stop_shortly_before_the_end_of_the_last_file_loses_nothing() {
    // 2 MB at 60 kB/s: the last file ends after about 33 s. With files of 1 MiB there would be one to remove.
    let cases = [
        (WhenFull::Wait, 1 << 20),
        (WhenFull::Wait, 4 << 20),
        (WhenFull::RemoveOldest, 4 << 20),
    ];
    for (when_full, file_bytes) in cases {
        for samples in [5_000, 20_000, 27_500] {
            println!("{when_full:?}, files of {file_bytes} bytes, {samples} samples");
            let control = Control::new();
            let mut case = case(&control, file_bytes, SMALL_BLOCKS);
            case.config.when_full = when_full;
            let input = lines(16_384, LINE_BYTES, 1_000, samples);
            let outcome = record(case, [input], |_| ());
            assert_all_written(&outcome, 0);
        }
    }
}

#[test]
fn a_flush_in_the_only_file_that_fits_is_durable_when_it_is_acknowledged() {
    let control = Control::new();
    let case = case(&control, 4 << 20, SMALL_BLOCKS);
    let input = lines(16_384, LINE_BYTES, 1_000, 3_000);
    let window = Window::Us(10_000_000);
    let input = crate::logger_rig::Input { window, ..input };
    let times_us = (500_000..2_500_000).step_by(211_003).collect();
    let (_, flushes) = record_with_flushes(case, input, times_us);
    assert!(flushes.len() >= 5, "{}", flushes.len());
    for flush in flushes {
        assert!(flush.pushed > 0);
        assert_eq!(flush.missing, None, "of {}", flush.pushed);
    }
}

/// Fills all files of a small card; returns the outcome and the files after a power cut 3 s before the end.
fn filled(when_full: WhenFull) -> (crate::logger_rig::Outcome<1>, crate::logger_rig::Files) {
    let (control, left) = (Control::new(), RefCell::new(None));
    let mut case = case(&control, 1 << 20, SMALL_BLOCKS);
    case.config.when_full = when_full;
    let input = lines(16_384, LINE_BYTES, 500, 80_000);
    let window = Window::Us(300_000);
    let input = crate::logger_rig::Input { window, ..input };
    // 2 MB at 120 kB/s take about 17 s.
    let outcome = record(case, [input], |moment| {
        if moment.now_us > 37_000_000 && left.borrow().is_none() {
            left.replace(Some(moment.durable.clone()));
        }
    });
    let left = left.take().expect("the recording continued for 37 s");
    let left = files(&after_cut(&left), 0);
    (outcome, left)
}

#[test]
fn the_tail_of_the_last_file_becomes_durable_within_the_window() {
    let (outcome, left) = filled(WhenFull::Wait);
    let whole = files(&outcome.disk, 0);
    whole.assert_sound(80_000);
    assert!(whole.samples.len() > 25_000, "{}", whole.samples.len());
    assert_eq!(left.samples.last(), whole.samples.last());
    assert_eq!(left.samples, whole.samples);
}

#[test]
fn samples_in_the_last_file_count_as_written() {
    let (outcome, _) = filled(WhenFull::Wait);
    let whole = files(&outcome.disk, 0);
    let summary = outcome.summaries.as_ref().unwrap()[0];
    assert_eq!(summary.written, whole.samples.len() as u64);
    assert_eq!(summary.lost, 80_000 - summary.written);
}

#[test]
fn a_full_card_is_reported_once_and_causes_one_gap() {
    let (outcome, _) = filled(WhenFull::Wait);
    assert_eq!(count(&outcome, |it| matches!(it, Event::Full { .. })), 1);
    let written = files(&outcome.disk, 0).samples.len() as u64;
    assert_eq!(reported_gaps(&outcome, 0), [(written, 80_000 - written)]);
    let is_of_another_cause =
        |event: &Event| matches!(event, Event::Lost { gap, .. } if gap.cause != Cause::CardFull);
    assert_eq!(count(&outcome, is_of_another_cause), 0);
    let is_failure = |event: &Event| matches!(event, Event::CardLost);
    assert_eq!(count(&outcome, is_failure), 0);
}

#[test]
fn the_oldest_recordings_are_removed_until_the_last_sample_is_written() {
    let (outcome, left) = filled(WhenFull::RemoveOldest);
    let summary = outcome.summaries.as_ref().unwrap()[0];
    assert_eq!((summary.written, summary.lost), (80_000, 0));
    let newest = files(&outcome.disk, 0);
    newest.assert_sound(80_000);
    let first = newest.samples[0];
    assert!((first..80_000).eq(newest.samples.iter().copied()));
    // 300 ms are 600 samples.
    let last = *left.samples.last().unwrap();
    let (began_us, _) = outcome.events[0];
    assert!(last + 600 + 10 > (37_000_000 - began_us) / 500, "{last}");
}
