//! Rows as text, Markdown, HTML and JSON.

use crate::case::Unit;
use crate::published::Published;
use crate::statistics::{Statistics, two_digits};
use cardiograph_report::DiskSummary;
use serde::Serialize;
use std::fmt::Write;

/// Outcome of a case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// There are values.
    Measured,
    /// The search ended without a result.
    NotFound,
    /// This computer or target cannot run the case.
    NotAvailable,
    /// The case is larger than the disk, or than a limit.
    Skipped,
    /// The storage failed; the values are those before.
    Failed,
}

/// Result of a case.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Experiment.
    pub experiment: &'static str,
    /// Set-up, such as `ext2`.
    pub set_up: String,
    /// Case, such as `10 MB`.
    pub case: String,
    /// Unit of all figures of the row.
    pub unit: Unit,
    /// Outcome.
    pub outcome: Outcome,
    /// Reason, if there is no complete result.
    pub reason: Option<String>,
    /// Statistics of the values.
    pub statistics: Option<Statistics>,
    /// Value of each repetition.
    pub values: Vec<f64>,
    /// Figure of the study.
    pub published: Option<Published>,
}

/// A file system, and the possibility to use it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Availability {
    /// Kernel's name.
    pub name: &'static str,
    /// True if this computer can format and mount it.
    pub is_available: bool,
    /// Missing part.
    pub reason: Option<String>,
}

/// Everything that a run found.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// Target on the command line.
    pub target: String,
    /// The disk; `None` for a directory.
    pub disk: Option<DiskSummary>,
    /// File systems; empty for a directory.
    pub file_systems: Vec<Availability>,
    /// One row for each case.
    pub rows: Vec<Row>,
    /// Conditions of the run.
    pub notes: Vec<String>,
}

const HEADER: [&str; 7] = ["case", "mode", "median", "range", "unit", "runs", "study"];

/// Returns the table for the terminal.
pub fn text(figures: &Figures) -> String {
    let mut out = format!("flash-benchmark · {}\n", figures.target.escape_debug());
    for group in groups(&figures.rows) {
        let first = &group[0];
        let _ = writeln!(out, "\n  {} · {}", first.experiment, first.set_up);
        if let Some(reason) = common_reason(group) {
            let _ = writeln!(out, "    {}", not_measured(first.outcome, reason));
            continue;
        }
        let cells = group.iter().map(cells);
        let lines: Vec<[String; 7]> = std::iter::once(HEADER.map(String::from))
            .chain(cells)
            .collect();
        for line in &lines {
            out.push_str("   ");
            for (column, cell) in line.iter().enumerate() {
                let width = lines.iter().map(|line| line[column].chars().count()).max();
                let width = width.unwrap_or(0);
                let _ = match column {
                    0 | 4 | 6 => write!(out, " {cell:<width$} "),
                    _ => write!(out, " {cell:>width$} "),
                };
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
    }
    for note in &figures.notes {
        let _ = writeln!(out, "\n  note: {note}");
    }
    out
}

/// Returns the tables as Markdown.
pub fn markdown(figures: &Figures) -> String {
    let mut out = format!("# flash-benchmark: {}\n", figures.target.escape_debug());
    for group in groups(&figures.rows) {
        let first = &group[0];
        let _ = writeln!(out, "\n## {}, {}\n", first.experiment, first.set_up);
        if let Some(reason) = common_reason(group) {
            let _ = writeln!(out, "{}", not_measured(first.outcome, reason));
            continue;
        }
        let _ = writeln!(out, "| {} |", HEADER.join(" | "));
        let _ = writeln!(out, "|---|---:|---:|---:|---|---:|---|");
        for row in group {
            let cells = cells(row).map(|cell| cell.replace('|', "\\|"));
            let _ = writeln!(out, "| {} |", cells.join(" | "));
        }
    }
    for note in &figures.notes {
        let _ = writeln!(out, "\n{note}");
    }
    out
}

/// Returns the tables as one HTML page that works offline.
pub fn html(figures: &Figures) -> String {
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
         <title>Cardiograph: Flash Benchmark</title><style>\n{}</style></head><body>\n\
         <h1>Flash Benchmark on {}</h1>\n",
        include_str!("../../reproduce/src/page.css"),
        escaped(&figures.target)
    );
    for group in groups(&figures.rows) {
        let first = &group[0];
        let _ = writeln!(
            out,
            "<h2>{}, {}</h2>",
            escaped(first.experiment),
            escaped(&first.set_up)
        );
        if let Some(reason) = common_reason(group) {
            let _ = writeln!(
                out,
                "<p>{}</p>",
                escaped(&not_measured(first.outcome, reason))
            );
            continue;
        }
        let _ = writeln!(out, "<table><tr><th>{}</tr>", HEADER.join("<th>"));
        for row in group {
            let cells = cells(row).map(|cell| escaped(&cell));
            let _ = writeln!(out, "<tr><td>{}</tr>", cells.join("<td>"));
        }
        out.push_str("</table>\n");
    }
    for note in &figures.notes {
        let _ = writeln!(out, "<p>{}</p>", escaped(note));
    }
    out + "</body></html>\n"
}

/// Splits the rows by experiment and set-up.
fn groups(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| (a.experiment, &a.set_up) == (b.experiment, &b.set_up))
}

/// Returns the reason for which no row of a group was measured, if it is the same for all.
fn common_reason(group: &[Row]) -> Option<&str> {
    let first = &group[0];
    let same = |row: &Row| {
        row.values.is_empty() && (row.outcome, &row.reason) == (first.outcome, &first.reason)
    };
    first.reason.as_deref().filter(|_| group.iter().all(same))
}

fn not_measured(outcome: Outcome, reason: &str) -> String {
    let what = match outcome {
        Outcome::Measured => "measured",
        Outcome::NotFound => "not found",
        Outcome::NotAvailable => "not available",
        Outcome::Skipped => "skipped",
        Outcome::Failed => "failed",
    };
    format!("{what}: {reason}")
}

fn cells(row: &Row) -> [String; 7] {
    let empty = String::new;
    let (mode, median, range) = match &row.statistics {
        None => (empty(), empty(), empty()),
        Some(statistics) => (
            statistics.mode.map_or(String::from("–"), number),
            number(statistics.median),
            range(statistics.min, statistics.max),
        ),
    };
    let reason = row.reason.as_ref();
    let reason = reason.map(|reason| not_measured(row.outcome, reason));
    let study = row.published.as_ref().map(|figure| study(figure, row));
    let study = study.into_iter().chain(reason).collect::<Vec<_>>();
    let runs = match row.values.len() {
        0 => empty(),
        runs => runs.to_string(),
    };
    let unit = row.unit.name().to_string();
    [
        row.case.clone(),
        mode,
        median,
        range,
        unit,
        runs,
        study.join("; "),
    ]
}

/// Formats a figure of the study, with its set-up if that is another one.
fn study(figure: &Published, row: &Row) -> String {
    let range = figure.min.zip(figure.max);
    let range = range.map(|(min, max)| format!("{min} to {max}"));
    let text = match (figure.value, range) {
        (Some(value), Some(range)) => format!("{value} ({range})"),
        (Some(value), None) => value.to_string(),
        (None, range) => range.unwrap_or_default(),
    };
    match figure.set_up == row.set_up {
        true => text,
        false => format!("{text} on {}", figure.set_up),
    }
}

fn range(min: f64, max: f64) -> String {
    let (min, max) = (number(min), number(max));
    match min == max {
        true => min,
        false => format!("{min} to {max}"),
    }
}

/// Formats a number with two significant digits, or all of its whole ones.
fn number(value: f64) -> String {
    match value {
        value if value >= 10.0 => format!("{value:.0}"),
        value => two_digits(value).to_string(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
