//! The results file of study 1, MagOD2.
//!
//! ```text
//! Test information: Bytes per line,100            name,value lines ... , Test results (us): File 0
//! start,File 0  end,File 1  start,..., 5000,27012,99812,...,         one row per line written: start and
//! end for every file
//! ```
//!
//! A row holds values written minutes apart: all rows of file 0 come first in time, then all of file 1. The times are
//! 32-bit microseconds that wrap after 71.6 min. Some copies have underscores or commas in place of spaces, so all
//! three separate words here.

use super::error::{Fault, Problem};
use super::lines::{Line, Lines};
use super::number::Field;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

const NS_PER_US: u64 = 1000;

/// Minimum decrease, in us, at which the counter has wrapped; a smaller decrease is an error.
const WRAP_US_MIN: u32 = 1 << 31;

/// Returns true if the line is the first line of a MagOD2 results file.
pub(super) fn begins(line: &[u8]) -> bool {
    starts_with(line, &["test", "information:"])
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    block_bytes: u64,
) -> Result<Trace, Fault> {
    lines.next_row()?;
    let information = Information::read(lines)?;
    let files = files_in_header(lines)?;
    if let Some(declared) = information.files.filter(|&declared| declared != files) {
        let found = files;
        return Err(Problem::FilesDiffer { declared, found }.in_file());
    }
    let table = Table::read(lines, files, information.lines_per_file)?;
    let length_bytes = match information.bytes_per_line {
        Some(bytes) => bytes,
        None => {
            about.notes.push(super::block_note(block_bytes));
            block_bytes
        }
    };
    about.workload = match information.reopened {
        Some(0) => "magod2-kept-open",
        _ => "magod2",
    }
    .to_owned();
    table.into_trace(about, length_bytes)
}

/// Values of the `name,value` lines.
#[derive(Default)]
struct Information {
    bytes_per_line: Option<u64>,
    lines_per_file: Option<u64>,
    files: Option<u64>,
    /// 1 if a file was opened and closed for each line; `None` if the file does not state it.
    reopened: Option<u64>,
}

impl Information {
    /// Reads up to the line `Test results (us):`.
    fn read<R: Read>(lines: &mut Lines<R>) -> Result<Information, Fault> {
        let mut information = Information::default();
        while let Some(line) = lines.next_row()? {
            let slot = if starts_with(line.text, &["test", "results"]) {
                return Ok(information);
            } else if starts_with(line.text, &["bytes", "per", "line"]) {
                &mut information.bytes_per_line
            } else if starts_with(line.text, &["lines", "per", "file"]) {
                &mut information.lines_per_file
            } else if starts_with(line.text, &["amount", "of", "files"]) {
                &mut information.files
            } else if starts_with(line.text, &["open", "and", "close"]) {
                &mut information.reopened
            } else {
                continue;
            };
            let field = Field {
                column: "the value",
                text: words(line.text).last().unwrap_or_default(),
                line: &line,
            };
            *slot = Some(field.whole()?);
        }
        Err(Problem::NoResults.in_file())
    }
}

/// Returns the number of files that the results header names.
fn files_in_header<R: Read>(lines: &mut Lines<R>) -> Result<u64, Fault> {
    let Some(line) = lines.next_row()? else {
        return Err(Problem::NoResults.in_file());
    };
    let mut words = words(line.text);
    let mut files = 0_u64;
    let mut names = |files: u64, edge: &str| -> Option<bool> {
        let Some(word) = words.next() else {
            return Some(false);
        };
        let named = word.eq_ignore_ascii_case(b"file")
            && words.next()? == files.to_string().as_bytes()
            && words.next()?.eq_ignore_ascii_case(edge.as_bytes());
        named.then_some(true)
    };
    loop {
        match names(files, "start") {
            Some(true) if names(files, "end") == Some(true) => files += 1,
            Some(false) if files > 0 => return Ok(files),
            _ => return Err(Problem::ResultsHeader.at_line(line.number)),
        }
    }
}

/// The results in the order of the results file.
struct Table {
    files: usize,
    /// The rows in order, each with the start and end of every file.
    times_us: Vec<u32>,
    /// Line number of each row.
    line_numbers: Vec<u64>,
}

impl Table {
    fn read<R: Read>(
        lines: &mut Lines<R>,
        files: u64,
        declared: Option<u64>,
    ) -> Result<Table, Fault> {
        // The header names each file, so the number of files is bounded by the length of a line.
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        let mut table = Table {
            files,
            times_us: Vec::new(),
            line_numbers: Vec::new(),
        };
        while let Some(line) = lines.next_row()? {
            if let Some(declared) = declared
                && table.line_numbers.len() as u64 == declared
            {
                return Err(Problem::LinesBeyond { declared }.at_line(line.number));
            }
            table.read_row(&line)?;
        }
        let found = table.line_numbers.len() as u64;
        match declared {
            Some(declared) if found < declared => {
                Err(Problem::LinesMissing { declared, found }.in_file())
            }
            _ => Ok(table),
        }
    }

    fn read_row(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let expected = 2 * self.files;
        let found = words(line.text).count();
        if found != expected {
            return Err(line.wrong_fields(expected, found));
        }
        for text in words(line.text) {
            let field = Field {
                column: "the time",
                text,
                line,
            };
            self.times_us.push(field.whole_u32()?);
        }
        self.line_numbers.push(line.number);
        Ok(())
    }

    /// Sorts the operations by time and unwraps the counter.
    fn into_trace(self, about: About, length_bytes: u64) -> Result<Trace, Fault> {
        let mut trace = Trace::new(about);
        let mut clock = Clock::default();
        for file in 0..self.files {
            let mut offset_bytes = 0_u64;
            let rows = self.times_us.chunks_exact(2 * self.files);
            for (row, &number) in rows.zip(&self.line_numbers) {
                let (start_us, end_us) = (row[2 * file], row[2 * file + 1]);
                let operation = Operation {
                    kind: OperationKind::Write,
                    file: file as u32,
                    offset_bytes,
                    length_bytes,
                    start_ns: clock.ns(start_us, number)?,
                    end_ns: clock.ns(end_us, number)?,
                };
                trace
                    .push(&operation)
                    .map_err(|_| Problem::TotalTooLarge.at_line(number))?;
                offset_bytes = offset_bytes.wrapping_add(length_bytes);
            }
        }
        Ok(trace)
    }
}

/// Converts readings of a 32-bit microsecond counter to ns that never wrap.
#[derive(Default)]
struct Clock {
    wraps: u64,
    before_us: u32,
}

impl Clock {
    fn ns(&mut self, time_us: u32, line_number: u64) -> Result<u64, Fault> {
        if time_us < self.before_us {
            if self.before_us - time_us <= WRAP_US_MIN {
                return Err(Problem::Backward {
                    time: time_us.to_string(),
                    before: self.before_us.to_string(),
                }
                .at_line(line_number));
            }
            self.wraps += 1;
        }
        self.before_us = time_us;
        // Each wrap needs at least two numbers in the file, so the time stays far below 2^63.
        Ok(((self.wraps << 32) + u64::from(time_us)) * NS_PER_US)
    }
}

/// Returns the words between spaces, underscores and commas.
fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| b" \t_,".contains(byte))
        .filter(|word| !word.is_empty())
}

fn starts_with(line: &[u8], start: &[&str]) -> bool {
    let mut words = words(line);
    start.iter().all(|expected| {
        words
            .next()
            .is_some_and(|word| word.eq_ignore_ascii_case(expected.as_bytes()))
    })
}
