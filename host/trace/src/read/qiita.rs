//! The CSV of study 3, the library comparison: one row of statistics per file written.

use super::error::{Fault, Problem};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, NUMBER_MAX};
use super::{Aggregate, AggregateRow};
use crate::trace::About;
use std::io::Read;

pub(crate) const COLUMNS: &[&str] = &[
    "Iteration",
    "FileSize(KB)",
    "BlockSize(B)",
    "WriteSpeed(MB/s)",
    "Latency(ms)",
    "MinLatency(ms)",
    "MaxLatency(ms)",
    "IOPS",
];

const BYTES_PER_KIB: u64 = 1 << 10;
const BYTES_PER_MIB: f64 = (1 << 20) as f64;
/// Power of ten for conversion to ns: a millisecond is 10^6 ns.
const POWER: i32 = 6;

pub(super) fn read<R: Read>(lines: &mut Lines<R>, about: About) -> Result<Aggregate, Fault> {
    lines.next_row()?;
    let mut rows = Vec::new();
    let mut total_bytes = 0_u64;
    while let Some(line) = lines.next_row()? {
        let row = row(&line)?;
        // Every write has at least one byte, so if the sum of the bytes does not overflow, neither does the
        // number of writes.
        total_bytes = total_bytes.saturating_add(row.file_size_bytes);
        if total_bytes > NUMBER_MAX {
            return Err(Problem::SizesTooLarge.at_line(line.number));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(Problem::NoRows.in_file());
    }
    Ok(Aggregate {
        about,
        rows,
        longest: None,
    })
}

fn row(line: &Line<'_>) -> Result<AggregateRow, Fault> {
    let texts: Vec<&[u8]> = line
        .text
        .split(|&byte| byte == b',')
        .take(COLUMNS.len() + 1)
        .collect();
    if texts.len() != COLUMNS.len() {
        let found = line.text.split(|&byte| byte == b',').count();
        return Err(line.wrong_fields(COLUMNS.len(), found));
    }
    let field = |index: usize| Field {
        column: COLUMNS[index],
        text: texts[index],
        line,
    };
    let row = AggregateRow {
        iteration: field(0).whole()?,
        file_size_bytes: field(1).whole_times(BYTES_PER_KIB)?,
        block_bytes: field(2).whole()?,
        throughput_bytes_per_s: Some(field(3).float_above_zero()? * BYTES_PER_MIB)
            .filter(|&speed| speed <= NUMBER_MAX as f64)
            .ok_or_else(|| field(3).fault(Bad::TooLarge))?,
        latency_ns_mean: field(4).decimal(POWER)?,
        latency_ns_min: field(5).decimal(POWER)?,
        latency_ns_max: field(6).decimal(POWER)?,
        iops: field(7).float()?,
    };
    if row.latency_ns_min > row.latency_ns_max {
        return Err(Problem::MinAboveMax.at_line(line.number));
    }
    let duration_ns = row.file_size_bytes as f64 * 1e9 / row.throughput_bytes_per_s;
    if duration_ns > NUMBER_MAX as f64 {
        return Err(Problem::TakesTooLong.at_line(line.number));
    }
    Ok(row)
}
