//! HdrHistogram's interval logs: one compressed histogram (V2) per line, in base64.
//!
//! `[Tag=NAME,]start,length,maximum,HISTFAAA...`

use super::ReadOptions;
use super::error::{Fault, Problem, shown};
use super::guard::guarded;
use super::guess::{self, Numbers};
use super::histogram::{add, finished};
use super::lines::{Line, Lines};
use super::recording::is_note;
use super::scale::Scale;
use crate::histogram::Histogram;
use crate::trace::About;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::serialization::Deserializer;
use std::collections::BTreeMap;
use std::io::Read;

/// Base64 of the first bytes of a compressed histogram.
const COOKIE: &[u8] = b"HISTFA";

/// Returns true if the line is a row, or names the columns.
pub(super) fn is_row(line: &[u8]) -> bool {
    last_field(line).starts_with(COOKIE) || is_header(line)
}

fn is_header(line: &[u8]) -> bool {
    line.ends_with(b"Interval_Compressed_Histogram\"")
}

fn last_field(line: &[u8]) -> &[u8] {
    let field = line.rsplit(|byte| *byte == b',').next();
    field.unwrap_or_default().trim_ascii()
}

fn tag(line: &[u8]) -> Option<&[u8]> {
    let tag = line.strip_prefix(b"Tag=")?;
    tag.split(|byte| *byte == b',').next()
}

/// Reads a log and adds up its intervals.
pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    options: &ReadOptions,
) -> Result<Histogram, Fault> {
    let mut values = BTreeMap::new();
    let (mut intervals, mut first_tag) = (0_u64, None);
    while let Some(line) = lines.next_row_but(|line| is_note(line) || is_header(line))? {
        let tag = tag(line.text).map(shown);
        let first = first_tag.get_or_insert_with(|| tag.clone());
        if *first != tag {
            return Err(Problem::SeveralTags.at_line(line.number));
        }
        let Some(interval) = interval(last_field(line.text)) else {
            if !line.ended {
                about.notes.push(line.cut_note());
                break;
            }
            return Err(damaged(&line));
        };
        intervals += 1;
        for (value, count) in interval {
            let sum = values.entry(value).or_insert(0_u64);
            *sum = sum.saturating_add(count);
        }
    }
    let unit = match options.time_unit {
        Some(unit) => unit,
        None => {
            let mut numbers = Numbers::default();
            if let Some(median) = median(&values) {
                numbers.push(median.to_string().as_bytes());
            }
            let guess = guess::of_latencies("the values", &numbers)?;
            about.notes.push(guess.reason);
            guess.unit
        }
    };
    let mut bins = BTreeMap::new();
    let mut writes = 0_u64;
    for (value, count) in values {
        let latency_ns = Scale::Unit(unit).ns(value.to_string().as_bytes());
        let too_large = |_| Problem::TotalTooLarge.in_file();
        add(&mut bins, latency_ns.map_err(too_large)?, count)?;
        writes = writes.saturating_add(count);
    }
    about.notes.push(format!(
        "The histograms of {intervals} intervals are added up; each value is the upper end of its bin."
    ));
    about.notes.push(super::block_note(options.block_bytes));
    finished(about, bins, writes.saturating_mul(options.block_bytes))
}

fn median(values: &BTreeMap<u64, u64>) -> Option<u64> {
    let total: u128 = values.values().map(|count| u128::from(*count)).sum();
    let mut below = 0_u128;
    let mut values = values.iter();
    let median = values.find(|(_, count)| {
        below += u128::from(**count);
        2 * below >= total
    });
    median.map(|(value, _)| *value)
}

/// Decodes a histogram; returns its values and counts.
fn interval(text: &[u8]) -> Option<Vec<(u64, u64)>> {
    /// Cookie and length before the compressed bytes.
    const FRAME_BYTES: usize = 8;
    /// Maximum number of decompressed bytes: more than the counters of the largest histogram need.
    const BYTES_MAX: u64 = 64 << 20;
    let bytes = BASE64_STANDARD.decode(text).ok()?;
    let mut histogram = Vec::new();
    let inflated = ZlibDecoder::new(bytes.get(FRAME_BYTES..)?).take(BYTES_MAX);
    { inflated }.read_to_end(&mut histogram).ok()?;
    // The decoder reserves as much memory as the histogram states, so check this length first.
    let stated = u32::from_be_bytes(*histogram.get(4..)?.first_chunk()?);
    if stated as usize > histogram.len() {
        return None;
    }
    guarded(|| {
        let decoded = Deserializer::new().deserialize::<u64, _>(&mut histogram.as_slice());
        let decoded = decoded.ok()?;
        let recorded = decoded.iter_recorded();
        let pairs = recorded.map(|bin| (bin.value_iterated_to(), bin.count_at_value()));
        Some(pairs.collect())
    })
    .flatten()
}

fn damaged(line: &Line<'_>) -> Fault {
    Problem::HdrDamaged.at_line(line.number)
}
