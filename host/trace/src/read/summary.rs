//! Output of tools that print statistics only. They show no stalls, but some state the longest write.

use super::LongestWrite;
use super::error::{Fault, Problem};
use super::number::whole;

const BENCH: &str = "run cardiograph bench on the card's directory";
const BIOSNOOP: &str = "run biosnoop, which prints one line per request";
const FIO: &str = "add --write_lat_log=NAME to fio and pass NAME_lat.1.log";
const SKETCH: &str =
    "print one row of time_us,latency_us for each write, with micros() before and after it";

const SEARCHED_BYTES: usize = 16 << 10;

/// Words that all occur in the output of a tool, its name, and a way to get one row per write.
const TOOLS: &[(&[&str], &str, &str)] = &[
    (
        &["records in", "records out", "copied"],
        "output of dd",
        BENCH,
    ),
    (&["avg-cpu:"], "output of iostat", BENCH),
    (&["w_await"], "output of iostat", BENCH),
    (&["Timing", "disk reads"], "output of hdparm", BENCH),
    (&["# TYPE", "_bucket{"], "a Prometheus histogram", SKETCH),
    (&["|@@", " |\n"], "a bpftrace histogram", BIOSNOOP),
    (
        &["distribution", " -> ", "|**"],
        "a BCC histogram",
        BIOSNOOP,
    ),
    (&["clat (", "IOPS="], "fio's summary", FIO),
    (
        &["min/avg/max/mdev", "iops"],
        "ioping's summary",
        "run ioping without -q, and pass the lines of its requests too",
    ),
];

/// Reader of a summary that returns its longest write, if it states one.
type Longest = fn(&str) -> Option<LongestWrite>;

/// Words that all occur in a summary, its name, the reader of its longest write, and a way to get one row per write.
const SUMMARIES: &[(&[&str], &str, Longest, &str)] = &[
    (&["speed,max,min,avg"], "SdFat's bench", of_sdfat, SKETCH),
    (&["[sd_bench]"], "PX4's sd_bench", of_sd_bench, BENCH),
    (
        &["wr_time(ms)", "wr_speed"],
        "ESP-IDF's test of sectors",
        of_esp_idf,
        SKETCH,
    ),
    (
        &["bytes (block size", "MB/s)"],
        "ESP-IDF's test of FatFs",
        |_| None,
        SKETCH,
    ),
    (&["clat (", "IOPS=", "write:"], "fio", of_fio, FIO),
    (&["CrystalDiskMark"], "CrystalDiskMark", |_| None, BENCH),
];

/// A summary of a known tool.
pub(super) struct Stated {
    pub tool: &'static str,
    pub longest: Option<LongestWrite>,
    /// Way to get one row per write.
    pub remedy: &'static str,
}

/// Returns what a text states if it is the summary of a known tool.
pub(super) fn stated(head: &[u8]) -> Option<Stated> {
    let head = String::from_utf8_lossy(head.get(..SEARCHED_BYTES).unwrap_or(head));
    let has_all = |words: &[&str]| words.iter().all(|word| head.contains(word));
    let (_, tool, longest, remedy) = SUMMARIES.iter().find(|(words, ..)| has_all(words))?;
    Some(Stated {
        tool,
        longest: longest(&head),
        remedy,
    })
}

/// Returns the number after a mark in a line; a `k` after it stands for thousands.
fn number_after(line: &str, mark: &str) -> Option<f64> {
    let rest = line[line.find(mark)? + mark.len()..].trim_start();
    let end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let factor = if rest[end..].starts_with('k') {
        1e3
    } else {
        1.0
    };
    Some(rest[..end].parse::<f64>().ok()? * factor)
}

/// Returns the longest of several writes given in a unit of ns.
fn longest(
    latencies: impl Iterator<Item = f64>,
    unit_ns: f64,
    writes: Option<u64>,
) -> Option<LongestWrite> {
    let longest = latencies
        .filter(|latency| *latency > 0.0)
        .max_by(f64::total_cmp)?;
    let latency_ns = (longest * unit_ns).round() as u64;
    Some(LongestWrite { latency_ns, writes })
}

/// Rows of `speed,max,min,avg` in KB/s and us, up to those of reads.
fn of_sdfat(text: &str) -> Option<LongestWrite> {
    let writes = text.split("write speed").nth(1).unwrap_or(text);
    let writes = writes.split("read speed").next()?;
    let row = |line: &str| {
        let fields: Vec<f64> = line
            .split(',')
            .map_while(|field| field.trim().parse().ok())
            .collect();
        (fields.len() == 4).then(|| fields[1])
    };
    let rows: Vec<f64> = writes.lines().filter_map(row).collect();
    let count = |mark| text.lines().find_map(|line| number_after(line, mark));
    let per_row = count("FILE_SIZE_MB =")
        .zip(count("BUF_SIZE ="))
        .map(|(mb, bytes)| mb * 1e6 / bytes);
    let writes = per_row.filter(|per_row| per_row.is_finite());
    let writes = writes.map(|per_row| (per_row * rows.len() as f64) as u64);
    longest(rows.into_iter(), 1e3, writes)
}

/// Lines with `max write time: 85 ms`.
fn of_sd_bench(text: &str) -> Option<LongestWrite> {
    longest(
        text.lines()
            .filter_map(|line| number_after(line, "max write time:")),
        1e6,
        None,
    )
}

/// Rows of `sector | count | size(kB) | wr_time(ms) | ...`, each of one write.
fn of_esp_idf(text: &str) -> Option<LongestWrite> {
    let column = |line: &str| {
        line.split('|')
            .position(|name| name.trim() == "wr_time(ms)")
    };
    let column = text.lines().find_map(column)?;
    let time = |line: &str| line.split('|').nth(column)?.trim().parse().ok();
    let times: Vec<f64> = text.lines().filter_map(time).collect();
    let writes = times.len() as u64;
    longest(times.into_iter(), 1e6, Some(writes))
}

/// The line `lat (usec): min=3, max=888, avg=17.83` of the writes.
fn of_fio(text: &str) -> Option<LongestWrite> {
    let writes = text.split("write:").nth(1)?;
    let line = writes
        .lines()
        .find(|line| line.trim_start().starts_with("lat ("))?;
    let unit_ns = ["(nsec)", "(usec)", "(msec)", "(sec)"]
        .iter()
        .position(|unit| line.contains(unit))?;
    let issued = text
        .lines()
        .find_map(|line| line.split("issued rwts: total=").nth(1));
    let count = issued.and_then(|counts| whole(counts.split(',').nth(1)?.as_bytes()).ok());
    longest(
        number_after(line, "max=").into_iter(),
        1e3_f64.powi(unit_ns as i32),
        count,
    )
}

/// Returns the error for fio's JSON without bins.
pub(super) fn of_fio_json() -> Fault {
    let tool = "fio's JSON summary";
    let remedy = "run fio with --output-format=json+, which adds histograms, or add --write_lat_log=NAME and pass \
                  NAME_lat.1.log";
    Problem::Summary { tool, remedy }.in_file()
}

/// Returns true for the numbers that `ioping -B` prints: a single line of 8 to 20 numbers.
pub(super) fn is_ioping_batch(line: &[u8], below: &[u8]) -> bool {
    let count = line
        .split(|byte| *byte == b' ')
        .filter(|text| super::number::whole(text).is_ok());
    below.is_empty() && (8..=20).contains(&count.count()) && !line.contains(&b',')
}

/// Refuses the output of a tool that prints statistics.
pub(super) fn refuse(head: &[u8]) -> Result<(), Fault> {
    let head = String::from_utf8_lossy(head.get(..SEARCHED_BYTES).unwrap_or(head));
    let has_all = |words: &[&str]| words.iter().all(|word| head.contains(word));
    match TOOLS.iter().find(|(words, ..)| has_all(words)) {
        Some(&(_, tool, remedy)) => Err(Problem::Summary { tool, remedy }.in_file()),
        None => Ok(()),
    }
}
