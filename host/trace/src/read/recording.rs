//! Recordings: any table whose header names a time column, such as a data logger's CSV.
//!
//! The header may end in `key=value` fields that the rows lack.

use super::calendar;
use super::columns::{Top, Unit, cells, is_number, named_by_user, time_column, unit_in, unquoted};
use super::error::{Fault, Problem, shown};
use super::guess::{self, Guess, Numbers};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, whole};
use super::numeral::{Numerals, Points};
use super::order::{self, Clock};
use super::remedy::of_negative;
use super::role::{is_about_writes, recurring, role, words_of};
use super::scale::Scale;
use super::series::{OddRows, Sample};
use super::split::Split;
use super::{ReadOptions, Recording, SequenceLoss};
use crate::shell::quoted;
use crate::trace::About;
use std::borrow::Cow;
use std::io::Read;

/// Maximum number of rows from which a unit is inferred.
pub(super) const SAMPLE_ROWS: usize = 4096;

/// The first line of a recording.
pub(super) struct Header {
    pub(super) separator: u8,
    /// Index of the time column.
    pub(super) column: usize,
    /// Index of a column of dates, if the time column has times of day.
    pub(super) date: Option<usize>,
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
    /// Names of the columns, without those at the end that are empty or `key=value`.
    pub(super) names: Vec<Vec<u8>>,
}

impl Header {
    /// Parses the header; returns `None` if the line does not name a time column.
    pub(super) fn parse(top: Top<'_>, options: &ReadOptions) -> Result<Option<Header>, Fault> {
        let separator = top.separator();
        let names = top.names();
        let texts = || names.iter().copied();
        let column = match &options.time_column {
            Some(wanted) => Some(named_by_user(&names, wanted)?),
            None => texts()
                .position(|cell| time_column(cell).is_some())
                .or_else(|| column_of_dates(&names, &top)),
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
        let first: Vec<&[u8]> = cells(top.first, separator).map(unquoted).collect();
        let of_day = first
            .get(column)
            .filter(|text| calendar::is_time_of_day(text));
        let is_date = |(name, text): &(&&[u8], &&[u8])| is_date(name) && calendar::is_date(text);
        let date = names.iter().zip(&first).position(|pair| is_date(&pair));
        let below: Vec<&[u8]> = cells(top.below, separator).map(unquoted).collect();
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

    /// Returns the first rows with a time.
    pub(super) fn sample<'a>(&self, head: &'a [u8]) -> impl Iterator<Item = &'a [u8]> + Clone {
        let rows = rows_in(head).filter(|row| !is_note(row));
        let has_time = |row: &&[u8]| self.text(row).iter().any(u8::is_ascii_digit);
        rows.skip(usize::from(self.is_named))
            .filter(has_time)
            .take(SAMPLE_ROWS)
    }

    /// Returns the date and time, or the time alone, in the sample's rows.
    fn times<'a>(&self, head: &'a [u8]) -> Vec<Cow<'a, [u8]>> {
        self.sample(head).map(|row| self.time_text(row)).collect()
    }

    /// Returns the text of the time of a row, with its date if that is in another column.
    fn time_text<'a>(&self, row: &'a [u8]) -> Cow<'a, [u8]> {
        match self.date {
            Some(date) => [self.cell(row, date), self.text(row)].join(&b' ').into(),
            None => self.text(row).into(),
        }
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
        let text = self.text(row);
        is_number(text) || Scale::of(text).is_some()
    }

    /// Returns the index of a column by its name, or its number from 1.
    pub(super) fn named(&self, wanted: &str) -> Result<usize, Fault> {
        let names: Vec<&[u8]> = self.names.iter().map(Vec::as_slice).collect();
        named_by_user(&names, wanted)
    }

    /// Returns the name of a column, or its number if it has none.
    pub(super) fn column_name(&self, index: usize) -> String {
        match self.names.get(index) {
            Some(name) if self.is_named || self.is_commented => shown(name),
            _ => (index + 1).to_string(),
        }
    }

    /// Returns a note on a column of few different texts, which may distinguish several sensors.
    fn note_on_texts(&self, head: &[u8]) -> Option<String> {
        let columns = self
            .names
            .iter()
            .enumerate()
            .filter(|(index, _)| *index != self.column && Some(*index) != self.date);
        columns.into_iter().find_map(|(index, name)| {
            let texts = self.sample(head).map(|row| self.cell(row, index));
            let (one, other) = recurring(name, texts)?;
            Some(format!(
                "The column \"{}\" has several texts, such as \"{one}\" and \"{other}\"; all rows count as samples of one \
                 series. If they are not, add --group-by {}.",
                shown(name),
                quoted(shown(name).as_ref())
            ))
        })
    }

    pub(super) fn text<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        self.cell(row, self.column)
    }

    /// Returns a field of a row; empty if the row has too few.
    pub(super) fn cell<'a>(&self, row: &'a [u8], index: usize) -> &'a [u8] {
        let cell = cells(row, self.separator).nth(index);
        cell.map(unquoted).unwrap_or_default()
    }

    /// Returns the time of a row; `None` for an odd row, which is counted.
    fn time_ns(
        &self,
        line: &Line<'_>,
        scale: Scale,
        odd: &mut OddRows,
    ) -> Result<Option<u64>, Fault> {
        let text = self.text(line.text);
        let (mut found, mut is_last) = (0, false);
        for _ in cells(line.text, self.separator) {
            is_last = found == self.column;
            found += 1;
        }
        // The last number of a row that was cut may lack digits.
        if found < self.columns && is_last || found <= self.column {
            odd.push(line.number, || fields(self.columns, found));
            return Ok(None);
        }
        if text.is_empty() || is_missing(text) {
            odd.push_without_time(line.number);
            return Ok(None);
        }
        let time_ns = match self.date {
            Some(_) => scale.ns(&self.time_text(line.text)),
            None => scale.ns(text),
        };
        let field = Field {
            column: "the time",
            text,
            line,
        };
        match time_ns {
            Ok(time_ns) => Ok(Some(time_ns)),
            Err(Bad::Negative) => {
                let (column, text) = (self.name.clone(), shown(text));
                let above = usize::from(self.is_named) + usize::from(self.has_units);
                let problem = of_negative(column, text, self.separator, self.column, above);
                Err(problem.at_line(line.number))
            }
            Err(bad @ Bad::AmbiguousDate) => Err(field.fault(bad)),
            Err(_) if text == self.name.as_bytes() => {
                odd.push(line.number, || "the names of the columns again".to_owned());
                Ok(None)
            }
            Err(bad) => {
                odd.push_bad(field.fault(bad), line.number, || {
                    format!("the time is \"{}\"", shown(text))
                });
                Ok(None)
            }
        }
    }
}

fn fields(expected: usize, found: usize) -> String {
    format!("expected {expected} fields, found {found}")
}

/// Returns true for the texts that programs write for a missing value.
pub(super) fn is_missing(text: &[u8]) -> bool {
    const TEXTS: &[&str] = &["-", "nan", "null", "na", "n/a", "none", "nat"];
    TEXTS
        .iter()
        .any(|known| text.eq_ignore_ascii_case(known.as_bytes()))
}

/// Returns the only column whose first row is a date and a time, below a name.
fn column_of_dates(names: &[&[u8]], top: &Top<'_>) -> Option<usize> {
    let separator = top.separator();
    let texts: Vec<&[u8]> = cells(top.first, separator).map(unquoted).collect();
    // Words of a log are no columns, and the names may be in the next row.
    let is_above_names = cells(top.below, separator).any(|cell| time_column(cell).is_some());
    if separator == b' ' || texts.len() != names.len() || is_above_names {
        return None;
    }
    let is_dated =
        |text: &[u8]| matches!(Scale::of(text), Some(Scale::Calendar(layout)) if layout.has_both());
    let mut found = (0..texts.len())
        .filter(|index| is_dated(texts[*index]) && Scale::of(names[*index]).is_none());
    found.next().filter(|_| found.next().is_none())
}

/// Returns true for the name of a column of dates.
fn is_date(name: &[u8]) -> bool {
    const NAMES: &[&str] = &["date", "day", "datum", "tag", "fecha", "data", "jour"];
    words_of(name)
        .iter()
        .any(|word| NAMES.contains(&word.as_str()))
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    header: Header,
    options: &ReadOptions,
) -> Result<Recording, Fault> {
    if options.group_column.is_none() {
        header.refuse_disorder(lines.in_memory(), options)?;
    }
    let guess = header.unit(lines.in_memory(), options);
    let (numerals, doubt) = header.numerals(lines.in_memory());
    if options.group_column.is_none() {
        about.notes.extend(header.note_on_texts(lines.in_memory()));
    }
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
    let scale = match Scale::of_column(&header.times(lines.in_memory()), options.date_order) {
        Some(_) if options.time_unit.is_some() && options.time_column.is_none() => {
            let format = "recording with dates or times of day";
            let option = "--time-unit";
            return Err(Problem::FixedFormat { format, option }.in_file());
        }
        Some(scale) if options.time_unit.is_some() => {
            let note = "The times state their own units, so --time-unit has no effect.";
            about.notes.push(note.to_owned());
            scale
        }
        Some(scale) => scale,
        None => {
            let Guess { unit, reason } = guess?;
            if !reason.is_empty() {
                about.notes.push(reason);
            }
            about.notes.extend(doubt);
            Scale::of_numbers(unit, numerals)
        }
    };
    let mut split = Split::of(&header, lines.in_memory(), scale, options)?;
    let number = match &options.sequence_column {
        Some(wanted) => Some(header.named(wanted)?),
        None => {
            about
                .notes
                .extend(split.note_on_numbers(&header, lines.in_memory()));
            None
        }
    };
    let mut odd = OddRows::default();
    let mut clock = scale.clock();
    let mut is_below_names = header.is_named;
    // A recorder's notes may appear among the rows.
    while let Some(line) = lines.next_row_but(is_note)? {
        if line.is_cut(header.separator, header.columns) {
            about.notes.push(line.cut_note());
            break;
        }
        // Rows of units and of other properties of the columns.
        if is_below_names && !header.text(line.text).iter().any(u8::is_ascii_digit) {
            continue;
        }
        is_below_names = false;
        let Some(time_ns) = header.time_ns(&line, scale, &mut odd)? else {
            continue;
        };
        let sample = Sample {
            time_ns: clock.time_ns(time_ns),
            line: line.number,
            offset_bytes: line.offset_bytes,
            length_bytes: line.length_bytes,
            number: number.and_then(|index| whole(header.cell(line.text, index)).ok()),
        };
        split.push(&header, line.text, sample, &mut odd)?;
    }
    about.notes.extend(clock.note());
    let (trace, runs, sequence) = split.finish(about, &mut odd)?;
    let samples = runs.iter().map(|run| run.samples).sum();
    if odd.are_most(samples) || trace.is_empty() {
        return Err(odd.into_fault());
    }
    Ok(Recording {
        samples,
        trace,
        runs,
        sequence: options.sequence_column.as_ref().map(|column| SequenceLoss {
            column: column.clone(),
            lost: sequence.lost,
            repeated: sequence.repeated,
        }),
        time_column: header.name,
        time_unit: match scale {
            Scale::Unit(unit) | Scale::Grouped(unit, _) => unit.name,
            Scale::InTexts => "ns",
            Scale::Calendar(_) | Scale::Filetime => "calendar",
        },
    })
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

/// Returns true if a row is a note: all columns are empty except the last, which begins with `#`. A cell that consists of
/// `#` alone is the name of a column of numbers.
pub(super) fn is_note(row: &[u8]) -> bool {
    let note = row.trim_ascii_start();
    let commas = note.iter().take_while(|byte| **byte == b',').count();
    let note = &note[commas..];
    let text = note.strip_prefix(b"\"").unwrap_or(note).strip_prefix(b"#");
    let is_name = |text: &[u8]| {
        matches!(
            text,
            [b',' | b';' | b'\t', ..] | [b'"', b',' | b';' | b'\t', ..]
        )
    };
    text.is_some_and(|text| !is_name(text))
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
        for row in ["1,2", ",2", "", "#,Date Time,Temp", "\"#\",\"Date Time\""] {
            assert!(!is_note(row.as_bytes()), "{row}");
        }
    }

    fn header(line: &[u8]) -> Header {
        let top = Top::of(line, b"");
        Header::parse(top, &ReadOptions::default())
            .unwrap()
            .unwrap()
    }

    #[test]
    fn a_header_may_end_in_key_value_fields() {
        let magod2 = header(b"Time[ms],Vup[V],Vref=0.31004,Prg=17");
        assert_eq!(magod2.columns, 2);
        let numbered = header(b"n;Time (s);");
        assert_eq!(
            (numbered.separator, numbered.column, numbered.columns),
            (b';', 1, 2)
        );
    }
}
