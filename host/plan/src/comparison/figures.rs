//! The figures of a comparison, serialised as JSON for programs.

use super::Decision;
use cardiograph_report::SustainedRate;
use serde::Serialize;

/// Figures of several cards, and which of them is faster.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// The card to take for a data logger.
    pub decision: Decision,
    /// Parameters of the bootstrap, from which the intervals come.
    pub bootstrap: Bootstrap,
    /// The cards, in the order of the command line.
    pub sides: Vec<Side>,
    /// Every two cards, the later one compared with the earlier one.
    pub verdicts: Vec<Verdict>,
    /// Reasons why the cards are not comparable, or less comparable than they seem.
    pub notes: Vec<String>,
}

/// Parameters of the bootstrap.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Bootstrap {
    /// Number of resampled traces.
    pub replicates: u64,
    /// Seed of the random numbers.
    pub seed: u64,
}

/// Figures of one card.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// `A` for the first card, `B` for the second, and so on.
    pub name: String,
    /// The measured target, or the file that the trace was read from.
    pub target: String,
    /// True if the card is simulated, even if its trace was read from a file.
    pub simulated: bool,
    /// Name of the workload, or of the format that the trace was read from.
    pub workload: String,
    /// Number of writes.
    pub writes: u64,
    /// Total payload of the writes.
    pub payload_bytes: u64,
    /// Payload of each write; null if the writes differ.
    pub block_bytes: Option<u64>,
    /// Time from the start of the first write to the end of the last write.
    pub elapsed_us: Option<f64>,
    /// Resolution of the latencies: that of the clock, or else their greatest common divisor.
    pub resolution_us: f64,
    /// Latencies of the writes.
    pub latency_us: Latencies,
    /// Stalls above the threshold.
    pub stalls: Stalls,
    /// Distribution of the longest stalls; null if no distribution fits.
    pub tail: Option<StallTail>,
    /// Sustained rate for each buffer size, without an interval: it depends on the longest stalls of the trace.
    pub sustained_rates: Vec<SustainedRate>,
}

/// Latencies of one card, in us.
#[derive(Clone, Debug, Serialize)]
pub struct Latencies {
    /// Median.
    pub median: Estimate,
    /// 99th percentile; null if less than one write exceeds it.
    pub p99: Option<Estimate>,
    /// Longest latency in the trace. It has no interval: a longer trace may contain a longer one.
    pub worst_case: f64,
}

/// A percentile with its 95 % interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// Percentile of the trace.
    pub value: f64,
    /// Lower limit; null if the trace is too short for an interval.
    pub low: Option<f64>,
    /// Upper limit; null if the trace is too short for an interval.
    pub high: Option<f64>,
    /// Number of writes in a block of the bootstrap; null if the trace is too short for an interval.
    pub bootstrap_block_writes: Option<u64>,
}

/// Stalls of one card.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Stalls {
    /// Latencies above this threshold are stalls.
    pub threshold_us: f64,
    /// Number of stalls.
    pub count: u64,
}

/// A generalised Pareto distribution of stall latencies above a threshold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct StallTail {
    /// Threshold above which the distribution applies.
    pub threshold_us: f64,
    /// Number of stalls above the threshold.
    pub exceedances: u64,
    /// Shape parameter: if negative, the latency has an upper bound; if positive, the tail is heavy.
    pub shape: f64,
    /// Scale parameter.
    pub scale_us: f64,
    /// Latency that one stall is expected to exceed in a trace with ten times the number of writes, if no new kind of
    /// stall appears.
    pub in_ten_times_as_many_us: f64,
}

/// A figure of one card compared with that of another.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// Name of the card.
    pub side: String,
    /// Name of the card that it is compared with.
    pub base: String,
    /// Figure: `median` or `p99`.
    pub figure: &'static str,
    /// The result.
    pub verdict: Outcome,
    /// Latency of this card divided by that of the other.
    pub ratio: Option<f64>,
    /// 95 % interval of the ratio; null if a trace is too short.
    pub ratio_interval: Option<[f64; 2]>,
    /// Reason why the verdict is [`Outcome::CannotTell`], or evidence of a verdict without an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The card has shorter latencies than the other.
    Faster,
    /// The card has longer latencies than the other.
    Slower,
    /// The measurements do not show a difference.
    CannotTell,
}
