//! Histograms that tools print: fio's JSON+, HdrHistogram's percentiles, and tables of latencies and counts.

use super::columns::cells;
use super::error::{Fault, Problem};
use super::guess::{self, Numbers};
use super::lines::{Line, Lines};
use super::number::{Field, NUMBER_MAX};
use super::scale::Scale;
use super::{ReadOptions, summary};
use crate::histogram::Histogram;
use crate::trace::About;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Read;

/// Returns true if a text contains the beginning of fio's JSON. fio may print lines of text before it.
pub(super) fn is_fio_json(head: &[u8]) -> bool {
    let text = String::from_utf8_lossy(head.get(..16 << 10).unwrap_or(head));
    text.contains("\"fio version\"") && text.contains('{')
}

/// Reads the completion latencies of the writes of all jobs from the output of `--output-format=json+`.
pub(super) fn read_fio_json(rest: impl Read, mut about: About) -> Result<Histogram, Fault> {
    const BYTES_MAX: u64 = 256 << 20;
    let mut text = Vec::new();
    let read = rest.take(BYTES_MAX).read_to_end(&mut text);
    read.map_err(|error| Problem::Read(error).in_file())?;
    let from = text.iter().position(|byte| *byte == b'{').unwrap_or(0);
    // Lines of text may also follow.
    let mut values = serde_json::Deserializer::from_slice(&text[from..]).into_iter::<Value>();
    let Some(Ok(output)) = values.next() else {
        return Err(Problem::JsonDamaged.in_file());
    };
    let jobs = output["jobs"].as_array().map_or(&[][..], Vec::as_slice);
    let mut total = BTreeMap::new();
    let (mut payload_bytes, mut min_ns, mut max_ns, mut sum_ns) = (0_u64, u64::MAX, 0, 0.0);
    let writes = || jobs.iter().map(|job| &job["write"]);
    let has = |direction: &str| {
        jobs.iter()
            .any(|job| job[direction]["total_ios"].as_u64() > Some(0))
    };
    if has("read") && !has("write") {
        return Err(Problem::NoWrites.in_file());
    }
    let mut stated_writes = 0_u64;
    for write in writes().filter(|write| write["total_ios"].as_u64() != Some(0)) {
        let latency = &write["clat_ns"];
        let Some(bins) = latency["bins"].as_object().filter(|bins| !bins.is_empty()) else {
            return Err(summary::of_fio_json());
        };
        let mut writes = 0_u64;
        for (latency_ns, count) in bins {
            let (Ok(latency_ns), Some(count)) = (latency_ns.parse::<u64>(), count.as_u64()) else {
                return Err(Problem::JsonDamaged.in_file());
            };
            add(&mut total, latency_ns, count)?;
            writes = writes.saturating_add(count);
        }
        if let Some(stated) = latency["N"].as_u64().filter(|stated| *stated != writes) {
            let found = writes;
            return Err(Problem::BinsDiffer { stated, found }.in_file());
        }
        stated_writes = stated_writes.saturating_add(write["total_ios"].as_u64().unwrap_or(writes));
        payload_bytes = payload_bytes.saturating_add(write["io_bytes"].as_u64().unwrap_or(0));
        min_ns = min_ns.min(latency["min"].as_u64().unwrap_or(0));
        max_ns = max_ns.max(latency["max"].as_u64().unwrap_or(0));
        sum_ns += latency["mean"].as_f64().unwrap_or(0.0) * writes as f64;
    }
    about.notes.push(
        "The latencies are fio's completion latencies (clat); its bins are up to 1.6 % wide."
            .to_owned(),
    );
    if writes().count() > 1 {
        about
            .notes
            .push(format!("The writes of {} jobs are added up.", jobs.len()));
    }
    let mut histogram = finished(about, total, payload_bytes)?;
    if stated_writes != histogram.writes() {
        let note = format!(
            "The bins contain {} of {stated_writes} writes (total_ios); the figures are those of the bins.",
            histogram.writes()
        );
        histogram.about.notes.push(note);
    }
    histogram.mean_ns = Some(sum_ns / histogram.writes() as f64);
    (histogram.min_ns, histogram.max_ns) = (Some(min_ns), Some(max_ns));
    Ok(histogram)
}

/// Returns true if the first line is that of HdrHistogram's percentiles.
pub(super) fn is_hgrm(line: &[u8]) -> bool {
    let names: Vec<&[u8]> = cells(line, b' ').collect();
    matches!(names[..], [b"Value", b"Percentile", b"TotalCount", ..])
}

/// Reads HdrHistogram's percentiles (`.hgrm`): value, percentile, and the number of values up to it.
pub(super) fn read_hgrm<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    options: &ReadOptions,
) -> Result<Histogram, Fault> {
    const SEPARATOR: u8 = b' ';
    let scale = match options.time_unit {
        Some(unit) => Scale::Unit(unit),
        None => {
            let mut numbers = Numbers::default();
            let rows = lines.in_memory().split(|&byte| byte == b'\n').skip(1);
            let median = rows
                .map(|row| cells(row, SEPARATOR).collect::<Vec<_>>())
                .find(|row| {
                    let share = row.get(1).and_then(|text| str::from_utf8(text).ok());
                    share
                        .and_then(|share| share.parse::<f64>().ok())
                        .is_some_and(|share| share >= 0.5)
                });
            median.iter().for_each(|row| numbers.push(row[0]));
            let guess = guess::of_latencies("the values", &numbers)?;
            about.notes.push(guess.reason);
            Scale::Unit(guess.unit)
        }
    };
    lines.next_row()?;
    let mut bins = BTreeMap::new();
    let mut before = 0;
    let mut declared = None;
    while let Some(line) = lines.next_row()? {
        if let Some(note) = line.text.trim_ascii().strip_prefix(b"#[") {
            declared = declared.or(total_count(note));
            continue;
        }
        let texts: Vec<&[u8]> = cells(line.text, SEPARATOR).collect();
        // The last row has no fourth field in some versions.
        let [value, _, count, ..] = texts[..] else {
            return Err(line.wrong_fields(4, texts.len()));
        };
        let latency_ns = time(scale, "Value", value, &line)?;
        let count = field("TotalCount", count, &line).whole()?;
        let Some(added) = count.checked_sub(before) else {
            let (time, before) = (count.to_string(), before.to_string());
            return Err(Problem::CountBackward {
                count: time,
                before,
            }
            .at_line(line.number));
        };
        before = count;
        add(&mut bins, latency_ns, added)?;
    }
    if declared != Some(before) {
        return Err(Problem::HistogramCut.in_file());
    }
    about.notes.push(
        "The file lists only some percentiles; for those in between, the next higher one is used."
            .to_owned(),
    );
    about.notes.push(super::block_note(options.block_bytes));
    let payload_bytes = before.saturating_mul(options.block_bytes);
    finished(about, bins, payload_bytes)
}

/// Returns the number after `Total count =`.
fn total_count(note: &[u8]) -> Option<u64> {
    let note = str::from_utf8(note).ok()?;
    let (_, count) = note.split_once("Total count")?;
    let count = count.trim_start_matches([' ', '=']);
    count.trim_end_matches([']', ' ']).parse().ok()
}

fn field<'a>(column: &'a str, text: &'a [u8], line: &'a Line<'a>) -> Field<'a> {
    Field { column, text, line }
}

fn time(scale: Scale, column: &str, text: &[u8], line: &Line<'_>) -> Result<u64, Fault> {
    let ns = scale.ns(text);
    ns.map_err(|bad| field(column, text, line).fault(bad))
}

/// Adds writes to a bin. Refuses numbers so large that sums could overflow.
pub(super) fn add(bins: &mut BTreeMap<u64, u64>, latency_ns: u64, count: u64) -> Result<(), Fault> {
    if latency_ns > NUMBER_MAX || count > NUMBER_MAX / 1_000_000 {
        return Err(Problem::TotalTooLarge.in_file());
    }
    if count > 0 {
        let bin = bins.entry(latency_ns).or_insert(0_u64);
        *bin = bin.saturating_add(count);
    }
    Ok(())
}

pub(super) fn finished(
    about: About,
    bins: BTreeMap<u64, u64>,
    payload_bytes: u64,
) -> Result<Histogram, Fault> {
    let mut total = 0_u64;
    let fits = bins.values().all(|count| {
        total = total.saturating_add(*count);
        total <= NUMBER_MAX
    });
    if bins.is_empty() {
        return Err(Problem::NoRows.in_file());
    }
    if !fits || payload_bytes > NUMBER_MAX {
        return Err(Problem::TotalTooLarge.in_file());
    }
    Ok(Histogram {
        about,
        bins: bins.into_iter().collect(),
        min_ns: None,
        max_ns: None,
        mean_ns: None,
        payload_bytes,
    })
}
