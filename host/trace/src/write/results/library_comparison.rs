//! The results file of study 3.

use super::Unsuitable;
use crate::read::LIBRARY_COLUMNS;
use cardiograph_workload::Operation;
use std::collections::BTreeMap;
use std::io::{self, Write};

const KIB: u64 = 1 << 10;
const MIB: f64 = (1 << 20) as f64;

/// Statistics of one file.
pub(super) struct Row {
    /// Number of files of this size so far, including this one.
    iteration: u64,
    file_bytes: u64,
    block_bytes: u64,
    writes: u64,
    sum_ns: u64,
    min_ns: u64,
    max_ns: u64,
}

pub(super) fn rows(files: &[Vec<Operation>]) -> Result<Vec<Row>, Unsuitable> {
    let mut seen = BTreeMap::new();
    files
        .iter()
        .map(|file| {
            let file_bytes = file.iter().map(|write| write.length_bytes).sum();
            let iteration = seen.entry(file_bytes).or_insert(0);
            *iteration += 1;
            row(file, file_bytes, *iteration)
        })
        .collect()
}

fn row(file: &[Operation], file_bytes: u64, iteration: u64) -> Result<Row, Unsuitable> {
    let number = file[0].file;
    let unsuitable = |why: String| {
        Unsuitable(format!(
            "{why}; use --csv-format cardiograph, which has no such limits"
        ))
    };
    if file_bytes == 0 || !file_bytes.is_multiple_of(KIB) {
        return Err(unsuitable(format!(
            "file {number} has {file_bytes} B, but the CSV of the library comparison states sizes in KiB"
        )));
    }
    let block_bytes = file[0].length_bytes;
    if file.iter().any(|write| write.length_bytes != block_bytes) {
        return Err(unsuitable(format!(
            "the writes of file {number} have different lengths, but the CSV of the library comparison states one"
        )));
    }
    let ns = || file.iter().map(|write| write.end_ns - write.start_ns);
    let sum_ns = ns().sum();
    if sum_ns == 0 {
        return Err(unsuitable(format!(
            "the writes of file {number} took no time, so that they have no speed"
        )));
    }
    Ok(Row {
        iteration,
        file_bytes,
        block_bytes,
        writes: file.len() as u64,
        sum_ns,
        min_ns: ns().min().unwrap_or(0),
        max_ns: ns().max().unwrap_or(0),
    })
}

/// Writes all decimals of each number, so that a reader obtains the same figures.
pub(super) fn write(rows: &[Row], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}", LIBRARY_COLUMNS.join(","))?;
    for row in rows {
        let ms = |ns: f64| ns / 1e6;
        let sum_s = row.sum_ns as f64 / 1e9;
        writeln!(
            out,
            "{},{},{},{},{},{},{},{}",
            row.iteration,
            row.file_bytes / KIB,
            row.block_bytes,
            row.file_bytes as f64 / MIB / sum_s,
            ms(row.sum_ns as f64 / row.writes as f64),
            ms(row.min_ns as f64),
            ms(row.max_ns as f64),
            row.writes as f64 / sum_s
        )?;
    }
    Ok(())
}
