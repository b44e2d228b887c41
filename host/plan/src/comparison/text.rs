//! The comparison as a table and sentences.

use super::figures::{Comparison, Estimate, Outcome, Side, Verdict};
use cardiograph_report::units;
use std::fmt::Write;

/// Buffer sizes in the table; the JSON contains all sizes.
const BUFFERS_BYTES: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 1 << 20];

/// Returns the decision as the first line of the output.
pub fn decided(comparison: &Comparison) -> String {
    format!("{}\n", comparison.decision.answer)
}

/// Returns the comparison below the decision as text for a terminal: figures, verdicts, and notes.
pub fn text(comparison: &Comparison) -> String {
    let mut out = String::new();
    for side in &comparison.sides {
        let _ = writeln!(out, "{}  {} · {}", side.name, side.workload, side.target);
    }
    let rows = [vec![heads(comparison)], rows(comparison)].concat();
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    out.push('\n');
    for row in &rows {
        let cells = row.iter().zip(&widths);
        let cells: Vec<_> = cells
            .map(|(cell, &width)| format!("{cell:<width$}"))
            .collect();
        let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
    }
    out.push('\n');
    for sentence in sentences(comparison) {
        let _ = writeln!(out, "{sentence}");
    }
    for note in &comparison.notes {
        let _ = writeln!(out, "\n  note: {note}");
    }
    out
}

impl Comparison {
    /// Returns the comparison as Markdown.
    pub fn markdown(&self) -> String {
        let mut out = format!("## Comparison\n\n{}\n", self.decision.answer);
        out.push('\n');
        for side in &self.sides {
            let _ = writeln!(out, "- {}: {} on {}", side.name, side.workload, side.target);
        }
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        out.push('\n');
        out += &line(&heads(self));
        out += &format!("|---|{}\n", "---:|".repeat(self.sides.len()));
        for row in rows(self) {
            out += &line(&row);
        }
        out.push('\n');
        for sentence in sentences(self) {
            let _ = writeln!(out, "- {sentence}");
        }
        for note in &self.notes {
            let _ = writeln!(out, "\n> **Note:** {note}");
        }
        out
    }
}

/// Returns the column headings of the table.
pub fn heads(comparison: &Comparison) -> Vec<String> {
    let names = comparison.sides.iter().map(|side| side.name.clone());
    std::iter::once(String::new()).chain(names).collect()
}

/// Returns the rows of the table: a name, and the value of each side.
pub fn rows(comparison: &Comparison) -> Vec<Vec<String>> {
    let row = |name: String, of: &dyn Fn(&Side) -> Option<String>| {
        let cells: Vec<Option<String>> = comparison.sides.iter().map(of).collect();
        cells.iter().any(Option::is_some).then(|| {
            let cells = cells
                .into_iter()
                .map(|cell| cell.unwrap_or("–".to_string()));
            std::iter::once(name).chain(cells).collect()
        })
    };
    let named = |name: &str, of: &dyn Fn(&Side) -> Option<String>| row(name.to_string(), of);
    let mut rows = vec![
        named("writes", &|side| Some(units::count(side.writes))),
        named("payload", &|side| {
            Some(units::bytes(side.payload_bytes as f64))
        }),
        named("elapsed", &|side| side.elapsed_us.map(units::time)),
        named("median", &|side| Some(shown(&side.latency_us.median))),
        named("p99", &|side| side.latency_us.p99.as_ref().map(shown)),
        named("longest write", &|side| {
            let longest = units::time(side.latency_us.worst_case);
            Some(format!("{longest} (n = {})", units::count(side.writes)))
        }),
        named("predicted longest of 10 × n writes", &|side| {
            let longest_us = side.tail.as_ref()?.in_ten_times_as_many_us;
            Some(format!("{} (no interval)", units::time(longest_us)))
        }),
        named("stalls", &|side| {
            let above = units::time(side.stalls.threshold_us);
            Some(format!("{} above {above}", units::count(side.stalls.count)))
        }),
    ];
    rows.extend(BUFFERS_BYTES.map(|bytes| {
        row(
            format!("sustained, {}", units::binary_bytes(bytes)),
            &|side| {
                let rates = side.sustained_rates.iter();
                let rate = rates.clone().find(|row| row.buffer_bytes == bytes)?;
                (rate.rate_bytes_per_s > 0.0).then(|| units::rate(rate.rate_bytes_per_s))
            },
        )
    }));
    rows.into_iter().flatten().collect()
}

fn shown(estimate: &Estimate) -> String {
    let value = units::time(estimate.value);
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => {
            format!("{value} ({} to {})", units::time(low), units::time(high))
        }
        _ => value,
    }
}

/// Returns the verdicts, and a sentence about the intervals.
pub fn sentences(comparison: &Comparison) -> Vec<String> {
    let mut all: Vec<String> = comparison.verdicts.iter().map(sentence).collect();
    all.push(format!(
        "The 95 % confidence intervals come from a moving-block bootstrap ({} replicates, seed {}). The longest write and the \
         sustained rate describe only the measured writes: a longer run may contain a longer stall.",
        units::count(comparison.bootstrap.replicates),
        comparison.bootstrap.seed
    ));
    all
}

fn sentence(verdict: &Verdict) -> String {
    let Verdict {
        side, base, figure, ..
    } = verdict;
    let said = match verdict.verdict {
        Outcome::Faster => format!("{side} is faster than {base}"),
        Outcome::Slower => format!("{side} is slower than {base}"),
        Outcome::CannotTell => format!("cannot tell whether {side} is faster than {base}"),
    };
    let ratio = match (verdict.ratio, verdict.ratio_interval) {
        (Some(ratio), None) if verdict.verdict != Outcome::CannotTell => {
            format!("; its latency is {} times that of {base}", digits(ratio))
        }
        (Some(ratio), Some([low, high])) => format!(
            "; its latency is {} times that of {base} ({} to {})",
            digits(ratio),
            digits(low),
            digits(high)
        ),
        _ => String::new(),
    };
    let reason = verdict.reason.as_ref();
    let reason = reason.map_or(String::new(), |reason| format!("; {reason}"));
    let heading = if *figure == "median" {
        "Median"
    } else {
        figure
    };
    format!("{heading}: {said}{ratio}{reason}.")
}

/// Formats a ratio so that its difference from 1 has two digits.
fn digits(ratio: f64) -> String {
    let difference = (ratio - 1.0).abs();
    let decimals = match difference {
        d if d < 1e-9 => 2.0,
        d => (1.0 - libm::log10(d).floor()).clamp(0.0, 6.0),
    };
    format!("{ratio:.0$}", decimals as usize)
}
