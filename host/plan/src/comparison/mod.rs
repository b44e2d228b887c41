//! Comparison of cards: which one is faster, and by how much.
//!
//! ```text
//!   Report of each card ──> Side: percentiles ── bootstrap ──> intervals ──┐
//!                             stalls ── Tail                               ├──> Comparison
//!                           ratio to the first side ── bootstrap ──> Verdict
//! ```
//!
//! The verdicts cover the median and the 99th percentile. The longest write and the sustained rate depend on the rarest
//! stalls of a trace; no interval of such a figure holds for a longer trace, so they have no verdict.
//!
//! If latencies depend on each other over a large part of the trace (they drift, or change in long phases), there is no
//! interval. There is a verdict nevertheless if the percentile of every eighth of one trace is below that of every eighth
//! of the other: then the difference is larger than the drift.
//!
//! For a data logger, the sustained rate with its buffer decides (`decision.rs`).
//!
//! The coverage of the intervals, on 1000 seeds of nine kinds of traces with known percentiles, is in `benchmarks/runs`
//! (`examples/bootstrap.rs`).

mod bootstrap;
mod decision;
mod dependence;
mod figures;
mod text;

pub use bootstrap::{REPLICATES, Resampled, SEED, Sorted};
pub use decision::{Decision, Need};
pub use figures::{
    Bootstrap, Comparison, Estimate, Latencies, Outcome, Side, StallTail, Stalls, Verdict,
};
pub use text::{decided, heads, rows, sentences, text};

use crate::risk::{PEAKS_MAX, Tail};
use cardiograph_report::{Input, Report, Writes, units};
use cardiograph_timing::Replay;
use cardiograph_trace::{OperationKind, Trace};

/// Minimum number of stalls for an interval of p99: the length of a block depends on their spacing.
pub const STALLS_MIN: u64 = 10;
/// Minimum number of writes above a percentile for an interval.
const EXCEEDING_MIN: u64 = 10;

const MEDIAN_PPM: u32 = 500_000;
const P99_PPM: u32 = 990_000;

/// A side, with data that only the comparison needs.
struct Measured {
    side: Side,
    median: Percentile,
    p99: Percentile,
}

/// A percentile, and its bootstrap distribution or the reason why it has none.
struct Percentile {
    value_ns: u64,
    resampled: Result<Resampled, String>,
    /// Smallest and greatest value over the eighths of the trace; `None` if they have too few writes.
    of_eighths_ns: Option<(u64, u64)>,
}

/// Compares every two of the cards of the reports, and decides for a data logger.
///
/// # Errors
/// A sentence if a report has no individual writes.
pub fn compare(reports: &[Report], need: &Need) -> Result<Comparison, String> {
    let measured = reports
        .iter()
        .zip(0..)
        .map(|(report, index)| measured(report, index));
    let measured = measured.collect::<Result<Vec<_>, _>>()?;
    let mut verdicts = Vec::new();
    for (index, base) in measured.iter().enumerate() {
        for other in &measured[index + 1..] {
            verdicts.push(verdict(other, base, "median"));
            verdicts.push(verdict(other, base, "p99"));
        }
    }
    let sides: Vec<Side> = measured.into_iter().map(|one| one.side).collect();
    Ok(Comparison {
        decision: Decision::of(reports, &sides, need),
        bootstrap: Bootstrap {
            replicates: REPLICATES as u64,
            seed: SEED,
        },
        notes: [own_notes(reports, &sides), notes(&sides)].concat(),
        sides,
        verdicts,
    })
}

fn measured(report: &Report, index: u8) -> Result<Measured, String> {
    let target = &report.summary.target;
    let refuse = |why: &str| {
        Err(format!(
            "{target}: contains {why}; compare traces of writes, such as those of `cardiograph bench --trace`"
        ))
    };
    let Some(trace) = report.trace().filter(|_| report.has_writes()) else {
        return refuse(match report.summary.input {
            Input::Recording => {
                "samples; the intervals between them do not show how long writes took"
            }
            Input::Histogram => {
                "a histogram, which does not show the order of the writes, on which the confidence intervals depend"
            }
            _ => "no individual writes",
        });
    };
    let writes = Writes::of(trace);
    if writes.kind == OperationKind::Read {
        return refuse("reads only");
    }
    let mut latencies_ns = Vec::new();
    writes.replay(|ns, _| latencies_ns.push(ns));
    if latencies_ns.is_empty() {
        return refuse("no writes");
    }
    let summary = &report.summary;
    let name = char::from(b'A' + index).to_string();
    let stalls = summary.stalls.count.unwrap_or(0);
    let sorted = Sorted::new(&latencies_ns);
    let median = Percentile::of((&sorted, &latencies_ns), MEDIAN_PPM, &name, None);
    let p99 = Percentile::of((&sorted, &latencies_ns), P99_PPM, &name, Some(stalls));
    let threshold_us = summary.stalls.threshold_us.unwrap_or(0.0);
    let has_p99 = latencies_ns.len() >= 100;
    let side = Side {
        name,
        target: target.clone(),
        simulated: trace.about.target.starts_with("sim:"),
        workload: summary.workload.clone(),
        writes: summary.writes,
        payload_bytes: summary.payload_bytes,
        block_bytes: writes.uniform_bytes(),
        elapsed_us: summary.elapsed_us,
        resolution_us: resolution_ns(trace, &latencies_ns) as f64 / 1e3,
        latency_us: Latencies {
            median: median.estimate(),
            p99: has_p99.then(|| p99.estimate()),
            worst_case: summary.latency_us.worst_case.unwrap_or(0.0),
        },
        stalls: Stalls {
            threshold_us,
            count: stalls,
        },
        tail: StallTail::of(&latencies_ns, threshold_us),
        sustained_rates: summary.sustained_rates.clone(),
    };
    Ok(Measured { side, median, p99 })
}

impl Percentile {
    /// `stalls` is the number of stalls if the percentile depends on them, as the median does not.
    fn of(
        (sorted, latencies_ns): (&Sorted, &[u64]),
        ppm: u32,
        name: &str,
        stalls: Option<u64>,
    ) -> Percentile {
        let writes = sorted.writes();
        let too_short = too_short(name, ppm, writes, stalls);
        let resampled = match too_short {
            Some(reason) => Err(reason),
            None => sorted.resample(ppm, stalls.unwrap_or(writes)).ok_or_else(|| {
                format!(
                    "the latencies of {name} drift or change over time, and {} writes are too few to average that out; measure for longer",
                    units::count(writes)
                )
            }),
        };
        Percentile {
            value_ns: sorted.percentile_ns(ppm),
            resampled,
            of_eighths_ns: of_eighths_ns(latencies_ns, ppm),
        }
    }

    fn estimate(&self) -> Estimate {
        let resampled = self.resampled.as_ref().ok();
        let interval_ns = resampled.map(Resampled::interval_ns);
        Estimate {
            value: self.value_ns as f64 / 1e3,
            low: interval_ns.map(|(low, _)| low / 1e3),
            high: interval_ns.map(|(_, high)| high / 1e3),
            bootstrap_block_writes: resampled.map(|resampled| resampled.block_writes),
        }
    }
}

/// Number of parts whose percentiles are compared if there is no interval.
const PARTS: usize = 8;

/// Returns the smallest and greatest percentile over the eighths of a trace, if enough writes of each exceed it.
fn of_eighths_ns(latencies_ns: &[u64], ppm: u32) -> Option<(u64, u64)> {
    let part_writes = latencies_ns.len() / PARTS;
    let exceeding = part_writes as u64 * u64::from(1_000_000 - ppm) / 1_000_000;
    if exceeding < EXCEEDING_MIN {
        return None;
    }
    let parts = latencies_ns.chunks_exact(part_writes).take(PARTS);
    let values = parts.map(|part| Sorted::new(part).percentile_ns(ppm));
    let (low, high) = values.fold((u64::MAX, 0), |(low, high), ns| (ns.min(low), ns.max(high)));
    Some((low, high))
}

/// Returns the verdict on two percentiles of which at least one has no interval, if their eighths do not overlap.
fn by_eighths(other: &Percentile, base: &Percentile, resolution_us: f64) -> Option<Outcome> {
    let ((low, high), (base_low, base_high)) = (other.of_eighths_ns?, base.of_eighths_ns?);
    let resolution_ns = (resolution_us * 1e3) as u64;
    match () {
        () if low > base_high.saturating_add(resolution_ns) => Some(Outcome::Slower),
        () if base_low > high.saturating_add(resolution_ns) => Some(Outcome::Faster),
        () => None,
    }
}

/// Returns the resolution of the latencies. If a file states none, derives it from the latencies: those of a clock in
/// ms are multiples of 1 ms.
fn resolution_ns(trace: &Trace, latencies_ns: &[u64]) -> u64 {
    trace.about.clock_resolution_ns.unwrap_or_else(|| {
        latencies_ns
            .iter()
            .fold(0, |divisor, &ns| common_divisor(ns, divisor))
    })
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

impl StallTail {
    fn of(latencies_ns: &[u64], threshold_us: f64) -> Option<StallTail> {
        let is_slow = |ns: &u64| *ns as f64 / 1e3 > threshold_us;
        let stalls = latencies_ns.chunk_by(|a, b| is_slow(a) && is_slow(b));
        let longest = stalls.filter_map(|stall| stall.iter().copied().filter(is_slow).max());
        let mut greatest_us: Vec<f64> = longest.map(|ns| ns as f64 / 1e3).collect();
        greatest_us.sort_unstable_by(|a, b| b.total_cmp(a));
        greatest_us.truncate(PEAKS_MAX);
        let tail = Tail::of_greatest(&greatest_us);
        let (threshold_us, exceedances, shape, scale_us) = tail.figures()?;
        // A longer trace has at least the measured maximum, even if the upper end of the fit is lower.
        let measured_us = greatest_us.first().copied().unwrap_or(0.0);
        Some(StallTail {
            threshold_us,
            exceedances: exceedances as u64,
            shape,
            scale_us,
            in_ten_times_as_many_us: tail.exceeded(0.1)?.max(measured_us),
        })
    }
}

/// Returns the reason why a percentile has no interval, if there are too few writes or stalls for one.
fn too_short(name: &str, ppm: u32, writes: u64, stalls: Option<u64>) -> Option<String> {
    let only = |count: u64, what: &str, least: u64| {
        let s = if count == 1 { "" } else { "s" };
        let (count, least) = (units::count(count), units::count(least));
        format!("{name} has {count} {what}{s}, fewer than {least}; measure for longer")
    };
    let exceeding = writes * u64::from(1_000_000 - ppm) / 1_000_000;
    let writes_min = EXCEEDING_MIN * 1_000_000 / u64::from(1_000_000 - ppm);
    if let Some(few) = stalls.filter(|&stalls| stalls < STALLS_MIN) {
        return Some(only(few, "stall", STALLS_MIN));
    }
    (exceeding < EXCEEDING_MIN).then(|| only(writes, "write", writes_min))
}

fn verdict(other: &Measured, base: &Measured, figure: &'static str) -> Verdict {
    let (of_other, of_base) = match figure {
        "median" => (&other.median, &base.median),
        _ => (&other.p99, &base.p99),
    };
    let interval = match (&of_base.resampled, &of_other.resampled) {
        (Ok(of_base), Ok(of_other)) => Ok(of_other.ratio_interval(of_base)),
        (Err(reason), _) | (_, Err(reason)) => Err(reason.clone()),
    };
    let resolution_us = other.side.resolution_us.max(base.side.resolution_us);
    let difference_us = of_other.value_ns.abs_diff(of_base.value_ns) as f64 / 1e3;
    let apart = by_eighths(of_other, of_base, resolution_us);
    let (verdict, reason) = match (&interval, apart) {
        (Err(_), Some(outcome)) => (
            outcome,
            Some(String::from(
                "in every eighth of the traces, although one of them drifts or is short",
            )),
        ),
        (Err(reason), None) => (Outcome::CannotTell, Some(reason.clone())),
        (Ok((low, high)), _) if *low <= 1.0 && *high >= 1.0 => (
            Outcome::CannotTell,
            Some("the interval contains 1".to_string()),
        ),
        (Ok(_), _) if difference_us <= resolution_us => (
            Outcome::CannotTell,
            Some(format!(
                "the difference is within the resolution of the latencies, {}",
                units::time(resolution_us)
            )),
        ),
        (Ok((low, _)), _) if *low > 1.0 => (Outcome::Slower, None),
        (Ok(_), _) => (Outcome::Faster, None),
    };
    let has_figure = figure == "median"
        || [other, base]
            .iter()
            .all(|one| one.side.latency_us.p99.is_some());
    let ratio = of_other.value_ns.max(1) as f64 / of_base.value_ns.max(1) as f64;
    Verdict {
        side: other.side.name.clone(),
        base: base.side.name.clone(),
        figure,
        verdict,
        ratio: has_figure.then_some(ratio),
        ratio_interval: interval.ok().map(|(low, high)| [low, high]),
        reason,
    }
}

/// Returns the notes of each side.
fn own_notes(reports: &[Report], sides: &[Side]) -> Vec<String> {
    let named = reports.iter().zip(sides).flat_map(|(report, side)| {
        let notes = report.about.notes.iter();
        notes.map(|note| format!("{}: {note}", side.name))
    });
    named.collect()
}

/// Returns notes about differences between the sides other than the card.
fn notes(sides: &[Side]) -> Vec<String> {
    let differ = |what: &str, of: &dyn Fn(&Side) -> String, why: &str| {
        let values: Vec<String> = sides.iter().map(of).collect();
        let is_same = values.windows(2).all(|pair| pair[0] == pair[1]);
        (!is_same).then(|| {
            let all = sides.iter().zip(&values);
            let all: Vec<_> = all
                .map(|(side, value)| format!("{}: {value}", side.name))
                .collect();
            format!("the {what} differ ({}); {why}", all.join(", "))
        })
    };
    let block = |side: &Side| match side.block_bytes {
        Some(bytes) => units::binary_bytes(bytes),
        None => "mixed".to_string(),
    };
    let origin = |side: &Side| match side.simulated {
        true => "simulated card".to_string(),
        false => "trace or real card".to_string(),
    };
    [
        differ(
            "bytes per write",
            &block,
            "latencies of writes of different sizes are not comparable; measure with the same workload",
        ),
        differ(
            "workloads",
            &|side| side.workload.clone(),
            "the comparison is about card and workload together",
        ),
        differ(
            "origins",
            &origin,
            "a simulated card is a model, and its bus and driver are those of its board",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}
