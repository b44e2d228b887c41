//! Tables of writes by any program: a latency per row, or a start and an end.

mod counts;
mod direction;
mod header;
mod scales;

use super::ReadOptions;
use super::columns::cells;
use super::doubt::{Points, Totals, is_underflow};
use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Bad, Field, NUMBER_MAX, decimal};
use super::recording::is_note;
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
    header: Header,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    let scales = scales::decide(&header, lines.in_memory(), options, &mut about)?;
    about.notes.extend(note_of_lengths(&header, options));
    if header.is_named {
        lines.next_row_but(is_note)?;
    }
    let mut reader = Reader {
        trace: Trace::new(about),
        points: Points::default(),
        directions: Directions::default(),
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
        }
    }
    reader.points.finish()?;
    let mut trace = reader.trace;
    let notes = &mut trace.about.notes;
    notes.extend(reader.clock.note());
    notes.extend(totals.note());
    notes.extend(reader.directions.note());
    Ok(trace)
}

/// Returns the note about lengths that are assumed or whose unit is.
fn note_of_lengths(header: &Header, options: &ReadOptions) -> Option<String> {
    let block_bytes = options.block_bytes;
    match (&header.bytes, &header.unread) {
        (None, Some(name)) => Some(format!(
            "The column \"{name}\" is not read as a length (name it bytes or size_KiB for that); each write is \
             assumed to be {block_bytes} B."
        )),
        (None, None) => Some(super::block_note(block_bytes)),
        (Some(lengths), _) if matches!(lengths.unit, "kB" | "MB") => {
            let (unit, name, factor) = (lengths.unit, &lengths.name, lengths.factor);
            let binary = if unit == "kB" { "KiB" } else { "MiB" };
            Some(format!(
                "The lengths in column \"{name}\" are read as {unit} of {factor} B; if the writer meant {binary}, \
                 name the column size_{binary}."
            ))
        }
        (Some(_), _) => None,
    }
}

/// State of reading: the trace so far, and the checks of whole columns.
struct Reader {
    header: Header,
    scales: Scales,
    trace: Trace,
    points: Points,
    directions: Directions,
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
        let Some(kind) = self.directions.kind(direction) else {
            return Ok(());
        };
        let length_bytes = self.length_bytes(line)?;
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
        pushed.map_err(|_| backward(start_ns, self.trace.last_end_ns(), line))?;
        self.offset_bytes = self.offset_bytes.wrapping_add(length_bytes);
        Ok(())
    }

    /// Returns the start and the end of the write whose time is given.
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
                // A time may have been taken after the write.
                let start_ns = stamp_ns.max(self.trace.last_end_ns());
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
        scale
            .ns(text, self.header.separator)
            .map_err(|bad| field.fault(bad))
    }

    fn length_bytes(&self, line: &Line<'_>) -> Result<u64, Fault> {
        /// Power of ten of the digits after the point that count.
        const POWER: i32 = 6;
        let Some(lengths) = &self.header.bytes else {
            return Ok(self.block_bytes);
        };
        let text = self.header.text(line.text, lengths.index);
        let fault = |bad: Bad| bad.in_column("the length", text, line);
        let millionths = if lengths.factor == 1 {
            return super::number::whole(text).map_err(fault);
        } else {
            let pointed = super::columns::pointed(text);
            let text = if self.header.separator == b',' {
                text
            } else {
                &pointed
            };
            decimal(text, POWER).map_err(fault)?
        };
        let bytes = u128::from(millionths) * u128::from(lengths.factor) / 10_u128.pow(6);
        u64::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= NUMBER_MAX)
            .ok_or_else(|| fault(Bad::TooLarge))
    }
}

fn backward(time_ns: u64, before_ns: u64, line: &Line<'_>) -> Fault {
    let (time, before) = (time_ns.to_string(), before_ns.to_string());
    Problem::BackwardNs { time, before }.at_line(line.number)
}
