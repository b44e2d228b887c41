//! Meaning of a column in a table of writes, according to the words in its name.

use super::columns::{Unit, is_foreign_unit, is_number, unit_named, unquoted};
use super::error::shown;

/// Words for the duration of a write.
const LATENCY_WORDS: &[&str] = &[
    "latency",
    "duration",
    "dur",
    "took",
    "latenz",
    "dauer",
    "schreibdauer",
    "schreibzeit",
    "latence",
    "dur\u{e9}e",
    "duree",
    "latencia",
    "duraci\u{f3}n",
    "latenza",
    "durata",
];

/// Names of latencies that consist of words with other meanings.
const LATENCY_NAMES: &[&[&str]] = &[
    &["write"],
    &["write", "time"],
    &["t", "write"],
    &["response", "time"],
    &["service", "time"],
    &["time", "taken"],
];

/// Words for statistics: a column with one of them does not contain latencies of individual writes.
const STATISTIC_WORDS: &[&str] = &[
    "min", "max", "avg", "average", "mean", "median", "p50", "p90", "p95", "p99", "std", "stdev",
    "stddev", "worst", "peak", "jitter", "rolling", "moving", "smoothed", "filtered", "ewma",
    "ema",
];

const START_WORDS: &[&str] = &[
    "start",
    "begin",
    "before",
    "t0",
    "submit",
    "submitted",
    "issue",
    "issued",
];
const END_WORDS: &[&str] = &[
    "end",
    "stop",
    "finish",
    "after",
    "t1",
    "complete",
    "completed",
    "done",
];

/// Words next to a start or an end that do not change its meaning.
const TIME_FILLERS: &[&str] = &["t", "time", "timestamp", "ts", "write", "at"];

const BYTES_WORDS: &[&str] = &[
    "bytes",
    "size",
    "length",
    "len",
    "payload",
    "bs",
    "blocksize",
];

/// Further words for lengths in units that differ between programs.
const ABOUT_BYTES_WORDS: &[&str] = &[
    "block", "blocks", "bits", "nbytes", "pages", "sectors", "nsectors",
];

/// Words next to a length that do not change its meaning.
const BYTES_FILLERS: &[&str] = &["write", "block", "io", "request", "data", "in", "n", "of"];

const COUNT_WORDS: &[&str] = &[
    "count",
    "counts",
    "frequency",
    "freq",
    "hits",
    "occurrences",
    "anzahl",
    "h\u{e4}ufigkeit",
    "haeufigkeit",
];

/// Words for the number of writes with the same latency, or for the number of a row.
const NUMBER_WORDS: &[&str] = &["n", "num", "number", "nr", "samples", "writes", "events"];

/// Words next to a latency after which it is still the latency of a write.
const LATENCY_FILLERS: &[&str] = &[
    "write",
    "writes",
    "io",
    "sd",
    "card",
    "file",
    "disk",
    "block",
    "sector",
    "page",
    "request",
    "response",
    "service",
    "completion",
    "total",
    "op",
    "operation",
    "time",
    "flash",
    "mmc",
    "emmc",
    "usb",
    "data",
    "call",
    "append",
    "t",
    "measured",
    "read",
    "reads",
];

const DIRECTION_WORDS: &[&str] = &[
    "op",
    "rw",
    "direction",
    "dir",
    "operation",
    "kind",
    "type",
    "cmd",
    "command",
    "rwbs",
];

/// Names of flags that distinguish writes from reads.
const DIRECTION_NAMES: &[&[&str]] = &[&["r", "w"], &["is", "write"], &["is", "read"]];

/// Meaning of a column in a table of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Start,
    End,
    Latency,
    /// A length in multiples of `factor` bytes, whose unit has this name.
    Bytes {
        unit: &'static str,
        factor: u64,
    },
    /// Number of writes with the same latency.
    Count,
    /// Number of the row, or as [`Role::Count`], or something else.
    Number,
    /// Kind of the operation, such as a write or a read.
    Direction,
    /// A statistic of several writes.
    Statistic,
    Other,
}

/// Returns the words of a name in lower case.
pub(super) fn words_of(cell: &[u8]) -> Vec<String> {
    let name = decoded(unquoted(cell));
    let words = name.split(|c: char| !c.is_alphanumeric()).flat_map(humps);
    words.map(str::to_lowercase).collect()
}

/// Returns true for the name `Response`, which may be anything.
pub(super) fn is_response(cell: &[u8]) -> bool {
    words_of(cell) == ["response"]
}

/// Returns true for the name of a latency of reads.
pub(super) fn is_of_reads(cell: &[u8]) -> bool {
    let words = words_of(cell);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    has(&["read", "reads", "rd"]) && !has(&["write", "writes", "wr"])
}

/// Returns true for the name of a duration that may not be that of a write.
pub(super) fn is_doubtful(cell: &[u8]) -> bool {
    let words = words_of(cell);
    let is_known = |word: &&str| {
        [LATENCY_WORDS, LATENCY_FILLERS, &["lat"][..]]
            .iter()
            .any(|known| known.contains(word))
            || unit_named(word).is_some()
    };
    !words.iter().map(String::as_str).all(|word| is_known(&word))
}

/// Returns true for the name of a duration that does not say what it is the duration of.
pub(super) fn is_of_any_event(cell: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "duration", "dur", "took", "dauer", "response", "time", "taken",
    ];
    let words = words_of(cell);
    words
        .iter()
        .all(|word| WORDS.contains(&word.as_str()) || unit_named(word).is_some())
}

/// Returns true for the name of a column that has durations or rates of writes, but is not named as a latency.
pub(super) fn is_about_writes(cell: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "dt",
        "dur",
        "duration",
        "elapsed",
        "writes",
        "iops",
        "throughput",
        "speed",
        "bandwidth",
        "kbps",
        "mbps",
    ];
    let words = words_of(cell);
    words.iter().any(|word| WORDS.contains(&word.as_str()))
        || words.last().is_some_and(|word| unit_named(word).is_some())
}

/// Returns true for a name with a word such as `write` or `writing`, whose column may contain durations of writes.
pub(super) fn may_be_writes(cell: &[u8]) -> bool {
    words_of(cell).iter().any(|word| word.starts_with("writ"))
}

/// Returns true for the name of a rate of writes, such as `MB/s`.
pub(super) fn is_rate(cell: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "iops",
        "throughput",
        "speed",
        "bandwidth",
        "bw",
        "rate",
        "kbps",
        "mbps",
    ];
    let words = words_of(cell);
    let is_per_second = |pair: &[String]| pair[1] == "s" && byte_unit(&pair[0]).is_some();
    words.iter().any(|word| WORDS.contains(&word.as_str())) || words.windows(2).any(is_per_second)
}

/// Returns true for the name of a column that only contains numbers of rows, blocks or files.
pub(super) fn is_counter(cell: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "i",
        "n",
        "index",
        "row",
        "number",
        "nr",
        "num",
        "no",
        "seq",
        "id",
        "sample",
        "sector",
        "block",
        "lba",
        "offset",
        "file",
        "iteration",
        "run",
    ];
    let words = words_of(cell);
    !words.is_empty() && words.iter().all(|word| WORDS.contains(&word.as_str()))
}

/// Returns true for the name of the bins of a histogram.
pub(super) fn is_bin(cell: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "bin", "bins", "bucket", "buckets", "le", "edge", "upper", "lower",
    ];
    let words = words_of(cell);
    words.iter().any(|word| WORDS.contains(&word.as_str()))
}

/// Returns true for the name of a column of percentiles.
pub(super) fn is_of_percentiles(cell: &[u8]) -> bool {
    let is_known =
        |word: &String| ["percentile", "percentiles", "quantile"].contains(&word.as_str());
    words_of(cell).iter().any(is_known)
}

/// Returns two texts of a column in which few different texts recur; `None` for any other column.
pub(super) fn recurring<'a>(
    name: &[u8],
    texts: impl Iterator<Item = &'a [u8]>,
) -> Option<(String, String)> {
    const TEXTS_MAX: usize = 10;
    let may_be_number = may_tell_apart(name);
    let mut different: Vec<&[u8]> = Vec::new();
    let mut count = 0;
    for text in texts {
        if is_number(text) && !may_be_number || text.is_empty() || different.len() > TEXTS_MAX {
            return None;
        }
        if !different.contains(&text) {
            different.push(text);
        }
        count += 1;
    }
    // Texts that do not recur are names or remarks.
    let recur = different.len() >= 2 && count >= 4 * different.len();
    recur.then(|| (shown(different[0]), shown(different[1])))
}

/// Returns true for the name of a column whose numbers may distinguish operations or devices.
fn may_tell_apart(cell: &[u8]) -> bool {
    const WORDS: &[&str] = &[
        "event", "device", "card", "channel", "sensor", "status", "state", "flag", "read", "write",
        "ok", "success", "err", "error", "errno", "ret", "rc", "result",
    ];
    let is_known = |word: &String| {
        let word = word.as_str();
        WORDS.contains(&word) || DIRECTION_WORDS.contains(&word)
    };
    words_of(cell).iter().any(is_known)
}

/// Returns true if a name has a unit of time other than those of [`unit_named`]: ticks, or multiples of a unit.
pub(super) fn has_foreign_unit(cell: &[u8]) -> bool {
    let words = words_of(cell);
    let is_multiple = |pair: &[String]| is_factor(&pair[0]) && unit_named(&pair[1]).is_some();
    words.iter().any(|word| is_foreign_unit(word)) || words.windows(2).any(is_multiple)
}

/// Returns the meaning of a column according to its name, and the unit of time in the name.
pub(super) fn role(cell: &[u8]) -> (Role, Option<Unit>) {
    let words = words_of(cell);
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(role) = bytes(&words) {
        return (role, None);
    }
    let unit = take_unit(&mut words);
    let is = |known: &[&str]| words.len() == 1 && known.contains(&words[0]);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    let is_filled = |known: &[&str]| {
        let mut rest = words.iter().filter(|word| !TIME_FILLERS.contains(word));
        rest.next().is_some_and(|word| known.contains(word)) && rest.next().is_none()
    };
    // Without a unit, `lat` may be a latitude.
    let is_latency = has(LATENCY_WORDS)
        || has(&["lat"]) && (unit.is_some() || has(STATISTIC_WORDS))
        || LATENCY_NAMES.contains(&&words[..]);
    let role = if is_latency && has(STATISTIC_WORDS) {
        Role::Statistic
    } else if is_latency && (words != ["write"] || unit.is_some()) {
        Role::Latency
    } else if unit.is_some() && is_statistic(&words) {
        Role::Statistic
    } else if is_filled(START_WORDS) {
        Role::Start
    } else if is_filled(END_WORDS) {
        Role::End
    } else if unit.is_none() && is(COUNT_WORDS) {
        Role::Count
    } else if unit.is_none() && is(NUMBER_WORDS) {
        Role::Number
    } else if unit.is_none() && (is(DIRECTION_WORDS) || DIRECTION_NAMES.contains(&&words[..])) {
        Role::Direction
    } else {
        Role::Other
    };
    (role, unit)
}

/// Returns true if a name is about a length, even one whose meaning is unknown.
pub(super) fn is_about_bytes(cell: &[u8]) -> bool {
    let name = decoded(unquoted(cell)).to_lowercase();
    let mut words = name.split(|c: char| !c.is_alphanumeric());
    words.any(|word| {
        BYTES_WORDS.contains(&word)
            || ABOUT_BYTES_WORDS.contains(&word)
            || byte_unit(word).is_some()
    })
}

/// Returns [`Role::Bytes`] for a name that consists of words for a length and its unit.
fn bytes(words: &[&str]) -> Option<Role> {
    let unit = words.last().and_then(|word| byte_unit(word));
    let rest = &words[..words.len() - usize::from(unit.is_some())];
    let mut named = rest.iter().filter(|word| !BYTES_FILLERS.contains(word));
    let is_length = match (named.next(), unit) {
        (Some(word), _) => BYTES_WORDS.contains(word) && named.next().is_none(),
        (None, Some(_)) => words != ["b"],
        (None, None) => false,
    };
    let (unit, factor) = unit.unwrap_or(("B", 1));
    is_length.then_some(Role::Bytes { unit, factor })
}

/// Returns the unit of length that a cell below a name states: `B`, `[KiB]`.
pub(super) fn byte_unit_in(cell: &[u8]) -> Option<(&'static str, u64)> {
    let text = str::from_utf8(cell).ok()?;
    byte_unit(&text.trim_matches(['(', ')', '[', ']', ' ']).to_lowercase())
}

pub(super) fn byte_unit(word: &str) -> Option<(&'static str, u64)> {
    Some(match word {
        "b" | "byte" | "bytes" => ("B", 1),
        "kb" | "kbyte" | "kbytes" => ("kB", 1000),
        "kib" | "kibyte" | "kibytes" => ("KiB", 1 << 10),
        "mb" | "mbyte" | "mbytes" => ("MB", 1_000_000),
        "mib" | "mibyte" | "mibytes" => ("MiB", 1 << 20),
        "sectors" => ("sectors", 512),
        _ => return None,
    })
}

/// Decodes a name: UTF-8, or else Latin-1, which Excel and LabVIEW write.
fn decoded(name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(name) => name.to_owned(),
        Err(_) => name.iter().copied().map(char::from).collect(),
    }
}

/// Removes the unit at the end of a name. Returns `None` for a name with a factor, such as `x100 us`, because such
/// units are not supported.
fn take_unit(words: &mut Vec<&str>) -> Option<Unit> {
    let joined = match words.as_slice() {
        [.., first, second] => unit_named(&format!("{first}{second}")),
        _ => None,
    };
    let unit = joined.or_else(|| words.last().and_then(|word| unit_named(word)))?;
    words.truncate(words.len() - if joined.is_some() { 2 } else { 1 });
    (!words.last().is_some_and(|word| is_factor(word))).then_some(unit)
}

/// Returns true if the words name a statistic of writes, such as `max` in `max_us`.
fn is_statistic(words: &[&str]) -> bool {
    let is_known = |word: &&str| STATISTIC_WORDS.contains(word) || LATENCY_FILLERS.contains(word);
    words.iter().any(|word| STATISTIC_WORDS.contains(word)) && words.iter().all(is_known)
}

fn is_factor(word: &str) -> bool {
    let digits = word.strip_prefix('x').unwrap_or(word);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Splits `writeTime` into `write` and `Time`, but not the units `uS` and `KiB`.
fn humps(word: &str) -> Vec<&str> {
    let lower = word.to_lowercase();
    if unit_named(&lower).is_some() || byte_unit(&lower).is_some() {
        return vec![word];
    }
    let mut parts = Vec::new();
    let (mut from, mut was_lower) = (0, false);
    for (at, letter) in word.char_indices() {
        if letter.is_uppercase() && was_lower {
            parts.push(&word[from..at]);
            from = at;
        }
        was_lower = letter.is_lowercase();
    }
    parts.push(&word[from..]);
    parts.retain(|part| !part.is_empty());
    parts
}

#[cfg(test)]
mod tests {
    use super::super::columns::{MICROSECOND, MILLISECOND};
    use super::*;

    const BYTES: Role = Role::Bytes {
        unit: "B",
        factor: 1,
    };

    #[test]
    fn roles_of_columns() {
        for (name, expected) in [
            ("latency_us", (Role::Latency, Some(MICROSECOND))),
            ("Latency (ms)", (Role::Latency, Some(MILLISECOND))),
            ("writeTimeUs", (Role::Latency, Some(MICROSECOND))),
            ("write_us", (Role::Latency, Some(MICROSECOND))),
            ("duration", (Role::Latency, None)),
            ("write", (Role::Other, None)),
            ("latency_uS", (Role::Latency, Some(MICROSECOND))),
            ("Latency [mSec]", (Role::Latency, Some(MILLISECOND))),
            ("latency (u sec)", (Role::Latency, Some(MICROSECOND))),
            (
                "latency (milli seconds)",
                (Role::Latency, Some(MILLISECOND)),
            ),
            ("latency (x100 us)", (Role::Latency, None)),
            ("latency (0.001 ms)", (Role::Latency, None)),
            ("lat_ms", (Role::Latency, Some(MILLISECOND))),
            ("lat", (Role::Other, None)),
            ("gps_lat", (Role::Other, None)),
            ("MaxLatency(ms)", (Role::Statistic, Some(MILLISECOND))),
            ("avg_lat", (Role::Statistic, None)),
            ("start_us", (Role::Start, Some(MICROSECOND))),
            ("t1", (Role::End, None)),
            ("bytes", (BYTES, None)),
            (
                "size_kb",
                (
                    Role::Bytes {
                        unit: "kB",
                        factor: 1000,
                    },
                    None,
                ),
            ),
            (
                "Size (KiB)",
                (
                    Role::Bytes {
                        unit: "KiB",
                        factor: 1024,
                    },
                    None,
                ),
            ),
            (
                "write_size_MB",
                (
                    Role::Bytes {
                        unit: "MB",
                        factor: 1_000_000,
                    },
                    None,
                ),
            ),
            ("nbytes", (Role::Other, None)),
            ("temperature (b)", (Role::Other, None)),
            ("t_start_us", (Role::Start, Some(MICROSECOND))),
            ("before", (Role::Start, None)),
            ("time_after_ms", (Role::End, Some(MILLISECOND))),
            ("startMicros", (Role::Start, Some(MICROSECOND))),
            ("count", (Role::Count, None)),
            ("R/W", (Role::Direction, None)),
            ("timestamp_us", (Role::Other, Some(MICROSECOND))),
            ("value", (Role::Other, None)),
        ] {
            assert_eq!(role(name.as_bytes()), expected, "{name}");
        }
        let latin_1 = role(b"latency_\xB5s");
        assert_eq!(latin_1, (Role::Latency, Some(MICROSECOND)));
    }
}
