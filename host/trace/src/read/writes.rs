//! Tables of writes by any program: a latency per row, or a start and an end.

use super::ReadOptions;
use super::columns::{
    Role, Unit, cells, named_by_user, pointed, role, separator, time_column, unquoted,
};
use super::error::{Fault, Problem, shown};
use super::guess::{self, Numbers};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, NUMBER_MAX, decimal, whole};
use super::recording::{SAMPLE_ROWS, is_note, rows_in};
use super::wrap::Unwrapped;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

/// A column with times.
#[derive(Clone)]
struct Times {
    index: usize,
    name: String,
    unit: Option<Unit>,
}

/// Columns that state the duration of a write.
#[derive(Clone)]
enum Duration {
    Latency(Times),
    /// Start and end.
    End(Times),
}

/// The first line of a table of writes.
pub(super) struct Header {
    separator: u8,
    /// False if the first line is already a row.
    is_named: bool,
    /// Time or start of the write.
    time: Option<Times>,
    duration: Duration,
    bytes: Option<usize>,
    fields: usize,
}

impl Header {
    /// Parses the first line; returns `None` if it does not name a latency, or a start and an end.
    pub(super) fn parse(line: &[u8], options: &ReadOptions) -> Result<Option<Header>, Fault> {
        let separator = separator(line);
        let texts: Vec<&[u8]> = cells(line, separator).map(unquoted).collect();
        let with =
            |wanted: Role| move |index: &usize| role(texts_at(line, separator, *index)).0 == wanted;
        let all = || 0..texts.len();
        let times = |index: usize| Times {
            index,
            name: shown(texts[index]),
            unit: role(texts[index]).1,
        };
        let latencies: Vec<usize> = all().filter(with(Role::Latency)).collect();
        let (start, end) = (all().find(with(Role::Start)), all().find(with(Role::End)));
        let duration = match (&options.latency_column, &latencies[..], start, end) {
            (Some(wanted), ..) => Duration::Latency(times(named_by_user(line, separator, wanted)?)),
            // The user wants the times of samples.
            (None, ..) if options.time_column.is_some() && latencies.is_empty() => return Ok(None),
            (None, _, Some(_), Some(end)) => Duration::End(times(end)),
            (None, [index], ..) => Duration::Latency(times(*index)),
            (None, [], ..) => return statistic(&texts),
            (None, several, ..) => {
                let names: Vec<String> = several.iter().map(|index| shown(texts[*index])).collect();
                let names = names.join(", ");
                let option = "--latency-column";
                return Err(Problem::SeveralColumns { names, option }.in_file());
            }
        };
        let own = match &duration {
            Duration::Latency(times) | Duration::End(times) => times.index,
        };
        let time = match &options.time_column {
            Some(wanted) => Some(named_by_user(line, separator, wanted)?),
            None => start.or_else(|| all().find(|index| time_column(texts[*index]).is_some())),
        };
        Ok(Some(Header {
            separator,
            is_named: decimal(&pointed(texts[own]), 0) == Err(Bad::NotANumber),
            time: time.filter(|index| *index != own).map(times),
            duration,
            bytes: all().find(with(Role::Bytes)),
            fields: texts.len(),
        }))
    }

    /// Completes the units; the notes state what was assumed.
    fn decide_units(
        &mut self,
        head: &[u8],
        options: &ReadOptions,
        about: &mut About,
    ) -> Result<(Unit, Unit), Fault> {
        let (own, is_end) = match &self.duration {
            Duration::Latency(times) => (times.clone(), false),
            Duration::End(times) => (times.clone(), true),
        };
        let column = |times: &Times| {
            let mut numbers = Numbers::default();
            let rows = rows_in(head).skip(usize::from(self.is_named));
            for row in rows.filter(|row| !is_note(row)).take(SAMPLE_ROWS) {
                if let Some(cell) = cells(row, self.separator).nth(times.index) {
                    numbers.push(&pointed(unquoted(cell)));
                }
            }
            numbers
        };
        let named = self.time.as_ref().and_then(|time| time.unit);
        let is_complete = own.unit.is_some() && (self.time.is_none() || named.is_some());
        if options.time_unit.is_some() && is_complete {
            let names = self
                .time
                .iter()
                .chain([&own])
                .map(|times| times.name.clone());
            let names = names.collect::<Vec<_>>().join(", ");
            return Err(Problem::UnitNamed { names }.in_file());
        }
        let own_unit = match (own.unit.or(options.time_unit), &self.time) {
            (Some(unit), _) => unit,
            (
                None,
                Some(Times {
                    unit: Some(unit), ..
                }),
            ) if is_end => *unit,
            (None, time) => {
                let (what, numbers) = match time {
                    Some(start) if is_end => (
                        format!("the times in column \"{}\"", own.name),
                        column(&own).minus(&column(start)),
                    ),
                    _ if self.is_named => (
                        format!("the latencies in column \"{}\"", own.name),
                        column(&own),
                    ),
                    _ => ("the latencies".to_owned(), column(&own)),
                };
                let guess = guess::of_latencies(&what, &numbers)?;
                about.notes.push(guess.reason);
                guess.unit
            }
        };
        let Some(time) = &self.time else {
            return Ok((own_unit, own_unit));
        };
        if let Some(unit) = time.unit.or(options.time_unit) {
            return Ok((unit, own_unit));
        }
        let (span, busy) = (column(time).span(), column(&own).sum());
        if !is_end && span < 0.9 * busy {
            let what = format!("the times in column \"{}\"", time.name);
            let readings = format!(
                "as {} they span less than the sum of the latencies",
                own_unit.name
            );
            let options = "--time-unit s, ms, us or ns".to_owned();
            return Err(Problem::UnitUnknown {
                what,
                readings,
                options,
            }
            .in_file());
        }
        about.notes.push(format!(
            "The times in column \"{}\" have no unit; they are read as {}, like those in column \"{}\".",
            time.name, own_unit.name, own.name
        ));
        Ok((own_unit, own_unit))
    }

    fn number(&self, line: &Line<'_>, times: &Times, unit: Unit) -> Result<u64, Fault> {
        let text = texts_at(line.text, self.separator, times.index);
        let field = Field {
            column: &times.name,
            text,
            line,
        };
        if self.separator == b',' || !text.contains(&b',') {
            return field.decimal(unit.power);
        }
        decimal(&pointed(text), unit.power).map_err(|bad| field.fault(bad))
    }
}

fn texts_at(line: &[u8], separator: u8, index: usize) -> &[u8] {
    cells(line, separator)
        .nth(index)
        .map(unquoted)
        .unwrap_or_default()
}

/// Refuses a table of statistics.
fn statistic(texts: &[&[u8]]) -> Result<Option<Header>, Fault> {
    match texts.iter().find(|text| role(text).0 == Role::Statistic) {
        Some(text) => {
            let column = shown(text);
            Err(Problem::Statistics { column }.in_file())
        }
        None => Ok(None),
    }
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    mut header: Header,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    let (time_unit, own_unit) = header.decide_units(lines.in_memory(), options, &mut about)?;
    if header.bytes.is_none() {
        about.notes.push(super::block_note(options.block_bytes));
    }
    if header.is_named {
        lines.next_row_but(is_note)?;
    }
    let mut trace = Trace::new(about);
    let (mut offset_bytes, mut before_ns) = (0_u64, 0);
    let (mut clock, mut end_clock) = (Unwrapped::counter(time_unit), Unwrapped::counter(own_unit));
    while let Some(line) = lines.next_row_but(is_note)? {
        if line.is_cut(header.separator, header.fields) {
            trace.about.notes.push(line.cut_note());
            break;
        }
        let found = cells(line.text, header.separator).count();
        if found != header.fields {
            return Err(line.wrong_fields(header.fields, found));
        }
        let length_bytes = match header.bytes {
            Some(index) => {
                let text = texts_at(line.text, header.separator, index);
                whole(text).map_err(|bad| bad.in_column("the length", text, &line))?
            }
            None => options.block_bytes,
        };
        let stamp_ns = match &header.time {
            Some(time) => clock.time_ns(header.number(&line, time, time_unit)?),
            None => trace.last_end_ns(),
        };
        if stamp_ns < before_ns {
            let (time, before) = (stamp_ns.to_string(), before_ns.to_string());
            return Err(Problem::BackwardNs { time, before }.at_line(line.number));
        }
        before_ns = stamp_ns;
        let (start_ns, end_ns) = match &header.duration {
            Duration::End(times) => (
                stamp_ns,
                end_clock.time_ns(header.number(&line, times, own_unit)?),
            ),
            Duration::Latency(times) => {
                let latency_ns = header.number(&line, times, own_unit)?;
                // A time may have been taken after the write.
                let start_ns = stamp_ns.max(trace.last_end_ns());
                (start_ns, start_ns.saturating_add(latency_ns))
            }
        };
        if end_ns > NUMBER_MAX {
            return Err(Problem::TotalTooLarge.at_line(line.number));
        }
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes,
            length_bytes,
            start_ns,
            end_ns,
        };
        if end_ns < start_ns {
            let (start, end) = (start_ns.to_string(), end_ns.to_string());
            return Err(Problem::EndBeforeStart { start, end }.at_line(line.number));
        }
        trace.push(&operation).map_err(|_| {
            let (time, before) = (start_ns.to_string(), trace.last_end_ns().to_string());
            Problem::BackwardNs { time, before }.at_line(line.number)
        })?;
        offset_bytes = offset_bytes.wrapping_add(length_bytes);
    }
    trace.about.notes.extend(clock.note());
    Ok(trace)
}
