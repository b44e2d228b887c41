//! Evaluation of one number from the operations of a run.

use crate::experiment::Operations;
use crate::floor;
use crate::row::Query;
use cardiograph_timing::{Latencies, Stalls, buckets_below};
use serde::Deserialize;

const BUCKETS: usize = buckets_below(64);

/// A statistic of a run. Latencies are in ns, throughput in B/s, payload in bytes.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Mean latency.
    Mean,
    /// Median latency.
    Median,
    /// Worst-case latency.
    WorstCase,
    /// Lowest latency.
    Minimum,
    /// Mean throughput: payload over the sum of the latencies.
    MeanThroughput,
    /// Sum of the latencies.
    Sum,
    /// Mean of the latencies above the query's threshold.
    SlowMean,
    /// Mean number of consecutive operations below the threshold between two operations above it; slow
    /// operations in direct succession do not count.
    FastBetween,
    /// Most frequent payload from stall to stall.
    StallSpacingMode,
    /// Median payload from stall to stall.
    StallSpacingMedian,
    /// Median latency of the stalls.
    StallLatencyMedian,
    /// Rise of the lowest latency of a file, per 16 kB written before the file.
    FloorSlope,
    /// Payload from one step of the lowest latency of a file to the next.
    FloorStep,
    /// Number of steps of the lowest latency of a file, from one of double height to the next.
    FloorStepsPerDouble,
    /// Number of operations per second: their number over the sum of the latencies.
    OperationsPerSecond,
    /// Mean throughput of the downloads of a web server's client.
    DownloadThroughput,
    /// Throughput of the slowest download.
    DownloadThroughputMin,
    /// Throughput of the fastest download.
    DownloadThroughputMax,
    /// Mean time of a web server's calls that read from the card, waiting for the card included.
    ServerReadMean,
    /// Time that 1 % of a web server's calls that read from the card exceed.
    #[serde(rename = "server-read-p99")]
    ServerReadP99,
    /// Time that study 1's load takes on two cores at once, divided by its time on one core; measured on the
    /// host, without a card.
    TwoCores,
    /// Time that study 1's load takes when run twice on one core, divided by the time of one run; measured
    /// on the host, without a card.
    OneCoreTwice,
}

impl Measure {
    /// Returns true for measures that run on the host, without a card.
    pub fn runs_on_host(self) -> bool {
        matches!(self, Measure::TwoCores | Measure::OneCoreTwice)
    }

    /// Returns true for a maximum, which a longer run or another seed may exceed.
    pub fn is_maximum(self) -> bool {
        self == Measure::WorstCase
    }
}

/// Evaluates a query on the operations of a run. Returns `None` if the run does not provide the requested
/// number.
pub fn evaluate(query: &Query, operations: &Operations) -> Option<f64> {
    let selected = operations.select(query.phase, query.offsets_bytes.clone());
    let number = |value: Option<u64>| value.map(|value| value as f64);
    let mut times = Latencies::<BUCKETS>::default();
    let mut peaks = Stalls::<BUCKETS>::above(query.threshold_ns);
    for operation in selected.clone() {
        let ns = operation.duration_ns();
        times.push(ns, operation.length_bytes);
        peaks.push(ns, operation.length_bytes);
    }
    peaks.finish();
    let sum_ns = times.sum_ns() as f64;
    match query.measure {
        Measure::Mean => (times.count() > 0).then(|| sum_ns / times.count() as f64),
        Measure::Median => number(times.percentile_ns(500_000)),
        Measure::WorstCase => number(times.max_ns()),
        Measure::Minimum => number(times.min_ns()),
        Measure::MeanThroughput => (sum_ns > 0.0).then(|| times.bytes() as f64 / sum_ns * 1e9),
        Measure::Sum => Some(sum_ns),
        Measure::SlowMean => mean(
            selected
                .map(|operation| operation.duration_ns())
                .filter(|&ns| ns > query.threshold_ns)
                .map(|ns| ns as f64),
        ),
        Measure::FastBetween => {
            let is_slow = selected.map(|operation| operation.duration_ns() > query.threshold_ns);
            fast_between(is_slow)
        }
        Measure::StallSpacingMode => number(peaks.mode_spacing_bytes()),
        Measure::StallSpacingMedian => number(peaks.median_spacing_bytes()),
        Measure::StallLatencyMedian => number(peaks.median_latency_ns()),
        Measure::FloorSlope => floor::slope(selected),
        Measure::FloorStep => floor::step_bytes(selected, query.threshold_ns as f64),
        Measure::FloorStepsPerDouble => {
            floor::steps_per_double(selected, query.threshold_ns as f64)
        }
        Measure::OperationsPerSecond => (sum_ns > 0.0).then(|| times.count() as f64 / sum_ns * 1e9),
        Measure::DownloadThroughput => mean(download_rates(operations)),
        Measure::DownloadThroughputMin => download_rates(operations).min_by(f64::total_cmp),
        Measure::DownloadThroughputMax => download_rates(operations).max_by(f64::total_cmp),
        Measure::ServerReadMean => mean(operations.server_reads_ns().iter().map(|&ns| ns as f64)),
        Measure::ServerReadP99 => {
            let mut reads = Latencies::<BUCKETS>::default();
            let all = operations.server_reads_ns().iter();
            all.for_each(|&ns| reads.push(ns, 0));
            number(reads.percentile_ns(990_000))
        }
        Measure::TwoCores | Measure::OneCoreTwice => None,
    }
}

/// Returns the throughput of each download in B/s.
fn download_rates(operations: &Operations) -> impl Iterator<Item = f64> {
    let downloads = operations.downloads().iter();
    downloads.map(|download| download.length_bytes as f64 / download.duration_ns() as f64 * 1e9)
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the mean number of consecutive fast operations between two slow ones.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_runs_of_fast_writes_between_slow_ones_count() {
        let slow = "..s...ss..s....".chars().map(|letter| letter == 's');
        assert_eq!(fast_between(slow), Some(2.5));
        assert_eq!(fast_between([false, true].into_iter()), None);
    }
}
