//! Output of tools that print statistics only. No figures of stalls can be computed from them.

use super::error::{Fault, Problem};

const BENCH: &str = "run cardiograph bench on the card's directory";
const BIOSNOOP: &str = "run biosnoop, which prints one line per request";
const FIO: &str = "add --write_lat_log=NAME to fio and pass NAME_lat.1.log";
const SKETCH: &str =
    "print one row of time_us,latency_us for each write, with micros() before and after it";

/// Words that all occur in the output of a tool, its name, and a way to get one row per write.
const TOOLS: &[(&[&str], &str, &str)] = &[
    (
        &["records in", "records out", "copied"],
        "output of dd",
        BENCH,
    ),
    (&["avg-cpu:"], "output of iostat", BENCH),
    (&["w_await"], "output of iostat", BENCH),
    (&["CrystalDiskMark"], "a CrystalDiskMark report", BENCH),
    (&["Timing", "disk reads"], "output of hdparm", BENCH),
    (
        &["write speed and latency"],
        "output of SdFat's bench",
        SKETCH,
    ),
    (&["speed,max,min,avg"], "output of SdFat's bench", SKETCH),
    (&["[sd_bench]"], "output of PX4's sd_bench", BENCH),
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
    const SEARCHED_BYTES: usize = 16 << 10;
    let head = String::from_utf8_lossy(head.get(..SEARCHED_BYTES).unwrap_or(head));
    let has_all = |words: &[&str]| words.iter().all(|word| head.contains(word));
    match TOOLS.iter().find(|(words, ..)| has_all(words)) {
        Some(&(_, tool, remedy)) => Err(Problem::Summary { tool, remedy }.in_file()),
        None => Ok(()),
    }
}
