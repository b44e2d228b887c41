//! fio's latency logs: `time_ms, latency_ns, direction, block size[, offset][, priority]`.
//!
//! fio timestamps an operation when it completes, in whole milliseconds. The latencies are exact, so operations
//! are laid end to end; an operation starts later only where its timestamp requires it.

mod kind;

use super::ReadOptions;
use super::columns::{MICROSECOND, NANOSECOND};
use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, NUMBER_MAX, whole};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use kind::Known;
use std::io::Read;

const NS_PER_MS: u64 = 1_000_000;
const FIELDS_MIN: usize = 4;
const FIELDS_MAX: usize = 6;

/// fio's codes for the direction of an operation.
const READ: u64 = 0;
const WRITE: u64 = 1;
const TRIM: u64 = 2;

/// Refuses logs of fio that do not contain latencies of whole writes, although their rows look as if they did.
pub(super) fn refuse_by_name(name: &str) -> Result<(), Fault> {
    let is = |part: &str| name.contains(part) && name.ends_with(".log");
    let kind = match () {
        () if is("_slat.") => "submission latencies (slat)",
        () if is("_clat_hist.") => "histograms (write_hist_log)",
        () => return Ok(()),
    };
    Err(Problem::NotLatencies { kind }.in_file())
}

/// Returns true if the line looks like a row of a fio latency log.
pub(super) fn is_row(line: &[u8]) -> bool {
    let (texts, count) = split(line);
    (FIELDS_MIN..=FIELDS_MAX).contains(&count)
        && texts[..FIELDS_MIN].iter().all(|text| whole(text).is_ok())
        && whole(texts[2]).is_ok_and(|direction| direction <= TRIM)
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    about: About,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    if let Some(kind) = kind::in_name(&about.target) {
        return Err(Problem::NotLatencies { kind }.in_file());
    }
    let has_offsets = has_offsets(lines.in_memory());
    // Any error of `unit` is reported after the rows have been read, because the error of a row is more specific.
    let known = Known {
        are_latencies: kind::is_latency_name(&about.target),
        is_fio_3: has_priorities(lines.in_memory(), has_offsets),
        unit: options.time_unit,
    };
    let unit = kind::unit(lines.in_memory(), &known);
    let ns_per_unit = if matches!(unit, Ok(MICROSECOND)) {
        1000
    } else {
        1
    };
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
        if line.is_cut(b',', expected) {
            trace.about.notes.push(line.cut_note());
            break;
        }
        if found != expected {
            return Err(line.wrong_fields(expected, found));
        }
        let row = Row::parse(&texts, has_offsets, ns_per_unit, &line)?;
        if row.stamp_ms < stamp_ms_before {
            return Err(Problem::Backward {
                time: row.stamp_ms.to_string(),
                before: stamp_ms_before.to_string(),
            }
            .at_line(line.number));
        }
        stamp_ms_before = row.stamp_ms;
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
    let unit = unit?;
    trace.about.notes.push(format!(
        "fio's timestamps are whole milliseconds, but its latencies are exact (read as {}, as fio {} logs them). \
         Each operation is therefore placed directly after the previous one, or later where its timestamp requires \
         it; operations that overlapped (iodepth above 1) appear one after the other.",
        unit.name,
        if unit == NANOSECOND { 3 } else { 2 },
    ));
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

/// Returns true if the rows have the priorities that fio 3 logs.
fn has_priorities(head: &[u8], has_offsets: bool) -> bool {
    let row = head.split(|&byte| byte == b'\n').next();
    row.is_some_and(|row| split(row).1 > FIELDS_MIN + usize::from(has_offsets))
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
        ns_per_unit: u64,
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
            latency_ns: field(1).whole_times(ns_per_unit)?,
            kind,
            length_bytes,
            offset_bytes: has_offsets.then(|| field(4).whole()).transpose()?,
        })
    }
}
