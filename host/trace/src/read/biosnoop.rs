//! biosnoop (bcc): one completed operation of a block device per row.
//!
//! `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`; COMM may contain spaces, so fields are counted from the
//! end.

use super::blocks::{Completed, Device};
use super::columns::cells;
use super::error::{Fault, Problem, shown};
use super::lines::Lines;
use super::number::{Field, decimal, whole};
use super::recording::rows_in;
use crate::trace::{About, Trace};
use cardiograph_workload::OperationKind;
use std::io::Read;

/// Returns true for the names of the columns.
pub(super) fn is_header(line: &[u8]) -> bool {
    let names: Vec<&[u8]> = cells(line, b' ').collect();
    names.starts_with(&[
        b"TIME(s)", b"COMM", b"PID", b"DISK", b"T", b"SECTOR", b"BYTES",
    ]) && names.ends_with(&[b"LAT(ms)"])
}

/// Returns the number of columns of a row without names above it: TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms).
pub(super) fn columns_of_row(line: &[u8]) -> Option<usize> {
    let texts: Vec<&[u8]> = cells(line, b' ').collect();
    // COMM may contain spaces, so the operation is found from the end.
    let is_operation =
        |at: usize| texts.len() > at && matches!(texts[texts.len() - at - 1], b"R" | b"W");
    let columns = [8, 9]
        .into_iter()
        .find(|columns| is_operation(columns - 5))?;
    let values = &texts[texts.len() - (columns - 5)..];
    let is_decimal = |text: &[u8]| text.contains(&b'.') && decimal(text, 0).is_ok();
    let (time, latency) = (texts[0], values[values.len() - 1]);
    let are_whole = values[..2].iter().all(|text| whole(text).is_ok());
    (texts.len() >= columns && is_decimal(time) && is_decimal(latency) && are_whole)
        .then_some(columns)
}

pub(super) fn read<R: Read>(lines: &mut Lines<R>, about: About) -> Result<Trace, Fault> {
    const SECTOR_BYTES: u64 = 512;
    const S: i32 = 9;
    const MS: i32 = 6;
    let mut device = Device::new(about);
    let first = rows_in(lines.in_memory()).next().unwrap_or_default();
    let columns = match columns_of_row(first) {
        Some(columns) => columns,
        None => lines
            .next_row()?
            .map_or(0, |line| cells(line.text, b' ').count()),
    };
    let mut before_ns = 0;
    while let Some(line) = lines.next_row()? {
        let texts: Vec<&[u8]> = cells(line.text, b' ').collect();
        if line.is_cut(b' ', columns) {
            device.trace.about.notes.push(line.cut_note());
            break;
        }
        if texts.len() < columns {
            return Err(line.wrong_fields(columns, texts.len()));
        }
        // Index of the column after COMM.
        let from = texts.len() - (columns - 2);
        let field = |column, index: usize| Field {
            column,
            text: texts[index],
            line: &line,
        };
        device.check(&shown(texts[from + 1]), &line)?;
        let kind = match texts[from + 2] {
            b"W" => OperationKind::Write,
            b"R" => OperationKind::Read,
            other => {
                let text = format!("T {}", shown(other));
                return Err(Problem::Operation { text }.at_line(line.number));
            }
        };
        let end_ns = field("TIME(s)", 0).decimal(S)?;
        if end_ns < before_ns {
            let (time, before) = (end_ns.to_string(), before_ns.to_string());
            return Err(Problem::BackwardNs { time, before }.at_line(line.number));
        }
        before_ns = end_ns;
        let completed = Completed {
            kind,
            offset_bytes: field("SECTOR", from + 3).whole_times(SECTOR_BYTES)?,
            length_bytes: field("BYTES", from + 4).whole()?,
            latency_ns: field("LAT(ms)", texts.len() - 1).decimal(MS)?,
            end_ns,
        };
        device.push(&completed, &line)?;
    }
    Ok(device.finish())
}
