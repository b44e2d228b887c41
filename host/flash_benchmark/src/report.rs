//! Rows as text, Markdown, HTML and JSON.

use crate::case::Unit;
use crate::published::Published;
use crate::statistics::{Statistics, two_digits};
use cardiograph_report::DiskSummary;
use cardiograph_system::is_of_medium;
use serde::Serialize;
use std::fmt::Write;
use std::io;

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
    /// An operation failed; the values were measured before it.
    Failed,
}

/// Cause of a failed case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The medium failed.
    Medium,
    /// The file system became read-only.
    ReadOnly,
    /// The file system is full.
    Full,
    /// A limit of the number of open files.
    OpenFiles,
    /// A limit of the length of files.
    FileLength,
    /// Something removed or protected the files of the run.
    Changed,
    /// A program, or another limit of this computer.
    Other,
}

impl Cause {
    pub(crate) fn of(error: &io::Error) -> Cause {
        match error.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Cause::ReadOnly,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Cause::Full,
            io::ErrorKind::FileTooLarge => Cause::FileLength,
            io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => Cause::Changed,
            // ENFILE and EMFILE.
            _ if matches!(error.raw_os_error(), Some(23 | 24)) => Cause::OpenFiles,
            _ if is_of_medium(error) => Cause::Medium,
            _ => Cause::Other,
        }
    }
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
    /// Cause, if the case failed.
    #[serde(skip)]
    pub cause: Cause,
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

/// A table of the report, or the reason why there is none.
struct Table {
    title: String,
    reason: Option<String>,
    /// The first line is the header; all lines have the same number of cells.
    lines: Vec<Vec<String>>,
}

/// Returns a table for each set-up, and after those of an experiment with several ones, their medians side by side.
fn tables(figures: &Figures) -> Vec<Table> {
    let of_experiments = figures.rows.chunk_by(|a, b| a.experiment == b.experiment);
    let of_experiment = |rows| groups(rows).map(table_of).chain(side_by_side(rows));
    of_experiments.flat_map(of_experiment).collect()
}

fn table_of(group: &[Row]) -> Table {
    let first = &group[0];
    let reason = common_reason(group).map(|reason| not_measured(first.outcome, reason));
    let header = HEADER.map(String::from).to_vec();
    let lines = group.iter().map(|row| cells(row).to_vec());
    Table {
        title: format!("{} · {}", first.experiment, first.set_up),
        reason,
        lines: std::iter::once(header).chain(lines).collect(),
    }
}

/// Returns the medians of an experiment, with a column for each set-up that was measured.
fn side_by_side(rows: &[Row]) -> Option<Table> {
    let measured = groups(rows).filter(|group| group.iter().any(|row| row.statistics.is_some()));
    let set_ups: Vec<&[Row]> = measured.collect();
    if set_ups.len() < 2 {
        return None;
    }
    let mut cases: Vec<&str> = Vec::new();
    for row in set_ups.iter().flat_map(|group| group.iter()) {
        if row.statistics.is_some() && !cases.contains(&row.case.as_str()) {
            cases.push(&row.case);
        }
    }
    let first = &rows[0];
    let names = set_ups.iter().map(|group| group[0].set_up.clone());
    let header = std::iter::once(format!("median, {}", first.unit.name())).chain(names);
    let line = |case: &str| -> Vec<String> {
        let median = |group: &&[Row]| {
            let row = group.iter().find(|row| row.case == case);
            let statistics = row.and_then(|row| row.statistics);
            statistics.map_or(String::new(), |statistics| number(statistics.median))
        };
        let medians = set_ups.iter().map(median);
        std::iter::once(case.to_string()).chain(medians).collect()
    };
    Some(Table {
        title: format!("{} · side by side", first.experiment),
        reason: None,
        lines: std::iter::once(header.collect())
            .chain(cases.into_iter().map(line))
            .collect(),
    })
}

/// Returns the tables for the terminal.
pub fn text(figures: &Figures) -> String {
    let mut out = format!("flash-benchmark · {}\n", figures.target.escape_debug());
    for table in tables(figures) {
        let _ = writeln!(out, "\n  {}", table.title);
        if let Some(reason) = &table.reason {
            let _ = writeln!(out, "    {reason}");
            continue;
        }
        for line in &table.lines {
            out.push_str("   ");
            for (column, cell) in line.iter().enumerate() {
                let widths = table.lines.iter().map(|line| line[column].chars().count());
                let width = widths.max().unwrap_or(0);
                let _ = match is_text(&table, column) {
                    true => write!(out, " {cell:<width$} "),
                    false => write!(out, " {cell:>width$} "),
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

/// Returns true for a column of words, which are aligned left.
fn is_text(table: &Table, column: usize) -> bool {
    column == 0 || matches!(table.lines[0][column].as_str(), "unit" | "study")
}

/// Returns the tables as Markdown.
pub fn markdown(figures: &Figures) -> String {
    let mut out = format!("# flash-benchmark: {}\n", figures.target.escape_debug());
    for table in tables(figures) {
        let _ = writeln!(out, "\n## {}\n", table.title);
        if let Some(reason) = &table.reason {
            let _ = writeln!(out, "{reason}");
            continue;
        }
        for (index, line) in table.lines.iter().enumerate() {
            let cells: Vec<_> = line.iter().map(|cell| cell.replace('|', "\\|")).collect();
            let _ = writeln!(out, "| {} |", cells.join(" | "));
            if index == 0 {
                let align = |column| {
                    if is_text(&table, column) {
                        "---|"
                    } else {
                        "---:|"
                    }
                };
                let rule: String = (0..line.len()).map(align).collect();
                let _ = writeln!(out, "|{rule}");
            }
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
    for table in tables(figures) {
        let _ = writeln!(out, "<h2>{}</h2>", escaped(&table.title));
        if let Some(reason) = &table.reason {
            let _ = writeln!(out, "<p>{}</p>", escaped(reason));
            continue;
        }
        out.push_str("<div class=\"scroll\"><table>\n");
        for (index, line) in table.lines.iter().enumerate() {
            let tag = if index == 0 { "th" } else { "td" };
            out.push_str("<tr>");
            for (column, cell) in line.iter().enumerate() {
                let class = if is_text(&table, column) {
                    ""
                } else {
                    " class=\"n\""
                };
                let _ = write!(out, "<{tag}{class}>{}", escaped(cell));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</table></div>\n");
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

#[cfg(test)]
mod tests {
    use super::*;

    fn row(set_up: &str, case: &str, values: &[f64], published: Option<(f64, f64)>) -> Row {
        Row {
            experiment: "filesystems",
            set_up: set_up.to_string(),
            case: case.to_string(),
            unit: Unit::MbPerS,
            outcome: match values {
                [] => Outcome::NotAvailable,
                _ => Outcome::Measured,
            },
            reason: values
                .is_empty()
                .then(|| format!("the kernel has no {set_up}")),
            cause: Cause::Other,
            statistics: Statistics::of(values),
            values: values.to_vec(),
            published: published.map(|(min, max)| Published {
                experiment: String::from("filesystems"),
                set_up: set_up.to_string(),
                case: case.to_string(),
                value: None,
                min: Some(min),
                max: Some(max),
            }),
        }
    }

    fn figures() -> Figures {
        Figures {
            target: String::from("/dev/sdX"),
            disk: None,
            file_systems: Vec::new(),
            rows: vec![
                row("raw", "1 MB", &[7.61, 7.58, 3.1], None),
                row("vfat", "1 MB", &[], Some((2.7, 6.4))),
                row("ext2", "1 MB", &[1.5, 1.46, 12.4], None),
                row("ext2", "10 MB", &[4.5, 4.6], Some((4.2, 4.8))),
            ],
            notes: vec![String::from("a < b")],
        }
    }

    #[test]
    fn the_tables_have_mode_median_range_and_the_study() {
        let expected = "\
flash-benchmark · /dev/sdX

  filesystems · raw
    case  mode  median       range  unit  runs  study
    1 MB   7.6     7.6  3.1 to 7.6  MB/s     3

  filesystems · vfat
    not available: the kernel has no vfat

  filesystems · ext2
    case   mode  median       range  unit  runs  study
    1 MB    1.5     1.5   1.5 to 12  MB/s     3
    10 MB     –     4.5  4.5 to 4.6  MB/s     2  4.2 to 4.8

  filesystems · side by side
    median, MB/s  raw  ext2
    1 MB          7.6   1.5
    10 MB               4.5

  note: a < b
";
        assert_eq!(text(&figures()), expected);
        let markdown = markdown(&figures());
        let row = "| 10 MB | – | 4.5 | 4.5 to 4.6 | MB/s | 2 | 4.2 to 4.8 |";
        assert!(markdown.contains(row), "{markdown}");
        let html = html(&figures());
        assert!(
            html.contains("<td>10 MB<td class=\"n\">–<td class=\"n\">4.5"),
            "{html}"
        );
        assert!(html.contains("a &lt; b"), "{html}");
    }
}
