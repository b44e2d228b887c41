//! Signs that the rows of a table are not individual writes.

use super::header::Header;
use super::scales::sample;
use crate::read::error::shown;
use crate::read::number::whole;
use crate::read::role::{is_about_bytes, is_counter};
use std::collections::BTreeSet;

/// Minimum number of rows; shorter tables show no such signs reliably.
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
            "Each latency occurs once, and the numbers in column \"{}\" decrease, like the counts of a histogram; if they are \
             counts, name the column \"count\".",
            shown(&header.names[other])
        ));
    }
    let lengths = header
        .bytes
        .as_ref()
        .filter(|lengths| differs(lengths.index))?;
    Some(format!(
        "Every row has a different length (column \"{}\"), as in a table of mean latencies by length; if this is such a \
         table, the figures are not those of individual writes.",
        lengths.name
    ))
}

/// Returns a note on row numbers that decrease or have gaps, because rows are out of order or missing.
pub(super) fn note_on_numbers(header: &Header, head: &[u8]) -> Option<String> {
    let own = header.duration.times().index;
    let is_number = |index: &usize| {
        let name = &header.names[*index];
        *index != own && header.is_named && is_counter(name) && !is_about_bytes(name)
    };
    let index = (0..header.fields).find(is_number)?;
    let texts = sample(header, head).map(|row| header.text(row, index));
    let numbers: Vec<u64> = texts.map_while(|text| whole(text).ok()).collect();
    if numbers.len() < 2 * ROWS_MIN {
        return None;
    }
    let falls = numbers.windows(2).filter(|pair| pair[1] < pair[0]).count();
    // Numbers that repeat are those of files or runs, not of rows.
    let different = numbers.iter().collect::<BTreeSet<_>>().len();
    let skips = numbers
        .windows(2)
        .filter(|pair| pair[1] > pair[0] + 1)
        .count();
    let steps = numbers
        .windows(2)
        .filter(|pair| pair[1] == pair[0] + 1)
        .count();
    let what = if different < numbers.len() {
        return None;
    } else if falls > 0 {
        "decrease in places, so the rows are not in the order of the writes"
    } else if steps > 0 && skips > 0 {
        "have gaps, so rows seem to be missing"
    } else {
        return None;
    };
    Some(format!(
        "The numbers in column \"{}\" {what}: stalls, backlog and sustained rates may be wrong.",
        shown(&header.names[index])
    ))
}

/// Returns a note on rows with the same time and latency as the previous row.
pub(super) fn note_on_repeats(header: &Header, head: &[u8]) -> Option<String> {
    let time = header.time.as_ref()?;
    let texts = || {
        sample(header, head).map(|row| {
            let own = header.text(row, header.duration.times().index);
            (header.text(row, time.index), own)
        })
    };
    let repeats = texts().zip(texts().skip(1)).filter(|(a, b)| a == b).count();
    (repeats >= ROWS_MIN).then(|| {
        format!(
            "{repeats} rows have the time and the latency of the previous row; if they are the same writes again, remove \
             them: uniq FILE | cardiograph analyze -."
        )
    })
}

/// Returns a note if the largest latency occurs several times and is the maximum of a 16-bit counter.
pub(super) fn note_on_full_counter(header: &Header, head: &[u8]) -> Option<String> {
    const FULL: u64 = u16::MAX as u64;
    let index = header.duration.times().index;
    let texts = sample(header, head).map(|row| header.text(row, index));
    let numbers: Vec<u64> = texts.filter_map(|text| whole(text).ok()).collect();
    let is_largest = numbers.iter().max() == Some(&FULL);
    let full = numbers.iter().filter(|number| **number == FULL).count();
    (is_largest && full > 1).then(|| {
        format!(
            "{full} latencies are 65535, the largest number of 16 bits; if the counter stopped there, these writes took longer."
        )
    })
}
