//! The columns of a table of writes, by the names in its first line.

use crate::read::columns::{Top, cells, named_by_user, pointed, time_column, unquoted};
use crate::read::error::{Fault, Problem, shown};
use crate::read::number::{Bad, decimal};
use crate::read::role::{Role, is_about_bytes, role};
use crate::read::scale::Scale;
use crate::read::{ReadOptions, columns::Unit};

/// A column with times.
#[derive(Clone)]
pub(super) struct Times {
    pub index: usize,
    pub name: String,
    pub unit: Option<Unit>,
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
    /// Time or start of the write.
    pub(super) time: Option<Times>,
    pub(super) duration: Duration,
    pub(super) bytes: Option<Lengths>,
    /// Column that states whether a row is a write or a read.
    pub(super) direction: Option<usize>,
    /// Column that may contain the number of writes of a row.
    pub(super) count: Option<usize>,
    pub(super) fields: usize,
    /// Names about lengths that no role fits.
    pub(super) unread: Option<String>,
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
            unit: role(texts[index]).1,
        };
        let latencies: Vec<usize> = (0..texts.len())
            .filter(|index| roles[*index] == Role::Latency)
            .collect();
        let (start, end) = (find(Role::Start), find(Role::End));
        let duration = match (&options.latency_column, &latencies[..], start, end) {
            (Some(wanted), ..) => Duration::Latency(times(named_by_user(&texts, wanted)?)),
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
        let own = duration.times().index;
        let time = match &options.time_column {
            Some(wanted) => Some(named_by_user(&texts, wanted)?),
            None => start.or_else(|| (0..texts.len()).find(|i| time_column(texts[*i]).is_some())),
        };
        let lengths = |(index, role): (usize, &Role)| match *role {
            Role::Bytes { unit, factor } => Some(Lengths {
                index,
                name: shown(texts[index]),
                unit,
                factor,
            }),
            _ => None,
        };
        let is_number = decimal(&pointed(texts[own]), 0) != Err(Bad::NotANumber);
        Ok(Some(Header {
            separator,
            is_named: !is_number && Scale::of(texts[own]).is_none(),
            time: time.filter(|index| *index != own).map(times),
            bytes: roles.iter().enumerate().find_map(lengths),
            direction: find(Role::Direction),
            count: find(Role::Count),
            fields: texts.len(),
            unread: texts
                .iter()
                .find(|text| is_about_bytes(text))
                .map(|text| shown(text)),
            duration,
        }))
    }

    /// Returns true if a row has the columns of this header, and a time where the header names one.
    pub(in crate::read) fn fits(&self, row: &[u8]) -> bool {
        let text = self.text(row, self.duration.times().index);
        let is_time =
            decimal(&pointed(text), 0) != Err(Bad::NotANumber) || Scale::of(text).is_some();
        cells(row, self.separator).count() == self.fields && is_time
    }

    /// Returns a field of a row; empty if the row has too few.
    pub(super) fn text<'a>(&self, row: &'a [u8], index: usize) -> &'a [u8] {
        cells(row, self.separator)
            .nth(index)
            .map(unquoted)
            .unwrap_or_default()
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
