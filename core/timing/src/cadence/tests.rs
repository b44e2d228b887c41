//! The audit against generated recordings, of which the truth is known.

mod random;

use super::*;
use alloc::vec;

const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

/// Pseudo-random numbers that are the same on every computer.
pub(super) struct Random(pub u64);

impl Random {
    /// Returns a number below `limit`.
    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit.max(1)
    }

    /// Returns a number from 0 to 1.
    pub(super) fn share(&mut self) -> f64 {
        self.below(1 << 30) as f64 / f64::from(1 << 30)
    }
}

/// Audits samples at these times; each has 10 bytes.
pub(super) fn of_times(times_ns: &[u64], known: &Known) -> Cadence {
    let steps: Vec<_> = times_ns
        .windows(2)
        .map(|pair| (pair[1] - pair[0], 10))
        .collect();
    audit(&steps[..], known).unwrap()
}

fn written(ns: u64) -> Known {
    Known {
        written_ns: Some(ns),
        ..Known::default()
    }
}

/// Returns the times of samples with these indices on a clock that drops fractions of a tick.
fn on_clock(indices: impl Iterator<Item = u64>, period_ns: f64, tick_ns: u64) -> Vec<u64> {
    let on_tick = |index| (index as f64 * period_ns / tick_ns as f64 + 1e-6) as u64 * tick_ns;
    indices.map(on_tick).collect()
}

/// Returns all indices below `count`, except `lost` ones after half of them.
fn with_gap(count: u64, lost: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |index| {
        if index < count / 2 {
            index
        } else {
            index + lost
        }
    })
}

fn assert_period(cadence: &Cadence, expected_ns: f64) {
    let found_ns = cadence.period_ns.unwrap();
    assert!(
        (found_ns / expected_ns - 1.0).abs() < 1e-4,
        "{found_ns} for {expected_ns}"
    );
}

#[test]
fn a_coarse_clock_loses_nothing() {
    for (period_ns, tick_ns, count, lost) in [
        (1.1e9, S, 2_000, 0),
        (1e9 / 860.0, MS, 10_000, 0),
        (1e9 / 222.0, MS, 4_000, 444),
        (1e9 / 17.0, 10 * MS, 4_000, 510),
        (1e9 / 860.0, 30_518, 4_000, 100),
    ] {
        let times_ns = on_clock(with_gap(count, lost), period_ns, tick_ns);
        let cadence = of_times(&times_ns, &written(MS.max(tick_ns / S * S)));
        assert_eq!(
            cadence.missing,
            Missing::Exactly(lost),
            "{period_ns} on {tick_ns}"
        );
        assert_eq!(
            cadence.gaps.len(),
            usize::from(lost > 0),
            "{period_ns} on {tick_ns}"
        );
        assert_eq!(cadence.drift_ns, Some(0.0));
        assert_period(&cadence, period_ns);
    }
}

#[test]
fn jitter_of_a_third_of_the_period_loses_nothing() {
    let mut random = Random(7);
    let mut left_out = 0;
    let mut times_ns = Vec::new();
    for index in 5..10_005u64 {
        if random.below(32) == 0 && index < 10_000 {
            left_out += 1;
            continue;
        }
        times_ns.push(index * MS + 700_000 + random.below(600) * 1000);
    }
    let cadence = of_times(&times_ns, &written(1000));
    assert_eq!(cadence.missing, Missing::Exactly(left_out));
    assert_period(&cadence, 1e6);
}

#[test]
fn drift_counts_neither_duplicates_nor_short_steps() {
    // In every hundred samples one comes late, with the time of the next one.
    let late = |index: u64| if index % 100 == 50 { index + 1 } else { index };
    let times_ns: Vec<_> = (0..4_000).map(|index| late(index) * 10 * MS).collect();
    let cadence = of_times(&times_ns, &written(MS));
    assert_eq!(
        (cadence.missing, cadence.duplicate_samples),
        (Missing::Exactly(40), 40)
    );
    assert_eq!(cadence.drift_ns, Some(0.0));
}

#[test]
fn a_stated_rate_shows_the_drift_of_the_clock() {
    let times_ns = on_clock(with_gap(2_000, 30), 1_000_100.0, 1);
    let known = Known {
        period_ns: Some(1e6),
        ..Known::default()
    };
    let cadence = of_times(&times_ns, &known);
    assert_eq!(cadence.missing, Missing::Exactly(30));
    assert!(
        (cadence.drift_ns.unwrap() - 2029.0 * 100.0).abs() < 2.0,
        "{cadence:?}"
    );
}

/// A loop of just over 1 s shows a step of 2 s now and then, and so does a lost sample.
#[test]
fn a_double_tick_may_be_a_loss_or_none() {
    let one = on_clock((0..600).map(|index| index + index / 300), 1e9, S);
    assert_eq!(of_times(&one, &written(S)).missing, Missing::Between(0, 1));
    // Nobody's clock has a tick of just the period, unless the times are written so.
    let one: Vec<_> = one.iter().map(|ns| ns / 10).collect();
    assert_eq!(of_times(&one, &written(MS)).missing, Missing::Exactly(1));
    let slow = on_clock(0..6_000, 1.001e9, S);
    assert_eq!(of_times(&slow, &written(S)).missing, Missing::Exactly(0));
    let long = on_clock(with_gap(200, 5), 1e9, S);
    assert_eq!(of_times(&long, &written(S)).missing, Missing::Exactly(5));
}

#[test]
fn a_gap_longer_than_the_period_is_known_gives_a_range() {
    let times_ns = on_clock(with_gap(400, 5_000), 1e9 / 222.0, MS);
    let Missing::Between(least, most) = of_times(&times_ns, &written(MS)).missing else {
        panic!("the count is not certain");
    };
    assert!((least..=most).contains(&5_000), "{least} to {most}");
}

/// After an interruption the samples are on another grid: its length is no number of periods.
#[test]
fn a_restart_between_two_points_of_the_grid_gives_a_range() {
    let times_ns: Vec<_> = (0..1_000)
        .map(|index| index * 10 * MS + u64::from(index >= 500) * 75 * MS + index % 2)
        .collect();
    let cadence = of_times(&times_ns, &written(1));
    assert_eq!(cadence.missing, Missing::Between(7, 8));
    assert_eq!(cadence.drift_ns, None);
}

#[test]
fn samples_that_are_uneven_by_nature_are_not_lost() {
    let mut random = Random(3);
    let mut at_ns = 0;
    let times_ns: Vec<_> = (0..1_000)
        .map(|index| {
            let stall_ms = if index % 60 == 59 {
                90 + random.below(160)
            } else {
                0
            };
            at_ns += (134 + random.below(26) + stall_ms) * MS;
            at_ns
        })
        .collect();
    let cadence = of_times(&times_ns, &written(MS));
    assert!(
        matches!(cadence.missing, Missing::RoomFor(16..)),
        "{cadence:?}"
    );
    assert_eq!((cadence.period_ns, cadence.drift_ns), (None, None));
    assert_eq!(cadence.gaps.len(), 16);
}

#[test]
fn late_steps_have_room_for_samples() {
    let steps = [
        (100, 10),
        (100, 10),
        (160, 10),
        (100, 10),
        (400, 10),
        (100, 10),
    ];
    let cadence = audit(&steps[..], &Known::default()).unwrap();
    assert_eq!((cadence.samples, cadence.longest_gap_ns), (7, 400));
    assert_eq!((cadence.median_step_ns, cadence.mean_step_ns), (100, 160.0));
    assert_eq!(cadence.missing, Missing::RoomFor(1 + 3));
    let last = cadence.gaps[1];
    assert_eq!((last.after_sample, last.at_ns, last.at_bytes), (4, 460, 40));
}

#[test]
fn exactly_one_and_a_half_medians_is_not_late() {
    let cadence = audit(&[(100, 1), (100, 1), (150, 1)][..], &Known::default()).unwrap();
    assert_eq!(
        (cadence.gaps.len(), cadence.missing),
        (0, Missing::RoomFor(0))
    );
}

#[test]
fn a_stopped_clock_does_not_panic() {
    let cadence = audit(&[(0, 1), (0, 1), (7, 1)][..], &Known::default()).unwrap();
    assert_eq!((cadence.median_step_ns, cadence.duplicate_samples), (0, 2));
    assert_eq!(audit(&[][..], &Known::default()), None);
    for steps in [
        vec![(0, 1); 9],
        vec![(u64::MAX / 4, 1); 3],
        vec![(1, 1), (u64::MAX / 2, 1)],
    ] {
        assert!(audit(&steps[..], &Known::default()).is_some());
    }
}

#[test]
fn the_median_is_that_of_the_sorted_steps() {
    let mut random = Random(11);
    for count in 1..40 {
        let steps: Vec<_> = (0..count)
            .map(|_| (random.below(1 << 31) << random.below(30), 1))
            .collect();
        let mut sorted: Vec<u64> = steps.iter().map(|step| step.0).collect();
        sorted.sort_unstable();
        let found = audit(&steps[..], &Known::default()).unwrap().median_step_ns;
        assert_eq!(found, sorted[(sorted.len() - 1) / 2]);
    }
}
