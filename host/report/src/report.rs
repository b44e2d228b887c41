//! From a trace to its figures.

use crate::energy::Energy;
use crate::parts::{self, PartFigures};
use crate::summary::{
    CadenceSummary, FrontierPoint, PeakHeight, PeakSpacing, Peaks, Summary, Throughput, WriteTime,
    thousandths, us,
};
use crate::units;
use crate::writes::Writes;
use cardiograph_timing::{
    Replay, WriteTimes, buckets_below, cadence, chosen_threshold_ns, frontier,
};
use cardiograph_trace::{About, Aggregate, AggregateRow, Loaded, OperationKind, Recording, Trace};

/// RAM sizes of the frontier, in bytes: 1 KiB to 1 MiB.
pub const RAM_BYTES: [u64; 11] = [
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

/// RAM that the backlog is drawn for, in bytes.
pub(crate) const BACKLOG_RAM_BYTES: u64 = 64 << 10;

/// Buckets for every time in ns and every spacing in bytes.
const BUCKETS: usize = buckets_below(64);

pub(crate) type Times = WriteTimes<BUCKETS>;
pub(crate) type PeakFinder = cardiograph_timing::Peaks<BUCKETS>;

/// Drift of a recording over its length, from which on one step does not describe it.
const DRIFT_MAX: f64 = 0.02;

/// Schema of [`Summary`].
const SCHEMA: u32 = 1;

/// One run with all that is shown of it.
pub struct Report {
    /// The figures, as programs read them.
    pub summary: Summary,
    /// What was run, on what, and what must be known about it.
    pub about: About,
    /// What a reader must know before trusting the figures.
    pub warnings: Vec<String>,
    pub(crate) noun: Noun,
    pub(crate) threshold_was_chosen: bool,
    pub(crate) detail: Option<Detail>,
    /// For the write times over bytes.
    pub(crate) trace: Option<Trace>,
    pub(crate) energy: Option<Energy>,
}

impl Report {
    /// The single operations, where the source has them.
    pub fn trace(&self) -> Option<&Trace> {
        self.trace.as_ref()
    }

    /// Whether the operations are writes or reads, and not steps of a recording.
    pub fn has_writes(&self) -> bool {
        self.trace.is_some() && self.noun != Noun::Step
    }

    /// Nothing but a name.
    pub(crate) fn empty(about: About) -> Report {
        Report {
            summary: Summary {
                schema: SCHEMA,
                target: about.target.clone(),
                workload: about.workload.clone(),
                ..Summary::default()
            },
            about,
            warnings: Vec::new(),
            noun: Noun::Write,
            threshold_was_chosen: true,
            detail: None,
            trace: None,
            energy: None,
        }
    }
}

/// What the plots need beyond the summary.
pub(crate) struct Detail {
    pub(crate) times: Box<Times>,
    pub(crate) peaks: Box<PeakFinder>,
    pub(crate) cadence: Option<cadence::Cadence>,
    pub(crate) parts: Vec<PartFigures>,
}

/// What the operations of a trace are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Noun {
    Write,
    Read,
    Step,
}

impl Noun {
    pub(crate) fn singular(self) -> &'static str {
        match self {
            Noun::Write => "write",
            Noun::Read => "read",
            Noun::Step => "step",
        }
    }

    pub(crate) fn doing(self) -> &'static str {
        match self {
            Noun::Write => "writing",
            Noun::Read => "reading",
            Noun::Step => "stepping",
        }
    }

    pub(crate) fn plural(self) -> &'static str {
        match self {
            Noun::Write => "writes",
            Noun::Read => "reads",
            Noun::Step => "steps",
        }
    }
}

/// The figures of what was measured or read. Peaks are write times above `threshold_ns`, or above
/// one that is chosen from the trace.
pub fn figures_of(loaded: Loaded, threshold_ns: Option<u64>) -> Report {
    match loaded {
        Loaded::Trace(trace) => of_trace(trace, threshold_ns),
        Loaded::Recording(recording) => of_recording(recording, threshold_ns),
        Loaded::Aggregate(aggregate) => of_aggregate(aggregate),
    }
}

fn of_trace(trace: Trace, threshold_ns: Option<u64>) -> Report {
    let writes = Writes::of(&trace);
    let noun = match writes.kind {
        OperationKind::Write => Noun::Write,
        OperationKind::Read => Noun::Read,
    };
    let times = times_of(&writes);
    let threshold = threshold_ns.unwrap_or_else(|| chosen_threshold(&times));
    let (peaks, rates) = peaks_and_rates(&writes, &times, threshold);
    let frontier = if times.sum_ns() == 0 {
        Vec::new()
    } else {
        frontier_points(&rates)
    };
    Report {
        summary: Summary {
            frontier,
            ..summary_of(&trace, &times, &peaks)
        },
        about: trace.about.clone(),
        warnings: Vec::new(),
        noun,
        threshold_was_chosen: threshold_ns.is_none(),
        detail: Some(Detail {
            times,
            peaks,
            cadence: None,
            parts: parts::of(&trace),
        }),
        trace: Some(trace),
        energy: None,
    }
}

fn of_recording(recording: Recording, threshold_ns: Option<u64>) -> Report {
    let trace = recording.trace;
    let steps = Writes::of(&trace);
    let times = times_of(&steps);
    let audit = cadence::audit(&steps);
    // A late step, by definition, is longer than one and a half medians.
    let median_ns = audit.as_ref().map_or(0, |audit| audit.median_step_ns);
    let threshold = threshold_ns.unwrap_or(median_ns.saturating_add(median_ns / 2));
    let peaks = peaks_of(&steps, threshold);
    let cadence = audit.as_ref().map(|audit| CadenceSummary {
        samples: audit.samples,
        median_step_us: us(audit.median_step_ns),
        late: audit.gaps.len() as u64,
        missing: audit.missing,
        longest_gap_us: us(audit.longest_gap_ns),
    });
    let mut summary = summary_of(&trace, &times, &peaks);
    // The audit knows it exactly.
    summary.write_time_us.p50 = audit.as_ref().map(|audit| us(audit.median_step_ns));
    Report {
        summary: Summary {
            cadence,
            // How fast the medium was is not in a recording.
            frontier: Vec::new(),
            ..summary
        },
        about: trace.about.clone(),
        warnings: audit.as_ref().and_then(uneven).into_iter().collect(),
        noun: Noun::Step,
        threshold_was_chosen: threshold_ns.is_none(),
        detail: Some(Detail {
            times,
            peaks,
            cadence: audit,
            parts: Vec::new(),
        }),
        trace: Some(trace),
        energy: None,
    }
}

/// Says so where one step does not describe a recording: the samples then come at several rates.
fn uneven(audit: &cadence::Cadence) -> Option<String> {
    let elapsed_ns = audit.mean_step_ns * (audit.samples - 1) as f64;
    let drift = audit.drift_ns as f64 / elapsed_ns;
    (drift.abs() > DRIFT_MAX).then(|| {
        format!(
            "the samples do not keep one cadence: the mean step, {}, differs from the median, and over \
             the recording they come {:.1} % {} than the median step says; late and missing samples \
             are counted against the median",
            units::time(audit.mean_step_ns / 1e3),
            drift.abs() * 100.0,
            if drift < 0.0 { "earlier" } else { "later" },
        )
    })
}

/// Figures for whole files: what lies between the least and the greatest write is not known.
fn of_aggregate(aggregate: Aggregate) -> Report {
    let rows = &aggregate.rows;
    let writes: u64 = rows.iter().map(writes_of_row).sum();
    let bytes: u64 = rows.iter().map(|row| row.file_size_bytes).sum();
    let sum_ns: f64 = rows.iter().map(duration_ns_of_row).sum();
    let min_ns = rows.iter().map(|row| row.latency_ns_min).min().unwrap_or(0);
    let max_ns = rows.iter().map(|row| row.latency_ns_max).max().unwrap_or(0);
    let per_second = |n: u64| (sum_ns > 0.0).then(|| thousandths(n as f64 * 1e9 / sum_ns));
    let block_bytes = bytes as f64 / writes.max(1) as f64;
    Report {
        summary: Summary {
            schema: SCHEMA,
            target: aggregate.about.target.clone(),
            workload: aggregate.about.workload.clone(),
            writes,
            bytes,
            elapsed_us: None,
            write_time_us: WriteTime {
                min: Some(us(min_ns)),
                mean: (writes > 0).then(|| thousandths(sum_ns / writes as f64 / 1e3)),
                max: Some(us(max_ns)),
                ..WriteTime::default()
            },
            throughput_bps: Throughput {
                average: per_second(bytes),
                guaranteed: (max_ns > 0).then(|| thousandths(block_bytes * 1e9 / max_ns as f64)),
            },
            iops: per_second(writes),
            peaks: Peaks::default(),
            frontier: Vec::new(),
            cadence: None,
            energy: None,
        },
        about: aggregate.about,
        warnings: vec![
            "this file holds figures of whole files, not single writes: percentiles, peaks and \
             lossless rates cannot be told from it"
                .to_string(),
        ],
        noun: Noun::Write,
        threshold_was_chosen: true,
        detail: None,
        trace: None,
        energy: None,
    }
}

fn writes_of_row(row: &AggregateRow) -> u64 {
    row.file_size_bytes.div_ceil(row.block_bytes.max(1))
}

fn duration_ns_of_row(row: &AggregateRow) -> f64 {
    row.file_size_bytes as f64 * 1e9 / row.speed_Bps
}

fn times_of(writes: &Writes) -> Box<Times> {
    let mut times = Box::<Times>::default();
    writes.replay_alike(&mut *times);
    times
}

fn peaks_of(writes: &Writes, threshold_ns: u64) -> Box<PeakFinder> {
    let mut peaks = Box::new(PeakFinder::above(threshold_ns));
    writes.replay(|ns, bytes| peaks.push(ns, bytes));
    peaks.finish();
    peaks
}

/// Both on two cores: a trace of ten million writes is read in little more time than it takes to look
/// at it thrice.
fn peaks_and_rates(
    writes: &Writes,
    times: &Times,
    threshold_ns: u64,
) -> (Box<PeakFinder>, Vec<f64>) {
    // The larger the RAM, the more writes matter: these two take as long as all the others.
    let (small, large) = RAM_BYTES.split_at(RAM_BYTES.len() - 2);
    std::thread::scope(|scope| {
        let large = scope.spawn(|| frontier::lossless_rates_Bps(writes, times, large));
        let peaks = peaks_of(writes, threshold_ns);
        let mut rates = frontier::lossless_rates_Bps(writes, times, small);
        match large.join() {
            Ok(large) => rates.extend(large),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        (peaks, rates)
    })
}

fn chosen_threshold(times: &Times) -> u64 {
    let median_ns = times.percentile_ns(500_000).unwrap_or(0);
    let (mean_ns, max_ns) = (times.mean_ns().unwrap_or(0), times.max_ns().unwrap_or(0));
    chosen_threshold_ns(mean_ns, median_ns, max_ns)
}

fn frontier_points(rates: &[f64]) -> Vec<FrontierPoint> {
    let points = RAM_BYTES.iter().zip(rates);
    points
        .map(|(&ram_bytes, &rate)| FrontierPoint {
            ram_bytes,
            lossless_bps: thousandths(rate),
        })
        .collect()
}

fn summary_of(trace: &Trace, times: &Times, peaks: &PeakFinder) -> Summary {
    let percentile = |ppm| times.percentile_ns(ppm).map(us);
    let sum_s = times.sum_ns() as f64 / 1e9;
    let (count, bytes) = (times.count(), times.bytes());
    let per_second = |n: u64| (sum_s > 0.0).then(|| thousandths(n as f64 / sum_s));
    let mean_us = (count > 0).then(|| thousandths(times.sum_ns() as f64 / count as f64 / 1e3));
    let guaranteed = times
        .max_ns()
        .filter(|&ns| ns > 0)
        .map(|ns| thousandths(bytes as f64 / count as f64 * 1e9 / ns as f64));
    Summary {
        schema: SCHEMA,
        target: trace.about.target.clone(),
        workload: trace.about.workload.clone(),
        writes: count,
        bytes,
        elapsed_us: Some(us(trace.last_end_ns() - trace.first_start_ns())),
        write_time_us: WriteTime {
            min: times.min_ns().map(us),
            mean: mean_us,
            p50: percentile(500_000),
            p90: percentile(900_000),
            p99: percentile(990_000),
            p99_9: percentile(999_000),
            p99_99: percentile(999_900),
            max: times.max_ns().map(us),
        },
        throughput_bps: Throughput {
            average: per_second(bytes),
            guaranteed,
        },
        iops: per_second(count),
        peaks: Peaks {
            threshold_us: Some(us(peaks.threshold_ns())),
            count: peaks.count(),
            spacing_bytes: PeakSpacing {
                median: peaks.median_spacing_bytes(),
                mode: peaks.mode_spacing_bytes(),
            },
            height_us: PeakHeight {
                median: peaks.median_height_ns().map(us),
            },
        },
        frontier: Vec::new(),
        cadence: None,
        energy: None,
    }
}
