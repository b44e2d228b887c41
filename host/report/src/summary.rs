//! The figures of one run: the JSON that programs read. Its schema is fixed.

use serde::Serialize;

/// The figures of one run. What the trace cannot tell is null.
#[derive(Clone, Debug, Serialize)]
pub struct Summary {
    /// Version of this layout.
    pub schema: u32,
    /// The medium, or the file a trace was read from.
    pub target: String,
    /// Name of the workload, or of the format a trace was read from.
    pub workload: String,
    /// Number of writes (of reads where there are only reads, of steps in a recording).
    pub writes: u64,
    /// Payload in bytes.
    pub bytes: u64,
    /// From the start of the first operation to the end of the last.
    pub elapsed_us: Option<f64>,
    /// Write times.
    pub write_time_us: WriteTime,
    /// Data rates.
    #[serde(rename = "throughput_Bps")]
    pub throughput_bps: Throughput,
    /// Writes per second of write time.
    pub iops: Option<f64>,
    /// Stalls above the threshold.
    pub peaks: Peaks,
    /// Lossless rate against RAM.
    pub frontier: Vec<FrontierPoint>,
    /// Audit of a recording's time column.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cadence: Option<CadenceSummary>,
}

/// Write times in us.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "named as they are")]
pub struct WriteTime {
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub p50: Option<f64>,
    pub p90: Option<f64>,
    pub p99: Option<f64>,
    pub p99_9: Option<f64>,
    pub p99_99: Option<f64>,
    pub max: Option<f64>,
}

/// Data rates in bytes per second.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Throughput {
    /// Payload over the sum of the write times: pauses between writes do not count.
    pub average: Option<f64>,
    /// Mean payload of a write over the longest write time.
    pub guaranteed: Option<f64>,
}

/// Stalls above the threshold.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Peaks {
    /// A longer write time is a peak.
    pub threshold_us: Option<f64>,
    /// Number of peaks; slow writes in a row are one.
    pub count: u64,
    /// Payload from the start of a peak to the start of the next.
    pub spacing_bytes: PeakSpacing,
    /// The longest write time of a peak.
    pub height_us: PeakHeight,
}

/// Payload from peak to peak, in bytes; null with fewer than two peaks.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "named as they are")]
pub struct PeakSpacing {
    pub median: Option<u64>,
    pub mode: Option<u64>,
}

/// Height of the peaks in us; null without a peak.
#[derive(Clone, Debug, Default, Serialize)]
#[allow(missing_docs, reason = "named as they are")]
pub struct PeakHeight {
    pub median: Option<f64>,
}

/// What a RAM of this size carries.
#[derive(Clone, Debug, Serialize)]
pub struct FrontierPoint {
    /// RAM in bytes.
    pub ram_bytes: u64,
    /// The highest constant rate without overflow, in bytes per second.
    #[serde(rename = "lossless_Bps")]
    pub lossless_bps: f64,
}

/// Audit of a recording's time column.
#[derive(Clone, Debug, Serialize)]
pub struct CadenceSummary {
    /// Number of samples.
    pub samples: u64,
    /// Median step from sample to sample.
    pub median_step_us: f64,
    /// Steps over 1.5 medians.
    pub late: u64,
    /// Samples that should lie in the late steps.
    pub missing: u64,
    /// The longest step.
    pub longest_gap_us: f64,
}

/// ns as us, with every digit that ns have.
pub(crate) fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Rounded to thousandths, so that JSON does not show noise.
pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
