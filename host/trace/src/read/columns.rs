//! Columns of tables that other programs wrote: separators, quotes, decimal commas, and the names and units of
//! time columns.

use super::error::{Fault, Problem, shown};
use std::borrow::Cow;

const TIME_WORDS: &[&str] = &[
    "time",
    "t",
    "timestamp",
    "datetime",
    "ts",
    "elapsed",
    "uptime",
    "millis",
    "micros",
];

/// Words for the duration of a write.
const LATENCY_WORDS: &[&str] = &["latency", "duration", "dur", "took"];

/// Names of latencies that consist of words with other meanings.
const LATENCY_NAMES: &[&[&str]] = &[
    &["write"],
    &["write", "time"],
    &["response", "time"],
    &["service", "time"],
    &["time", "taken"],
];

/// Words for statistics: a column that has one of them is not the latency of single writes.
const STATISTIC_WORDS: &[&str] = &[
    "min", "max", "avg", "mean", "median", "p50", "p90", "p95", "p99", "stddev", "worst",
];

const START_WORDS: &[&str] = &["start", "begin", "t0"];
const END_WORDS: &[&str] = &["end", "stop", "finish", "t1"];
const BYTES_WORDS: &[&str] = &["bytes", "size", "length", "len", "payload"];

/// Unit of a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unit {
    /// Abbreviation: `s`, `ms`, `us` or `ns`.
    pub(crate) name: &'static str,
    /// Size of the unit as a power of ten: the unit is 10^power ns.
    pub(super) power: i32,
}

impl Unit {
    /// Returns the unit with this name, such as `ms` or `us`.
    pub fn named(name: &str) -> Option<Unit> {
        unit_named(&name.to_lowercase())
    }
}

/// Meaning of a column in a table of writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Start,
    End,
    Latency,
    Bytes,
    /// A statistic of several writes.
    Statistic,
    Other,
}

/// Returns the meaning of a column by its name, and the unit in the name.
pub(super) fn role(cell: &[u8]) -> (Role, Option<Unit>) {
    let name = decoded(unquoted(cell));
    let words: Vec<String> = name
        .split(|c: char| !c.is_alphanumeric())
        .flat_map(humps)
        .map(|word| word.to_lowercase())
        .collect();
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    let unit = take_unit(&mut words);
    let is = |known: &[&str]| words.len() == 1 && known.contains(&words[0]);
    let has = |known: &[&str]| words.iter().any(|word| known.contains(word));
    // Without a unit, `lat` may be a latitude.
    let is_latency = has(LATENCY_WORDS)
        || has(&["lat"]) && (unit.is_some() || has(STATISTIC_WORDS))
        || LATENCY_NAMES.contains(&&words[..]);
    let role = if is_latency && has(STATISTIC_WORDS) {
        Role::Statistic
    } else if is_latency && (words != ["write"] || unit.is_some()) {
        Role::Latency
    } else if is(START_WORDS) {
        Role::Start
    } else if is(END_WORDS) {
        Role::End
    } else if unit.is_none() && is(BYTES_WORDS) {
        Role::Bytes
    } else {
        Role::Other
    };
    (role, unit)
}

/// Decodes a name: UTF-8, or else Latin-1, which Excel and LabVIEW write.
fn decoded(name: &[u8]) -> String {
    match str::from_utf8(name) {
        Ok(name) => name.to_owned(),
        Err(_) => name.iter().copied().map(char::from).collect(),
    }
}

/// Removes the unit at the end of a name. A name with a factor, such as `x100 us`, has no unit that is known.
fn take_unit(words: &mut Vec<&str>) -> Option<Unit> {
    let joined = match words.as_slice() {
        [.., first, second] => unit_named(&format!("{first}{second}")),
        _ => None,
    };
    let unit = joined.or_else(|| words.last().and_then(|word| unit_named(word)))?;
    words.truncate(words.len() - if joined.is_some() { 2 } else { 1 });
    let is_factor = |word: &&str| {
        let digits = word.strip_prefix('x').unwrap_or(word);
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    (!words.last().is_some_and(is_factor)).then_some(unit)
}

/// Splits `writeTime` into `write` and `Time`, but not the unit `uS`.
fn humps(word: &str) -> Vec<&str> {
    if unit_named(&word.to_lowercase()).is_some() {
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

/// Returns the most frequent separator, or the comma if there is none.
pub(super) fn separator(line: &[u8]) -> u8 {
    let count = |separator: u8| line.iter().filter(|&&byte| byte == separator).count();
    // `max_by_key` returns the last of several maxima, so the comma wins a tie.
    [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|&separator| count(separator))
        .unwrap_or(b',')
}

/// Returns the index of the column that the user named, by its name or its number from 1.
pub(super) fn named_by_user(line: &[u8], separator: u8, wanted: &str) -> Result<usize, Fault> {
    let names: Vec<&[u8]> = cells(line, separator).map(unquoted).collect();
    let is_wanted = |name: &&[u8]| name.eq_ignore_ascii_case(wanted.trim().as_bytes());
    if let Some(index) = names.iter().position(is_wanted) {
        return Ok(index);
    }
    let number = wanted.trim().parse::<usize>().ok();
    number
        .and_then(|number| number.checked_sub(1))
        .filter(|index| *index < names.len())
        .ok_or_else(|| {
            let names: Vec<String> = names.iter().take(20).map(|name| shown(name)).collect();
            Problem::NoColumn {
                wanted: wanted.to_owned(),
                found: names.join(", "),
            }
            .in_file()
        })
}

pub(super) const SECOND: Unit = Unit {
    name: "s",
    power: 9,
};
pub(super) const MILLISECOND: Unit = Unit {
    name: "ms",
    power: 6,
};
pub(super) const MICROSECOND: Unit = Unit {
    name: "us",
    power: 3,
};
pub(super) const NANOSECOND: Unit = Unit {
    name: "ns",
    power: 0,
};

/// Returns the fields of a row. A separator between double quotes belongs to the field.
pub(super) fn cells(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    line.split(move |&byte| {
        quoted ^= byte == b'"';
        byte == separator && !quoted
    })
}

pub(super) fn unquoted(cell: &[u8]) -> &[u8] {
    let cell = cell.trim_ascii();
    cell.strip_prefix(b"\"")
        .and_then(|cell| cell.strip_suffix(b"\""))
        .unwrap_or(cell)
        .trim_ascii()
}

/// Returns the name and the unit of a time column, or `None` if the cell does not name one.
pub(super) fn time_column(cell: &[u8]) -> Option<(String, Option<Unit>)> {
    const NAME_BYTES_MAX: usize = 100;
    let cell = unquoted(cell);
    if cell.len() > NAME_BYTES_MAX {
        return None;
    }
    let name = match std::str::from_utf8(cell) {
        Ok(name) => name.to_owned(),
        // Some loggers write a micro sign in Latin-1.
        Err(_) => cell.iter().copied().map(char::from).collect(),
    };
    let mut words = name
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase);
    let word = words.next().filter(|word| TIME_WORDS.contains(&&**word))?;
    let unit = match words.next() {
        Some(unit) => Some(unit_named(&unit)?),
        None if word == "micros" => Some(MICROSECOND),
        None if word == "millis" => Some(MILLISECOND),
        None => None,
    };
    words.next().is_none().then_some((name, unit))
}

pub(super) fn unit_named(name: &str) -> Option<Unit> {
    match name {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(SECOND),
        "ms" | "msec" | "millis" | "milliseconds" => Some(MILLISECOND),
        // Unicode has two code points for the micro sign.
        "us" | "usec" | "\u{b5}s" | "\u{3bc}s" | "micros" | "microseconds" => Some(MICROSECOND),
        "ns" | "nsec" | "nanos" | "nanoseconds" => Some(NANOSECOND),
        _ => None,
    }
}

/// Replaces a decimal comma by a point.
pub(super) fn pointed(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b',') {
        return Cow::Borrowed(text);
    }
    let point = |&byte: &u8| if byte == b',' { b'.' } else { byte };
    Cow::Owned(text.iter().map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

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
            ("bytes", (Role::Bytes, None)),
            ("timestamp_us", (Role::Other, Some(MICROSECOND))),
            ("value", (Role::Other, None)),
        ] {
            assert_eq!(role(name.as_bytes()), expected, "{name}");
        }
        let latin_1 = role(b"latency_\xB5s");
        assert_eq!(latin_1, (Role::Latency, Some(MICROSECOND)));
    }

    #[test]
    fn time_columns_and_their_units() {
        let unit = |name: &str| time_column(name.as_bytes()).map(|(_, unit)| unit);
        assert_eq!(unit("Time[ms]"), Some(Some(MILLISECOND)));
        assert_eq!(unit("time_us"), Some(Some(MICROSECOND)));
        assert_eq!(unit("t_ms"), Some(Some(MILLISECOND)));
        assert_eq!(unit("\"Time (s)\""), Some(Some(SECOND)));
        assert_eq!(unit("Time (\u{b5}s)"), Some(Some(MICROSECOND)));
        assert_eq!(time_column(b"Time[\xB5s]").unwrap().1, Some(MICROSECOND));
        assert_eq!(unit("timestamp"), Some(None));
        assert_eq!(unit("micros"), Some(Some(MICROSECOND)));
        assert_eq!(unit("Timestamp_ns"), Some(Some(NANOSECOND)));
        for name in ["", "Temp[C]", "Time[h]", "times", "start_us", "time of day"] {
            assert_eq!(unit(name), None, "{name}");
        }
    }
}
