//! The latency distribution as bars for a terminal, from the histogram behind the distribution of the HTML report.

use crate::report::{Noun, Report};
use crate::units;
use std::fmt::Write;

/// Latencies from a power of two up to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Lowest latency, in ns: 0, or a power of two.
    pub from_ns: u64,
    /// Number of writes.
    pub count: u64,
}

impl Bucket {
    /// The first latency above the bucket, in ns.
    pub fn below_ns(self) -> u64 {
        self.from_ns.saturating_mul(2).max(1)
    }
}

/// Longest bar, in columns.
const BAR_MAX: usize = 40;
/// Minimum length of the longest bar, in columns.
const BAR_MIN: usize = 4;
/// Width of the lower limits.
const LIMIT_WIDTH: usize = 7;
/// Last characters of bars, whose lengths are multiples of an eighth of a column.
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// Returns the buckets from the first to the last that is not empty; none if the report has no distribution.
pub fn buckets(report: &Report) -> Vec<Bucket> {
    let mut buckets: Vec<Bucket> = Vec::new();
    let bars = report.detail.iter().flat_map(|detail| {
        // The limits of the histogram's buckets include all powers of two.
        detail.latencies.histogram().bars()
    });
    for (ns, count) in bars {
        let from_ns = ns.checked_ilog2().map_or(0, |power| 1 << power);
        loop {
            match buckets.last_mut() {
                Some(last) if last.from_ns == from_ns => break last.count += count,
                Some(last) => {
                    let next = Bucket {
                        from_ns: last.below_ns(),
                        count: 0,
                    };
                    buckets.push(next);
                }
                None => buckets.push(Bucket { from_ns, count: 0 }),
            }
        }
    }
    buckets
}

/// Formats the buckets as bars that fit the given number of columns; `of_stalls` styles the bars of stalls.
pub fn text(report: &Report, columns: usize, of_stalls: impl Fn(&str) -> String) -> String {
    let buckets = buckets(report);
    let counts: Vec<String> = buckets
        .iter()
        .map(|bucket| units::count(bucket.count))
        .collect();
    let marks: Vec<String> = buckets
        .iter()
        .map(|bucket| mark(report, *bucket).unwrap_or_default())
        .collect();
    let widest = |texts: &[String]| texts.iter().map(|text| text.chars().count()).max();
    let (Some(count_width), Some(mark_width), Some(most)) = (
        widest(&counts),
        widest(&marks),
        buckets.iter().map(|bucket| bucket.count).max(),
    ) else {
        return String::new();
    };
    let taken = "    from ".len() + LIMIT_WIDTH + 2 + count_width + 2 + 1 + mark_width;
    let width = columns.saturating_sub(taken).clamp(BAR_MIN, BAR_MAX);
    let what = match report.noun {
        Noun::Write => "writes by latency",
        Noun::Read => "reads by latency",
        Noun::Interval => "intervals by length",
    };
    let mut out = format!("\n  Distribution: {what}\n");
    for ((bucket, count), mark) in buckets.iter().zip(&counts).zip(&marks) {
        let limit = units::time(bucket.from_ns as f64 / 1e3);
        let bar = bar(bucket.count, most, width);
        let end = format!("{bar} {mark}");
        let end = match mark.is_empty() {
            true => bar,
            false => of_stalls(&end),
        };
        let line = format!("    from {limit:>LIMIT_WIDTH$}  {count:>count_width$}  {end}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out
}

/// Describes the stalls in a bucket, if it has any.
fn mark(report: &Report, bucket: Bucket) -> Option<String> {
    let threshold_us = report.summary.stalls.threshold_us?;
    let threshold_ns = threshold_us * 1e3;
    let worst_case_us = report.summary.latency_us.worst_case;
    if bucket.count == 0 || worst_case_us.is_some_and(|us| us <= threshold_us) {
        None
    } else if bucket.from_ns as f64 > threshold_ns {
        Some("stalls".to_string())
    } else if bucket.below_ns() as f64 - 1.0 > threshold_ns {
        Some(format!("stalls above {}", units::time(threshold_us)))
    } else {
        None
    }
}

/// Returns a bar of block characters, in which even one write is visible.
fn bar(count: u64, most: u64, width: usize) -> String {
    let eighths = (count as f64 / most.max(1) as f64 * (width * 8) as f64).round() as usize;
    let eighths = eighths.max(usize::from(count > 0));
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}
