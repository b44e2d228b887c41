//! The figures of one run: the JSON that programs read. Its schema is fixed.

use serde::Serialize;

/// The figures of one run. What the trace cannot tell is null.
#[derive(Clone, Debug, Default, Serialize)]
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
    /// What the card took from its supply, where that was measured.
    pub energy: Option<EnergySummary>,
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

/// What the card took from its supply. Figures of writes are null where there are none, or the scope
/// covers none.
#[derive(Clone, Debug, Serialize)]
pub struct EnergySummary {
    /// Energy in all in uJ, also before and after the writes.
    #[serde(rename = "total_uJ")]
    pub total_uj: f64,
    /// How long that took.
    pub duration_us: f64,
    /// Width of the bins that the greatest power is taken over.
    pub bin_us: f64,
    /// Mean powers.
    #[serde(rename = "power_mW")]
    pub power_mw: EnergyPower,
    /// Energy while a write went on, of those that the scope covers wholly.
    #[serde(rename = "per_write_uJ")]
    pub per_write_uj: Option<f64>,
    /// The same for each 1000 B of their payload.
    #[serde(rename = "per_kB_uJ")]
    pub per_kb_uj: Option<f64>,
    /// Share of the trace's time that the scope covers.
    pub trace_covered: Option<f64>,
    /// What falls into writes, of what the scope covers of the trace.
    pub in_writes: EnergyShare,
    /// What falls into writes longer than the threshold, of the same.
    pub in_peaks: EnergyShare,
}

/// Mean powers in mW.
#[derive(Clone, Debug, Serialize)]
pub struct EnergyPower {
    /// Of everything.
    pub mean: Option<f64>,
    /// Of the bin with the most energy.
    pub max: Option<f64>,
    /// While writes went on.
    pub in_writes: Option<f64>,
    /// Within the trace, while no write went on.
    pub between_writes: Option<f64>,
}

/// Shares from 0 to 1: where that of energy is the greater, the power is above the mean.
#[derive(Clone, Debug, Serialize)]
pub struct EnergyShare {
    /// Of the energy.
    pub energy: Option<f64>,
    /// Of the time.
    pub time: Option<f64>,
}

/// ns as us, with every digit that ns have.
pub(crate) fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Rounded to thousandths, so that JSON does not show noise.
pub(crate) fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}
