//! Signs that the rows of a table are not single writes.

use super::header::Header;
use super::scales::sample;
use crate::read::error::shown;
use crate::read::number::whole;
use std::collections::BTreeSet;

/// A shorter table may look like anything.
const ROWS_MIN: usize = 4;

/// Returns a note on a table that may be a histogram, or have one row per length.
pub(super) fn note(header: &Header, head: &[u8]) -> Option<String> {
    let own = header.duration.times().index;
    let texts = |index: usize| sample(header, head).map(move |row| header.text(row, index));
    let rows = texts(own).count();
    let differs = |index: usize| texts(index).collect::<BTreeSet<_>>().len() == rows;
    if rows < ROWS_MIN {
        return None;
    }
    let other = 1 - own.min(1);
    let counts: Vec<u64> = texts(other).map_while(|text| whole(text).ok()).collect();
    let falls = header.fields == 2
        && counts.len() == rows
        && counts.first() > counts.last()
        && counts.windows(2).all(|pair| pair[0] >= pair[1]);
    if falls && differs(own) {
        return Some(format!(
            "Each latency occurs once, and the numbers in column \"{}\" fall, as counts in a histogram do; if they are \
             counts, name the column \"count\".",
            shown(&header.names[other])
        ));
    }
    let lengths = header
        .bytes
        .as_ref()
        .filter(|lengths| differs(lengths.index))?;
    Some(format!(
        "Each row has another length (column \"{}\"), as in a table of means per length; if it is one, the figures are \
         not those of single writes.",
        lengths.name
    ))
}
