//! The figures as a table, for a terminal or as Markdown.

use crate::report::{Noun, Report};
use crate::summary::{EnergyShare, EnergySummary};
use crate::units;
use std::fmt::Write;

/// A heading and its rows of name and value.
pub struct Section {
    /// The heading.
    pub heading: &'static str,
    /// Name and value of each row.
    pub rows: Vec<(String, String)>,
}

/// Columns of the names, wider only where one does not fit.
const NAME_WIDTH: usize = 21;

/// The report as text for a terminal.
pub fn text(report: &Report) -> String {
    let mut out = format!("{} · {}\n", report.summary.workload, report.summary.target);
    for warning in &report.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    for section in &sections(report) {
        out.push_str(&section_text(section));
    }
    for note in &report.about.notes {
        let _ = writeln!(out, "\n  note: {note}");
    }
    let _ = writeln!(out, "\n{}", report.headline());
    out
}

/// A section as text for a terminal, an empty line before it.
pub fn section_text(section: &Section) -> String {
    let width = widest(section).max(NAME_WIDTH);
    let mut out = format!("\n  {}\n", section.heading);
    for (name, value) in &section.rows {
        let pad = width - name.chars().count();
        let _ = writeln!(out, "    {name}{:pad$}  {value}", "");
    }
    out
}

/// The report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = format!(
        "## {} on {}\n\n",
        report.summary.workload, report.summary.target
    );
    let _ = writeln!(out, "{}\n", report.headline());
    for warning in &report.warnings {
        let _ = writeln!(out, "> **Warning:** {warning}\n");
    }
    for section in &sections(report) {
        let _ = writeln!(out, "| {} | |\n|---|---:|", section.heading);
        for (name, value) in &section.rows {
            let _ = writeln!(out, "| {name} | {value} |");
        }
        out.push('\n');
    }
    for note in &report.about.notes {
        let _ = writeln!(out, "Note: {note}\n");
    }
    out
}

fn widest(section: &Section) -> usize {
    let names = section.rows.iter().map(|(name, _)| name.chars().count());
    names.max().unwrap_or(0)
}

fn sections(report: &Report) -> Vec<Section> {
    let mut sections = vec![measured(report)];
    if report.summary.cadence.is_some() {
        sections.push(cadence(report));
    }
    sections.push(times(report));
    sections.push(throughput(report));
    if report.summary.peaks.threshold_us.is_some() {
        sections.push(peaks(report));
    }
    if !report.summary.frontier.is_empty() {
        sections.push(frontier(report));
    }
    sections.extend(report.summary.energy.as_ref().map(|energy| Section {
        heading: "Energy",
        rows: energy_rows(energy, report.noun),
    }));
    sections.push(parts(report));
    sections.retain(|section| !section.rows.is_empty());
    sections
}

/// A row, unless there is no value.
fn row<T>(name: &str, value: Option<T>, show: impl Fn(T) -> String) -> Option<(String, String)> {
    value.map(|value| (name.to_string(), show(value)))
}

fn measured(report: &Report) -> Section {
    let (summary, about) = (&report.summary, &report.about);
    // A scope's file alone has none.
    let writes = Some(summary.writes).filter(|&writes| writes > 0);
    let rows = [
        row(report.noun.plural(), writes, units::count),
        row(
            "payload",
            writes.map(|_| summary.bytes as f64),
            units::bytes,
        ),
        row("elapsed", summary.elapsed_us, units::time),
        row("clock resolution", about.clock_resolution_ns, |ns| {
            units::time(ns as f64 / 1e3)
        }),
        row("measuring overhead", about.clock_overhead_ns, |ns| {
            format!(
                "{} a {}",
                units::time(ns as f64 / 1e3),
                report.noun.singular()
            )
        }),
    ];
    Section {
        heading: "Measured",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn times(report: &Report) -> Section {
    let times = &report.summary.write_time_us;
    let rows = [
        ("shortest", times.min),
        ("mean", times.mean),
        ("median", times.p50),
        ("90 %", times.p90),
        ("99 %", times.p99),
        ("99.9 %", times.p99_9),
        ("99.99 %", times.p99_99),
        ("longest", times.max),
    ];
    let heading = match report.noun {
        Noun::Write => "Write time",
        Noun::Read => "Read time",
        Noun::Step => "Step",
    };
    let rows = rows
        .into_iter()
        .filter_map(|(name, value)| row(name, value, units::time));
    Section {
        heading,
        rows: rows.collect(),
    }
}

fn throughput(report: &Report) -> Section {
    let throughput = &report.summary.throughput_bps;
    let rows = [
        row("average", throughput.average, units::rate),
        row("guaranteed", throughput.guaranteed, units::rate),
        row("operations a second", report.summary.iops, |iops| {
            units::count(iops.round() as u64)
        }),
    ];
    Section {
        heading: "Throughput",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn peaks(report: &Report) -> Section {
    let peaks = &report.summary.peaks;
    let origin = if report.threshold_was_chosen {
        "chosen"
    } else {
        "given"
    };
    let bin = report
        .detail
        .as_ref()
        .and_then(|detail| detail.peaks.spacing_bin_bytes());
    let rows = [
        row("threshold", peaks.threshold_us, |us| {
            format!("{} ({origin})", units::time(us))
        }),
        row("peaks", Some(peaks.count), units::count),
        row("median height", peaks.height_us.median, units::time),
        row("median spacing", peaks.spacing_bytes.median, |b| {
            units::bytes(b as f64)
        }),
        row("most frequent spacing", peaks.spacing_bytes.mode, |b| {
            let half = bin.unwrap_or(0) as f64 / 2.0;
            format!("{} ± {}", units::bytes(b as f64), units::bytes(half))
        }),
    ];
    Section {
        heading: "Peaks",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn frontier(report: &Report) -> Section {
    let points = report.summary.frontier.iter();
    let rows = points.map(|point| {
        let name = format!("with {} of RAM", units::ram(point.ram_bytes));
        let rate = match point.lossless_bps {
            0.0 => format!("less than one {}", report.noun.singular()),
            rate => units::rate(rate),
        };
        (name, rate)
    });
    Section {
        heading: "Lossless rate",
        rows: rows.collect(),
    }
}

fn energy_rows(energy: &EnergySummary, noun: Noun) -> Vec<(String, String)> {
    let one = noun.singular();
    let doing = noun.doing();
    let power = &energy.power_mw;
    let shares = |share: &EnergyShare| {
        let (energy, time) = (share.energy?, share.time?);
        Some((units::percent(energy), units::percent(time)))
    };
    let shown = |(energy, time)| format!("{energy} of the energy in {time} of the time");
    let rows = [
        row("in all", Some(energy.total_uj), |uj| {
            format!(
                "{} in {}",
                units::energy(uj),
                units::time(energy.duration_us)
            )
        }),
        row("mean power", power.mean, units::power),
        row(
            &format!("most in {}", units::time(energy.bin_us)),
            power.max,
            units::power,
        ),
        row(&format!("while {doing}"), power.in_writes, units::power),
        row(
            &format!("between {}", noun.plural()),
            power.between_writes,
            units::power,
        ),
        row(&format!("a {one}"), energy.per_write_uj, units::energy),
        row("a kB of payload", energy.per_kb_uj, units::energy),
        row(
            &format!("in {}", noun.plural()),
            shares(&energy.in_writes),
            shown,
        ),
        row("in peaks", shares(&energy.in_peaks), shown),
    ];
    rows.into_iter().flatten().collect()
}

fn parts(report: &Report) -> Section {
    let parts = report.detail.as_ref().map(|detail| detail.parts.as_slice());
    let rows = parts.unwrap_or_default().iter().map(|part| {
        let value = format!(
            "{}, {} to {} ({} x {})",
            units::rate(part.rate_bps),
            units::rate(part.rate_bps_min),
            units::rate(part.rate_bps_max),
            units::count(part.count),
            units::time(part.median_us),
        );
        (part.label.clone(), value)
    });
    Section {
        heading: "Parts: median rate, range (number x median time)",
        rows: rows.collect(),
    }
}

fn cadence(report: &Report) -> Section {
    let Some(cadence) = &report.summary.cadence else {
        return Section {
            heading: "Cadence",
            rows: Vec::new(),
        };
    };
    let audit = report
        .detail
        .as_ref()
        .and_then(|detail| detail.cadence.as_ref());
    let drift = audit.map(|audit| audit.drift_ns as f64 / 1e3);
    let rows = [
        row("samples", Some(cadence.samples), units::count),
        row("median step", Some(cadence.median_step_us), units::time),
        row(
            "mean step",
            audit.map(|audit| audit.mean_step_ns / 1e3),
            units::time,
        ),
        row("late steps", Some(cadence.late), units::count),
        row("missing samples", Some(cadence.missing), units::count),
        row("longest gap", Some(cadence.longest_gap_us), units::time),
        row("drift", drift, |us| {
            let sign = if us < 0.0 { "-" } else { "+" };
            format!("{sign}{} over the recording", units::time(us.abs()))
        }),
    ];
    let mut rows: Vec<_> = rows.into_iter().flatten().collect();
    for gap in longest_gaps(report, 5) {
        rows.push((
            format!("gap of {}", units::time(gap.step_ns as f64 / 1e3)),
            format!(
                "after {}, {} in, {} missing",
                units::time(gap.at_ns as f64 / 1e3),
                units::bytes(gap.at_bytes as f64),
                gap.missing
            ),
        ));
    }
    Section {
        heading: "Cadence",
        rows,
    }
}

/// The longest gaps of a recording, at most `most`, longest first.
pub(crate) fn longest_gaps(
    report: &Report,
    most: usize,
) -> Vec<cardiograph_timing::cadence::LateStep> {
    let audit = report
        .detail
        .as_ref()
        .and_then(|detail| detail.cadence.as_ref());
    let mut gaps = audit.map_or_else(Vec::new, |audit| audit.gaps.clone());
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.step_ns));
    gaps.truncate(most);
    gaps
}
