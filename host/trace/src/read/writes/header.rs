//! The columns of a table of writes, according to the names in its first line.

use super::direction::Column;
use super::scales;
use crate::read::columns::{Top, cells, is_number, named_by_user, time_column, unit_in, unquoted};
use crate::read::error::{Fault, Problem, shown};
use crate::read::operation::{Named, operation_named};
use crate::read::order::{self, Clock};
use crate::read::role::{
    Role, byte_unit_in, has_foreign_unit, is_about_bytes, is_counter, is_doubtful, is_of_any_event,
    is_of_percentiles, is_of_reads, is_rate, is_response, recurring, role,
};
use crate::read::scale::Scale;
use crate::read::{ReadOptions, columns::Unit};
use cardiograph_workload::OperationKind;

/// A column with times.
#[derive(Clone)]
pub(super) struct Times {
    pub index: usize,
    pub name: String,
    pub unit: Option<Unit>,
    /// True if the name has a unit whose length is unknown, such as ticks.
    pub is_foreign: bool,
}

/// Columns that state the duration of a write.
#[derive(Clone)]
pub(super) enum Duration {
    Latency(Times),
    /// Start and end.
    End(Times),
}

impl Duration {
    pub(super) fn times(&self) -> &Times {
        match self {
            Duration::Latency(times) | Duration::End(times) => times,
        }
    }
}

/// A column with lengths in multiples of `factor` bytes.
pub(super) struct Lengths {
    pub index: usize,
    pub name: String,
    pub unit: &'static str,
    pub factor: u64,
}

/// The first line of a table of writes.
pub(in crate::read) struct Header {
    pub(super) separator: u8,
    /// False if the first line is already a row.
    pub(super) is_named: bool,
    /// True if the row below the names has their units.
    pub(super) has_units: bool,
    /// Time or start of the write.
    pub(super) time: Option<Times>,
    /// True if the time is that of the write's end, next to its latency.
    pub(super) is_time_of_end: bool,
    pub(super) duration: Duration,
    pub(super) bytes: Option<Lengths>,
    /// Column that states whether a row is a write or a read.
    pub(super) direction: Option<usize>,
    /// Operation of rows that do not state one.
    pub(super) usual: OperationKind,
    /// Column that may contain the number of writes of a row; the flag is true if its name leaves no doubt.
    pub(super) count: Option<(usize, bool)>,
    pub(super) fields: usize,
    /// Names of the columns, or the texts of the first row.
    pub(super) names: Vec<Vec<u8>>,
    /// Name of the first column that seems to contain lengths but was not recognised.
    pub(super) unread: Option<String>,
    /// Names of further durations.
    pub(super) others: Vec<String>,
    /// True if the latency may be the duration of something else.
    pub(super) is_doubtful: bool,
}

impl Header {
    /// Parses the first line; returns `None` if it does not name a latency, or a start and an end.
    pub(in crate::read) fn parse(
        top: Top<'_>,
        options: &ReadOptions,
    ) -> Result<Option<Header>, Fault> {
        let separator = top.separator();
        let texts = top.names();
        let roles: Vec<Role> = texts.iter().map(|text| role(text).0).collect();
        let find = |wanted: Role| roles.iter().position(|role| *role == wanted);
        let times = |index: usize| Times {
            index,
            name: shown(texts[index]),
            unit: role(texts[index]).1.or_else(|| unit_below(&top, index)),
            is_foreign: has_foreign_unit(texts[index]),
        };
        let all = || 0..texts.len();
        let mut latencies: Vec<usize> = all().filter(|i| roles[*i] == Role::Latency).collect();
        let is_of_io = |role: &Role| matches!(role, Role::Bytes { .. } | Role::Direction);
        if latencies.is_empty() && roles.iter().any(is_of_io) {
            // Next to a length, a response is that of a device.
            latencies = all().filter(|i| is_response(texts[*i])).collect();
        }
        let (start, end) = (find(Role::Start), find(Role::End));
        let of_percentiles = texts.iter().find(|text| is_of_percentiles(text));
        if let (None, Some(text)) = (&options.latency_column, of_percentiles) {
            let column = shown(text);
            return Err(Problem::Statistics { column }.in_file());
        }
        let duration = match (&options.latency_column, &latencies[..], start, end) {
            (Some(wanted), ..) => {
                let index = named_by_user(&texts, wanted)?;
                if is_rate(texts[index]) {
                    let column = shown(texts[index]);
                    return Err(Problem::Rates { column }.in_file());
                }
                Duration::Latency(times(index))
            }
            // The user wants the times of samples, so this is not a table of writes.
            (None, ..) if options.time_column.is_some() && latencies.is_empty() => return Ok(None),
            (None, _, Some(_), Some(end)) => Duration::End(times(end)),
            (None, [index], ..) => Duration::Latency(times(*index)),
            (None, [], ..) => return statistic(&texts),
            (None, several, ..) if one_of_writes(&texts, several).is_some() => {
                let index = one_of_writes(&texts, several);
                Duration::Latency(times(index.unwrap_or(several[0])))
            }
            (None, several, ..) => {
                let names: Vec<String> = several.iter().map(|index| shown(texts[*index])).collect();
                let names = names.join(", ");
                let option = "--latency-column";
                return Err(Problem::SeveralColumns { names, option }.in_file());
            }
        };
        let own = duration.times().index;
        let time = match &options.time_column {
            Some(wanted) => Some(named_by_user(&texts, wanted)?),
            None => start
                .or_else(|| (0..texts.len()).find(|i| time_column(texts[*i]).is_some()))
                .or(end),
        };
        let lengths = |(index, role): (usize, &Role)| match *role {
            Role::Bytes { unit, factor } => {
                let below = text_below(&top, index).and_then(byte_unit_in);
                let (unit, factor) = below.filter(|_| factor == 1).unwrap_or((unit, factor));
                Some(Lengths {
                    index,
                    name: shown(texts[index]),
                    unit,
                    factor,
                })
            }
            _ => None,
        };
        let is_duration = |index: &usize| {
            let (role, unit) = role(texts[*index]);
            let is_of_time = time_column(texts[*index]).is_some() || Some(*index) == time;
            *index != own
                && !is_of_time
                && (role == Role::Latency || role == Role::Other && unit.is_some())
        };
        let is_latency = matches!(duration, Duration::Latency(_));
        let others: Vec<usize> = (0..texts.len()).filter(is_duration).collect();
        let count = find(Role::Count).map(|index| (index, true));
        let is_named = !is_number(texts[own]) && Scale::of(texts[own]).is_none();
        let by_user = options.latency_column.is_some();
        // If the table also contains a measured value or a text, the duration may be that of any event.
        let is_foreign = |index: usize| {
            roles[index] == Role::Other
                && Some(index) != time
                && !is_counter(texts[index])
                && !is_about_bytes(texts[index])
        };
        let is_of_something = is_of_any_event(texts[own]) && (0..texts.len()).any(is_foreign);
        Ok(Some(Header {
            separator,
            is_named,
            has_units: is_named && unit_below(&top, own).is_some(),
            usual: match is_latency && is_of_reads(texts[own]) {
                true => OperationKind::Read,
                false => OperationKind::Write,
            },
            others: others.iter().map(|index| shown(texts[*index])).collect(),
            is_doubtful: is_latency && !by_user && (is_doubtful(texts[own]) || is_of_something),
            is_time_of_end: is_latency && time.is_some() && time == end,
            time: time.filter(|index| *index != own).map(times),
            bytes: roles.iter().enumerate().find_map(lengths),
            direction: find(Role::Direction),
            count: count.or_else(|| find(Role::Number).map(|index| (index, false))),
            fields: texts.len(),
            names: texts.iter().map(|text| text.to_vec()).collect(),
            unread: (texts.iter().zip(&roles))
                .find(|(text, role)| is_about_bytes(text) && !matches!(role, Role::Bytes { .. }))
                .map(|(text, _)| shown(text)),
            duration,
        }))
    }

    /// Returns the header of an MSR Cambridge block trace whose names were removed: `128166372003061629,hm,1,Read,0,4096,413`.
    pub(in crate::read) fn of_msr(line: &[u8], options: &ReadOptions) -> Option<Header> {
        let texts: Vec<&[u8]> = cells(line, b',').map(unquoted).collect();
        let is_row = matches!(texts[..], [time, _, _, operation, _, _, _]
            if Scale::of(time) == Some(Scale::Filetime) && operation_named(operation).is_some());
        let names = b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime";
        let header = is_row.then(|| Header::parse(Top::of(names, line), options))?;
        Some(header.ok()??.in_comment())
    }

    /// Returns true if a row has the columns of this header, and a time where the header names one.
    pub(in crate::read) fn fits(&self, row: &[u8]) -> bool {
        let text = self.text(row, self.duration.times().index);
        let is_time = is_number(text) || Scale::of(text).is_some() || self.has_units;
        cells(row, self.separator).count() == self.fields && is_time
    }

    /// Declares that the names are in a comment, so that the first row is one of the table.
    pub(in crate::read) fn in_comment(mut self) -> Header {
        self.is_named = false;
        self
    }

    /// Number of rows before the first write.
    pub(super) fn rows_above(&self) -> usize {
        usize::from(self.is_named) + usize::from(self.has_units)
    }

    /// Finds a column of operations that is not named as one: each of its texts is a known operation.
    pub(super) fn find_direction<'a>(
        &self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<usize> {
        if self.direction.is_some() {
            return self.direction;
        }
        let own = self.duration.times().index;
        (0..self.fields)
            .filter(|index| *index != own)
            .find(|index| {
                let mut names = rows
                    .clone()
                    .map(|row| operation_named(self.text(row, *index)))
                    .peekable();
                let mut has_data = false;
                names.peek().is_some()
                    && names.all(|name| {
                        has_data |= matches!(name, Some(Named::Data(_)));
                        name.is_some()
                    })
                    && has_data
            })
    }

    /// Returns a note on a column of few different texts, which may distinguish operations, devices or cards.
    pub(super) fn note_on_texts<'a>(
        &self,
        rows: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Option<String> {
        let used = [
            Some(self.duration.times().index),
            self.time.as_ref().map(|time| time.index),
            self.bytes.as_ref().map(|bytes| bytes.index),
            self.direction,
        ];
        let columns = (0..self.fields).filter(|index| !used.contains(&Some(*index)));
        columns.into_iter().find_map(|index| {
            let texts = rows.clone().map(|row| self.text(row, index));
            let (one, other) = recurring(&self.names[index], texts)?;
            let name = match self.is_named {
                true => shown(&self.names[index]),
                false => (index + 1).to_string(),
            };
            Some(format!(
                "The column \"{name}\" has several texts, such as \"{one}\" and \"{other}\"; all rows count as writes of \
                 one card. If some are not, such as reads, pass the others alone."
            ))
        })
    }

    /// Refuses times that decrease in many rows.
    pub(super) fn refuse_disorder(&self, head: &[u8]) -> Result<(), Fault> {
        let Some(time) = &self.time else {
            return Ok(());
        };
        let clock = Clock {
            name: &time.name,
            index: time.index,
            separator: self.separator,
            rows_above: self.rows_above(),
            may_be_latency: false,
        };
        let texts = scales::sample(self, head).map(|row| self.text(row, time.index));
        order::refuse(&clock, texts)
    }

    /// Returns the column of operations. `names` is the header in line `header_line`, if that is not 0.
    pub(super) fn operations(&self, header_line: u64, names: &[u8]) -> Option<Column> {
        let index = self.direction?;
        Some(Column {
            index,
            name: match header_line {
                0 => (index + 1).to_string(),
                _ => shown(self.text(names, index)),
            },
            separator: self.separator,
            header_line,
        })
    }

    /// Returns a field of a row; empty if the row has too few.
    pub(super) fn text<'a>(&self, row: &'a [u8], index: usize) -> &'a [u8] {
        cells(row, self.separator)
            .nth(index)
            .map(unquoted)
            .unwrap_or_default()
    }
}

/// Returns the unit in the row below the names, if that row contains no numbers.
fn unit_below(top: &Top<'_>, index: usize) -> Option<Unit> {
    text_below(top, index).and_then(unit_in)
}

/// Returns the text below a name, if that row contains no numbers.
fn text_below<'a>(top: &Top<'a>, index: usize) -> Option<&'a [u8]> {
    let texts: Vec<&[u8]> = cells(top.below, top.separator()).map(unquoted).collect();
    let has_numbers = texts.iter().any(|text| is_number(text));
    texts.get(index).filter(|_| !has_numbers).copied()
}

/// Returns the only latency of writes among latencies of reads.
fn one_of_writes(texts: &[&[u8]], latencies: &[usize]) -> Option<usize> {
    let mut writes = latencies
        .iter()
        .filter(|index| !is_of_reads(texts[**index]));
    match (writes.next(), writes.next()) {
        (Some(index), None) => Some(*index),
        _ => None,
    }
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
