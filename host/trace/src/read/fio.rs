//! fio's latency logs: `time_ms, latency_ns, direction, block size[, offset][, priority]`.
//!
//! fio timestamps an operation when it completes, in whole milliseconds. The latencies are exact, so operations
//! are laid end to end; an operation starts later only where its timestamp requires it.

use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, NUMBER_MAX, whole};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

const NS_PER_MS: u64 = 1_000_000;
const FIELDS_MIN: usize = 4;
const FIELDS_MAX: usize = 6;

/// fio's codes for the direction of an operation.
const READ: u64 = 0;
const WRITE: u64 = 1;
const TRIM: u64 = 2;

/// Returns true if the line looks like a row of a fio latency log.
pub(super) fn is_row(line: &[u8]) -> bool {
    let (texts, count) = split(line);
    (FIELDS_MIN..=FIELDS_MAX).contains(&count)
        && texts[..FIELDS_MIN].iter().all(|text| whole(text).is_ok())
        && whole(texts[2]).is_ok_and(|direction| direction <= TRIM)
}

pub(super) fn read<R: Read>(lines: &mut Lines<R>, about: About) -> Result<Trace, Fault> {
    if let Some(kind) = kind_in_name(&about.target) {
        return Err(Problem::NotLatencies { kind }.in_file());
    }
    let has_offsets = has_offsets(lines.in_memory());
    let mut magnitudes = Magnitudes::default();
    let mut trace = Trace::new(about);
    let mut expected = 0;
    let mut stamp_ms_before = 0;
    let mut next_offset_bytes = 0_u64;
    let mut trims = 0_u64;
    while let Some(line) = lines.next_row()? {
        let (texts, found) = split(line.text);
        if expected == 0 {
            expected = found;
        }
        if found != expected {
            return Err(line.wrong_fields(expected, found));
        }
        let row = Row::parse(&texts, has_offsets, &line)?;
        if row.stamp_ms < stamp_ms_before {
            return Err(Problem::Backward {
                time: row.stamp_ms.to_string(),
                before: stamp_ms_before.to_string(),
            }
            .at_line(line.number));
        }
        stamp_ms_before = row.stamp_ms;
        magnitudes.push(&row);
        let Some(kind) = row.kind else {
            trims += 1;
            continue;
        };
        let earliest_ns = (row.stamp_ms * NS_PER_MS).saturating_sub(row.latency_ns);
        let start_ns = earliest_ns.max(trace.last_end_ns());
        let operation = Operation {
            kind,
            file: 0,
            offset_bytes: row.offset_bytes.unwrap_or(next_offset_bytes),
            length_bytes: row.length_bytes,
            start_ns,
            end_ns: start_ns + row.latency_ns,
        };
        if operation.end_ns > NUMBER_MAX || trace.push(&operation).is_err() {
            return Err(Bad::TooLarge.in_column(COLUMNS[1], texts[1], &line));
        }
        next_offset_bytes = next_offset_bytes.wrapping_add(row.length_bytes);
    }
    if let Some(kind) = magnitudes.kind() {
        return Err(Problem::NotLatencies { kind }.in_file());
    }
    trace.about.notes.push(
        "fio's timestamps are whole milliseconds, but its latencies are exact. Each operation is \
         therefore placed directly after the previous one, or later where its timestamp requires it; \
         operations that overlapped (iodepth above 1) appear one after the other."
            .to_owned(),
    );
    if !has_offsets {
        trace.about.notes.push(
            "The log has no offsets; the operations are assumed to be sequential (run fio with \
             --log_offset=1 to log offsets)."
                .to_owned(),
        );
    }
    if trims > 0 {
        trace
            .about
            .notes
            .push(format!("Skipped {trims} trims, which carry no data."));
    }
    Ok(trace)
}

/// Returns what a log contains instead of latencies by the name that fio gave it, such as `job_bw.1.log`.
fn kind_in_name(name: &str) -> Option<&'static str> {
    let name = name.rsplit(['/', '\\']).next()?.strip_suffix(".log")?;
    let kind = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if kind.ends_with("_bw") {
        Some(BANDWIDTHS)
    } else if kind.ends_with("_iops") {
        Some(OPERATIONS)
    } else {
        None
    }
}

const BANDWIDTHS: &str = "bandwidths";
const OPERATIONS: &str = "operations per second";

/// Sums that distinguish latencies from the other logs of fio, whose rows look the same.
#[derive(Default)]
struct Magnitudes {
    rows: u64,
    first_ms: u64,
    last_ms: u64,
    bytes: u64,
    sum: u64,
    greatest: u64,
    /// Sum of the latencies in ns if the values are kB/s.
    bandwidth_ns: u64,
}

impl Magnitudes {
    fn push(&mut self, row: &Row) {
        if self.rows == 0 {
            self.first_ms = row.stamp_ms;
        }
        self.rows += 1;
        self.last_ms = row.stamp_ms;
        self.bytes = self.bytes.saturating_add(row.length_bytes);
        self.sum = self.sum.saturating_add(row.latency_ns);
        self.greatest = self.greatest.max(row.latency_ns);
        let ns = row.length_bytes.saturating_mul(NS_PER_MS) / row.latency_ns.max(1);
        self.bandwidth_ns = self.bandwidth_ns.saturating_add(ns);
    }

    /// Returns what the values are if they cannot be latencies.
    fn kind(&self) -> Option<&'static str> {
        const ROWS_MIN: u64 = 8;
        // The memory of a computer copies no faster than this, in bytes per ns.
        const RATE_MAX: u64 = 100;
        if self.rows < ROWS_MIN {
            return None;
        }
        if self.greatest == 1 {
            return Some(OPERATIONS);
        }
        let elapsed_ns = (self.last_ms - self.first_ms) as f64 * NS_PER_MS as f64;
        let busy = self.bandwidth_ns as f64 / elapsed_ns;
        let is_idle = (self.sum as f64) < elapsed_ns / 2.0;
        let fills_the_time = is_idle && (0.8..=1.2).contains(&busy);
        (self.bytes / self.sum.max(1) > RATE_MAX || fills_the_time).then_some(BANDWIDTHS)
    }
}

/// Returns true if the first lines of a log contain offsets.
///
/// In rows of five fields, the last field is the offset in older logs and the priority in newer ones. A
/// priority is the same in all rows, or written as `0x...`.
fn has_offsets(head: &[u8]) -> bool {
    let mut fifths = head.split(|&byte| byte == b'\n').filter_map(|line| {
        let (texts, count) = split(line);
        match count {
            5 => Some(Some(texts[4])),
            6 => Some(None),
            _ => None,
        }
    });
    match fifths.next() {
        Some(Some(first)) => {
            whole(first).is_ok()
                && fifths
                    .flatten()
                    .any(|fifth| whole(fifth).is_ok() && fifth != first)
        }
        Some(None) => true,
        None => false,
    }
}

fn split(line: &[u8]) -> ([&[u8]; FIELDS_MAX], usize) {
    let mut texts = [&[][..]; FIELDS_MAX];
    let mut count = 0;
    for text in line.split(|&byte| byte == b',') {
        if let Some(slot) = texts.get_mut(count) {
            *slot = text.trim_ascii();
        }
        count += 1;
    }
    (texts, count)
}

const COLUMNS: [&str; FIELDS_MAX] = [
    "the time",
    "the latency",
    "the direction",
    "the block size",
    "the offset",
    "the priority",
];

struct Row {
    stamp_ms: u64,
    latency_ns: u64,
    /// Kind of the operation; `None` for a trim.
    kind: Option<OperationKind>,
    length_bytes: u64,
    offset_bytes: Option<u64>,
}

impl Row {
    fn parse(
        texts: &[&[u8]; FIELDS_MAX],
        has_offsets: bool,
        line: &Line<'_>,
    ) -> Result<Row, Fault> {
        let field = |index: usize| Field {
            column: COLUMNS[index],
            text: texts[index],
            line,
        };
        let stamp_ms = field(0).whole_times(NS_PER_MS)? / NS_PER_MS;
        let kind = match field(2).whole()? {
            READ => Some(OperationKind::Read),
            WRITE => Some(OperationKind::Write),
            TRIM => None,
            _ => {
                let text = format!("direction {}", shown(texts[2]));
                return Err(Problem::Operation { text }.at_line(line.number));
            }
        };
        let length_bytes = field(3).whole()?;
        if length_bytes == 0 {
            return Err(Problem::Averages.at_line(line.number));
        }
        Ok(Row {
            stamp_ms,
            latency_ns: field(1).whole()?,
            kind,
            length_bytes,
            offset_bytes: has_offsets.then(|| field(4).whole()).transpose()?,
        })
    }
}
