//! The plan: what a logger needs of RAM, and what it risks.

use crate::risk::{HEIGHTS_MAX, Interval, Tail};
use cardiograph_report::{RAM_BYTES, Writes};
use cardiograph_timing::tail::{BusyPeriods, busy_periods};
use cardiograph_timing::{Replay, WriteTimes, buckets_below, frontier};
use cardiograph_trace::{OperationKind, Trace};
use serde::Serialize;

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

/// What a logger needs, and what it risks. What the trace cannot tell is null.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "Bps is bytes per second, J joule")]
pub struct Plan {
    /// Version of this layout.
    pub schema: u32,
    /// The card on its board, or the file a trace was read from.
    pub target: String,
    /// Samples a second.
    pub rate_hz: f64,
    /// Bytes of a sample.
    pub line_bytes: u64,
    /// Data rate.
    pub rate_Bps: f64,
    /// How long a run of the logger is.
    pub run_s: f64,
    /// What was measured.
    pub measured: Measured,
    /// Bytes of each write; null where they differ.
    pub block_bytes: Option<u64>,
    /// How to write, in a sentence.
    pub policy: String,
    /// Most RAM that the measured writes themselves take at this rate; null if it is above the average.
    pub ram_needed_bytes: Option<f64>,
    /// Least of the sizes that one run in 1000 overflows at most, with 95 % confidence.
    pub ram_advised_bytes: Option<u64>,
    /// RAM sizes.
    pub sizes: Vec<Size>,
    /// The law that the greatest backlogs follow; null where none does.
    pub tail: Option<TailFigures>,
    /// What the card takes from its supply in a day; known of simulated cards alone.
    pub energy_J_per_day: Option<f64>,
    /// How the card wears; known of simulated cards alone.
    pub wear: Option<Wear>,
    /// What must be known before this is trusted.
    pub warnings: Vec<String>,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "Bps is bytes per second")]
pub struct Measured {
    /// Number of writes.
    pub writes: u64,
    /// Payload.
    pub bytes: u64,
    /// The longest write.
    pub longest_write_s: f64,
    /// Payload of the run that backlogs are taken from: longer on simulated cards.
    pub backlog_bytes: u64,
    /// How long the logger takes to fill that.
    pub run_s: f64,
    /// Payload over the sum of the write times.
    pub average_Bps: f64,
    /// The logger's rate over that.
    pub utilisation: f64,
    /// How often the backlog built up from nothing and was gone again.
    pub busy_periods: u64,
}

/// One size of RAM.
#[derive(Clone, Debug, Serialize)]
#[expect(non_snake_case, reason = "Bps is bytes per second")]
pub struct Size {
    /// The size.
    pub ram_bytes: u64,
    /// The highest constant rate that it carried through the measured writes.
    pub lossless_Bps: f64,
    /// The longest stall that it bears at the logger's rate; null where it does not hold a write.
    pub stall_s: Option<f64>,
    /// Backlogs that were higher, among the measured.
    pub overflows_measured: u64,
    /// Probability that a run overflows it.
    pub risk: Risk,
}

/// A probability with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Risk {
    /// The likeliest; null where nothing but a bound is known.
    pub likely: Option<f64>,
    /// Least.
    pub low: f64,
    /// Greatest.
    pub high: f64,
}

/// A generalized Pareto distribution over a threshold.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TailFigures {
    /// Where it begins.
    pub threshold_bytes: f64,
    /// Backlogs above it, among the measured.
    pub exceedances: u64,
    /// Its shape: below 0 there is a highest backlog, above 0 the tail is heavy.
    pub shape: f64,
    /// Its scale.
    pub scale_bytes: f64,
}

/// How a card wears.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Wear {
    /// Flash blocks erased in a day.
    pub erases_per_day: f64,
    /// Time until all blocks, worn alike, have been erased as often as they bear.
    pub years: f64,
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
    if trace.is_empty() {
        return Err(NoPlan::Empty);
    }
    if writes.kind == OperationKind::Read {
        return Err(NoPlan::ReadsOnly);
    }
    let mut times = Box::<WriteTimes<{ buckets_below(64) }>>::default();
    writes.replay_alike(&mut *times);
    if times.sum_ns() == 0 || times.bytes() == 0 {
        return Err(NoPlan::NoTime);
    }
    let rate_bps = logger.rate_Bps();
    let average_bps = times.bytes() as f64 * 1e9 / times.sum_ns() as f64;
    let sizes = sizes(logger);
    let lossless = frontier::lossless_rates_Bps(&writes, &times, &sizes);
    let is_carried = rate_bps < average_bps;
    let Longer { periods, bytes } = longer.unwrap_or_else(|| Longer {
        periods: busy_periods(&writes, rate_bps, HEIGHTS_MAX, &sizes),
        bytes: times.bytes(),
    });
    let run_s = bytes as f64 / rate_bps;
    let tail = is_carried.then(|| Tail::of(&periods));

    let block_bytes_max = trace
        .runs()
        .iter()
        .filter(|run| run.kind == OperationKind::Write)
        .map(|run| run.length_bytes)
        .max()
        .unwrap_or(0);
    let size = |(index, &ram_bytes): (usize, &u64)| Size {
        ram_bytes,
        lossless_Bps: lossless[index],
        stall_s: ram_bytes
            .checked_sub(block_bytes_max)
            .map(|bytes| bytes as f64 / rate_bps),
        overflows_measured: periods.higher[index],
        risk: tail.as_ref().map_or(CERTAIN, |tail| {
            let expected = tail.expected_above(ram_bytes, periods.higher[index]);
            Risk::from(expected.at_least_one(logger.run_s / run_s))
        }),
    };
    let sizes: Vec<Size> = sizes.iter().enumerate().map(size).collect();
    let advised = sizes.iter().find(|size| size.risk.high < RISK_MAX);
    let needed = periods.heights_bytes.first().copied();
    let mut plan = Plan {
        schema: SCHEMA,
        target: trace.about.target.clone(),
        rate_hz: logger.rate_hz,
        line_bytes: logger.line_bytes,
        rate_Bps: rate_bps,
        run_s: logger.run_s,
        measured: Measured {
            writes: times.count(),
            bytes: times.bytes(),
            backlog_bytes: bytes,
            longest_write_s: times.max_ns().unwrap_or(0) as f64 / 1e9,
            run_s,
            average_Bps: average_bps,
            utilisation: rate_bps / average_bps,
            busy_periods: periods.count,
        },
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

impl Plan {
    /// The row of a RAM size.
    pub fn size(&self, ram_bytes: u64) -> Option<&Size> {
        self.sizes.iter().find(|size| size.ram_bytes == ram_bytes)
    }

    /// Whether the medium carries this rate on average.
    pub fn is_carried(&self) -> bool {
        self.measured.utilisation < 1.0
    }

    /// How many times as long a run is as what was measured.
    pub fn times_as_long(&self) -> f64 {
        self.run_s / self.measured.run_s
    }
}
