//! Cards that fail, are removed, or lack free entries.

use crate::fat_rig::{Rig, Spec, Torn, check, done, put_root_entries};
use crate::logger_rig::{Input, Readers, lines, record};
use crate::numbers::put_file;
use crate::promise::*;
use cardiograph_recorder::{Cause, Control, Event, Window, recover};

#[test]
fn a_card_is_acquired_once_for_each_failure() {
    let control = Control::new();
    let mut case = case(&control, 256 << 10, 20_000);
    case.failures = vec![1_000];
    let outcome = record(case, [lines(65_536, LINE_BYTES, 1_000, 8_000)], |_| ());
    let is_failure = |event: &Event| matches!(event, Event::CardLost);
    assert_eq!(count(&outcome, is_failure), 1);
    assert_eq!(outcome.acquired, 2, "at the start, and after the failure");
}

#[test]
fn data_are_at_risk_while_the_card_is_away() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.faults.gone = Some(3_000_000..6_000_000);
    let window = Window::Us(500_000);
    // The ring lasts for the whole time: its contents are at risk.
    let input = lines(524_288, LINE_BYTES, 1_000, 10_000);
    let outcome = record(case, [Input { window, ..input }], |_| ());
    let summary = outcome.summaries.unwrap()[0];
    assert!(summary.at_risk_us_max > 2_900_000, "{summary:?}");
    // 3 s are six windows, of which the first may just have begun.
    assert!(summary.window_breaches >= 5, "{summary:?}");
}

#[test]
fn samples_lost_with_a_card_that_stays_away_count_as_at_risk() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.faults.gone = Some(3_000_000..u64::MAX);
    let window = Window::Us(500_000);
    let input = lines(65_536, LINE_BYTES, 1_000, 10_000);
    let outcome = record(case, [Input { window, ..input }], |_| ());
    let summary = outcome.summaries.unwrap()[0];
    assert!(summary.lost > 6_000, "{summary:?}");
    assert!(summary.at_risk_us_max > 6_000_000, "{summary:?}");
    assert!(summary.window_breaches >= 10, "{summary:?}");
}

#[test]
fn samples_lost_during_a_read_have_cause_read() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.readers = Readers {
        count: 1,
        reads: 100_000,
        memory_blocks: 4,
        ..Readers::default()
    };
    case.faults.read_stall = Some((2_000_000, 300_000));
    let outcome = record(case, [lines(4_096, LINE_BYTES, 3_000, 4_000)], |_| ());
    assert_kept(&outcome, 0);
    assert_eq!(files(&outcome.disk, 0).causes, ["read"]);
    let is_read = |it: &Event| matches!(it, Event::Lost { gap, .. } if gap.cause == Cause::Read);
    assert_eq!(count(&outcome, is_read), 1);
}

#[test]
fn readers_cost_no_samples_with_rings_smaller_than_a_page() {
    let input = |ring_bytes| lines(ring_bytes, LINE_BYTES, 3_000, 2_000);
    for ring_bytes in [2_048, 4_096, 8_192, 16_384] {
        check_readers([input(ring_bytes)]);
        check_readers([input(ring_bytes), input(65_536)]);
    }
}

/// Asserts that two readers that read without a pause cost no sample.
fn check_readers<const N: usize>(inputs: [Input; N]) {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.readers = Readers {
        count: 2,
        reads: 100_000,
        memory_blocks: 4,
        ..Readers::default()
    };
    let sizes = inputs.each_ref().map(|input| input.ring_bytes);
    let outcome = record(case, inputs, |_| ());
    let lost = outcome.summaries.unwrap().map(|summary| summary.lost);
    assert_eq!(lost, [0; N], "rings of {sizes:?} bytes");
    let reads = outcome.reads.len();
    assert!(reads > 500, "{reads} reads with rings of {sizes:?} bytes");
}

#[test]
fn time_before_the_first_sample_does_not_count_as_at_risk() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    case.clock = |now_us| now_us + 3_600_000_000;
    case.is_early = true;
    let input = lines(65_536, LINE_BYTES, 1_000, 3_000);
    let window = Window::Us(500_000);
    let outcome = record(case, [Input { window, ..input }], |_| ());
    let summary = outcome.summaries.unwrap()[0];
    assert!(summary.at_risk_us_max < 60_000_000, "{summary:?}");
}

#[test]
fn a_gap_pending_when_the_card_fails_keeps_its_count() {
    let mut overflown = 0;
    for failure in (1_500..3_500).step_by(37) {
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        case.failures = vec![failure];
        case.faults.slow = Some((2_000_000..4_000_000, 10_000));
        let outcome = record(case, [lines(4_096, LINE_BYTES, 500, 12_000)], |_| ());
        let files = files(&outcome.disk, 0);
        files.assert_sound(12_000);
        assert_eq!(files.missing(12_000), None, "failure at {failure}");
        let summary = outcome.summaries.unwrap()[0];
        assert_eq!(summary.written + summary.lost, 12_000);
        overflown += usize::from(files.gaps.len() > 1);
    }
    assert!(overflown > 20, "{overflown}");
}

#[test]
fn a_root_directory_without_a_free_entry_loses_nothing() {
    // One entry is used by the journal and one by a folder; few are left for files.
    for free in [3, 6] {
        println!("{free} free entries");
        let spec = Spec {
            blocks: 20_000,
            fat_bits: 16,
            fats: 2,
            cluster_blocks: 1,
            has_table: false,
            has_files: false,
        };
        let mut image = spec.make();
        put_root_entries(&mut image, free);
        let control = Control::new();
        let case = crate::logger_rig::Case {
            disk: Some(image.disk),
            ..case(&control, 64 << 10, SMALL_BLOCKS)
        };
        let outcome = record(case, [lines(16_384, LINE_BYTES, 500, 20_000)], |_| ());
        let is_failure = |event: &Event| matches!(event, Event::CardLost);
        assert_eq!(count(&outcome, is_failure), 0);
        let causes = files(&outcome.disk, 0).causes;
        assert!(!causes.contains(&"card-failed".to_string()), "{causes:?}");
        if let Ok([summary]) = outcome.summaries {
            assert_eq!((summary.written, summary.lost), (20_000, 0));
        }
    }
}

#[test]
fn a_removal_that_a_power_cut_interrupts_is_reported_when_it_is_completed() {
    let mut rig = Rig::mounted(card(SMALL_BLOCKS));
    for _ in 0..4 {
        rig.record(100, 30_000);
    }
    let before = rig.disk.powered_up();
    let count = |disk: &crate::fat_rig::Disk| {
        let files = check(disk, 0).unwrap().files;
        files.keys().filter(|name| name.ends_with("CSV")).count()
    };
    let mut whole = Rig::mounted(before.powered_up());
    let mounted = whole.disk.writes;
    whole.remove_oldest().unwrap();
    let writes = whole.disk.writes;
    let mut completed = 0;
    for cut in mounted..writes {
        let mut rig = Rig::new(before.cut_after(cut, Torn::Prefix));
        rig.mount().unwrap();
        assert!(rig.remove_oldest().is_err(), "the power was cut");
        let (mut rig, mut removed) = (Rig::new(rig.disk.powered_up()), 0);
        done(recover(&mut rig.volume, &mut rig.disk, |_, event| {
            removed += usize::from(matches!(event, Event::Removed { .. }));
        }))
        .unwrap();
        assert_eq!(count(&rig.disk) + removed, 4, "cut after {cut} blocks");
        completed += removed;
    }
    assert!(completed > 0, "no cut was within the removal");
}

#[test]
fn recordings_that_are_older_than_the_journal_stay() {
    let mut disk = card(SMALL_BLOCKS);
    put_file(&mut disk, b"REC00007CSV");
    let mut rig = Rig::mounted(disk);
    for _ in 0..8 {
        rig.record(100, 30_000);
    }
    rig.remount();
    while rig.remove_oldest().unwrap().is_some() {}
    let files = check(&rig.disk, 0).unwrap().files;
    assert!(files.contains_key("REC00007CSV"), "{:?}", files.keys());
}
