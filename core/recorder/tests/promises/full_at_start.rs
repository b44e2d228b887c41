//! Cards that are full when the recorder starts.

use crate::fat_rig::{Disk, with_file};
use crate::logger_rig::{Case, Input, Outcome, lines, record};
use crate::promise::*;
use cardiograph_recorder::{CardFault, Control, Event, WhenFull};

/// Time at which a full card is changed, in us.
const CHANGE_US: u64 = 5_000_000;
/// Samples of a recording, which lasts for 10 s.
const SAMPLES: u64 = 1_000;
const PERIOD_US: u64 = 10_000;
const PATH: &str = "/OTHER.BIN";

/// Returns a card on which another program's file leaves room for the journal, but not for a recording.
fn full_card() -> Disk {
    let data = vec![0; (SMALL_BLOCKS as usize - 200) * 512];
    with_file(&card(SMALL_BLOCKS), 0, &PATH[1..], &data)
}

fn waiting_case(control: &Control) -> Case<'_> {
    let mut case = case(control, 256 << 10, SMALL_BLOCKS);
    case.config.waits_for_room = true;
    case.disk = Some(full_card());
    case
}

/// Returns a stream whose ring holds all of its samples.
fn samples() -> Input {
    lines(65_536, LINE_BYTES, PERIOD_US, SAMPLES)
}

/// Returns the times of the changes of the published fault, and the fault from then on.
fn faults(outcome: &Outcome<1>) -> Vec<(u64, Option<CardFault>)> {
    let faults = outcome.figures.iter();
    let mut faults = Vec::from_iter(faults.map(|(at_us, figures)| (*at_us, figures.fault)));
    faults.dedup_by_key(|(_, fault)| *fault);
    faults
}

/// Checks that the card was reported as full once, before the change, and no longer afterwards.
fn assert_reported(outcome: &Outcome<1>) {
    let faults = faults(outcome);
    let [_, (full_us, Some(CardFault::Full)), (end_us, None)] = faults[..] else {
        panic!("{faults:?}");
    };
    assert!(full_us < CHANGE_US && end_us >= CHANGE_US, "{faults:?}");
    assert_eq!(count(outcome, |it| matches!(it, Event::Full { .. })), 1);
}

#[test]
fn a_recording_begins_once_another_task_has_removed_a_file() {
    for when_full in [WhenFull::Wait, WhenFull::RemoveOldest] {
        for is_early in [false, true] {
            println!("{when_full:?}, early: {is_early}");
            let control = Control::new();
            let mut case = waiting_case(&control);
            case.config.when_full = when_full;
            case.is_early = is_early;
            case.readers.removes = Some((CHANGE_US, PATH));
            let outcome = record(case, [samples()], |_| ());
            assert_all_written(&outcome, 0);
            assert_reported(&outcome);
            assert_eq!(outcome.acquired, 1);
        }
    }
}

#[test]
fn a_recording_begins_on_the_card_that_replaces_a_full_one() {
    let control = Control::new();
    let mut case = waiting_case(&control);
    // The recorder tries every second to prepare a file.
    case.faults.gone = Some(CHANGE_US..CHANGE_US + 1_500_000);
    // Runs fail until the card is in place.
    case.next_disks = vec![None; 1000];
    case.next_disks[0] = Some(card(20_000));
    let outcome = record(case, [samples()], |_| ());
    assert_all_written(&outcome, 0);
    assert_reported(&outcome);
}

#[test]
fn a_stop_ends_the_wait_for_room() {
    let control = Control::new();
    let outcome = record(waiting_case(&control), [samples()], |moment| {
        if moment.now_us >= CHANGE_US {
            control.stop();
        }
    });
    let [summary] = outcome.summaries.as_ref().unwrap();
    assert_eq!((summary.written, summary.lost), (0, 0));
    assert_reported(&outcome);
}

#[test]
fn the_oldest_recordings_make_room_for_the_first_file() {
    let fill = |when_full, disk| {
        let control = Control::new();
        let mut case = case(&control, 1 << 20, SMALL_BLOCKS);
        case.config.when_full = when_full;
        case.disk = Some(disk);
        record(case, [lines(16_384, LINE_BYTES, 500, 60_000)], |_| ())
    };
    let full = fill(WhenFull::Wait, card(SMALL_BLOCKS));
    let lost = full.summaries.as_ref().unwrap()[0].lost;
    assert!(lost > 0, "the card is not full");
    let outcome = fill(WhenFull::RemoveOldest, full.disk);
    let summary = outcome.summaries.as_ref().unwrap()[0];
    assert_eq!((summary.written, summary.lost), (60_000, 0));
    assert!(count(&outcome, |it| matches!(it, Event::Removed { .. })) > 0);
}

#[test]
fn a_card_full_of_other_files_ends_a_run_that_does_not_wait() {
    for when_full in [WhenFull::Wait, WhenFull::RemoveOldest] {
        let control = Control::new();
        let mut case = waiting_case(&control);
        case.config.when_full = when_full;
        case.config.waits_for_room = false;
        let outcome = record(case, [samples()], |_| ());
        let error = outcome.summaries.unwrap_err();
        assert!(error.contains("NoSpace"), "{error}");
    }
}
