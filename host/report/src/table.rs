//! The figures as a table, for a terminal or as Markdown.

use crate::open_loop::OpenLoop;
use crate::report::{Noun, Report};
use crate::runs;
use crate::summary::{EnergyShare, EnergySummary, Input};
use crate::trust;
use crate::units;
use cardiograph_timing::cadence::Missing;
use std::fmt::Write;

/// A heading with rows of name and value.
pub struct Section {
    /// Heading.
    pub heading: &'static str,
    /// Name and value of each row.
    pub rows: Vec<(String, String)>,
}

/// Minimum width of the name column in characters.
const NAME_WIDTH: usize = 21;

/// Formats the report as text for a terminal: the answer, the figures and the notes.
pub fn text(report: &Report) -> String {
    figures(report) + &notes(report)
}

/// Formats the answer and the figures.
pub fn figures(report: &Report) -> String {
    let (workload, target) = (&report.summary.workload, &report.summary.target);
    let mut out = format!(
        "{}\n\n{} · {}\n",
        report.headline(),
        printable(workload),
        printable(target)
    );
    for warning in &report.warnings {
        let _ = writeln!(out, "warning: {warning}");
    }
    for section in &sections(report) {
        out.push_str(&section_text(section));
    }
    out
}

/// Formats the notes.
pub fn notes(report: &Report) -> String {
    let notes = report.about.notes.iter();
    notes.map(|note| format!("\n  note: {note}\n")).collect()
}

/// Formats a section as text for a terminal, with an empty line before it.
pub fn section_text(section: &Section) -> String {
    let width = widest(section).max(NAME_WIDTH);
    let mut out = format!("\n  {}\n", section.heading);
    for (name, value) in &section.rows {
        let pad = width - name.chars().count();
        let _ = writeln!(out, "    {name}{:pad$}  {value}", "");
    }
    out
}

/// Formats the report as Markdown.
pub fn markdown(report: &Report) -> String {
    let mut out = format!(
        "## {} on {}\n\n",
        markdown_text(&report.summary.workload),
        markdown_text(&report.summary.target)
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

/// Escapes characters of a file name that would control a terminal or reorder a line.
fn printable(name: &str) -> String {
    let is_command =
        |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut text = String::new();
    for c in name.chars() {
        match is_command(c) {
            true => text.extend(c.escape_default()),
            false => text.push(c),
        }
    }
    text
}

/// Escapes the special characters of Markdown in a file name.
fn markdown_text(name: &str) -> String {
    let mut text = String::new();
    for c in printable(name).chars() {
        if "\\`*[]<>|&".contains(c) {
            text.push('\\');
        }
        text.push(c);
    }
    text
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
    sections.push(trust_section(report));
    sections.push(latency(report));
    sections.extend(report.summary.open_loop.as_ref().map(open_loop));
    sections.push(throughput(report));
    if report.summary.stalls.threshold_us.is_some() {
        sections.push(stalls(report));
    }
    if !report.summary.sustained_rates.is_empty() {
        sections.push(sustained_rates(report));
    }
    sections.extend(report.summary.energy.as_ref().map(|energy| Section {
        heading: "Energy",
        rows: energy_rows(energy, report.noun),
    }));
    sections.push(phases(report));
    sections.retain(|section| !section.rows.is_empty());
    sections
}

/// Returns a row, or `None` if there is no value.
fn row<T>(name: &str, value: Option<T>, show: impl Fn(T) -> String) -> Option<(String, String)> {
    value.map(|value| (name.to_string(), show(value)))
}

fn measured(report: &Report) -> Section {
    let (summary, about) = (&report.summary, &report.about);
    // A report on a scope's file alone has no writes.
    let writes = Some(summary.writes).filter(|&writes| writes > 0);
    let rows = [
        row("input", writes, |_| match summary.input {
            Input::Writes => report.noun.plural().to_string(),
            input => input.name().to_string(),
        }),
        row(report.noun.plural(), writes, units::count),
        row(
            "payload",
            writes.map(|_| summary.payload_bytes as f64),
            units::bytes,
        ),
        row("elapsed", summary.elapsed_us, units::time),
        row("clock resolution", about.clock_resolution_ns, |ns| {
            units::time(ns as f64 / 1e3)
        }),
        row(
            "measurement overhead",
            about.clock_overhead_ns.filter(|&ns| ns > 0),
            |ns| {
                format!(
                    "{} per {}",
                    units::time(ns as f64 / 1e3),
                    report.noun.singular()
                )
            },
        ),
    ];
    Section {
        heading: "Measured",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn trust_section(report: &Report) -> Section {
    let rows = trust::rows(report).into_iter();
    Section {
        heading: "Trust",
        rows: rows
            .map(|(name, value)| (name.to_string(), value))
            .collect(),
    }
}

fn latency(report: &Report) -> Section {
    let latency = &report.summary.latency_us;
    let rows = [
        ("min", latency.min),
        ("mean", latency.mean),
        ("median", latency.median),
        ("p90", latency.p90),
        ("p99", latency.p99),
        ("p99.9", latency.p99_9),
        ("p99.99", latency.p99_99),
        ("worst case", latency.worst_case),
    ];
    let heading = match report.noun {
        Noun::Write => "Write latency",
        Noun::Read => "Read latency",
        Noun::Interval => "Interval",
    };
    let rows = rows
        .into_iter()
        .filter_map(|(name, value)| row(name, value, units::time));
    Section {
        heading,
        rows: rows.collect(),
    }
}

/// Formats the figures from the due times, next to those of the run without due times.
fn open_loop(figures: &OpenLoop) -> Section {
    let (response, closed) = (&figures.response_us, &figures.closed_loop);
    let beside = |name: &str, open: Option<f64>, closed: Option<f64>| {
        let closed = closed.map_or(String::from("none"), units::time);
        row(name, open, |us| {
            format!("{} (closed loop {closed})", units::time(us))
        })
    };
    let agreement = match figures.agrees {
        true => "agrees",
        false => "does not agree; the longest stalls of the two runs differ",
    };
    let rows = [
        row("rate", Some(figures.rate_hz), |hz| {
            format!(
                "{hz} writes per second, {}",
                units::rate(figures.rate_bytes_per_s)
            )
        }),
        beside("median", response.median, closed.latency_us.median),
        beside("p99", response.p99, closed.latency_us.p99),
        beside("p99.9", response.p99_9, closed.latency_us.p99_9),
        beside(
            "worst case",
            response.worst_case,
            closed.latency_us.worst_case,
        ),
        row("begun late", Some(figures.late_writes), units::count),
        row("largest backlog", Some(figures.backlog_bytes_max), |b| {
            let closed = units::bytes(closed.backlog_bytes_max);
            format!("{} (from the closed loop {closed})", units::bytes(b))
        }),
        row(
            "sustained rate",
            Some(closed.sustained_bytes_per_s),
            |rate| {
                format!(
                    "{} with this backlog as the buffer: {agreement}",
                    units::rate(rate)
                )
            },
        ),
    ];
    Section {
        heading: "Open loop: latency from the due time",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn throughput(report: &Report) -> Section {
    let throughput = &report.summary.throughput_bytes_per_s;
    let per_second = format!("{} per second", report.noun.plural());
    let rows = [
        row("mean", throughput.mean, units::rate),
        row("worst case", throughput.worst_case, units::rate),
        row(&per_second, report.summary.operations_per_s, |rate| {
            units::count(rate.round() as u64)
        }),
    ];
    Section {
        heading: "Throughput",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn stalls(report: &Report) -> Section {
    let stalls = &report.summary.stalls;
    let origin = if report.threshold_is_default {
        "automatic"
    } else {
        "given"
    };
    let bin = report
        .detail
        .as_ref()
        .and_then(|detail| detail.stalls.as_ref()?.spacing_bin_bytes());
    let rows = [
        row("threshold", stalls.threshold_us, |us| {
            format!("{} ({origin})", units::time(us))
        }),
        row("stalls", stalls.count, units::count),
        row("median latency", stalls.latency_us.median, units::time),
        row("median spacing", stalls.spacing_bytes.median, |b| {
            units::bytes(b as f64)
        }),
        row("most frequent spacing", stalls.spacing_bytes.mode, |b| {
            let (centre, half) = (b as f64, bin.unwrap_or(0) as f64 / 2.0);
            // The first bin begins at 0.
            match centre - half < half {
                true => format!("below {}", units::bytes(centre + half)),
                false => format!("{} ± {}", units::bytes(centre), units::bytes(half)),
            }
        }),
    ];
    Section {
        heading: "Stalls",
        rows: rows.into_iter().flatten().collect(),
    }
}

fn sustained_rates(report: &Report) -> Section {
    let rates = report.summary.sustained_rates.iter();
    let rows = rates.map(|row| {
        let name = format!("{} buffer", units::binary_bytes(row.buffer_bytes));
        let rate = match row.rate_bytes_per_s {
            0.0 => format!("smaller than one {}", report.noun.singular()),
            rate => units::rate(rate),
        };
        (name, rate)
    });
    Section {
        heading: "Sustained rate",
        rows: rows.collect(),
    }
}

fn energy_rows(energy: &EnergySummary, noun: Noun) -> Vec<(String, String)> {
    let (one, many) = (noun.singular(), noun.plural());
    let power = &energy.power_mw;
    let shares = |share: &EnergyShare| {
        let (energy, time) = (share.energy_ratio?, share.time_ratio?);
        Some((units::percent(energy), units::percent(time)))
    };
    let shown = |(energy, time)| format!("{energy} of the energy in {time} of the time");
    let peak = format!("peak over {}", units::time(energy.bin_us));
    let rows = [
        row("total", Some(energy.total_uj), |uj| {
            format!(
                "{} in {}",
                units::energy(uj),
                units::time(energy.duration_us)
            )
        }),
        row("mean power", power.mean, units::power),
        row(&peak, power.max, units::power),
        row(&format!("during {many}"), power.in_writes, units::power),
        row(
            &format!("between {many}"),
            power.between_writes,
            units::power,
        ),
        row(&format!("per {one}"), energy.per_write_uj, units::energy),
        row("per kB of payload", energy.per_kb_uj, units::energy),
        row(
            &format!("share of {many}"),
            shares(&energy.in_writes),
            shown,
        ),
        row("share of stalls", shares(&energy.in_stalls), shown),
    ];
    rows.into_iter().flatten().collect()
}

fn phases(report: &Report) -> Section {
    let phases = report
        .detail
        .as_ref()
        .map(|detail| detail.phases.as_slice());
    let rows = phases.unwrap_or_default().iter().map(|phase| {
        let value = format!(
            "{}, {} to {} ({} x {})",
            units::rate(phase.throughput_bytes_per_s),
            units::rate(phase.throughput_bytes_per_s_min),
            units::rate(phase.throughput_bytes_per_s_max),
            units::count(phase.count),
            units::time(phase.median_us),
        );
        (phase.label.clone(), value)
    });
    Section {
        heading: "Phases: median throughput, range (operations x median latency)",
        rows: rows.collect(),
    }
}

fn cadence(report: &Report) -> Section {
    let Some(cadence) = &report.summary.cadence else {
        return Section {
            heading: "Sample timing",
            rows: Vec::new(),
        };
    };
    let missing = match (cadence.missing_samples, cadence.missing_samples_min) {
        (Some(count), _) => Some(units::count(count)),
        (None, Some(least)) => Some(format!(
            "{} to {}",
            units::count(least),
            units::count(cadence.missing_samples_max.unwrap_or(least))
        )),
        (None, None) => None,
    };
    let duplicates = Some(cadence.duplicate_samples).filter(|&count| count > 0);
    let rows = [
        row("samples", Some(cadence.samples), units::count),
        row("period", cadence.period_us, units::period),
        row(
            "median interval",
            Some(cadence.median_interval_us),
            units::time,
        ),
        row("mean interval", Some(cadence.mean_interval_us), units::time),
        row("late samples", Some(cadence.late_samples), units::count),
        row(
            match cadence.sequence {
                Some(_) => "missing numbers",
                None => "missing samples",
            },
            missing,
            |text| text,
        ),
        row("room for samples", cadence.room_for_samples, units::count),
        row("duplicates", duplicates, units::count),
        row("longest gap", Some(cadence.longest_gap_us), units::time),
        row("drift", cadence.drift_us.filter(|&us| us != 0.0), |us| {
            let sign = if us < 0.0 { "-" } else { "+" };
            format!("{sign}{} over the recording", units::time(us.abs()))
        }),
    ];
    let mut rows: Vec<_> = rows.into_iter().flatten().collect();
    const RUNS_MAX: usize = 20;
    let of_runs = cadence.runs.iter().take(RUNS_MAX);
    rows.extend(of_runs.map(|run| (run.label.clone(), runs::in_words(run))));
    if cadence.runs.len() > RUNS_MAX {
        let more = cadence.runs.len() - RUNS_MAX;
        rows.push((format!("{more} more runs"), "see --json".to_owned()));
    }
    for gap in longest_gaps(report, 5) {
        let samples = |count| match count {
            1 => "1 sample".to_string(),
            count => format!("{} samples", units::count(count)),
        };
        let missing = match gap.missing {
            Missing::Exactly(count) => format!("{} missing", samples(count)),
            Missing::Between(least, most) => {
                format!("{} to {} missing", units::count(least), samples(most))
            }
            Missing::RoomFor(count) => format!("room for {}", samples(count)),
        };
        rows.push((
            format!("gap of {}", units::time(gap.step_ns as f64 / 1e3)),
            format!("at {}; {missing}", units::time(gap.at_ns as f64 / 1e3)),
        ));
    }
    Section {
        heading: "Sample timing",
        rows,
    }
}

/// Returns the longest gaps of a recording, at most `most`, longest first.
fn longest_gaps(report: &Report, most: usize) -> Vec<cardiograph_timing::cadence::LateStep> {
    let audit = report
        .detail
        .as_ref()
        .and_then(|detail| detail.cadence.as_ref());
    let mut gaps = audit.map_or_else(Vec::new, |audit| audit.gaps.clone());
    gaps.sort_by_key(|gap| std::cmp::Reverse(gap.step_ns));
    gaps.truncate(most);
    gaps
}
