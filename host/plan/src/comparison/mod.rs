//! Comparison of cards: which one is faster, and by how much.
//!
//! ```text
//!   Report of each card ──> Side: percentiles ── bootstrap ──> intervals ──┐
//!                             stalls ── Tail                               ├──> Comparison
//!                           ratio to the first side ── bootstrap ──> Verdict
//! ```
//!
//! The verdicts are about median and 99th percentile. Longest write and sustained rate depend on the rarest stalls of a
//! trace; no interval of such a figure holds for a longer trace, so they have no verdict.
//!
//! On 1000 random seeds of six kinds of traces, the 95 % intervals contain the true percentile in 93.8 to 96.3 %, and two
//! traces of the same kind are called different in 0.6 to 6.4 % (`examples/bootstrap.rs`; the dated run is in
//! `benchmarks/runs`). The most, 6.4 %, are medians of writes whose latencies are strongly correlated (0.9).

mod bootstrap;
mod figures;
mod text;

pub use bootstrap::{REPLICATES, Resampled, SEED, block_writes, resample};
pub use figures::{
    Bootstrap, Comparison, Estimate, Latencies, Outcome, Side, StallTail, Stalls, Verdict,
};
pub use text::{heads, rows, sentences, text};

use crate::risk::{PEAKS_MAX, Tail};
use cardiograph_report::{Report, Writes, units};
use cardiograph_timing::Replay;
use cardiograph_trace::{OperationKind, Trace};

/// Fewer stalls have no interval: the length of a block depends on their spacing.
pub const STALLS_MIN: u64 = 10;
/// Fewer writes above a percentile have no interval.
const EXCEEDING_MIN: u64 = 10;

const MEDIAN_PPM: u32 = 500_000;
const P99_PPM: u32 = 990_000;

/// A side, and what only the comparison needs.
struct Measured {
    side: Side,
    median: Resampled,
    p99: Resampled,
}

/// Compares the cards of the reports with the first.
///
/// # Errors
/// A sentence if a report has no individual writes.
pub fn compare(reports: &[Report]) -> Result<Comparison, String> {
    let measured = reports
        .iter()
        .zip(0..)
        .map(|(report, index)| measured(report, index));
    let measured = measured.collect::<Result<Vec<_>, _>>()?;
    let mut verdicts = Vec::new();
    if let Some((base, others)) = measured.split_first() {
        for other in others {
            verdicts.push(verdict(other, base, "median"));
            verdicts.push(verdict(other, base, "p99"));
        }
    }
    let sides: Vec<Side> = measured.into_iter().map(|one| one.side).collect();
    Ok(Comparison {
        bootstrap: Bootstrap {
            replicates: REPLICATES as u64,
            seed: SEED,
        },
        notes: notes(&sides),
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
        return refuse("no individual writes");
    };
    let writes = Writes::of(trace);
    if writes.kind == OperationKind::Read {
        return refuse("reads only");
    }
    let mut latencies_ns = Vec::new();
    writes.replay(|ns, _| latencies_ns.push(ns));
    let summary = &report.summary;
    let stall_count = summary.stalls.count.unwrap_or(0);
    let block = block_writes(latencies_ns.len() as u64, stall_count);
    let percentiles = resample(&latencies_ns, block, &[MEDIAN_PPM, P99_PPM], index.into());
    let Ok([median, p99]) = <[Resampled; 2]>::try_from(percentiles) else {
        return refuse("no writes");
    };
    let threshold_us = summary.stalls.threshold_us.unwrap_or(0.0);
    let has_p99 = latencies_ns.len() >= 100;
    let mut side = Side {
        name: char::from(b'A' + index).to_string(),
        target: target.clone(),
        simulated: trace.about.target.starts_with("sim:"),
        workload: summary.workload.clone(),
        writes: summary.writes,
        payload_bytes: summary.payload_bytes,
        block_bytes: writes.uniform_bytes(),
        elapsed_us: summary.elapsed_us,
        resolution_us: resolution_ns(trace, &latencies_ns) as f64 / 1e3,
        latency_us: Latencies {
            median: estimate(&median),
            p99: has_p99.then(|| estimate(&p99)),
            worst_case: summary.latency_us.worst_case.unwrap_or(0.0),
        },
        stalls: Stalls {
            threshold_us,
            count: stall_count,
            bootstrap_block_writes: block,
        },
        tail: StallTail::of(&latencies_ns, threshold_us),
        sustained_rates: summary.sustained_rates.clone(),
    };
    if undecided(&side, "median").is_some() {
        side.latency_us.median.forget_interval();
    }
    if let (Some(_), Some(p99)) = (undecided(&side, "p99"), &mut side.latency_us.p99) {
        p99.forget_interval();
    }
    Ok(Measured { side, median, p99 })
}

fn estimate(resampled: &Resampled) -> Estimate {
    let (low, high) = resampled.interval_ns();
    Estimate {
        value: resampled.estimate_ns as f64 / 1e3,
        low: Some(low / 1e3),
        high: Some(high / 1e3),
    }
}

impl Estimate {
    fn forget_interval(&mut self) {
        (self.low, self.high) = (None, None);
    }
}

/// Returns the resolution of the latencies. A file that states none shows it in its numbers: those of a clock in ms are
/// multiples of 1 ms.
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
        Some(StallTail {
            threshold_us,
            exceedances: exceedances as u64,
            shape,
            scale_us,
            in_ten_times_as_many_us: tail.exceeded(0.1)?,
        })
    }
}

/// Returns why a side has no interval of a figure.
fn undecided(side: &Side, figure: &str) -> Option<String> {
    let stalls = side.stalls.count;
    if stalls < STALLS_MIN {
        let stalls = match stalls {
            1 => "1 stall".to_string(),
            n => format!("{} stalls", units::count(n)),
        };
        return Some(format!(
            "{} has {stalls}, fewer than {STALLS_MIN}; measure longer",
            side.name
        ));
    }
    let writes_min = 100 * EXCEEDING_MIN;
    (figure == "p99" && side.writes < writes_min).then(|| {
        format!(
            "{} has {} writes, fewer than {}; measure longer",
            side.name,
            units::count(side.writes),
            units::count(writes_min)
        )
    })
}

fn verdict(other: &Measured, base: &Measured, figure: &'static str) -> Verdict {
    let (of_other, of_base) = match figure {
        "median" => (&other.median, &base.median),
        _ => (&other.p99, &base.p99),
    };
    let undecided = undecided(&base.side, figure).or_else(|| undecided(&other.side, figure));
    let interval = undecided
        .is_none()
        .then(|| of_other.ratio_interval(of_base));
    let resolution_us = other.side.resolution_us.max(base.side.resolution_us);
    let difference_us = of_other.estimate_ns.abs_diff(of_base.estimate_ns) as f64 / 1e3;
    let (verdict, reason) = match interval {
        None => (Outcome::CannotTell, undecided),
        Some((low, high)) if low <= 1.0 && high >= 1.0 => (
            Outcome::CannotTell,
            Some("the interval contains 1".to_string()),
        ),
        Some(_) if difference_us <= resolution_us => (
            Outcome::CannotTell,
            Some(format!(
                "the difference is within the resolution of the latencies, {}",
                units::time(resolution_us)
            )),
        ),
        Some((low, _)) if low > 1.0 => (Outcome::Slower, None),
        Some(_) => (Outcome::Faster, None),
    };
    let has_figure = figure == "median"
        || [other, base]
            .iter()
            .all(|one| one.side.latency_us.p99.is_some());
    let ratio = of_other.estimate_ns.max(1) as f64 / of_base.estimate_ns.max(1) as f64;
    Verdict {
        side: other.side.name.clone(),
        base: base.side.name.clone(),
        figure,
        verdict,
        ratio: has_figure.then_some(ratio),
        ratio_interval: interval.map(|(low, high)| [low, high]),
        reason,
    }
}

/// Returns what differs between the sides besides the card.
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
            "latencies of different sizes do not compare cards; measure with the same workload",
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
