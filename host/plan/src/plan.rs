//! The plan: what a logger needs of RAM, and what it risks.

use crate::figures::{Measured, Plan, Risk, Size, TailFigures};
use crate::risk::{HEIGHTS_MAX, Interval, Tail};
use cardiograph_report::{RAM_BYTES, Writes};
use cardiograph_timing::tail::{BusyPeriods, busy_periods};
use cardiograph_timing::{Replay, WriteTimes, buckets_below, frontier};
use cardiograph_trace::{OperationKind, Trace};

/// Risk of a run that a plan's advice stays below.
pub const RISK_MAX: f64 = 1e-3;

/// Schema of [`Plan`].
const SCHEMA: u32 = 1;

/// A data logger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Logger {
    /// Samples a second.
    pub rate_hz: f64,
    /// Bytes of a sample.
    pub line_bytes: u64,
    /// How long it runs, in s.
    pub run_s: f64,
    /// RAM it may have, in bytes.
    pub ram_bytes: u64,
}

impl Logger {
    /// Data rate in bytes per second.
    #[expect(non_snake_case, reason = "Bps is bytes per second")]
    pub fn rate_Bps(&self) -> f64 {
        self.rate_hz * self.line_bytes as f64
    }
}

/// How it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// One stream that stayed open, by the recorder's driver.
    Stream,
    /// As somebody's trace has it.
    Trace,
}

/// A trace that no plan can be made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPlan {
    /// It holds nothing.
    Empty,
    /// It holds reads only.
    ReadsOnly,
    /// No write took any time.
    NoTime,
}

impl std::error::Error for NoPlan {}

impl std::fmt::Display for NoPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(match self {
            NoPlan::Empty => "holds no writes",
            NoPlan::ReadsOnly => "holds reads only",
            NoPlan::NoTime => "no write in it took any time",
        })?;
        f.write_str("; give a trace of writes, as `cardiograph bench --trace` makes one")
    }
}

/// What this logger needs on a medium that wrote this trace.
///
/// # Errors
/// [`NoPlan`] if the trace has no write times.
pub fn plan(trace: &Trace, source: Source, logger: &Logger) -> Result<Plan, NoPlan> {
    plan_with(trace, source, logger, None)
}

/// The busy periods of a longer run on the same medium, at the logger's rate and for its [`sizes`].
pub(crate) struct Longer {
    pub(crate) periods: BusyPeriods,
    pub(crate) bytes: u64,
}

/// The same, the backlogs taken from a longer run if there is one.
pub(crate) fn plan_with(
    trace: &Trace,
    source: Source,
    logger: &Logger,
    longer: Option<Longer>,
) -> Result<Plan, NoPlan> {
    let writes = Writes::of(trace);
    let times = times_of(trace, &writes)?;
    let rate_bps = logger.rate_Bps();
    let average_bps = times.bytes() as f64 * 1e9 / times.sum_ns() as f64;
    let is_carried = rate_bps < average_bps;
    let ram_sizes = sizes(logger);
    let Longer { periods, bytes } = longer.unwrap_or_else(|| Longer {
        periods: busy_periods(&writes, rate_bps, HEIGHTS_MAX, &ram_sizes),
        bytes: times.bytes(),
    });
    let measured = Measured {
        writes: times.count(),
        bytes: times.bytes(),
        backlog_bytes: bytes,
        longest_write_s: times.max_ns().unwrap_or(0) as f64 / 1e9,
        run_s: bytes as f64 / rate_bps,
        average_Bps: average_bps,
        utilisation: rate_bps / average_bps,
        busy_periods: periods.count,
    };
    let lossless = frontier::lossless_rates_Bps(&writes, &times, &ram_sizes);
    let tail = is_carried.then(|| Tail::of(&periods));
    let block_bytes_max = block_bytes_max(trace);
    let size = |(index, &ram_bytes): (usize, &u64)| {
        let spare_bytes = ram_bytes.checked_sub(block_bytes_max);
        let higher = periods.higher[index];
        let risk = |tail: &Tail| {
            let expected = tail.expected_above(ram_bytes, higher);
            Risk::from(expected.at_least_one(logger.run_s / measured.run_s))
        };
        Size {
            ram_bytes,
            lossless_Bps: lossless[index],
            stall_s: spare_bytes.map(|bytes| bytes as f64 / rate_bps),
            overflows_measured: higher,
            risk: tail.as_ref().map_or(CERTAIN, risk),
        }
    };
    let sizes: Vec<Size> = ram_sizes.iter().enumerate().map(size).collect();
    let advised = sizes.iter().find(|size| size.risk.high < RISK_MAX);
    let needed = periods.heights_bytes.first().copied();
    let mut plan = Plan {
        schema: SCHEMA,
        target: trace.about.target.clone(),
        rate_hz: logger.rate_hz,
        line_bytes: logger.line_bytes,
        rate_Bps: rate_bps,
        run_s: logger.run_s,
        measured,
        block_bytes: writes.uniform_bytes(),
        policy: policy(source, writes.uniform_bytes()),
        ram_needed_bytes: needed.filter(|_| is_carried),
        ram_advised_bytes: advised.map(|size| size.ram_bytes),
        sizes,
        tail: tail.as_ref().and_then(TailFigures::of),
        energy_J_per_day: None,
        wear: None,
        warnings: Vec::new(),
    };
    plan.warnings = crate::warnings::of(&plan, trace);
    Ok(plan)
}

type Times = WriteTimes<{ buckets_below(64) }>;

fn times_of(trace: &Trace, writes: &Writes) -> Result<Box<Times>, NoPlan> {
    if trace.is_empty() {
        return Err(NoPlan::Empty);
    }
    if writes.kind == OperationKind::Read {
        return Err(NoPlan::ReadsOnly);
    }
    let mut times = Box::<Times>::default();
    writes.replay_alike(&mut *times);
    match times.sum_ns() == 0 || times.bytes() == 0 {
        true => Err(NoPlan::NoTime),
        false => Ok(times),
    }
}

fn block_bytes_max(trace: &Trace) -> u64 {
    let runs = trace.runs().iter();
    let writes = runs.filter(|run| run.kind == OperationKind::Write);
    writes.map(|run| run.length_bytes).max().unwrap_or(0)
}

/// More comes than goes.
const CERTAIN: Risk = Risk {
    likely: Some(1.0),
    low: 1.0,
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

/// The sizes that are always shown, and the one asked for.
pub(crate) fn sizes(logger: &Logger) -> Vec<u64> {
    let mut sizes = RAM_BYTES.to_vec();
    sizes.push(logger.ram_bytes);
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

fn policy(source: Source, block_bytes: Option<u64>) -> String {
    match (source, block_bytes) {
        (Source::Stream, _) => {
            "keep one file open and write it as one stream (CMD25), a block of 512 B as soon as it is full"
                .to_string()
        }
        (Source::Trace, Some(bytes)) => {
            format!("write as the trace does, {} at a time", cardiograph_report::units::ram(bytes))
        }
        (Source::Trace, None) => "write as the trace does, in its different sizes".to_string(),
    }
}
