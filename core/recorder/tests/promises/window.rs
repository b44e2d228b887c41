//! The durability window: the data that a power cut may destroy at any time.

use crate::fat_rig::{Disk, check};
use crate::logger_rig::{Input, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Column, Control, Format, Kind, Schema, Window};
use std::cell::RefCell;

/// Returns the loss that a power cut would cause now: age of the oldest lost sample in us, and number of lost samples.
fn cost(left: &Disk, pushed: u64, period_us: u64) -> (u64, u64) {
    let left = files(&after_cut(left), 0);
    left.assert_sound(pushed);
    let first = left.missing(pushed).unwrap_or(pushed);
    ((pushed - first) * period_us, pushed - first)
}

#[test]
fn a_power_cut_at_any_time_costs_no_more_than_the_window() {
    for (window_us, period_us) in [(100_000, 1_000), (400_000, 3_000), (1_000_000, 90_000)] {
        println!("window of {window_us} us, a sample every {period_us} us");
        let (control, lefts) = (Control::new(), RefCell::new(Vec::new()));
        let mut next_us = 1_000_000;
        let input = Input {
            window: Window::Us(window_us),
            ..lines(16_384, LINE_BYTES, period_us, 10_000_000 / period_us)
        };
        let outcome = record(case(&control, 128 << 10, 20_000), [input], |moment| {
            if moment.now_us > next_us {
                next_us += 170_003;
                lefts
                    .borrow_mut()
                    .push((moment.durable.clone(), moment.pushed[0]));
            }
        });
        assert_all_written(&outcome, 0);
        assert_eq!(outcome.summaries.unwrap()[0].window_breaches, 0);
        for (left, pushed) in lefts.take() {
            let (age_us, _) = cost(&left, pushed, period_us);
            assert!(age_us <= window_us + period_us, "{age_us} us of {pushed}");
        }
    }
}

#[test]
fn a_window_of_one_sample_costs_one_sample() {
    let (control, lefts) = (Control::new(), RefCell::new(Vec::new()));
    let mut next_us = 1_000_000;
    // A checkpoint takes about 2 ms.
    let input = Input {
        window: Window::Sample,
        ..lines(16_384, LINE_BYTES, 10_000, 500)
    };
    let outcome = record(case(&control, 128 << 10, 20_000), [input], |moment| {
        if moment.now_us > next_us {
            next_us += 57_003;
            lefts
                .borrow_mut()
                .push((moment.durable.clone(), moment.pushed[0]));
        }
    });
    assert_all_written(&outcome, 0);
    assert_eq!(outcome.summaries.unwrap()[0].window_breaches, 0);
    for (left, pushed) in lefts.take() {
        let (_, count) = cost(&left, pushed, 10_000);
        assert!(count <= 1, "{count} of {pushed}");
    }
}

#[test]
fn windows_that_cannot_be_met_are_counted() {
    for window in [Window::Sample, Window::Us(100_000)] {
        let control = Control::new();
        let mut case = case(&control, 1 << 20, 20_000);
        case.faults.write_stall = Some((3_000_000, 500_000));
        let input = Input {
            window,
            ..lines(65_536, LINE_BYTES, 10_000, 600)
        };
        let outcome = record(case, [input], |_| ());
        let summary = outcome.summaries.unwrap()[0];
        assert_eq!(summary.lost, 0);
        assert!(summary.window_breaches >= 1, "{window:?}: {summary:?}");
        assert!(summary.at_risk_us_max >= 500_000, "{window:?}: {summary:?}");
    }
}

/// Window of the recordings that end in a pause, and length of the pause.
const PAUSE_US: u64 = 200_000;

/// Records this many samples; returns the card as a power cut leaves it once the producer has been silent for the window.
fn left_in_pause(input: Input, samples: u64) -> Disk {
    let (control, left) = (Control::new(), RefCell::new(None));
    let mut last_us = None;
    record(case(&control, 128 << 10, SMALL_BLOCKS), [input], |moment| {
        if moment.pushed[0] == samples {
            let last_us = *last_us.get_or_insert(moment.now_us);
            if moment.now_us > last_us + PAUSE_US && left.borrow().is_none() {
                left.replace(Some(moment.durable.clone()));
                control.stop();
            }
        }
    });
    left.take().expect("the producer was silent for the window")
}

#[test]
fn the_last_samples_before_a_pause_become_durable() {
    // In some cases, the samples and a mark fill a block exactly.
    for samples in 500..580 {
        let input = Input {
            closes: false,
            window: Window::Us(PAUSE_US),
            ..lines(16_384, LINE_BYTES, 1_000, samples)
        };
        let left = left_in_pause(input, samples);
        assert_eq!(cost(&left, samples, 1_000).1, 0, "of {samples}");
    }
}

/// 59 samples fill the payload of a block: 472 bytes.
const NUMBERS: Schema = Schema::new(&[
    Column {
        name: "low",
        kind: Kind::U32,
    },
    Column {
        name: "high",
        kind: Kind::U32,
    },
]);

/// Returns the samples in the blocks of binary files, read as docs/formats.md describes them.
fn binary_samples(disk: &Disk) -> Vec<u64> {
    let mut samples = Vec::new();
    for (name, entry) in check(disk, 0).unwrap().files {
        if !name.ends_with("BIN") {
            continue;
        }
        for block in &entry.blocks[..entry.size as usize / 512] {
            let block = disk.block(*block);
            if block[12] == 1 {
                let used = usize::from(u16::from_le_bytes([block[14], block[15]]));
                let chunks = block[36..36 + used].as_chunks().0.iter();
                samples.extend(chunks.map(|bytes| u64::from_le_bytes(*bytes)));
            }
        }
    }
    samples
}

#[test]
fn binary_samples_that_fill_a_block_exactly_become_durable_in_a_pause() {
    // Each checkpoint ends a block early. For one of these numbers the last block is full.
    for samples in 640..740 {
        let input = Input {
            format: Format::Binary(&[NUMBERS]),
            make: Box::new(|index| index.to_le_bytes().to_vec()),
            closes: false,
            window: Window::Us(PAUSE_US),
            ..lines(16_384, LINE_BYTES, 1_000, samples)
        };
        let left = left_in_pause(input, samples);
        let read = binary_samples(&after_cut(&left));
        assert_eq!(read, Vec::from_iter(0..samples), "of {samples}");
    }
}
