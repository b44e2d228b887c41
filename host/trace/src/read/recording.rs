//! Recordings: any table whose header names a time column, such as a data logger's CSV.
//!
//! The header may end in `key=value` fields, which the rows lack.

use super::Recording;
use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, decimal};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

const TIME_WORDS: &[&str] = &[
    "time",
    "t",
    "timestamp",
    "ts",
    "elapsed",
    "uptime",
    "millis",
    "micros",
];

/// Longest time in bytes when its decimal comma has to be replaced.
const COMMA_TIME_BYTES_MAX: usize = 64;

/// The first line of a recording.
pub(super) struct Header {
    separator: u8,
    /// Which column holds the time.
    column: usize,
    name: String,
    /// `None` if the name does not tell it.
    unit: Option<Unit>,
    /// Columns without the empty and the `key=value` ones at the end.
    columns: usize,
    fields: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Unit {
    name: &'static str,
    /// The unit is 10^power ns.
    power: i32,
}

const SECOND: Unit = Unit {
    name: "s",
    power: 9,
};
const MILLISECOND: Unit = Unit {
    name: "ms",
    power: 6,
};
const MICROSECOND: Unit = Unit {
    name: "us",
    power: 3,
};
const NANOSECOND: Unit = Unit {
    name: "ns",
    power: 0,
};

impl Header {
    /// The header, if the line names a time column.
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

    fn time_ns(&self, line: &Line<'_>, due: usize, unit: Unit) -> Result<u64, Fault> {
        let found = cells(line.text, self.separator).count();
        if found != due {
            return Err(line.wrong_fields(due, found));
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
        // With another separator the comma is the decimal point of many a country.
        let mut pointed = [b' '; COMMA_TIME_BYTES_MAX];
        pointed
            .get_mut(..text.len())
            .ok_or(Bad::NotANumber)
            .and_then(|pointed| {
                pointed.copy_from_slice(text);
                pointed
                    .iter_mut()
                    .filter(|byte| **byte == b',')
                    .for_each(|byte| *byte = b'.');
                decimal(pointed, unit.power)
            })
            .map_err(|bad| field.fault(bad))
    }

    /// How many fields the rows have, by the first of them.
    fn fields_due(&self, first: &Line<'_>) -> Result<usize, Fault> {
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
            "The column \"{}\" does not tell its unit: its times are taken as milliseconds.",
            header.name
        ));
    }
    about.notes.push(
        "Each operation spans one sample to the next, and its bytes are those of the later \
         sample's line."
            .to_owned(),
    );
    lines.next_row()?;
    let Some(first) = lines.next_row()? else {
        return Err(Problem::OneSample.in_file());
    };
    let due = header.fields_due(&first)?;
    let mut before_ns = header.time_ns(&first, due, unit)?;
    let mut before = time_shown(&first, &header);
    let mut trace = Trace::new(about);
    while let Some(line) = lines.next_row()? {
        let time_ns = header.time_ns(&line, due, unit)?;
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

fn time_shown(line: &Line<'_>, header: &Header) -> String {
    cells(line.text, header.separator)
        .nth(header.column)
        .map(|text| shown(unquoted(text)))
        .unwrap_or_default()
}

/// The separator that is most frequent; the comma if there is none.
fn separator(line: &[u8]) -> u8 {
    let count = |separator: u8| line.iter().filter(|&&byte| byte == separator).count();
    // Of equals, the last wins.
    [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|&separator| count(separator))
        .unwrap_or(b',')
}

/// The fields of a row. A separator between double quotes belongs to the field.
fn cells(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    line.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == separator && !quoted
    })
}

fn unquoted(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    cell.strip_prefix(b"\"")
        .and_then(|cell| cell.strip_suffix(b"\""))
        .unwrap_or(cell)
        .trim_ascii()
}

/// The name and the unit of a time column; `None` if the cell names none.
fn time_column(cell: &[u8]) -> Option<(String, Option<Unit>)> {
    const NAME_BYTES_MAX: usize = 100;
    let cell = unquoted(cell);
    if cell.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = match std::str::from_utf8(cell) {
        Ok(name) => name.to_owned(),
        // Loggers that write a micro sign in Latin-1.
        Err(_) => cell.iter().copied().map(char::from).collect(),
    };
    let mut words = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase);
    let word = words.next().filter(|word| TIME_WORDS.contains(&&**word))?;
    let unit = match words.next() {
        Some(unit) => Some(unit_named(&unit)?),
        None if word == "micros" => Some(MICROSECOND),
        None if word == "millis" => Some(MILLISECOND),
        None => None,
    };
    words.next().is_none().then_some((name, unit))
}

fn unit_named(name: &str) -> Option<Unit> {
    match name {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(SECOND),
        "ms" | "msec" | "millis" | "milliseconds" => Some(MILLISECOND),
        // Unicode has two characters for micro.
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" | "micros" | "microseconds" => Some(MICROSECOND),
        "ns" | "nsec" | "nanos" | "nanoseconds" => Some(NANOSECOND),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_columns_and_their_units() {
        let unit = |name: &str| time_column(name.as_bytes()).map(|(_, unit)| unit);
        assert_eq!(unit("Time[ms]"), Some(Some(MILLISECOND)));
        assert_eq!(unit("time_us"), Some(Some(MICROSECOND)));
        assert_eq!(unit("t_ms"), Some(Some(MILLISECOND)));
        assert_eq!(unit("\"Time (s)\""), Some(Some(SECOND)));
        assert_eq!(unit("Time (\u{b5}s)"), Some(Some(MICROSECOND)));
        assert_eq!(time_column(b"Time[\xB5s]").unwrap().1, Some(MICROSECOND));
        assert_eq!(unit("timestamp"), Some(None));
        assert_eq!(unit("micros"), Some(Some(MICROSECOND)));
        assert_eq!(unit("Timestamp_ns"), Some(Some(NANOSECOND)));
        for name in ["", "Temp[C]", "Time[h]", "times", "start_us", "time of day"] {
            assert_eq!(unit(name), None, "{name}");
        }
    }

    #[test]
    fn a_header_may_end_in_free_fields() {
        let header = Header::parse(b"Time[ms],Vup[V],Vref=0.31004,Prg=17").unwrap();
        assert_eq!((header.columns, header.fields), (2, 4));
        let header = Header::parse(b"n;Time (s);").unwrap();
        assert_eq!(
            (header.separator, header.column, header.columns),
            (b';', 1, 2)
        );
    }
}
