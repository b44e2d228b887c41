//! One self-contained HTML file that works offline.
//!
//! The page itself is in `page/`: markup, style and script, combined here with the data as JSON. Long arrays are
//! packed as base64 of little-endian numbers.

use crate::energy::Energy;
use crate::phases::PhaseFigures;
use crate::report::{BACKLOG_BUFFER_BYTES, Detail, Noun, Report, most};
use crate::summary::{Summary, SustainedRate, us};
use crate::trust;
use crate::units;
use crate::writes::Writes;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use cardiograph_timing::{Replay, backlog};
use cardiograph_trace::Trace;
use serde::Serialize;

const MARKUP: &str = include_str!("page/report.html");
const STYLE: &str = include_str!("page/report.css");
/// Scripts of the page, in the order of their dependencies.
const SCRIPT: &str = concat!(
    include_str!("page/format.js"),
    include_str!("page/series.js"),
    include_str!("page/plot.js"),
    include_str!("page/zoom.js"),
    include_str!("page/timeline.js"),
    include_str!("page/energy.js"),
    include_str!("page/charts.js"),
    include_str!("page/overlay.js"),
    include_str!("page/report.js"),
);

/// Maximum number of points in the latency plot; beyond that, groups of writes are shown by minimum and maximum. With
/// their times, these are 2.1 MB of the page.
const POINTS_MAX: u64 = 1 << 17;
/// Maximum number of stalls kept in addition to the points.
const STALLS_MAX: usize = 1 << 15;

/// Maximum number of vertices of the backlog curve.
const CORNERS_MAX: u64 = 4000;

/// Maximum number of bins in the spacing histogram.
const BARS_MAX: u64 = 400;

/// Maximum number of late samples in the plot of a recording.
const LATE_MAX: usize = 4000;

#[derive(Serialize)]
struct Page<'a> {
    tool: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    runs: Vec<Run<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
}

/// A comparison of the reports of a page, as text.
#[derive(Serialize)]
pub struct Comparison {
    /// Column headings of the table: an empty one, and the names of the runs.
    pub heads: Vec<String>,
    /// Rows of the table: a name, and the value of each run.
    pub rows: Vec<Vec<String>>,
    /// Verdicts.
    pub sentences: Vec<String>,
    /// Notes about the validity of the comparison.
    pub notes: Vec<String>,
}

#[derive(Serialize)]
struct Run<'a> {
    title: String,
    headline: String,
    warnings: &'a [String],
    notes: &'a [String],
    about: Vec<(&'static str, String)>,
    noun: &'static str,
    summary: &'a Summary,
    points: Option<Points>,
    threshold_is_default: bool,
    ccdf: Vec<(f64, f64)>,
    spacing: Option<Spacing>,
    backlog: Option<BacklogCurve>,
    late: Option<LateCurve>,
    phases: &'a [PhaseFigures],
    energy: Option<EnergyCurve>,
}

#[derive(Serialize)]
struct Points {
    total: u64,
    group: u64,
    start_bytes: u64,
    bytes_per_group: u64,
    /// Start positions of the points; absent if the points are equally spaced, or if there are times.
    #[serde(skip_serializing_if = "Option::is_none")]
    x_bytes: Option<String>,
    /// Start times of the points; present if the time axis is shared with another plot.
    #[serde(skip_serializing_if = "Option::is_none")]
    x_us: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_us: Option<f64>,
    min: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    max: Option<String>,
    /// Individual stalls, if the points are groups of writes.
    #[serde(skip_serializing_if = "Option::is_none")]
    stalls: Option<KeptStalls>,
}

/// Stalls, or late samples, at their own positions.
#[derive(Serialize)]
struct KeptStalls {
    /// Start positions, in the unit of the axis.
    x: String,
    /// Quantised latencies.
    codes: String,
    /// Stalls or late samples of at least this quantised latency are kept.
    least_code: u16,
}

/// Energy over time; 0 is the start of the trace.
#[derive(Serialize)]
struct EnergyCurve {
    start_us: f64,
    end_us: f64,
    bin_us: f64,
    #[serde(rename = "bins_uJ")]
    bins_uj: String,
}

#[derive(Serialize)]
struct Spacing {
    bin_bytes: u64,
    first_bin: u64,
    counts: Vec<u64>,
}

#[derive(Serialize)]
struct BacklogCurve {
    rate_bytes_per_s: f64,
    buffer_bytes: u64,
    t_us: Vec<f64>,
    bytes: Vec<f64>,
}

/// Late samples and missing samples of a recording from its start to each time.
#[derive(Serialize)]
struct LateCurve {
    t_us: Vec<f64>,
    late: Vec<u64>,
    missing: Vec<u64>,
}

/// Renders the reports as one HTML page, which begins with their comparison and ends with the command that made it.
pub fn html(
    reports: &[Report],
    comparison: Option<&Comparison>,
    command: Option<&str>,
) -> Result<String, serde_json::Error> {
    let page = Page {
        tool: concat!("cardiograph ", env!("CARGO_PKG_VERSION")),
        command,
        runs: reports.iter().map(run).collect(),
        comparison,
    };
    // Nothing inside a script element may look like markup.
    let data = serde_json::to_string(&page)?.replace('<', "\\u003c");
    Ok(MARKUP
        .replace("<!--STYLE-->", &format!("<style>\n{STYLE}</style>"))
        .replace("<!--SCRIPT-->", &format!("<script>\n{SCRIPT}</script>"))
        .replace(
            "<!--DATA-->",
            &format!("<script type=\"application/json\" id=\"data\">{data}</script>"),
        ))
}

fn run(report: &Report) -> Run<'_> {
    let summary = &report.summary;
    let detail = report.detail.as_ref();
    Run {
        title: format!("{} on {}", summary.workload, summary.target),
        headline: report.headline(),
        warnings: &report.warnings,
        notes: &report.about.notes,
        about: about(report),
        noun: report.noun.singular(),
        summary,
        points: report.trace.as_ref().map(|trace| points(trace, report)),
        threshold_is_default: report.threshold_is_default,
        ccdf: detail.map(ccdf).unwrap_or_default(),
        spacing: detail.and_then(spacing),
        backlog: backlog(report),
        late: detail.and_then(late),
        phases: detail
            .map(|detail| detail.phases.as_slice())
            .unwrap_or_default(),
        energy: report.energy.as_ref().map(energy_curve),
    }
}

/// Returns true if the points have times: those of a recording, and those above a plot of energy.
fn is_over_time(report: &Report) -> bool {
    report.energy.is_some() || report.noun == Noun::Interval
}

fn about(report: &Report) -> Vec<(&'static str, String)> {
    let about = &report.about;
    let mut rows = vec![
        ("Target", about.target.clone()),
        ("Workload", about.workload.clone()),
    ];
    if let Some(ns) = about.clock_resolution_ns {
        rows.push(("Clock resolution", units::time(us(ns))));
    }
    if let Some(ns) = about.clock_overhead_ns {
        let noun = report.noun.singular();
        rows.push((
            "Measurement overhead",
            format!("{} per {noun}", units::time(us(ns))),
        ));
    }
    rows.extend(trust::rows(report));
    rows
}

fn points(trace: &Trace, report: &Report) -> Points {
    let over_time = is_over_time(report);
    let total = report.summary.writes;
    let writes = Writes::of(trace);
    let group = total.div_ceil(POINTS_MAX).max(1);
    let uniform_bytes = writes.uniform_bytes();
    let has_positions = !over_time && uniform_bytes.is_none();
    let (mut least, mut greatest, mut positions) = (Vec::new(), Vec::new(), Vec::new());
    let (mut in_group, mut at_bytes) = (0, 0u64);
    writes.replay(|ns, bytes| {
        let time = quantised(ns);
        if in_group == 0 {
            least.push(time);
            greatest.push(time);
            if has_positions {
                positions.push(at_bytes as f64);
            }
        } else if let (Some(min), Some(max)) = (least.last_mut(), greatest.last_mut()) {
            *min = time.min(*min);
            *max = time.max(*max);
        }
        at_bytes += bytes;
        in_group = (in_group + 1) % group;
    });
    Points {
        total,
        group,
        start_bytes: 0,
        bytes_per_group: uniform_bytes.unwrap_or(0) * group,
        x_bytes: has_positions.then(|| pack_f64(positions)),
        min: pack_u16(least),
        max: (group > 1).then(|| pack_u16(greatest)),
        x_us: over_time.then(|| pack_f64(starts_us(trace, &writes, group))),
        end_us: over_time.then(|| us(trace.last_end_ns() - trace.first_start_ns())),
        stalls: (group > 1)
            .then(|| kept_stalls(trace, &writes, report))
            .flatten(),
    }
}

/// Returns the latency above which a write is a stall; for a recording, 1.5 times the period.
fn stall_threshold_us(report: &Report) -> Option<f64> {
    match &report.summary.cadence {
        Some(cadence) => Some(cadence.period_us.unwrap_or(cadence.median_interval_us) * 1.5),
        None => report.summary.stalls.threshold_us,
    }
}

/// Returns all stalls, or the longest [`STALLS_MAX`] of them.
fn kept_stalls(trace: &Trace, writes: &Writes, report: &Report) -> Option<KeptStalls> {
    let threshold_ns = (stall_threshold_us(report)? * 1e3) as u64;
    let first_ns = trace.first_start_ns();
    let mut at_bytes = 0u64;
    let mut stalls: Vec<(f64, u16)> = Vec::new();
    for op in trace.operations().filter(|op| op.kind == writes.kind) {
        let ns = op.end_ns - op.start_ns;
        if ns > threshold_ns {
            let x = match is_over_time(report) {
                true => us(op.start_ns - first_ns),
                false => at_bytes as f64,
            };
            stalls.push((x, quantised(ns)));
        }
        at_bytes += op.length_bytes;
    }
    let mut codes: Vec<u16> = stalls.iter().map(|&(_, code)| code).collect();
    codes.sort_unstable();
    let least_code = match codes.len().checked_sub(STALLS_MAX) {
        None | Some(0) => quantised(threshold_ns + 1),
        // Equal latencies are either all kept or all omitted.
        Some(excess) => codes[excess - 1] + 1,
    };
    stalls.retain(|&(_, code)| code >= least_code);
    let (x, codes): (Vec<f64>, Vec<u16>) = stalls.into_iter().unzip();
    Some(KeptStalls {
        x: pack_f64(x),
        codes: pack_u16(codes),
        least_code,
    })
}

/// Returns the start of the first write of each group, in us from the start of the trace.
fn starts_us<'a>(
    trace: &'a Trace,
    writes: &Writes,
    group: u64,
) -> impl Iterator<Item = f64> + use<'a> {
    let (first_ns, kind) = (trace.first_start_ns(), writes.kind);
    let operations = trace.operations().filter(move |op| op.kind == kind);
    let groups = operations.step_by(usize::try_from(group).unwrap_or(usize::MAX));
    groups.map(move |op| us(op.start_ns - first_ns))
}

fn energy_curve(energy: &Energy) -> EnergyCurve {
    let trace = &energy.trace;
    // Seven digits exceed the resolution of any scope.
    let bins = trace.bins_uj().iter().map(|&uj| uj as f32);
    EnergyCurve {
        start_us: trace.start_ns() / 1e3,
        end_us: trace.end_ns() / 1e3,
        bin_us: us(trace.bin_ns()),
        bins_uj: pack(bins.flat_map(f32::to_le_bytes)),
    }
}

/// Quantises a latency to 1024 steps per octave, which are 0.07 % apart.
fn quantised(ns: u64) -> u16 {
    (libm::log2(ns.max(1) as f64) * 1024.0).round() as u16
}

fn pack_f64(values: impl IntoIterator<Item = f64>) -> String {
    pack(values.into_iter().flat_map(f64::to_le_bytes))
}

fn pack_u16(values: Vec<u16>) -> String {
    pack(values.into_iter().flat_map(u16::to_le_bytes))
}

fn pack(bytes: impl Iterator<Item = u8>) -> String {
    BASE64_STANDARD.encode(bytes.collect::<Vec<u8>>())
}

/// Returns, for every latency that occurs, the fraction of writes with at least this latency.
fn ccdf(detail: &Detail) -> Vec<(f64, f64)> {
    let total = detail.latencies.count() as f64;
    let mut left = detail.latencies.count();
    let mut curve = Vec::new();
    for (ns, count) in detail.latencies.histogram().bars() {
        curve.push((us(ns), left as f64 / total));
        left = left.saturating_sub(count);
    }
    if let (Some(last), Some(max_ns)) = (curve.last_mut(), detail.latencies.max_ns()) {
        last.0 = us(max_ns);
    }
    curve
}

fn spacing(detail: &Detail) -> Option<Spacing> {
    let stalls = detail.stalls.as_ref()?;
    let bin_bytes = stalls.spacing_bin_bytes()?;
    let mut bins = stalls.spacings_bytes().linear_bins(bin_bytes).peekable();
    let first_bin = bins.peek()?.index;
    let mut counts = Vec::new();
    for bin in bins {
        let at = bin.index - first_bin;
        // One far outlier must not make all other bins too thin to see.
        if at >= BARS_MAX {
            break;
        }
        counts.resize(at as usize, 0);
        counts.push(bin.count);
    }
    Some(Spacing {
        bin_bytes,
        first_bin,
        counts,
    })
}

/// Returns the backlog curve at the rate that a buffer of [`BACKLOG_BUFFER_BYTES`] sustains.
fn backlog(report: &Report) -> Option<BacklogCurve> {
    let is_drawn = |row: &&SustainedRate| row.buffer_bytes == BACKLOG_BUFFER_BYTES;
    let rate_bytes_per_s = report
        .summary
        .sustained_rates
        .iter()
        .find(is_drawn)?
        .rate_bytes_per_s;
    let trace = report.trace().filter(|_| rate_bytes_per_s > 0.0)?;
    let corners = backlog::curve(
        &Writes::of(trace),
        report.summary.writes,
        rate_bytes_per_s,
        CORNERS_MAX,
    );
    Some(BacklogCurve {
        rate_bytes_per_s,
        buffer_bytes: BACKLOG_BUFFER_BYTES,
        t_us: corners.iter().map(|c| (c.at_ns / 1e3).round()).collect(),
        bytes: corners.iter().map(|c| c.bytes.round()).collect(),
    })
}

/// Returns the number of late samples and missing samples over time, at most [`LATE_MAX`] points.
fn late(detail: &Detail) -> Option<LateCurve> {
    let gaps = &detail.cadence.as_ref()?.gaps;
    let mut curve = LateCurve {
        t_us: Vec::new(),
        late: Vec::new(),
        missing: Vec::new(),
    };
    let every = gaps.len().div_ceil(LATE_MAX).max(1);
    let mut missing = 0;
    for (gap, late) in gaps.iter().zip(1..) {
        missing += most(gap.missing);
        if late % every == 0 || late == gaps.len() {
            // The sample is late from the end of the interval on.
            curve.t_us.push(us(gap.at_ns + gap.step_ns));
            curve.late.push(late as u64);
            curve.missing.push(missing);
        }
    }
    Some(curve)
}
