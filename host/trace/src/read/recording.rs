//! Recordings: any table whose header names a time column, such as a data logger's CSV.
//!
//! The header may end in `key=value` fields that the rows lack.

use super::Recording;
use super::columns::{MILLISECOND, Unit, cells, pointed, time_column, unquoted};
use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Field, decimal};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

/// The first line of a recording.
pub(super) struct Header {
    separator: u8,
    /// Index of the time column.
    column: usize,
    name: String,
    /// Unit of the time column; `None` if the column's name contains no unit.
    unit: Option<Unit>,
    /// Number of columns, without empty and `key=value` columns at the end.
    columns: usize,
    fields: usize,
}

impl Header {
    /// Parses the header; returns `None` if the line does not name a time column.
    pub(super) fn parse(line: &[u8]) -> Option<Header> {
        let separator = separator(line);
        let (column, (name, unit)) = cells(line, separator)
            .enumerate()
            .find_map(|(column, cell)| Some((column, time_column(cell)?)))?;
        let is_column = |cell: &[u8]| !cell.trim_ascii().is_empty() && !cell.contains(&b'=');
        Some(Header {
            separator,
            column,
            name,
            unit,
            columns: cells(line, separator)
                .take_while(|cell| is_column(cell))
                .count(),
            fields: cells(line, separator).count(),
        })
    }

    fn time_ns(&self, line: &Line<'_>, expected: usize, unit: Unit) -> Result<u64, Fault> {
        let found = cells(line.text, self.separator).count();
        if found != expected {
            return Err(line.wrong_fields(expected, found));
        }
        let text = cells(line.text, self.separator)
            .nth(self.column)
            .map(unquoted)
            .unwrap_or_default();
        let field = Field {
            column: "the time",
            text,
            line,
        };
        if self.separator == b',' || !text.contains(&b',') {
            return field.decimal(unit.power);
        }
        // If another character separates the columns, a comma is a decimal comma.
        decimal(&pointed(text), unit.power).map_err(|bad| field.fault(bad))
    }

    /// Returns the number of fields that all rows must have, taken from the first row.
    fn expected_fields(&self, first: &Line<'_>) -> Result<usize, Fault> {
        let found = cells(first.text, self.separator).count();
        if found <= self.column || found < self.columns || found > self.fields {
            return Err(first.wrong_fields(self.columns.max(self.column + 1), found));
        }
        Ok(found)
    }
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    header: Header,
) -> Result<Recording, Fault> {
    let unit = header.unit.unwrap_or(MILLISECOND);
    if header.unit.is_none() {
        about.notes.push(format!(
            "The column \"{}\" names no unit; its times are read as milliseconds.",
            header.name
        ));
    }
    about.notes.push(
        "Each operation spans the interval between two samples; its length is that of the later \
         sample's line."
            .to_owned(),
    );
    lines.next_row()?;
    // A recorder's notes may appear among the rows.
    let Some(first) = lines.next_row_but(is_note)? else {
        return Err(Problem::OneSample.in_file());
    };
    let expected = header.expected_fields(&first)?;
    let mut before_ns = header.time_ns(&first, expected, unit)?;
    let mut before = time_shown(&first, &header);
    let mut trace = Trace::new(about);
    while let Some(line) = lines.next_row_but(is_note)? {
        let time_ns = header.time_ns(&line, expected, unit)?;
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: line.offset_bytes,
            length_bytes: line.length_bytes,
            start_ns: before_ns,
            end_ns: time_ns,
        };
        trace.push(&operation).map_err(|_| {
            Problem::Backward {
                time: time_shown(&line, &header),
                before: before.clone(),
            }
            .at_line(line.number)
        })?;
        before_ns = time_ns;
        before = time_shown(&line, &header);
    }
    if trace.is_empty() {
        return Err(Problem::OneSample.in_file());
    }
    Ok(Recording {
        samples: trace.len() as u64 + 1,
        trace,
        time_column: header.name,
        time_unit: unit.name,
    })
}

/// Returns true if a row is a note: all columns are empty except the last, which begins with `#`.
fn is_note(row: &[u8]) -> bool {
    let note = row.trim_ascii_start();
    let commas = note.iter().take_while(|byte| **byte == b',').count();
    let note = &note[commas..];
    note.starts_with(b"#") || note.starts_with(b"\"#")
}

fn time_shown(line: &Line<'_>, header: &Header) -> String {
    cells(line.text, header.separator)
        .nth(header.column)
        .map(|text| shown(unquoted(text)))
        .unwrap_or_default()
}

/// Returns the most frequent separator, or the comma if there is none.
fn separator(line: &[u8]) -> u8 {
    let count = |separator: u8| line.iter().filter(|&&byte| byte == separator).count();
    // `max_by_key` returns the last of several maxima, so the comma wins a tie.
    [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|&separator| count(separator))
        .unwrap_or(b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_of_a_recorder_are_distinguished_from_rows() {
        for note in [
            ",,#file number=1 first=0 at_us=5",
            ",,\"#file number=1 first=0 at_us=5 session=a settings=b,c\"",
            "#gap first=1 count=2 at_us=7 last_us=9 cause=busy",
        ] {
            assert!(is_note(note.as_bytes()), "{note}");
        }
        for row in ["1,2", ",2", ""] {
            assert!(!is_note(row.as_bytes()), "{row}");
        }
    }

    #[test]
    fn a_header_may_end_in_key_value_fields() {
        let header = Header::parse(b"Time[ms],Vup[V],Vref=0.31004,Prg=17").unwrap();
        assert_eq!((header.columns, header.fields), (2, 4));
        let header = Header::parse(b"n;Time (s);").unwrap();
        assert_eq!(
            (header.separator, header.column, header.columns),
            (b';', 1, 2)
        );
    }
}
