//! Findings as text.

use crate::answer::{Answer, Findings};
use std::fmt::Write;

/// A line of the table: what was looked for, the answer, its confidence, and what was seen.
struct Line<'a> {
    name: &'static str,
    answer: String,
    confidence: String,
    evidence: &'a str,
}

fn line<'a, T: Copy>(
    name: &'static str,
    answer: &'a Answer<T>,
    show: impl Fn(T) -> String,
) -> Line<'a> {
    Line {
        name,
        answer: answer.value().map_or("cannot tell".to_string(), show),
        confidence: match answer.confidence() {
            Some(confidence) => format!("{:.0} %", 100.0 * confidence),
            None => "-".to_string(),
        },
        evidence: answer.evidence(),
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0 => "none".to_string(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

impl Findings {
    fn lines(&self) -> [Line<'_>; 6] {
        let yes_or_no = |is: bool| if is { "yes" } else { "no" }.to_string();
        [
            line("page", &self.page_bytes, size),
            line("unit", &self.unit_bytes, size),
            line("open units", &self.open_units, |units| units.to_string()),
            line("log", &self.log_bytes, size),
            line("FAT zone", &self.fat_zone_bytes, size),
            line(
                "collects garbage while idle",
                &self.collects_while_idle,
                yes_or_no,
            ),
        ]
    }

    /// Formats the findings as a table for a terminal.
    pub fn text(&self, target: &str) -> String {
        let lines = self.lines();
        let widest = |of: fn(&Line) -> usize| lines.iter().map(of).max().unwrap_or(0);
        let (name_width, answer_width) = (
            widest(|line| line.name.len()),
            widest(|line| line.answer.len()),
        );
        let mut out = format!("{target}\n");
        for Line {
            name,
            answer,
            confidence,
            evidence,
        } in &lines
        {
            let _ = writeln!(
                out,
                "  {name:name_width$}  {answer:answer_width$}  {confidence:>4}  {evidence}"
            );
        }
        let _ = writeln!(out, "  {}", self.cost());
        out
    }

    /// Formats the findings as a Markdown table.
    pub fn markdown(&self, target: &str) -> String {
        let mut out =
            format!("## {target}\n\n| | answer | confidence | seen |\n|---|---|---:|---|\n");
        for Line {
            name,
            answer,
            confidence,
            evidence,
        } in self.lines()
        {
            let _ = writeln!(out, "| {name} | {answer} | {confidence} | {evidence} |");
        }
        let _ = writeln!(out, "\n{}", self.cost());
        out
    }

    fn cost(&self) -> String {
        let megabytes = self.written_bytes as f64 / 1e6;
        let seconds = self.elapsed_ns / 1_000_000_000;
        format!(
            "wrote {megabytes:.0} MB in {} min {} s",
            seconds / 60,
            seconds % 60
        )
    }
}
