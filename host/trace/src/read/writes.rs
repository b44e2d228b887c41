//! Tables of writes by any program: a latency per row, or a start and an end.

mod counts;
mod direction;
mod header;
mod lengths;
mod scales;
mod shape;

use super::ReadOptions;
use super::columns::cells;
use super::doubt::{Order, Rise, Totals, is_underflow, refuse_misread};
use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, NUMBER_MAX};
use super::numeral::Points;
use super::recording::is_note;
use super::remedy::awk;
use super::scale::Scale;
use super::wrap::Unwrapped;
use crate::trace::{About, Trace};
use cardiograph_workload::Operation;
use direction::Directions;
use header::{Duration, Times};
use scales::Scales;
use std::io::Read;

pub(super) use counts::read_counts;
pub(super) use header::Header;

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    mut header: Header,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    header.refuse_disorder(lines.in_memory())?;
    let scales = scales::decide(&header, lines.in_memory(), options, &mut about)?;
    header.direction = header.find_direction(scales::sample(&header, lines.in_memory()));
    about
        .notes
        .extend(header.note_on_texts(scales::sample(&header, lines.in_memory())));
    about
        .notes
        .extend(lengths::note(&header, lines.in_memory(), options));
    about.notes.extend(notes_of_columns(&header));
    let head = lines.in_memory();
    about.notes.extend(shape::note(&header, head));
    about.notes.extend(shape::note_on_numbers(&header, head));
    about.notes.extend(shape::note_on_repeats(&header, head));
    about
        .notes
        .extend(shape::note_on_full_counter(&header, head));
    let mut operations = header.operations(0, b"");
    if header.is_named
        && let Some(names) = lines.next_row_but(is_note)?
    {
        operations = header.operations(names.number, names.text);
    }
    if header.has_units {
        lines.next_row_but(is_note)?;
    }
    let mut reader = Reader {
        trace: Trace::new(about),
        points: Points::default(),
        directions: Directions::new(header.usual),
        rise: Rise::default(),
        clock: scales.time.clock(),
        end_clock: scales.own.clock(),
        block_bytes: options.block_bytes,
        before_ns: 0,
        offset_bytes: 0,
        header,
        scales,
    };
    let mut totals = Totals::default();
    while let Some(line) = lines.next_row_but(is_note)? {
        let header = &reader.header;
        if line.is_cut(header.separator, header.fields) {
            reader.trace.about.notes.push(line.cut_note());
            break;
        }
        if !totals.take(line.text, line.number, header.separator) {
            reader.row(&line)?;
            totals.check(&line, reader.header.separator)?;
        }
    }
    reader.finish(totals, operations.as_ref())
}

/// Returns notes about the columns that were chosen as latencies, and about those that were not read.
fn notes_of_columns(header: &Header) -> Vec<String> {
    let name = &header.duration.times().name;
    let mut notes = Vec::new();
    if !header.others.is_empty() {
        let others = header.others.join(", ");
        let columns = match (&header.duration, &header.time) {
            (Duration::End(_), Some(start)) => {
                format!(
                    "the differences of the columns \"{}\" and \"{name}\"",
                    start.name
                )
            }
            _ => format!("those of the column \"{name}\""),
        };
        notes.push(format!(
            "The latencies are {columns}; to analyse another column ({others}), pass \
             --latency-column."
        ));
    }
    if header.is_doubtful {
        let at = header.duration.times().index + 1;
        let rename = awk(header.separator, &format!("NR == 1 {{ ${at} = \"x\" }} 1"));
        let otherwise = match header.time {
            Some(_) => format!("and the file a recording, run {rename}"),
            None => "these figures are not those of writes".to_owned(),
        };
        notes.push(format!(
            "The column \"{name}\" is read as the latency of writes; if it is something else, {otherwise}."
        ));
    }
    notes
}

/// State of reading: the trace so far, and evidence about whole columns.
struct Reader {
    header: Header,
    scales: Scales,
    trace: Trace,
    points: Points,
    directions: Directions,
    rise: Rise,
    clock: Unwrapped,
    end_clock: Unwrapped,
    block_bytes: u64,
    before_ns: u64,
    offset_bytes: u64,
}

impl Reader {
    fn row(&mut self, line: &Line<'_>) -> Result<(), Fault> {
        let header = &self.header;
        let found = cells(line.text, header.separator).count();
        if found != header.fields {
            return Err(line.wrong_fields(header.fields, found));
        }
        let direction = header.direction.map(|index| header.text(line.text, index));
        let Some(kind) = self.directions.kind(direction, line.number) else {
            return Ok(());
        };
        let length_bytes = match &header.bytes {
            Some(lengths) => lengths.bytes(header.text(line.text, lengths.index), line)?,
            None => self.block_bytes,
        };
        let stamp_ns = match &header.time {
            Some(time) => self.clock.time_ns(self.ns(line, time, self.scales.time)?),
            None => self.trace.last_end_ns(),
        };
        if stamp_ns < self.before_ns {
            return Err(backward(stamp_ns, self.before_ns, line));
        }
        self.before_ns = stamp_ns;
        let (start_ns, end_ns) = self.span(line, stamp_ns)?;
        if end_ns > NUMBER_MAX {
            return Err(Problem::TotalTooLarge.at_line(line.number));
        }
        if end_ns < start_ns {
            let (start, end) = (start_ns.to_string(), end_ns.to_string());
            return Err(Problem::EndBeforeStart { start, end }.at_line(line.number));
        }
        let operation = Operation {
            kind,
            file: 0,
            offset_bytes: self.offset_bytes,
            length_bytes,
            start_ns,
            end_ns,
        };
        let pushed = self.trace.push(&operation);
        pushed.map_err(|_| self.overlap(start_ns, line))?;
        self.offset_bytes = self.offset_bytes.wrapping_add(length_bytes);
        Ok(())
    }

    /// Returns the start and the end of the write whose time is `stamp_ns`.
    fn span(&mut self, line: &Line<'_>, stamp_ns: u64) -> Result<(u64, u64), Fault> {
        let times = self.header.duration.times();
        let own_ns = self.ns(line, times, self.scales.own)?;
        let text = self.header.text(line.text, times.index);
        match self.header.duration {
            Duration::End(_) => Ok((stamp_ns, self.end_clock.time_ns(own_ns))),
            Duration::Latency(_) if is_underflow(own_ns) => {
                let text = shown(text);
                Err(Problem::Underflow { text }.at_line(line.number))
            }
            Duration::Latency(_) => {
                if matches!(self.scales.own, Scale::Unit(_)) {
                    self.points.push(text, line.number);
                }
                self.rise.push(own_ns);
                let start_ns = match self.header.is_time_of_end {
                    true => stamp_ns.saturating_sub(own_ns),
                    false => stamp_ns,
                };
                // Times taken after the writes would make them overlap; each then starts at the end of the previous
                // one.
                let start_ns = start_ns.max(self.trace.last_end_ns());
                Ok((start_ns, start_ns.saturating_add(own_ns)))
            }
        }
    }

    fn ns(&self, line: &Line<'_>, times: &Times, scale: Scale) -> Result<u64, Fault> {
        let text = self.header.text(line.text, times.index);
        let field = Field {
            column: &times.name,
            text,
            line,
        };
        scale.ns(text).map_err(|bad| match bad {
            Bad::Negative => self.negative(times, text, line),
            bad => field.fault(bad),
        })
    }

    /// Returns the error for a write that starts before the previous one has ended.
    fn overlap(&self, start_ns: u64, line: &Line<'_>) -> Fault {
        let header = &self.header;
        let (end, rows) = (header.duration.times(), header.rows_above());
        let start = header.time.as_ref().map_or(0, |start| start.index + 1);
        let difference = format!("NR > {rows} {{ print ${} - ${start} }}", end.index + 1);
        let unit = end.unit.map_or("us", |unit| unit.name);
        Problem::Overlap {
            start: start_ns.to_string(),
            end: self.trace.last_end_ns().to_string(),
            difference: format!("{} --time-unit {unit}", awk(header.separator, &difference)),
        }
        .at_line(line.number)
    }

    /// Returns the error for a time or a latency below 0.
    fn negative(&self, times: &Times, text: &[u8], line: &Line<'_>) -> Fault {
        let (column, text) = (times.name.clone(), shown(text));
        let is_latency = std::ptr::eq(times, self.header.duration.times())
            && matches!(self.header.duration, Duration::Latency(_));
        if is_latency {
            return Problem::NegativeLatency { column, text }.at_line(line.number);
        }
        let (separator, rows) = (self.header.separator, self.header.rows_above());
        super::remedy::of_negative(column, text, separator, times.index, rows).at_line(line.number)
    }

    /// Checks whole columns, and adds notes.
    fn finish(
        self,
        totals: Totals,
        operations: Option<&direction::Column>,
    ) -> Result<Trace, Fault> {
        refuse_misread(self.points)?;
        let mut trace = self.trace;
        let notes = &mut trace.about.notes;
        notes.extend(self.clock.note());
        notes.extend(totals.note());
        notes.extend(self.directions.finish(operations)?);
        let order = self.rise.order();
        notes.extend(order.note());
        match order {
            Order::Total => return Err(Problem::LastIsTotal.in_file()),
            Order::Rising => {
                let times = self.header.duration.times();
                let (at, rows) = (times.index + 1, self.header.rows_above());
                let program = format!("NR > {rows} {{ t = ${at}; ${at} -= p; p = t }} 1");
                return Err(Problem::Rising {
                    column: times.name.clone(),
                    difference: awk(self.header.separator, &program),
                }
                .in_file());
            }
            _ => {}
        }
        Ok(trace)
    }
}

fn backward(time_ns: u64, before_ns: u64, line: &Line<'_>) -> Fault {
    let (time, before) = (time_ns.to_string(), before_ns.to_string());
    Problem::BackwardNs { time, before }.at_line(line.number)
}
