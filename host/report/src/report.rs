//! Computes the figures of a trace.

use crate::energy::Energy;
use crate::phases::{self, PhaseFigures};
use crate::runs;
use crate::statistics::{LatencyStatistics, StallDetector};
use crate::summary::{
    CadenceSummary, GapSummary, Input, Latency, SequenceSummary, StallLatency, StallSpacing,
    Stalls, Summary, SustainedRate, Throughput, thousandths, us,
};
use crate::units;
use crate::writes::Writes;
use cardiograph_timing::cadence::{self, Known, Missing};
use cardiograph_timing::{Replay, default_threshold_ns, sustained};
use cardiograph_trace::{
    About, Aggregate, AggregateRow, Histogram, Loaded, OperationKind, Recording, Trace,
};

/// Buffer sizes for which the sustained rate is reported, in bytes: 1 KiB to 1 MiB.
pub const BUFFER_SIZES_BYTES: [u64; 11] = [
    1 << 10,
    1 << 11,
    1 << 12,
    1 << 13,
    1 << 14,
    1 << 15,
    1 << 16,
    1 << 17,
    1 << 18,
    1 << 19,
    1 << 20,
];

/// Buffer size for which the backlog is drawn, in bytes.
pub(crate) const BACKLOG_BUFFER_BYTES: u64 = 64 << 10;

/// Scale of percentiles: parts per million.
const PPM: u32 = 1_000_000;

/// Maximum number of late samples in the JSON of a recording.
const GAPS_MAX: usize = 1000;

/// Minimum number of spacings for a most frequent one.
const MODE_SPACINGS_MIN: u64 = 10;

/// Figures, notes and warnings of a run, for all outputs.
pub struct Report {
    /// Figures of the run, for programs.
    pub summary: Summary,
    /// Description of the run, with notes.
    pub about: About,
    /// Warnings about the validity of the figures.
    pub warnings: Vec<String>,
    /// Buffer for which the headline states the sustained rate.
    pub answer_buffer_bytes: u64,
    pub(crate) noun: Noun,
    pub(crate) threshold_is_default: bool,
    pub(crate) detail: Option<Detail>,
    /// Operations for the plot of latency over bytes.
    pub(crate) trace: Option<Trace>,
    pub(crate) energy: Option<Energy>,
}

impl Report {
    /// Returns the individual operations, if the source has them.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Returns true if the operations are writes or reads rather than intervals of a recording.
    pub fn has_writes(&self) -> bool {
        self.trace.is_some() && self.noun != Noun::Interval
    }

    /// Returns the sustained rate of any buffer size, or `None` if the source has no individual writes.
    pub fn sustained_bytes_per_s(&self, buffer_bytes: u64) -> Option<f64> {
        let rows = &self.summary.sustained_rates;
        if let Some(row) = rows.iter().find(|row| row.buffer_bytes == buffer_bytes) {
            return Some(row.rate_bytes_per_s);
        }
        let trace = self
            .trace()
            .filter(|_| self.has_writes() && !rows.is_empty())?;
        let writes = Writes::of(trace);
        let latencies = latencies_of(&writes);
        let rates = sustained::sustained_rates_bytes_per_s(&writes, &latencies, &[buffer_bytes]);
        rates.first().copied().map(thousandths)
    }

    /// Returns a percentile (nearest rank) in millionths, or `None` if the source has no individual writes. The
    /// percentiles of the summary come from a histogram, and are up to 0.8 % off.
    pub fn exact_percentile_us(&self, ppm: u32) -> Option<f64> {
        let trace = self.trace().filter(|_| self.has_writes())?;
        let writes = Writes::of(trace);
        let mut count = 0u64;
        writes.replay(|_, _| count += 1);
        let rank = (u128::from(count) * u128::from(ppm)).div_ceil(1_000_000) as u64;
        (count > 0).then(|| nth_latency_ns(&writes, rank.max(1)) as f64 / 1e3)
    }

    /// Creates a report without figures.
    pub(crate) fn empty(about: About) -> Report {
        Report {
            summary: Summary {
                target: about.target.clone(),
                workload: about.workload.clone(),
                ..Summary::default()
            },
            about,
            warnings: Vec::new(),
            noun: Noun::Write,
            threshold_is_default: true,
            detail: None,
            trace: None,
            energy: None,
            answer_buffer_bytes: BACKLOG_BUFFER_BYTES,
        }
    }
}

/// Data for the plots beyond the summary.
pub(crate) struct Detail {
    pub(crate) latencies: Box<LatencyStatistics>,
    /// `None` for a recording.
    pub(crate) stalls: Option<Box<StallDetector>>,
    pub(crate) cadence: Option<cadence::Cadence>,
    pub(crate) phases: Vec<PhaseFigures>,
}

/// Name of the operations of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Write,
    Read,
    Interval,
}

impl Noun {
    pub(crate) fn singular(self) -> &'static str {
        match self {
            Noun::Write => "write",
            Noun::Read => "read",
            Noun::Interval => "interval",
        }
    }

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Noun::Write => "writes",
            Noun::Read => "reads",
            Noun::Interval => "intervals",
        }
    }
}

/// Computes the figures of a measured or loaded trace. Stalls are latencies above `threshold_ns`, or above a default
/// threshold derived from the trace.
pub fn figures_of(loaded: Loaded, threshold_ns: Option<u64>) -> Report {
    figures_at_rate(loaded, threshold_ns, None)
}

/// Computes the figures as [`figures_of`]. `rate_hz` is the number of samples per second of a recording, if the user
/// states it.
pub fn figures_at_rate(loaded: Loaded, threshold_ns: Option<u64>, rate_hz: Option<f64>) -> Report {
    match loaded {
        Loaded::Trace(trace) => of_trace(trace, threshold_ns),
        Loaded::Recording(recording) => of_recording(recording, threshold_ns, rate_hz),
        Loaded::Histogram(histogram) => of_histogram(histogram),
        Loaded::Aggregate(aggregate) => of_aggregate(aggregate),
    }
}

fn of_trace(trace: Trace, threshold_ns: Option<u64>) -> Report {
    let writes = Writes::of(&trace);
    let noun = match writes.kind {
        OperationKind::Write => Noun::Write,
        OperationKind::Read => Noun::Read,
    };
    let latencies = latencies_of(&writes);
    let threshold = threshold_ns.unwrap_or_else(|| default_threshold(&latencies));
    let (stalls, rates) = stalls_and_rates(&writes, &latencies, threshold);
    let sustained_rates = if latencies.sum_ns() == 0 {
        Vec::new()
    } else {
        rate_rows(&rates)
    };
    Report {
        summary: Summary {
            sustained_rates,
            throughput_bytes_per_s: throughput_of(&latencies),
            operations_per_s: per_second(latencies.count(), &latencies),
            stalls: stalls_summary(&stalls, &latencies, spacings_of(&writes, threshold)),
            ..summary_of(&trace, &latencies)
        },
        about: trace.about.clone(),
        warnings: Vec::new(),
        noun,
        threshold_is_default: threshold_ns.is_none(),
        detail: Some(Detail {
            latencies,
            stalls: Some(stalls),
            cadence: None,
            phases: phases::of(&trace),
        }),
        trace: Some(trace),
        energy: None,
        answer_buffer_bytes: BACKLOG_BUFFER_BYTES,
    }
}

fn of_recording(recording: Recording, threshold_ns: Option<u64>, rate_hz: Option<f64>) -> Report {
    let known = Known {
        period_ns: rate_hz.map(|hz| 1e9 / hz),
        written_ns: written_ns(recording.time_unit),
    };
    let run_audits = runs::audits(&recording, &known);
    let steps = Writes::of(&recording.trace);
    let latencies = latencies_of(&steps);
    let audit = cadence::audit(&steps, &known).map(|whole| match run_audits.is_empty() {
        true => whole,
        false => runs::combined(whole, &recording, &run_audits),
    });
    let mut summary = summary_of(&recording.trace, &latencies);
    // The sampling audit computes the exact median; the histogram does not.
    summary.latency_us.median = audit.as_ref().map(|audit| us(audit.median_step_ns));
    summary.cadence = audit.as_ref().map(|audit| {
        let mut cadence = cadence_summary(audit);
        cadence.runs = run_audits.iter().map(runs::summary).collect();
        if let Some(sequence) = &recording.sequence {
            cadence.missing_samples = Some(sequence.lost);
            cadence.missing_samples_min = Some(sequence.lost);
            cadence.missing_samples_max = Some(sequence.lost);
            cadence.room_for_samples = None;
            cadence.sequence = Some(SequenceSummary {
                column: sequence.column.clone(),
                lost_samples: sequence.lost,
                repeated_samples: sequence.repeated,
            });
        }
        cadence
    });
    let has_numbers = recording.sequence.is_some();
    let trace = recording.trace;
    let ignored = threshold_ns.map(|_| {
        "--stall-threshold has no effect: a recording does not show how long writes took; a sample is late if it follows \
         the previous one after more than 1.5 periods"
            .to_string()
    });
    let of_runs = run_audits
        .iter()
        .filter_map(|run| Some(format!("{}: {}", run.label, doubt(&run.audit, rate_hz)?)));
    let of_whole = audit
        .as_ref()
        .filter(|_| run_audits.is_empty())
        .and_then(|audit| doubt(audit, rate_hz));
    // Numbers of samples leave no doubt.
    let doubts = of_runs.chain(of_whole).filter(|_| !has_numbers);
    let warnings = doubts.chain(ignored);
    Report {
        summary: Summary {
            input: Input::Recording,
            ..summary
        },
        about: trace.about.clone(),
        warnings: warnings.collect(),
        noun: Noun::Interval,
        threshold_is_default: true,
        detail: Some(Detail {
            latencies,
            stalls: None,
            cadence: audit,
            phases: Vec::new(),
        }),
        trace: Some(trace),
        energy: None,
        answer_buffer_bytes: BACKLOG_BUFFER_BYTES,
    }
}

fn cadence_summary(audit: &cadence::Cadence) -> CadenceSummary {
    CadenceSummary {
        samples: audit.samples,
        median_interval_us: us(audit.median_step_ns),
        period_us: audit.period_ns.map(|ns| thousandths(ns / 1e3)),
        duplicate_samples: audit.duplicate_samples,
        late_samples: audit.gaps.len() as u64,
        missing_samples: certain(audit.missing),
        missing_samples_min: range(audit.missing).map(|range| range.0),
        missing_samples_max: range(audit.missing).map(|range| range.1),
        room_for_samples: match audit.missing {
            Missing::RoomFor(count) => Some(count),
            _ => None,
        },
        longest_gap_us: us(audit.longest_gap_ns),
        mean_interval_us: thousandths(audit.mean_step_ns / 1e3),
        drift_us: audit.drift_ns.map(|ns| thousandths(ns / 1e3)),
        gaps: longest(&audit.gaps),
        sequence: None,
        runs: Vec::new(),
    }
}

/// Returns the longest late samples, in order of time.
fn longest(late: &[cadence::LateStep]) -> Vec<GapSummary> {
    let mut gaps = late.to_vec();
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.step_ns));
    gaps.truncate(GAPS_MAX);
    gaps.sort_by_key(|gap| gap.at_ns);
    gaps.iter()
        .map(|gap| GapSummary {
            at_us: us(gap.at_ns),
            length_us: us(gap.step_ns),
            missing_samples: certain(gap.missing),
            room_for_samples: most(gap.missing),
        })
        .collect()
}

/// Returns the resolution of times that are whole numbers of a unit, in ns.
fn written_ns(unit: &str) -> Option<u64> {
    match unit {
        "s" | "calendar" => Some(1_000_000_000),
        "ms" => Some(1_000_000),
        "us" => Some(1_000),
        "ns" => Some(1),
        _ => None,
    }
}

/// Returns the number of missing samples, if it is certain.
fn certain(missing: Missing) -> Option<u64> {
    match missing {
        Missing::Exactly(count) => Some(count),
        Missing::Between(..) | Missing::RoomFor(_) => None,
    }
}

/// Returns the least and the greatest number of missing samples, if a period fits.
fn range(missing: Missing) -> Option<(u64, u64)> {
    match missing {
        Missing::Exactly(count) => Some((count, count)),
        Missing::Between(least, most) => Some((least, most)),
        Missing::RoomFor(_) => None,
    }
}

/// Returns the greatest number of samples that may be missing.
pub(crate) fn most(missing: Missing) -> u64 {
    match missing {
        Missing::Exactly(count) | Missing::Between(_, count) | Missing::RoomFor(count) => count,
    }
}

/// Warns if the number of missing samples is uncertain.
fn doubt(audit: &cadence::Cadence, rate_hz: Option<f64>) -> Option<String> {
    let remedy = match rate_hz {
        Some(_) => "",
        None => "; if you know the rate, pass --rate",
    };
    match audit.missing {
        Missing::Exactly(_) => None,
        Missing::Between(..) => Some(format!(
            "the number of missing samples depends on the period, which the times do not show exactly enough{remedy}"
        )),
        Missing::RoomFor(_) => Some(format!(
            "no sample period fits the times: {} of {} intervals differ by more than a quarter from the median; late steps have \
             room for samples, but may come from events, several sensors, or an uneven loop{remedy}",
            units::count(audit.samples - 1 - audit.regular_steps),
            units::count(audit.samples - 1),
        )),
    }
}

/// Creates a report from latencies without their order.
fn of_histogram(histogram: Histogram) -> Report {
    let writes = histogram.writes();
    let percentile = |ppm: u32| {
        let is_exceeded = writes.saturating_mul(u64::from(PPM - ppm)) >= u64::from(PPM);
        let latency_ns = histogram.percentile_ns(ppm).filter(|_| is_exceeded);
        latency_ns.map(us)
    };
    let (lowest, highest) = (histogram.bins.first(), histogram.bins.last());
    let sum = |bins: &[(u64, u64)]| {
        bins.iter()
            .map(|(ns, count)| *ns as f64 * *count as f64)
            .sum::<f64>()
    };
    let mean_ns = histogram
        .mean_ns
        .unwrap_or_else(|| sum(&histogram.bins) / writes as f64);
    let latency_us = Latency {
        min: histogram.min_ns.or(lowest.map(|bin| bin.0)).map(us),
        mean: Some(thousandths(mean_ns / 1e3)),
        median: histogram.percentile_ns(500_000).map(us),
        p90: percentile(900_000),
        p99: percentile(990_000),
        p99_9: percentile(999_000),
        p99_99: percentile(999_900),
        worst_case: histogram.max_ns.or(highest.map(|bin| bin.0)).map(us),
    };
    let mut report = Report::empty(histogram.about);
    report.summary = Summary {
        input: Input::Histogram,
        writes,
        payload_bytes: histogram.payload_bytes,
        latency_us,
        notes: report.about.notes.clone(),
        ..report.summary
    };
    report.warnings.push(
        "this file contains a histogram, not a sequence of individual writes; stalls, throughput and sustained rates \
         are not available"
            .to_string(),
    );
    report
}

/// Creates a report from statistics of whole files, which contain no latencies between minimum and maximum.
fn of_aggregate(aggregate: Aggregate) -> Report {
    let rows = &aggregate.rows;
    let longest = aggregate.longest;
    let of_rows: u64 = rows.iter().map(writes_of_row).sum();
    let writes = of_rows + longest.and_then(|longest| longest.writes).unwrap_or(0);
    let bytes: u64 = rows.iter().map(|row| row.file_size_bytes).sum();
    let sum_ns: f64 = rows.iter().map(duration_ns_of_row).sum();
    let min_ns = rows.iter().map(|row| row.latency_ns_min).min();
    let max_ns = rows.iter().map(|row| row.latency_ns_max).max();
    let max_ns = max_ns.or(longest.map(|longest| longest.latency_ns));
    let per_second = |n: u64| (sum_ns > 0.0).then(|| thousandths(n as f64 * 1e9 / sum_ns));
    let block_bytes = bytes as f64 / of_rows.max(1) as f64;
    Report {
        summary: Summary {
            target: aggregate.about.target.clone(),
            workload: aggregate.about.workload.clone(),
            input: Input::Summary,
            notes: aggregate.about.notes.clone(),
            writes,
            payload_bytes: bytes,
            elapsed_us: None,
            latency_us: Latency {
                min: min_ns.map(us),
                mean: (of_rows > 0).then(|| thousandths(sum_ns / of_rows as f64 / 1e3)),
                worst_case: max_ns.map(us),
                ..Latency::default()
            },
            throughput_bytes_per_s: Throughput {
                mean: per_second(bytes),
                worst_case: max_ns
                    .filter(|max_ns| *max_ns > 0 && of_rows > 0)
                    .map(|max_ns| thousandths(block_bytes * 1e9 / max_ns as f64)),
            },
            operations_per_s: per_second(of_rows),
            stalls: Stalls::default(),
            sustained_rates: Vec::new(),
            cadence: None,
            energy: None,
            open_loop: None,
            disk: None,
            trust: None,
        },
        about: aggregate.about,
        warnings: vec![
            "this file contains statistics of whole files, not individual writes; percentiles, \
             stalls and sustained rates are not available"
                .to_string(),
        ],
        noun: Noun::Write,
        threshold_is_default: true,
        detail: None,
        trace: None,
        energy: None,
        answer_buffer_bytes: BACKLOG_BUFFER_BYTES,
    }
}

fn writes_of_row(row: &AggregateRow) -> u64 {
    row.file_size_bytes.div_ceil(row.block_bytes.max(1))
}

fn duration_ns_of_row(row: &AggregateRow) -> f64 {
    row.file_size_bytes as f64 * 1e9 / row.throughput_bytes_per_s
}

/// Returns the latency that `rank` writes do not exceed, in ns, by counting 16 bits at a time: memory does not grow with
/// the number of writes.
fn nth_latency_ns(writes: &Writes, rank: u64) -> u64 {
    const DIGITS: usize = 1 << 16;
    let (mut rank, mut known) = (rank, 0u64);
    for shift in [48, 32, 16, 0] {
        let mut counts = vec![0u64; DIGITS];
        writes.replay(|ns, _| {
            let above = ns.checked_shr(shift + 16).unwrap_or(0);
            if above == known {
                counts[(ns >> shift) as usize % DIGITS] += 1;
            }
        });
        let mut digit = 0;
        while digit + 1 < DIGITS && counts[digit] < rank {
            rank -= counts[digit];
            digit += 1;
        }
        known = known << 16 | digit as u64;
    }
    known
}

pub(crate) fn latencies_of(writes: &Writes) -> Box<LatencyStatistics> {
    let mut latencies = Box::<LatencyStatistics>::default();
    writes.replay_run(&mut *latencies);
    latencies
}

fn stalls_of(writes: &Writes, threshold_ns: u64) -> Box<StallDetector> {
    let mut stalls = Box::new(StallDetector::above(threshold_ns));
    writes.replay(|ns, bytes| stalls.push(ns, bytes));
    stalls.finish();
    stalls
}

/// Computes stalls and sustained rates on two cores: ten million writes take little longer than three passes
/// over the trace.
fn stalls_and_rates(
    writes: &Writes,
    latencies: &LatencyStatistics,
    threshold_ns: u64,
) -> (Box<StallDetector>, Vec<f64>) {
    // The larger the buffer, the more writes affect its rate: the two largest buffers take as long as all
    // the others.
    let (small, large) = BUFFER_SIZES_BYTES.split_at(BUFFER_SIZES_BYTES.len() - 2);
    let rates_of = |sizes| sustained::sustained_rates_bytes_per_s(writes, latencies, sizes);
    let (large, (stalls, mut rates)) = both(
        || rates_of(large),
        || (stalls_of(writes, threshold_ns), rates_of(small)),
    );
    rates.extend(large);
    (stalls, rates)
}

/// Computes two values on two cores, or one after the other in a browser, which has no threads.
fn both<A: Send, B>(other: impl FnOnce() -> A + Send, own: impl FnOnce() -> B) -> (A, B) {
    if cfg!(target_family = "wasm") {
        return (other(), own());
    }
    std::thread::scope(|scope| {
        let other = scope.spawn(other);
        let own = own();
        match other.join() {
            Ok(other) => (other, own),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

fn default_threshold(latencies: &LatencyStatistics) -> u64 {
    let median_ns = latencies.percentile_ns(500_000).unwrap_or(0);
    let (mean_ns, max_ns) = (
        latencies.mean_ns().unwrap_or(0),
        latencies.max_ns().unwrap_or(0),
    );
    default_threshold_ns(mean_ns, median_ns, max_ns)
}

fn rate_rows(rates: &[f64]) -> Vec<SustainedRate> {
    let rows = BUFFER_SIZES_BYTES.iter().zip(rates);
    rows.map(|(&buffer_bytes, &rate)| SustainedRate {
        buffer_bytes,
        rate_bytes_per_s: thousandths(rate),
    })
    .collect()
}

fn summary_of(trace: &Trace, latencies: &LatencyStatistics) -> Summary {
    // A percentile that no write exceeds would only repeat the worst case.
    let is_exceeded = |ppm: u32| latencies.count() * u64::from(PPM - ppm) >= u64::from(PPM);
    let percentile = |ppm| {
        latencies
            .percentile_ns(ppm)
            .filter(|_| is_exceeded(ppm))
            .map(us)
    };
    let count = latencies.count();
    let mean_us = (count > 0).then(|| thousandths(latencies.sum_ns() as f64 / count as f64 / 1e3));
    Summary {
        target: trace.about.target.clone(),
        workload: trace.about.workload.clone(),
        writes: count,
        payload_bytes: latencies.bytes(),
        elapsed_us: Some(us(trace.last_end_ns() - trace.first_start_ns())),
        latency_us: Latency {
            min: latencies.min_ns().map(us),
            mean: mean_us,
            median: latencies.percentile_ns(500_000).map(us),
            p90: percentile(900_000),
            p99: percentile(990_000),
            p99_9: percentile(999_000),
            p99_99: percentile(999_900),
            worst_case: latencies.max_ns().map(us),
        },
        notes: trace.about.notes.clone(),
        ..Summary::default()
    }
}

fn throughput_of(latencies: &LatencyStatistics) -> Throughput {
    let (count, bytes) = (latencies.count(), latencies.bytes());
    let worst_case = latencies
        .max_ns()
        .filter(|&ns| ns > 0)
        .map(|ns| thousandths(bytes as f64 / count as f64 * 1e9 / ns as f64));
    Throughput {
        mean: per_second(bytes, latencies),
        worst_case,
    }
}

/// Divides by the sum of the latencies.
fn per_second(n: u64, latencies: &LatencyStatistics) -> Option<f64> {
    let sum_s = latencies.sum_ns() as f64 / 1e9;
    (sum_s > 0.0).then(|| thousandths(n as f64 / sum_s))
}

/// Returns the payloads from the beginning of each stall to that of the next.
fn spacings_of(writes: &Writes, threshold_ns: u64) -> Vec<u64> {
    let (mut position_bytes, mut last_bytes, mut is_slow) = (0, None, false);
    let mut spacings = Vec::new();
    writes.replay(|ns, bytes| {
        let begins = ns > threshold_ns && !is_slow;
        is_slow = ns > threshold_ns;
        if begins {
            let before = last_bytes.replace(position_bytes);
            spacings.extend(before.map(|before| position_bytes - before));
        }
        position_bytes = u64::saturating_add(position_bytes, bytes);
    });
    spacings
}

fn stalls_summary(
    stalls: &StallDetector,
    latencies: &LatencyStatistics,
    mut spacings_bytes: Vec<u64>,
) -> Stalls {
    // The median of a histogram may exceed the exact maximum.
    let max_ns = latencies.max_ns().unwrap_or(u64::MAX);
    let spacings = stalls.count().saturating_sub(1);
    let middle = spacings_bytes.len().saturating_sub(1) / 2;
    let median =
        (!spacings_bytes.is_empty()).then(|| *spacings_bytes.select_nth_unstable(middle).1);
    Stalls {
        threshold_us: Some(us(stalls.threshold_ns())),
        count: Some(stalls.count()),
        spacing_bytes: StallSpacing {
            median,
            mode: stalls
                .mode_spacing_bytes()
                .filter(|_| spacings >= MODE_SPACINGS_MIN),
        },
        latency_us: StallLatency {
            median: stalls.median_latency_ns().map(|ns| us(ns.min(max_ns))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_trace::{Operation, OperationKind};

    /// Latencies that share some of their 16-bit digits, against a sorted list.
    #[test]
    fn an_exact_percentile_is_the_one_of_the_sorted_latencies() {
        let mut latencies_ns: Vec<u64> = (0..1000u64)
            .map(|index| match index % 4 {
                0 => index * 65_536,
                1 => 70_000 + index,
                2 => (index << 33) + index % 3,
                _ => 65_535,
            })
            .collect();
        let mut trace = Trace::new(About::default());
        let mut now_ns = 0;
        for &ns in &latencies_ns {
            let operation = Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: now_ns,
                length_bytes: 1,
                start_ns: now_ns,
                end_ns: now_ns + ns,
            };
            now_ns += ns;
            trace.push(&operation).unwrap();
        }
        latencies_ns.sort_unstable();
        let report = figures_of(Loaded::Trace(trace), None);
        for ppm in [
            1, 1000, 1001, 250_000, 499_500, 500_000, 900_000, 999_001, 1_000_000,
        ] {
            let rank = (1000 * ppm as usize).div_ceil(1_000_000);
            let expected = latencies_ns[rank - 1] as f64 / 1e3;
            assert_eq!(report.exact_percentile_us(ppm), Some(expected), "{ppm}");
        }
    }
}
