//! Tables of latencies and of the number of writes of each: histograms.

use super::header::{Duration, Header};
use super::scales;
use crate::histogram::Histogram;
use crate::read::ReadOptions;
use crate::read::columns::cells;
use crate::read::doubt::Totals;
use crate::read::error::{Fault, Problem};
use crate::read::histogram::{add, finished};
use crate::read::lines::Lines;
use crate::read::number::{Field, whole};
use crate::read::recording::is_note;
use crate::trace::About;
use std::collections::BTreeMap;
use std::io::Read;

impl Header {
    /// Returns true if a column contains numbers of writes: counts that do not just number the rows.
    pub(in crate::read) fn is_histogram(&self, head: &[u8]) -> bool {
        let Some(index) = self.count else {
            return false;
        };
        let rows = scales::sample(self, head);
        let counts: Vec<u64> = rows
            .filter_map(|row| whole(self.text(row, index)).ok())
            .collect();
        let numbers_rows = counts
            .windows(2)
            .all(|pair| pair[1] == pair[0].wrapping_add(1));
        !numbers_rows || counts.len() == 1 && counts[0] > 1
    }
}

pub(in crate::read) fn read_counts<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    header: Header,
    options: &ReadOptions,
) -> Result<Histogram, Fault> {
    let (Some(count), Duration::Latency(times), None) =
        (header.count, &header.duration, &header.time)
    else {
        // Bins with two edges, or counts over time.
        let column = "count".to_owned();
        return Err(Problem::Statistics { column }.in_file());
    };
    let scale = scales::decide(&header, lines.in_memory(), options, &mut about)?.own;
    if header.is_named {
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
        let latency_ns = scale
            .ns(time.text, header.separator)
            .map_err(|bad| time.fault(bad))?;
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
