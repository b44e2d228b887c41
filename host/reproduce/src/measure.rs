//! One number from the operations of a run.

use crate::experiment::Operations;
use crate::row::Take;
use cardiograph_timing::{Latencies, Stalls, buckets_below};
use serde::Deserialize;

const BUCKETS: usize = buckets_below(64);

/// What is taken from a run. Times are in ns, rates in B/s, payload in bytes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Mean time.
    Mean,
    /// Median time.
    Median,
    /// Longest time.
    Longest,
    /// Shortest time.
    Shortest,
    /// Payload over the sum of the times.
    Average,
    /// Sum of the times.
    Sum,
    /// Mean of the times longer than the threshold.
    SlowMean,
    /// Mean number of times below the threshold between two above it, where there are any.
    FastBetween,
    /// Most frequent payload from peak to peak.
    SpacingMode,
    /// Median payload from peak to peak.
    SpacingMedian,
    /// Median height of the peaks.
    HeightMedian,
    /// Rise of the shortest time of a file, per 16 kB written before it.
    FloorSlope,
    /// A load on two cores at once, over the load on one: on this computer, without a card.
    TwoCores,
    /// A load twice on one core, over the load once: likewise.
    OneCoreTwice,
}

/// Payload over which [`Measure::FloorSlope`] counts, in bytes.
const SLOPE_BYTES: f64 = 16_000.0;

impl Measure {
    /// Whether it is measured on this computer, without a card.
    pub fn is_of_this_computer(self) -> bool {
        matches!(self, Measure::TwoCores | Measure::OneCoreTwice)
    }

    /// Whether it is an extreme, which a longer run or another seed may pass.
    pub fn is_maximum(self) -> bool {
        self == Measure::Longest
    }
}

/// The number that a row asks for, if the run has one.
pub fn take(take: &Take, operations: &Operations) -> Option<f64> {
    let counted = operations.counted(take.phase, take.offsets_bytes.clone());
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let mut times = Latencies::<BUCKETS>::default();
    let mut peaks = Stalls::<BUCKETS>::above(take.threshold_ns);
    for operation in counted.clone() {
        let ns = operation.duration_ns();
        times.push(ns, operation.length_bytes);
        peaks.push(ns, operation.length_bytes);
    }
    peaks.finish();
    let sum_ns = times.sum_ns() as f64;
    match take.measure {
        Measure::Mean => (times.count() > 0).then(|| sum_ns / times.count() as f64),
        Measure::Median => number(times.percentile_ns(500_000)),
        Measure::Longest => number(times.max_ns()),
        Measure::Shortest => number(times.min_ns()),
        Measure::Average => (sum_ns > 0.0).then(|| times.bytes() as f64 / sum_ns * 1e9),
        Measure::Sum => Some(sum_ns),
        Measure::SlowMean => mean(
            counted
                .map(|operation| operation.duration_ns())
                .filter(|&ns| ns > take.threshold_ns)
                .map(|ns| ns as f64),
        ),
        Measure::FastBetween => {
            let is_slow = counted.map(|operation| operation.duration_ns() > take.threshold_ns);
            fast_between(is_slow)
        }
        Measure::SpacingMode => number(peaks.mode_spacing_bytes()),
        Measure::SpacingMedian => number(peaks.median_spacing_bytes()),
        Measure::HeightMedian => number(peaks.median_latency_ns()),
        Measure::FloorSlope => floor_slope(counted),
        Measure::TwoCores | Measure::OneCoreTwice => None,
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Mean length of the runs of fast writes between slow ones.
fn fast_between(is_slow: impl Iterator<Item = bool>) -> Option<f64> {
    let mut runs = Vec::new();
    let mut length: Option<u32> = None;
    for slow in is_slow {
        match (slow, length) {
            (true, Some(fast)) => {
                if fast > 0 {
                    runs.push(f64::from(fast));
                }
                length = Some(0);
            }
            (true, None) => length = Some(0),
            (false, Some(fast)) => length = Some(fast + 1),
            (false, None) => {}
        }
    }
    mean(runs.into_iter())
}

/// Slope of the least-squares line through the shortest time of each file over the payload before it.
fn floor_slope(operations: impl Iterator<Item = cardiograph_workload::Operation>) -> Option<f64> {
    let mut floors: Vec<(u32, f64, f64)> = Vec::new();
    let mut before = 0.0;
    for operation in operations {
        let ns = operation.duration_ns() as f64;
        match floors.last_mut() {
            Some((file, _, floor)) if *file == operation.file => *floor = floor.min(ns),
            _ => floors.push((operation.file, before, ns)),
        }
        before += operation.length_bytes as f64;
    }
    let count = floors.len() as f64;
    let mean = |of: &dyn Fn(&(u32, f64, f64)) -> f64| floors.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(&|floor| floor.1), mean(&|floor| floor.2));
    let covariance = mean(&|floor| (floor.1 - x) * (floor.2 - y));
    let variance = mean(&|floor| (floor.1 - x).powi(2));
    (variance > 0.0).then(|| covariance / variance * SLOPE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_workload::{Operation, OperationKind};

    #[test]
    fn runs_of_fast_writes_are_counted_between_slow_ones_only() {
        let slow = "..s...ss..s....".chars().map(|letter| letter == 's');
        assert_eq!(fast_between(slow), Some(2.5));
        assert_eq!(fast_between([false, true].into_iter()), None);
    }

    #[test]
    fn the_floor_rises_as_it_was_made_to() {
        let operations = (0..100u32).flat_map(|file| {
            (0..10u64).map(move |call| Operation {
                kind: OperationKind::Write,
                file,
                offset_bytes: call * 100,
                length_bytes: 100,
                start_ns: 0,
                end_ns: 5_000 + u64::from(file) * 1_000 + call * 77,
            })
        });
        // 1 us a file, a file is 1 kB.
        let slope = floor_slope(operations).unwrap();
        assert!((slope - 16_000.0).abs() < 1e-6, "{slope}");
    }
}
