//! Recordings: any table whose header names a time column, such as a data logger's CSV.
//!
//! The header may end in `key=value` fields that the rows lack.

use super::ReadOptions;
use super::Recording;
use super::calendar;
use super::columns::{Top, Unit, cells, is_number, named_by_user, time_column, unit_in, unquoted};
use super::error::{Fault, Problem, shown};
use super::guess::{self, Guess, Numbers};
use super::lines::{Line, Lines};
use super::number::{Bad, Field};
use super::numeral::{Numerals, Points};
use super::order::{self, Clock};
use super::remedy::of_negative;
use super::role::{is_about_writes, recurring, role};
use super::scale::Scale;
use crate::shell::quoted;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

/// Maximum number of rows from which a unit is inferred.
pub(super) const SAMPLE_ROWS: usize = 4096;

/// The first line of a recording.
pub(super) struct Header {
    separator: u8,
    /// Index of the time column.
    column: usize,
    /// Index of a column of dates, if the time column has times of day.
    date: Option<usize>,
    /// False if the first line is already a row.
    is_named: bool,
    /// True if the names are in a comment above the rows.
    is_commented: bool,
    /// True if the row below the names has their units.
    has_units: bool,
    /// True if the columns are those of a ULog file that was exported as CSV.
    is_ulog: bool,
    name: String,
    /// Unit of the time column; `None` if the column's name contains no unit.
    unit: Option<Unit>,
    /// Number of columns, without empty and `key=value` columns at the end.
    columns: usize,
    fields: usize,
    /// Names of the columns, without those at the end that are empty or `key=value`.
    names: Vec<Vec<u8>>,
}

impl Header {
    /// Parses the header; returns `None` if the line does not name a time column.
    pub(super) fn parse(top: Top<'_>, options: &ReadOptions) -> Result<Option<Header>, Fault> {
        let separator = top.separator();
        let names = top.names();
        let texts = || names.iter().copied();
        let column = match &options.time_column {
            Some(wanted) => Some(named_by_user(&names, wanted)?),
            None => texts().position(|cell| time_column(cell).is_some()),
        };
        let Some(column) = column else {
            return Ok(None);
        };
        let cell = names[column];
        let is_named = !is_number(cell) && Scale::of(cell).is_none();
        let (name, unit) = match time_column(cell) {
            Some(named) => named,
            None if is_named => (shown(cell), role(cell).1),
            None => (format!("{}", column + 1), None),
        };
        let below: Vec<&[u8]> = cells(top.below, separator).map(unquoted).collect();
        let of_day = below
            .get(column)
            .filter(|text| calendar::is_time_of_day(text));
        let is_date = |(name, text): &(&&[u8], &&[u8])| is_date(name) && calendar::is_date(text);
        let date = names.iter().zip(&below).position(|pair| is_date(&pair));
        let below = below
            .get(column)
            .filter(|_| is_named && !below.iter().any(|text| is_number(text)));
        let unit_below = below.and_then(|text| unit_in(text));
        let is_column = |cell: &[u8]| !cell.trim_ascii().is_empty() && !cell.contains(&b'=');
        let columns = texts().take_while(|cell| is_column(cell)).count();
        // The recorder's rows have no field for the column `note`.
        let last = texts().nth(columns.saturating_sub(1));
        let notes = usize::from(columns > 1 && last == Some(b"note"));
        Ok(Some(Header {
            separator,
            column,
            date: date.filter(|_| of_day.is_some()),
            is_named,
            is_commented: false,
            is_ulog: name == "timestamp" && texts().any(is_ulog_column),
            name,
            unit: unit.or(unit_below),
            has_units: unit_below.is_some(),
            columns: columns - notes,
            fields: texts().count(),
            names: texts().take(columns - notes).map(<[u8]>::to_vec).collect(),
        }))
    }

    /// Returns the unit of the times, and a note if the file does not name it.
    fn unit(&self, head: &[u8], options: &ReadOptions) -> Result<Guess, Fault> {
        match (self.unit, options.time_unit) {
            (Some(_), Some(_)) => {
                let names = self.name.clone();
                Err(Problem::UnitNamed { names }.in_file())
            }
            (Some(unit), None) | (None, Some(unit)) => Ok(Guess {
                unit,
                reason: String::new(),
            }),
            (None, None) => {
                let (numerals, _) = self.numerals(head);
                let mut numbers = Numbers::default();
                for row in self.sample(head) {
                    if let Some(plain) = numerals.plain(self.text(row)) {
                        numbers.push(&plain);
                    }
                }
                guess::of_times(&self.name, &numbers, self.is_ulog)
            }
        }
    }

    /// Declares that the names are in a comment, so that the first row is a sample.
    pub(super) fn in_comment(mut self) -> Header {
        self.is_named = false;
        self.is_commented = true;
        self
    }

    fn sample<'a>(&self, head: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let above = usize::from(self.is_named) + usize::from(self.has_units);
        let rows = rows_in(head).filter(|row| !is_note(row));
        rows.skip(above).take(SAMPLE_ROWS)
    }

    /// Refuses times that decrease in many rows.
    fn refuse_disorder(&self, head: &[u8], options: &ReadOptions) -> Result<(), Fault> {
        let clock = Clock {
            name: &self.name,
            index: self.column,
            separator: self.separator,
            rows_above: usize::from(self.is_named) + usize::from(self.has_units),
            may_be_latency: options.time_column.is_none(),
        };
        order::refuse(&clock, self.sample(head).map(|row| self.text(row)))
    }

    /// Returns the meaning of points and commas in the times, and a note if this meaning is uncertain.
    fn numerals(&self, head: &[u8]) -> (Numerals, Option<String>) {
        let mut points = Points::default();
        for row in self.sample(head) {
            points.push(self.text(row), 0);
        }
        points.decide()
    }

    /// Returns true if a row below this header has a time in its column.
    pub(super) fn fits(&self, row: &[u8]) -> bool {
        let found = cells(row, self.separator).count();
        let text = self.text(row);
        let is_time = is_number(text) || Scale::of(text).is_some() || self.has_units;
        (self.columns..=self.fields).contains(&found) && is_time
    }

    /// Returns a note on a column of few different texts, which may distinguish several sensors.
    fn note_on_texts(&self, head: &[u8]) -> Option<String> {
        let columns = self
            .names
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != self.column && Some(*index) != self.date);
        columns.into_iter().find_map(|(index, name)| {
            let texts = self.sample(head).map(|row| {
                let cell = cells(row, self.separator).nth(index);
                cell.map(unquoted).unwrap_or_default()
            });
            let (one, other) = recurring(name, texts)?;
            Some(format!(
                "The column \"{}\" has several texts, such as \"{one}\" and \"{other}\"; all rows count as samples of one \
                 series. If they are not, pass the rows with one text alone.",
                shown(name)
            ))
        })
    }

    fn text<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        let cell = cells(row, self.separator).nth(self.column);
        cell.map(unquoted).unwrap_or_default()
    }

    /// Returns the time of a row.
    fn time_ns(&self, line: &Line<'_>, expected: usize, scale: Scale) -> Result<u64, Fault> {
        let found = cells(line.text, self.separator).count();
        if found != expected {
            return Err(line.wrong_fields(expected, found));
        }
        let text = self.text(line.text);
        let field = Field {
            column: "the time",
            text,
            line,
        };
        let time_ns = match self.date {
            Some(date) if scale == Scale::Calendar => {
                let date = cells(line.text, self.separator).nth(date);
                calendar::time_ns(&[date.map(unquoted).unwrap_or_default(), text].join(&b' '))
            }
            _ => scale.ns(text),
        };
        time_ns.map_err(|bad| match bad {
            Bad::NotANumber if text == self.name.as_bytes() => {
                let (column, rows) = (self.name.clone(), line.number - 1);
                Problem::HeaderAgain { column, rows }.at_line(line.number)
            }
            Bad::Negative => {
                let (column, text) = (self.name.clone(), shown(text));
                let above = usize::from(self.is_named) + usize::from(self.has_units);
                of_negative(column, text, self.separator, self.column, above).at_line(line.number)
            }
            bad => field.fault(bad),
        })
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

/// Returns true for the name of a column of dates.
fn is_date(name: &[u8]) -> bool {
    const NAMES: &[&str] = &["date", "day", "datum", "tag", "fecha", "data", "jour"];
    NAMES
        .iter()
        .any(|known| name.eq_ignore_ascii_case(known.as_bytes()))
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    header: Header,
    options: &ReadOptions,
) -> Result<Recording, Fault> {
    header.refuse_disorder(lines.in_memory(), options)?;
    let guess = header.unit(lines.in_memory(), options);
    let (numerals, doubt) = header.numerals(lines.in_memory());
    about.notes.extend(header.note_on_texts(lines.in_memory()));
    about.notes.push(
        "Each interval between two samples counts as one operation, with the size in bytes of the later \
         sample's line."
            .to_owned(),
    );
    let mut others = header.names.iter().enumerate();
    let of_writes = others.find(|(index, name)| *index != header.column && is_about_writes(name));
    if let (Some((_, name)), None) = (of_writes, &options.time_column) {
        let name = shown(name);
        about.notes.push(format!(
            "The file is read as a recording, of which only the times count; if the column \"{name}\" is the latency of \
             writes, add --latency-column {}.",
            quoted(name.as_ref())
        ));
    }
    if header.is_named {
        lines.next_row_but(is_note)?;
    } else if options.time_column.is_none() && !header.is_commented {
        about.notes.push(
            "The recording has no column names; its first column is read as the time (--time-column \
             chooses another one)."
                .to_owned(),
        );
    }
    if header.has_units {
        lines.next_row_but(is_note)?;
    }
    // A recorder's notes may appear among the rows.
    let Some(first) = lines.next_row_but(is_note)? else {
        return Err(Problem::OneSample.in_file());
    };
    let expected = header.expected_fields(&first)?;
    let scale = match Scale::of(header.text(first.text)) {
        Some(_) if options.time_unit.is_some() => {
            let format = "recording with dates or times of day";
            let option = "--time-unit";
            return Err(Problem::FixedFormat { format, option }.in_file());
        }
        Some(scale) => scale,
        None => {
            let Guess { unit, reason } = guess?;
            if !reason.is_empty() {
                about.notes.push(reason);
            }
            about.notes.extend(doubt);
            match numerals {
                Numerals::Decimal => Scale::Unit(unit),
                Numerals::Grouped(mark) => Scale::Grouped(unit, mark),
            }
        }
    };
    let mut clock = scale.clock();
    let mut jumps = Jumps::default();
    let mut before_ns = clock.time_ns(header.time_ns(&first, expected, scale)?);
    let mut before = time_shown(&first, &header);
    let mut trace = Trace::new(about);
    while let Some(line) = lines.next_row_but(is_note)? {
        if line.is_cut(header.separator, expected) {
            trace.about.notes.push(line.cut_note());
            break;
        }
        let time_ns = clock.time_ns(header.time_ns(&line, expected, scale)?);
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
        jumps.push(time_ns - before_ns, line.number);
        before_ns = time_ns;
        before = time_shown(&line, &header);
    }
    if trace.is_empty() {
        return Err(Problem::OneSample.in_file());
    }
    if jumps.equal > trace.len() as u64 / 2 {
        let times = trace.len() as u64 + 1 - jumps.equal;
        let samples = trace.len() as u64 + 1;
        return Err(Problem::Coarse { samples, times }.in_file());
    }
    trace.about.notes.extend(clock.note());
    trace.about.notes.extend(jumps.note_of_equal());
    if scale == Scale::Calendar {
        trace.about.notes.extend(jumps.note());
    }
    Ok(Recording {
        samples: trace.len() as u64 + 1,
        trace,
        time_column: header.name,
        time_unit: match scale {
            Scale::Unit(unit) | Scale::Grouped(unit, _) => unit.name,
            Scale::InTexts => "ns",
            Scale::Calendar => "calendar",
        },
    })
}

/// Intervals that are suspicious in a recording.
#[derive(Default)]
struct Jumps {
    /// Number of samples with the same time as the previous sample.
    equal: u64,
    /// Line of the first interval of about an hour.
    of_an_hour: Option<u64>,
}

impl Jumps {
    /// Returns a note about samples with the same time as the previous sample.
    fn note_of_equal(&self) -> Option<String> {
        (self.equal > 0).then(|| {
            format!(
                "{} samples have the time of the sample before; if several sensors share the file, pass the rows of one \
                 alone.",
                self.equal
            )
        })
    }

    fn push(&mut self, step_ns: u64, line: u64) {
        const HOUR_NS: u64 = 3600 * 1_000_000_000;
        const MINUTE_NS: u64 = HOUR_NS / 60;
        self.equal += u64::from(step_ns == 0);
        if (HOUR_NS..HOUR_NS + MINUTE_NS).contains(&step_ns) {
            self.of_an_hour.get_or_insert(line);
        }
    }

    /// Returns a note if daylight saving time may have begun within an interval.
    fn note(&self) -> Option<String> {
        self.of_an_hour.map(|line| {
            format!(
                "The time jumps by an hour at line {line}; if daylight saving time began there, no samples are \
                 missing."
            )
        })
    }
}

/// Returns true for columns that the export of a ULog file has next to `timestamp`.
fn is_ulog_column(cell: &[u8]) -> bool {
    let name = unquoted(cell);
    name == b"timestamp_sample" || name.ends_with(b"[0]")
}

/// Returns the complete lines at the beginning of a file, without blank lines.
pub(super) fn rows_in(head: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    let whole = head
        .iter()
        .rposition(|&byte| byte == b'\n')
        .unwrap_or(head.len());
    let lines = head[..whole].split(|&byte| byte == b'\n');
    lines
        .map(<[u8]>::trim_ascii)
        .filter(|line| !line.is_empty())
}

/// Returns true if a row is a note: all columns are empty except the last, which begins with `#`.
pub(super) fn is_note(row: &[u8]) -> bool {
    let note = row.trim_ascii_start();
    let commas = note.iter().take_while(|byte| **byte == b',').count();
    let note = &note[commas..];
    note.starts_with(b"#") || note.starts_with(b"\"#")
}

fn time_shown(line: &Line<'_>, header: &Header) -> String {
    shown(header.text(line.text))
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

    fn header(line: &[u8]) -> Header {
        let top = Top { line, below: b"" };
        Header::parse(top, &ReadOptions::default())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn a_header_may_end_in_key_value_fields() {
        let magod2 = header(b"Time[ms],Vup[V],Vref=0.31004,Prg=17");
        assert_eq!((magod2.columns, magod2.fields), (2, 4));
        let numbered = header(b"n;Time (s);");
        assert_eq!(
            (numbered.separator, numbered.column, numbered.columns),
            (b';', 1, 2)
        );
    }
}
