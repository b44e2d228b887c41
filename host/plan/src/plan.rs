//! Computation of a plan: buffer size and risk.

use crate::Specification;
use crate::figures::{BufferRow, Measured, Plan, Risk, TIMES_MAX, TailFigures};
use crate::risk::{Interval, PEAKS_MAX, Tail};
use cardiograph_report::{BUFFER_SIZES_BYTES, Writes};
use cardiograph_timing::tail::{BusyPeriods, busy_periods};
use cardiograph_timing::{Latencies, Replay, buckets_below, sustained};
use cardiograph_trace::{OperationKind, Trace};
use serde::Serialize;

/// Risk per run below which a buffer size is recommended.
pub const RISK_MAX: f64 = 1e-3;

/// Requirements of a data logger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logger {
    /// Samples per second.
    pub sample_rate_hz: f64,
    /// Bytes per sample.
    pub sample_bytes: u64,
    /// Length of a logger run in s.
    pub run_s: f64,
    /// Available buffer in bytes.
    pub buffer_bytes: u64,
}

impl Logger {
    /// Data rate in bytes per second.
    pub fn rate_bytes_per_s(&self) -> f64 {
        self.sample_rate_hz * self.sample_bytes as f64
    }
}

/// Origin of the measured writes, and so the way of writing for which a plan holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Source {
    /// One stream that stayed open, written by the recorder's driver.
    #[serde(rename = "recorder")]
    Stream,
    /// A trace of any origin.
    #[serde(rename = "trace")]
    Trace,
}

/// Error: no plan can be made from a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The trace contains no operations.
    Empty,
    /// The trace contains reads only.
    ReadsOnly,
    /// All writes have a latency of 0.
    NoTime,
}

impl std::error::Error for PlanError {}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            PlanError::Empty => "contains no writes",
            PlanError::ReadsOnly => "contains reads only",
            PlanError::NoTime => "all writes have a latency of 0",
        })?;
        f.write_str("; use a trace of writes, such as one from `cardiograph bench --trace`")
    }
}

/// Plans a logger for the device on which a trace was measured.
///
/// # Errors
/// [`PlanError`] if the trace contains no usable writes.
pub fn plan(trace: &Trace, source: Source, logger: &Logger) -> Result<Plan, PlanError> {
    plan_with(trace, source, logger, None)
}

/// The busy periods of a longer run on the same device, at the logger's rate and for its [`sizes`].
pub(crate) struct Longer {
    pub(crate) periods: BusyPeriods,
    pub(crate) bytes: u64,
}

/// Plans like [`plan`], but uses the backlogs of a longer run if there is one.
pub(crate) fn plan_with(
    trace: &Trace,
    source: Source,
    logger: &Logger,
    longer: Option<Longer>,
) -> Result<Plan, PlanError> {
    let writes = Writes::of(trace);
    let times = times_of(trace, &writes)?;
    let rate_bytes_per_s = logger.rate_bytes_per_s();
    let mean_bytes_per_s = times.bytes() as f64 * 1e9 / times.sum_ns() as f64;
    let is_sustained = rate_bytes_per_s < mean_bytes_per_s;
    let sizes_bytes = sizes(logger);
    let Longer { periods, bytes } = longer.unwrap_or_else(|| Longer {
        periods: busy_periods(&writes, rate_bytes_per_s, PEAKS_MAX, &sizes_bytes),
        bytes: times.bytes(),
    });
    let measured = Measured {
        writes: times.count(),
        payload_bytes: times.bytes(),
        risk_payload_bytes: bytes,
        worst_case_latency_us: times.max_ns().unwrap_or(0) as f64 / 1e3,
        run_s: bytes as f64 / rate_bytes_per_s,
        mean_throughput_bytes_per_s: mean_bytes_per_s,
        utilisation_ratio: rate_bytes_per_s / mean_bytes_per_s,
        busy_periods: periods.count,
    };
    let sustained = sustained::sustained_rates_bytes_per_s(&writes, &times, &sizes_bytes);
    let tail = is_sustained.then(|| Tail::of(&periods));
    let times_as_long = logger.run_s / measured.run_s;
    let block_bytes_max = block_bytes_max(trace);
    let row = |(index, &buffer_bytes): (usize, &u64)| {
        let spare_bytes = buffer_bytes.checked_sub(block_bytes_max);
        let exceeding = periods.exceeding[index];
        let risk = |tail: &Tail| {
            if times_as_long > TIMES_MAX {
                return UNKNOWN;
            }
            let expected = tail.expected_above(buffer_bytes, exceeding);
            Risk::from(expected.at_least_one(times_as_long))
        };
        BufferRow {
            buffer_bytes,
            sustained_bytes_per_s: sustained[index],
            longest_stall_us: spare_bytes.map(|bytes| bytes as f64 * 1e6 / rate_bytes_per_s),
            overflows: exceeding,
            risk: tail.as_ref().map_or(CERTAIN, risk),
        }
    };
    let buffers: Vec<BufferRow> = sizes_bytes.iter().enumerate().map(row).collect();
    let recommended = buffers.iter().find(|row| row.risk.high < RISK_MAX);
    let peak = periods.peaks_bytes.first().copied();
    let mut plan = Plan {
        target: trace.about.target.clone(),
        sample_rate_hz: logger.sample_rate_hz,
        sample_bytes: logger.sample_bytes,
        rate_bytes_per_s,
        run_s: logger.run_s,
        measured,
        block_bytes: writes.uniform_bytes(),
        writing: source,
        policy: policy(source, writes.uniform_bytes()),
        peak_backlog_bytes: peak.filter(|_| is_sustained),
        recommended_buffer_bytes: recommended.map(|row| row.buffer_bytes),
        buffers,
        tail: tail.as_ref().and_then(TailFigures::of),
        energy_j_per_day: None,
        wear: None,
        full_after_s: None,
        specification: Specification::of(rate_bytes_per_s),
        ensemble: None,
        warnings: Vec::new(),
    };
    plan.warnings = crate::warnings::of(&plan, trace);
    Ok(plan)
}

type Times = Latencies<{ buckets_below(64) }>;

fn times_of(trace: &Trace, writes: &Writes) -> Result<Box<Times>, PlanError> {
    if trace.is_empty() {
        return Err(PlanError::Empty);
    }
    if writes.kind == OperationKind::Read {
        return Err(PlanError::ReadsOnly);
    }
    let mut times = Box::<Times>::default();
    writes.replay_run(&mut *times);
    match times.sum_ns() == 0 || times.bytes() == 0 {
        true => Err(PlanError::NoTime),
        false => Ok(times),
    }
}

fn block_bytes_max(trace: &Trace) -> u64 {
    let runs = trace.runs().iter();
    let writes = runs.filter(|run| run.kind == OperationKind::Write);
    writes.map(|run| run.length_bytes).max().unwrap_or(0)
}

/// Risk above the mean throughput: the backlog grows without limit.
const CERTAIN: Risk = Risk {
    likely: Some(1.0),
    low: 1.0,
    high: 1.0,
};

/// Risk of a run that is much longer than the measurement.
const UNKNOWN: Risk = Risk {
    likely: None,
    low: 0.0,
    high: 1.0,
};

impl From<Interval> for Risk {
    fn from(interval: Interval) -> Risk {
        Risk {
            likely: interval.likely,
            low: interval.low,
            high: interval.high,
        }
    }
}

impl TailFigures {
    fn of(tail: &Tail) -> Option<TailFigures> {
        let (threshold_bytes, exceedances, shape, scale_bytes) = tail.figures()?;
        Some(TailFigures {
            threshold_bytes,
            exceedances: exceedances as u64,
            shape,
            scale_bytes,
        })
    }
}

/// Returns the buffer sizes to plan for: the standard sizes, and that of the logger.
pub(crate) fn sizes(logger: &Logger) -> Vec<u64> {
    let mut sizes = BUFFER_SIZES_BYTES.to_vec();
    sizes.push(logger.buffer_bytes);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn policy(source: Source, block_bytes: Option<u64>) -> String {
    match (source, block_bytes) {
        (Source::Stream, _) => {
            "Cardiograph's recorder: one open file, written as one stream (CMD25), each 512 B block as soon as it is full"
                .to_string()
        }
        (Source::Trace, Some(bytes)) => {
            format!(
                "that of the trace, {} at a time",
                cardiograph_report::units::binary_bytes(bytes)
            )
        }
        (Source::Trace, None) => "that of the trace".to_string(),
    }
}
