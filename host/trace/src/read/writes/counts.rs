//! Histograms: tables of latencies and of the number of writes with each latency.

use super::header::{Duration, Header};
use super::scales;
use crate::histogram::Histogram;
use crate::read::ReadOptions;
use crate::read::columns::cells;
use crate::read::doubt::Totals;
use crate::read::error::{Fault, Problem, shown};
use crate::read::histogram::{add, finished};
use crate::read::lines::Lines;
use crate::read::number::{Field, whole};
use crate::read::recording::is_note;
use crate::read::remedy::awk;
use crate::trace::About;
use std::collections::{BTreeMap, HashSet};
use std::io::Read;

/// Meaning of a column of counts.
enum Counts {
    /// A value of each row's write: its number, or a constant.
    OfRows,
    /// Numbers of writes.
    OfWrites,
    /// Shares of all writes.
    Shares,
    /// Numbers next to latencies that occur in more than one row.
    Unknown,
}

impl Header {
    /// Returns true if a column contains numbers of writes.
    pub(in crate::read) fn is_histogram(&self, head: &[u8]) -> Result<bool, Fault> {
        let Some((index, is_sure)) = self.count else {
            return Ok(false);
        };
        let name = || shown(self.names.get(index).map_or(&[][..], Vec::as_slice));
        match self.counts(head, index) {
            Counts::OfRows => Ok(false),
            Counts::OfWrites if self.are_cumulative(head, index) => {
                let (at, rows) = (index + 1, self.rows_above());
                let program = format!("NR > {rows} {{ t = ${at}; ${at} -= p; p = t }} 1");
                let (column, difference) = (name(), awk(self.separator, &program));
                Err(Problem::RisingCounts { column, difference }.in_file())
            }
            Counts::OfWrites => Ok(true),
            Counts::Shares if self.bins_rise(head) => {
                let at = index + 1;
                let rows = self.rows_above();
                let program = format!("NR > {rows} {{ ${at} = int(${at} * 1000 + 0.5) }} 1");
                let (column, scale) = (name(), awk(self.separator, &program));
                Err(Problem::Shares { column, scale }.in_file())
            }
            Counts::Unknown if is_sure => {
                let rename = format!("NR == 1 {{ ${} = \"x\" }} 1", index + 1);
                let (column, rename) = (name(), awk(self.separator, &rename));
                Err(Problem::CountUnknown { column, rename }.in_file())
            }
            Counts::Shares | Counts::Unknown => Ok(false),
        }
    }

    fn counts(&self, head: &[u8], index: usize) -> Counts {
        let texts = || scales::sample(self, head).map(|row| self.text(row, index));
        let counts: Vec<u64> = texts().filter_map(|text| whole(text).ok()).collect();
        if counts.len() < texts().count() {
            return Counts::Shares;
        }
        let steps: Vec<u64> = counts
            .windows(2)
            .map(|pair| pair[1].wrapping_sub(pair[0]))
            .collect();
        let is_even = steps.windows(2).all(|pair| pair[0] == pair[1]);
        let rises = self.bins_rise(head);
        let numbers_rows = match steps.first() {
            None => counts.first().is_none_or(|count| *count <= 1),
            Some(0 | 1) => is_even,
            Some(_) => is_even && !rises,
        };
        let (_, is_sure) = self.count.unwrap_or_default();
        if numbers_rows {
            Counts::OfRows
        } else if rises || is_sure && self.are_distinct(head) {
            Counts::OfWrites
        } else {
            Counts::Unknown
        }
    }

    /// Returns true if no count is less than the previous one, as in running totals.
    fn are_cumulative(&self, head: &[u8], index: usize) -> bool {
        const BINS_MIN: usize = 4;
        let counts = scales::sample(self, head).filter_map(|row| whole(self.text(row, index)).ok());
        let counts: Vec<u64> = counts.collect();
        let rises = counts.windows(2).all(|pair| pair[0] <= pair[1]);
        counts.len() >= BINS_MIN && counts.first() < counts.last() && rises && self.bins_rise(head)
    }

    /// Returns true if each latency is greater than the previous one, as the bins of a histogram are.
    fn bins_rise(&self, head: &[u8]) -> bool {
        let numbers = scales::column(self, head, self.duration.times());
        numbers.values().windows(2).all(|pair| pair[0] < pair[1])
    }

    fn are_distinct(&self, head: &[u8]) -> bool {
        let index = self.duration.times().index;
        let mut seen = HashSet::new();
        scales::sample(self, head).all(|row| seen.insert(self.text(row, index)))
    }
}

pub(in crate::read) fn read_counts<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    header: Header,
    options: &ReadOptions,
) -> Result<Histogram, Fault> {
    let (Some((count, _)), Duration::Latency(times), None) =
        (header.count, &header.duration, &header.time)
    else {
        // The bins have two edges, or the counts belong to times.
        let column = "count".to_owned();
        return Err(Problem::Statistics { column }.in_file());
    };
    let scale = scales::decide(&header, lines.in_memory(), options, &mut about)?.own;
    for _ in 0..header.rows_above() {
        lines.next_row_but(is_note)?;
    }
    let mut bins = BTreeMap::new();
    let mut totals = Totals::default();
    while let Some(line) = lines.next_row_but(is_note)? {
        if line.is_cut(header.separator, header.fields) {
            about.notes.push(line.cut_note());
            break;
        }
        if totals.take(line.text, line.number, header.separator) {
            continue;
        }
        let found = cells(line.text, header.separator).count();
        if found != header.fields {
            return Err(line.wrong_fields(header.fields, found));
        }
        let field = |column, index: usize| Field {
            column,
            text: header.text(line.text, index),
            line: &line,
        };
        let time = field(&times.name, times.index);
        let latency_ns = scale.ns(time.text).map_err(|bad| time.fault(bad))?;
        totals.check(&line, header.separator)?;
        add(&mut bins, latency_ns, field("the count", count).whole()?)?;
    }
    about.notes.extend(totals.note());
    about.notes.push(
        "Each row is read as a number of writes of the same latency; if the latency is the lower end of a bin, the \
         figures are up to one bin too low."
            .to_owned(),
    );
    about
        .notes
        .push(crate::read::block_note(options.block_bytes));
    let writes = bins
        .values()
        .fold(0_u64, |sum, count| sum.saturating_add(*count));
    finished(about, bins, writes.saturating_mul(options.block_bytes))
}
