//! The figures of one run as JSON with a fixed schema.

use crate::open_loop::OpenLoop;
use crate::trust::Trust;
use serde::Serialize;

/// Figures of a run. Figures that the trace cannot provide are null.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Summary {
    /// The measured target, or the file that the trace was read from.
    pub target: String,
    /// Name of the workload, or of the format that the trace was read from.
    pub workload: String,
    /// Class of the input: `writes`, `recording`, `histogram`, or `summary`.
    pub input: Input,
    /// Number of writes. If a trace contains only reads, number of reads; for a recording, number of intervals.
    pub writes: u64,
    /// Total payload of the operations.
    pub payload_bytes: u64,
    /// Time from the start of the first operation to the end of the last operation.
    pub elapsed_us: Option<f64>,
    /// Latencies of the operations; for a recording, the intervals between its samples.
    pub latency_us: Latency,
    /// Throughput of the operations; null for a recording, which does not show how fast the storage device was.
    pub throughput_bytes_per_s: Throughput,
    /// Number of operations divided by the sum of their latencies; null for a recording.
    pub operations_per_s: Option<f64>,
    /// Stalls above the threshold; null for a recording.
    pub stalls: Stalls,
    /// Sustained rate for each buffer size.
    pub sustained_rates: Vec<SustainedRate>,
    /// Sample timing of a recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cadence: Option<CadenceSummary>,
    /// Energy that the card drew, if it was measured.
    pub energy: Option<EnergySummary>,
    /// Figures of writes that were issued at their due times, if they were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoop>,
    /// The disk, if a whole disk was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSummary>,
    /// Conditions and precision of the figures, if this computer measured a real storage device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<Trust>,
    /// Assumptions and remarks that readers of the figures need to know.
    pub notes: Vec<String>,
}

/// A whole disk.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DiskSummary {
    /// Path on the command line.
    pub device: String,
    /// Capacity.
    pub capacity_bytes: u64,
    /// Smallest unit that can be read or written.
    pub block_bytes: u32,
    /// Bus, such as `mmc` or `usb`.
    pub bus: String,
    /// True if the run overwrote the disk.
    pub is_overwritten: bool,
    /// Other properties that the kernel reports: `cid`, `csd`, `name`, `date`, `scheduler` and so on.
    pub facts: Vec<DiskFact>,
    /// Blocks that could not be read or written.
    pub failed_blocks: Vec<DiskFailure>,
}

/// A property that the kernel reports.
#[derive(Clone, Debug, Serialize)]
pub struct DiskFact {
    /// Name, such as `cid`.
    pub name: String,
    /// Value, as the kernel prints it.
    pub value: String,
}

/// A block that could not be read or written.
#[derive(Clone, Debug, Serialize)]
pub struct DiskFailure {
    /// Address on the disk.
    pub offset_bytes: u64,
    /// Error of the operating system.
    pub error: String,
}

/// Class of an input, which determines the figures that can be computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Input {
    /// One row per write or read: all figures.
    #[default]
    Writes,
    /// Samples with their times: sample timing only.
    Recording,
    /// Number of writes with each latency: percentiles, but neither stalls nor sustained rates.
    Histogram,
    /// Statistics of whole files.
    Summary,
}

impl Input {
    /// Returns the name that the outputs use.
    pub fn name(self) -> &'static str {
        match self {
            Input::Writes => "writes",
            Input::Recording => "recording",
            Input::Histogram => "histogram",
            Input::Summary => "summary",
        }
    }
}

/// Latencies in us. A percentile from p90 on is null if less than one operation would exceed it.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub struct Latency {
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub median: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    pub p99_99: Option<f64>,
    pub worst_case: Option<f64>,
}

/// Throughput in bytes per second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Throughput {
    /// Payload divided by the sum of the latencies; pauses between writes do not count.
    pub mean: Option<f64>,
    /// Mean payload of a write divided by the worst-case latency.
    pub worst_case: Option<f64>,
}

/// Stalls above the threshold.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Stalls {
    /// Latencies above this threshold are stalls.
    pub threshold_us: Option<f64>,
    /// Number of stalls; consecutive slow writes are one stall. Null without the latency of each operation.
    pub count: Option<u64>,
    /// Payload from the start of a stall to the start of the next.
    pub spacing_bytes: StallSpacing,
    /// Worst-case latency within each stall.
    pub latency_us: StallLatency,
}

/// Payload from stall to stall, in bytes; null with fewer than two stalls, the mode with fewer than eleven.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub struct StallSpacing {
    pub median: Option<u64>,
    pub mode: Option<u64>,
}

/// Latency of the stalls in us; null without a stall.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "the names are self-explanatory")]
pub struct StallLatency {
    pub median: Option<f64>,
}

/// Sustained rate of one buffer size.
#[derive(Clone, Debug, Serialize)]
pub struct SustainedRate {
    /// Size of the buffer.
    pub buffer_bytes: u64,
    /// Highest constant data rate at which the buffer does not overflow.
    pub rate_bytes_per_s: f64,
}

/// Sample timing of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct CadenceSummary {
    /// Number of samples.
    pub samples: u64,
    /// Median interval between samples.
    pub median_interval_us: f64,
    /// Sample period, fitted over the whole recording; null if none fits.
    pub period_us: Option<f64>,
    /// Number of samples with the time of the sample before.
    pub duplicate_samples: u64,
    /// Number of late samples: those after missing samples, and those later than 1.5 periods by more than tick and
    /// jitter. If no period fits, those later than 1.5 median intervals.
    pub late_samples: u64,
    /// Number of missing samples; null if it is uncertain, or if no period fits.
    pub missing_samples: Option<u64>,
    /// Least number of missing samples; null if no period fits.
    pub missing_samples_min: Option<u64>,
    /// Greatest number of missing samples; null if no period fits.
    pub missing_samples_max: Option<u64>,
    /// Number of samples for which the late intervals have room at the median interval; null if a period fits.
    pub room_for_samples: Option<u64>,
    /// Longest interval between consecutive samples.
    pub longest_gap_us: f64,
    /// Mean interval between samples.
    pub mean_interval_us: f64,
    /// Time of the last sample minus its expected time if every sample, including missing ones but not duplicates,
    /// takes one period; 0 within a tick and the jitter; negative if the last sample was early. Null if the number of
    /// missing samples is.
    pub drift_us: Option<f64>,
    /// The late samples in order of time; the longest 1,000 if there are more.
    pub gaps: Vec<GapSummary>,
    /// Loss according to a column that counts the samples, which replaces the number of missing samples; null without one.
    pub sequence: Option<SequenceSummary>,
    /// Runs of the clock and sources of samples, in order; empty if the file has one of each.
    pub runs: Vec<RunSummary>,
}

/// Loss according to a column that counts the samples.
#[derive(Clone, Debug, Serialize)]
pub struct SequenceSummary {
    /// Name of the column.
    pub column: String,
    /// Samples whose number is missing.
    pub lost_samples: u64,
    /// Samples with the number of the sample before.
    pub repeated_samples: u64,
}

/// Sample timing of one run or source of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct RunSummary {
    /// Name of the source, and number and first line of the run.
    pub label: String,
    /// Number of samples.
    pub samples: u64,
    /// Median interval between samples.
    pub median_interval_us: f64,
    /// Number of intervals longer than 1.5 times the median.
    pub late_samples: u64,
    /// Least number of missing samples, according to the times; 0 if no period fits.
    pub missing_samples_min: u64,
    /// Greatest number of missing samples, according to the times.
    pub missing_samples_max: u64,
    /// Longest interval between consecutive samples.
    pub longest_gap_us: f64,
}

/// A late sample of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct GapSummary {
    /// Time of the sample before the interval, counted from the first sample.
    pub at_us: f64,
    /// Length of the interval.
    pub length_us: f64,
    /// Number of samples missing within the interval; null if it is uncertain, or if no period fits.
    pub missing_samples: Option<u64>,
    /// Greatest number of samples that may be missing within the interval.
    pub room_for_samples: u64,
}

/// Energy that the card drew. Figures about writes are null if there are no writes, or if the scope covers
/// none of them.
#[derive(Clone, Debug, Serialize)]
pub struct EnergySummary {
    /// Total energy, including before and after the writes.
    #[serde(rename = "total_uJ")]
    pub total_uj: f64,
    /// Duration of the energy measurement.
    pub duration_us: f64,
    /// Width of the bins over which the maximum power is averaged.
    pub bin_us: f64,
    /// Mean power during different times of the measurement.
    #[serde(rename = "power_mW")]
    pub power_mw: EnergyPower,
    /// Mean energy of the writes that the scope covers completely.
    #[serde(rename = "per_write_uJ")]
    pub per_write_uj: Option<f64>,
    /// Mean energy of the completely covered writes per 1000 B of payload.
    #[serde(rename = "per_kB_uJ")]
    pub per_kb_uj: Option<f64>,
    /// Fraction of the trace's duration that the scope covers.
    pub trace_covered_ratio: Option<f64>,
    /// Share of the writes in the part of the trace that the scope covers.
    pub in_writes: EnergyShare,
    /// Share of the writes longer than the stall threshold, in the part of the trace that the scope covers.
    pub in_stalls: EnergyShare,
}

/// Mean power in mW.
#[derive(Clone, Debug, Serialize)]
pub struct EnergyPower {
    /// Mean over the whole measurement.
    pub mean: Option<f64>,
    /// Mean over the bin with the most energy.
    pub max: Option<f64>,
    /// Mean during writes.
    pub in_writes: Option<f64>,
    /// Mean between writes, within the trace.
    pub between_writes: Option<f64>,
}

/// Fractions from 0 to 1. The power is above average if the energy ratio exceeds the time ratio.
#[derive(Clone, Debug, Serialize)]
pub struct EnergyShare {
    /// Fraction of the energy drawn within the trace.
    pub energy_ratio: Option<f64>,
    /// Fraction of the time within the trace.
    pub time_ratio: Option<f64>,
}

/// Converts ns to us without loss of digits.
pub(crate) fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Rounds to thousandths, so that JSON contains no rounding noise.
pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
