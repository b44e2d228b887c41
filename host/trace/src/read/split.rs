//! Sources of a recording: one, one per text of a column, or one per column of a log with several rates.

use super::calendar;
use super::columns::is_number;
use super::error::{Fault, Problem, shown};
use super::number::whole;
use super::recording::{Header, is_missing};
use super::scale::Scale;
use super::sequence::Sequence;
use super::series::{OddRows, Sample, Series};
use super::{ReadOptions, RecordingRun};
use crate::shell::quoted;
use crate::trace::{About, Trace};
use std::collections::HashMap;

/// Maximum number of sources.
const SOURCES_MAX: usize = 1000;

enum By {
    /// All rows are samples of one source.
    None,
    /// The text of this column names the source.
    Text {
        column: usize,
        sources: HashMap<Vec<u8>, usize>,
    },
    /// A row is a sample of each source one of whose columns it fills; the columns of a source are filled together.
    Columns(Vec<usize>),
}

pub(super) struct Split {
    by: By,
    series: Vec<Series>,
    is_calendar: bool,
}

impl Split {
    pub(super) fn of(
        header: &Header,
        head: &[u8],
        scale: Scale,
        options: &ReadOptions,
    ) -> Result<Split, Fault> {
        let is_calendar = matches!(scale, Scale::Calendar(_));
        let rated = rates(header, head);
        let (by, labels) = match &options.group_column {
            Some(wanted) => {
                let (column, sources) = (header.named(wanted)?, HashMap::new());
                (By::Text { column, sources }, Vec::new())
            }
            None if rated.len() > 1 => {
                let (columns, labels) = rated
                    .into_iter()
                    .map(|(column, label)| (column, Some(label)))
                    .unzip();
                (By::Columns(columns), labels)
            }
            None => (By::None, vec![None]),
        };
        let series = labels
            .into_iter()
            .map(|label| Series::new(label, is_calendar));
        Ok(Split {
            by,
            series: series.collect(),
            is_calendar,
        })
    }

    /// Adds a sample to the sources of its row.
    pub(super) fn push(
        &mut self,
        header: &Header,
        row: &[u8],
        sample: Sample,
        odd: &mut OddRows,
    ) -> Result<(), Fault> {
        match &mut self.by {
            By::None => self.series[0].push(sample, odd),
            By::Columns(columns) => {
                let sources = columns.iter().zip(&mut self.series);
                for (_, series) in sources.filter(|(column, _)| has_value(header, row, **column)) {
                    series.push(sample, odd)?;
                }
                Ok(())
            }
            By::Text { column, sources } => {
                let text = header.cell(row, *column);
                let index = match sources.get(text) {
                    Some(index) => *index,
                    None if sources.len() == SOURCES_MAX => {
                        let column = header.column_name(*column);
                        return Err(Problem::ManySources { column }.at_line(sample.line));
                    }
                    None => {
                        let label = format!("{} {}", header.column_name(*column), shown(text));
                        self.series.push(Series::new(Some(label), self.is_calendar));
                        sources.insert(text.to_vec(), self.series.len() - 1);
                        self.series.len() - 1
                    }
                };
                self.series[index].push(sample, odd)
            }
        }
    }

    /// Returns a note on a column that counts the samples.
    pub(super) fn note_on_numbers(&self, header: &Header, head: &[u8]) -> Option<String> {
        const ROWS_MIN: usize = 20;
        let counts = |column: &usize| {
            let cell = |row| whole(header.cell(row, *column)).ok();
            let numbers: Vec<u64> = header.sample(head).map_while(cell).collect();
            let ones = numbers
                .windows(2)
                .filter(|pair| pair[0].checked_add(1) == Some(pair[1]));
            numbers.len() >= ROWS_MIN && ones.count() * 20 >= (numbers.len() - 1) * 19
        };
        let mut columns = (0..header.names.len()).filter(|column| *column != header.column);
        let column = columns
            .find(counts)
            .filter(|_| matches!(self.by, By::None))?;
        let name = header.column_name(column);
        let option = quoted(name.as_ref());
        Some(format!(
            "The column \"{name}\" counts up by one; --sequence-column {option} counts the missing samples by it, without the \
             clock."
        ))
    }

    /// Returns all sources as one trace, in which every run of every source has a file of its own.
    pub(super) fn finish(
        mut self,
        about: About,
        odd: &mut OddRows,
    ) -> Result<(Trace, Vec<RecordingRun>, Sequence), Fault> {
        for series in &mut self.series {
            series.finish(odd)?;
        }
        let is_split = self.series.len() > 1;
        self.series.retain(|series| !series.trace.is_empty());
        let mut about = about;
        about.notes.extend(odd.notes());
        let (mut runs, mut sequence) = (Vec::new(), Sequence::default());
        let mut whole = Trace::new(About::default());
        for series in std::mem::take(&mut self.series) {
            series.refuse_coarse()?;
            let of_source = |note| match &series.label {
                Some(label) if is_split => format!("{label}: {note}"),
                _ => note,
            };
            about
                .notes
                .extend(series.notes().into_iter().map(of_source));
            sequence.add(&series.sequence);
            let first_file = runs.len() as u32;
            runs.extend(series.labelled_runs());
            match whole.is_empty() {
                true => whole = series.trace,
                false => append(&mut whole, &series.trace, first_file)?,
            }
        }
        if let (By::Columns(_), true) = (&self.by, is_split) {
            about.notes.push(
                "No column has a value in every row, so each is counted alone: only rows with a value are its samples.".to_owned(),
            );
        }
        whole.about = about;
        Ok((whole, runs, sequence))
    }
}

/// Appends the operations of a source after those of the others.
fn append(whole: &mut Trace, trace: &Trace, first_file: u32) -> Result<(), Fault> {
    let (at_ns, begin_ns) = (whole.last_end_ns(), trace.first_start_ns());
    for mut operation in trace.operations() {
        operation.file += first_file;
        operation.start_ns = at_ns.saturating_add(operation.start_ns - begin_ns);
        operation.end_ns = at_ns.saturating_add(operation.end_ns - begin_ns);
        let pushed = whole.push(&operation);
        pushed.map_err(|_| Problem::TotalTooLarge.in_file())?;
    }
    Ok(())
}

fn has_value(header: &Header, row: &[u8], column: usize) -> bool {
    let text = header.cell(row, column);
    !text.is_empty() && !is_missing(text)
}

/// Returns a column for each rate of a log in which no column has a value in every row, with the names of all columns of
/// that rate; empty for any other log.
fn rates(header: &Header, head: &[u8]) -> Vec<(usize, String)> {
    const ROWS_MIN: usize = 20;
    const VALUES_MIN: usize = 4;
    let rows = header.sample(head).count();
    let mut found: Vec<(usize, String, Vec<bool>)> = Vec::new();
    let is_value = |column: &usize| *column != header.column && Some(*column) != header.date;
    for column in (0..header.names.len()).filter(is_value) {
        let filled: Vec<bool> = header
            .sample(head)
            .map(|row| has_value(header, row, column))
            .collect();
        let values = filled.iter().filter(|filled| **filled).count();
        let texts = header.sample(head).map(|row| header.cell(row, column));
        let mut texts = texts.filter(|text| !text.is_empty() && !is_missing(text));
        if values * 10 > rows * 9 {
            return Vec::new();
        }
        if values < VALUES_MIN || !texts.all(|text| is_number(text) || calendar::is_date(text)) {
            continue;
        }
        let name = header.column_name(column);
        match found.iter_mut().find(|(.., known)| *known == filled) {
            Some((_, label, _)) => *label = format!("{label}, {name}"),
            None => found.push((column, name, filled)),
        }
    }
    if rows < ROWS_MIN {
        return Vec::new();
    }
    found
        .into_iter()
        .map(|(column, label, _)| (column, label))
        .collect()
}
