//! A recorder that runs again after its start failed.

use crate::fat_rig::{Disk, with_file};
use crate::logger_rig::{lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Event};

/// Samples of each recording.
const SAMPLES: u64 = 500;

/// Records with a first disk on which it cannot start, and then with a usable one.
fn record_after(unusable: Disk) {
    let control = Control::new();
    let mut case = case(&control, 256 << 10, 20_000);
    case.next_disks = vec![case.disk.replace(unusable)];
    let outcome = record(case, [lines(65_536, LINE_BYTES, 1_000, SAMPLES)], |_| ());
    assert_eq!(outcome.acquired, 2, "once for each run");
    assert_all_written(&outcome, 0);
}

#[test]
fn a_second_run_uses_the_card_that_replaced_one_without_a_file_system() {
    record_after(Disk::new(Vec::new(), 20_000));
}

#[test]
fn a_second_run_uses_the_card_that_replaced_a_full_one() {
    // All but a few of the clusters of 512 bytes.
    let data = vec![0; (SMALL_BLOCKS as usize - 100) * 512];
    record_after(with_file(&card(SMALL_BLOCKS), 0, "OTHER.BIN", &data));
}

#[test]
fn a_second_run_follows_a_failure_during_the_start() {
    // Every seventh operation: all of them take 20 s.
    for (failed_starts, operation) in (0..2_000).step_by(7).enumerate() {
        let control = Control::new();
        let mut case = case(&control, 256 << 10, 20_000);
        case.is_early = true;
        case.failures = vec![operation];
        case.next_disks = vec![None];
        let outcome = record(case, [lines(65_536, LINE_BYTES, 1_000, SAMPLES)], |_| ());
        assert_kept(&outcome, 0);
        if count(&outcome, |event| matches!(event, Event::CardLost)) > 0 {
            // The failure came after the start.
            assert!(failed_starts > 100, "{failed_starts} starts failed");
            return;
        }
    }
    panic!("no failure came after the start");
}
