//! Figures that other tasks see while a recording runs, compared with what was pushed and lost.

use crate::logger_rig::{Input, lines, record};
use crate::promise::*;
use cardiograph_recorder::{Control, Window};
use std::cell::RefCell;

const RING_BYTES: usize = 32_768;
const STALL: (u64, u64) = (3_000_000, 400_000);

/// Streams of 60 kB/s and 30 kB/s. The ring of the first lasts 0.5 s, that of the second 2 s.
fn inputs() -> [Input; 2] {
    [
        Input {
            window: Window::Us(400_000),
            ..lines(RING_BYTES, LINE_BYTES, 1_000, 8_000)
        },
        Input {
            window: Window::Us(2_000_000),
            ..lines(2 * RING_BYTES, LINE_BYTES, 2_000, 4_000)
        },
    ]
}

#[test]
fn the_figures_are_those_of_the_rings_and_streams() {
    let (control, pushes) = (Control::new(), RefCell::new(Vec::new()));
    let mut case = case(&control, 1 << 20, 20_000);
    case.faults.write_stall = Some(STALL);
    let outcome = record(case, inputs(), |moment| {
        let mut pushes = pushes.borrow_mut();
        pushes.push((moment.now_us, moment.pushed[0] + moment.pushed[1]));
    });
    assert_all_written(&outcome, 0);
    assert_all_written(&outcome, 1);
    let pushed_at = |us: u64| {
        let pushes = pushes.borrow();
        let at = pushes.partition_point(|(at_us, _)| *at_us <= us);
        pushes[at.saturating_sub(1)].1
    };
    let begun = pushes.borrow().iter().position(|(_, pushed)| *pushed > 0);
    let begun_us = pushes.borrow()[begun.unwrap()].0;
    let end_us = begun_us + 8_000_000;
    let (mut peak, mut unsaved_us_max) = (0, 0);
    for (us, figures) in &outcome.figures {
        let is_within = (begun_us + 100_000..end_us).contains(us);
        // Sampling begins with the first operation after the recorder is ready.
        if *us < begun_us {
            assert!(!figures.is_recording || begun_us - us < 20_000, "{us}");
            continue;
        }
        assert_eq!(figures.streams, 2);
        assert_eq!(figures.window_us, 400_000);
        assert!(figures.ring_bytes <= figures.ring_bytes_max);
        assert!(figures.ring_bytes_max <= figures.ring_capacity_bytes);
        assert!(figures.unsaved_us <= us - begun_us + 20_000);
        assert!(figures.samples <= pushed_at(*us));
        // Both streams may have up to a ring of samples.
        let waiting = pushed_at(*us) - figures.samples;
        assert!(
            waiting <= 3 * RING_BYTES as u64 / 60,
            "{waiting} at {us} us"
        );
        peak = peak.max(figures.ring_bytes);
        unsaved_us_max = unsaved_us_max.max(figures.unsaved_us);
        if is_within {
            assert!(figures.is_recording, "{us}");
            let capacity = figures.ring_capacity_bytes as usize;
            assert!([RING_BYTES, 2 * RING_BYTES].contains(&capacity));
            let rate = figures.rate_bytes_per_s;
            assert!((85_000..100_000).contains(&rate), "{rate} B/s at {us} us");
        }
    }
    // The first ring is the fuller one at the end of the stall, during which 24 kB arrive.
    assert!((24_000..30_000).contains(&peak), "{peak} bytes");
    // The stream with the longer window has the older data.
    assert!(
        (800_000..=2_000_000).contains(&unsaved_us_max),
        "{unsaved_us_max} us"
    );
    let (_, last) = outcome.figures.last().unwrap();
    assert_eq!((last.samples, last.lost, last.gaps), (12_000, 0, 0));
    assert_eq!((last.ring_bytes, last.unsaved_us), (0, 0));
    assert_eq!(last.write_us_max, 400_200);
    let breaches = |at: usize| u64::from(outcome.summaries.as_ref().unwrap()[at].window_breaches);
    assert!(breaches(0) > 0);
    assert_eq!(last.windows_exceeded, breaches(0) + breaches(1));
}

#[test]
fn the_figures_are_at_most_50_ms_old() {
    let control = Control::new();
    let outcome = record(case(&control, 1 << 20, 20_000), inputs(), |_| ());
    // Counts of writes are up to date; those of samples only change with an update.
    let mut updates = Vec::from_iter(outcome.figures.iter().filter(|(_, it)| it.is_recording));
    updates.dedup_by_key(|(_, figures)| figures.samples);
    let pauses = updates.windows(2).map(|pair| pair[1].0 - pair[0].0);
    // An operation of the card may take longer than the rest of the 50 ms.
    let (shortest, longest) = (pauses.clone().min(), pauses.max());
    assert!(shortest >= Some(50_000), "{shortest:?} us");
    assert!(longest < Some(60_000), "{longest:?} us");
    assert!(updates.len() > 150, "{}", updates.len());
}

#[test]
fn the_figures_count_lost_samples_once() {
    let control = Control::new();
    let mut case = case(&control, 1 << 20, 20_000);
    // The first ring overflows for 0.5 s.
    case.faults.write_stall = Some((3_000_000, 1_000_000));
    let outcome = record(case, inputs(), |_| ());
    assert_kept(&outcome, 0);
    assert_all_written(&outcome, 1);
    let lost = outcome.summaries.as_ref().unwrap()[0].lost;
    assert!(lost > 300, "{lost}");
    let (_, last) = outcome.figures.last().unwrap();
    assert_eq!((last.lost, last.gaps), (lost, 1));
    assert_eq!(last.samples, 12_000);
    for (_, figures) in &outcome.figures {
        assert!(figures.lost <= lost && figures.samples >= figures.lost);
    }
}
