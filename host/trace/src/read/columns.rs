//! Columns of tables that other programs wrote: separators, quotes, decimal commas, and the names and units of
//! time columns.

use super::error::{Fault, Problem, shown};
use super::number::{Bad, decimal};
use super::numeral::Numerals;
use super::role::words_of;
use std::borrow::Cow;

const TIME_WORDS: &[&str] = &[
    "time",
    "t",
    "timestamp",
    "datetime",
    "ts",
    "elapsed",
    "uptime",
    "seconds",
    "epoch",
    "zeit",
    "zeitstempel",
    "temps",
    "tiempo",
    "tempo",
    "millis",
    "micros",
];

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

/// The first line of a table, and the row below it; empty if there is none.
#[derive(Clone, Copy)]
pub(super) struct Top<'a> {
    pub line: &'a [u8],
    pub below: &'a [u8],
    /// The first row with values: up to three rows below the names have units and other properties of the columns.
    pub first: &'a [u8],
}

impl<'a> Top<'a> {
    pub(super) fn of(line: &'a [u8], below: &'a [u8]) -> Top<'a> {
        Top {
            line,
            below,
            first: below,
        }
    }

    /// Returns the first line and what is below it in `rows`.
    pub(super) fn above(line: &'a [u8], rows: impl Iterator<Item = &'a [u8]> + Clone) -> Top<'a> {
        const PROPERTIES_MAX: usize = 3;
        let has_value = |row: &&[u8]| row.iter().any(u8::is_ascii_digit);
        let below = rows.clone().next().unwrap_or_default();
        let first = rows.take(PROPERTIES_MAX + 1).find(has_value);
        Top {
            line,
            below,
            first: first.unwrap_or(below),
        }
    }

    /// Returns the character that separates the columns.
    pub(super) fn separator(&self) -> u8 {
        let has_letters = self.line.iter().any(u8::is_ascii_alphabetic);
        let sure = |line: &[u8]| [b'\t', b';'].into_iter().find(|byte| line.contains(byte));
        if let Some(separator) = sure(self.line).filter(|_| !has_letters) {
            return separator;
        }
        if self
            .line
            .iter()
            .any(|byte| matches!(byte, b'\t' | b';' | b','))
        {
            return separator(self.line);
        }
        let columns = self.names_between(b' ').len();
        let in_row = || cells(self.below, b' ');
        let is_spaced = has_letters && columns > 1 && in_row().count() == columns;
        if is_spaced && in_row().all(|cell| !cell.ends_with(b",")) {
            return b' ';
        }
        if self.below.contains(&b',') {
            let has_one = self.below.iter().filter(|byte| **byte == b',').count() == 1;
            // The name of a single column, above numbers with a decimal comma.
            return if has_one && sure(self.below).is_none() {
                b';'
            } else {
                b','
            };
        }
        let row = if has_letters { self.below } else { self.line };
        match columns {
            2.. if cells(row, b' ').count() == columns => b' ',
            // A comma in the rows of a single column belongs to a number.
            1 if has_letters => b';',
            _ => b',',
        }
    }

    /// Returns the names of the columns.
    pub(super) fn names(&self) -> Vec<&'a [u8]> {
        self.names_between(self.separator())
    }

    fn names_between(&self, separator: u8) -> Vec<&'a [u8]> {
        let line = self.line;
        let mut names: Vec<&[u8]> = Vec::new();
        let start_of = |cell: &[u8]| cell.as_ptr() as usize - line.as_ptr() as usize;
        for cell in cells(line, separator) {
            match names.last_mut() {
                // The unit of the previous name: `time (ms)`.
                Some(name) if separator == b' ' && matches!(cell.first(), Some(b'(' | b'[')) => {
                    *name = &line[start_of(name)..start_of(cell) + cell.len()];
                }
                _ => names.push(cell),
            }
        }
        names.into_iter().map(unquoted).collect()
    }
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
pub(super) fn named_by_user(names: &[&[u8]], wanted: &str) -> Result<usize, Fault> {
    // Without a header, the names are values.
    let has_header = !names.iter().all(|name| is_number(name));
    let is_wanted =
        |name: &&[u8]| has_header && name.eq_ignore_ascii_case(wanted.trim().as_bytes());
    // A number is a position, even if a column has it as its name.
    let index = match wanted.trim().parse::<usize>() {
        Ok(number) => number.checked_sub(1).filter(|index| *index < names.len()),
        Err(_) => names.iter().position(is_wanted),
    };
    index.ok_or_else(|| {
        let found = if !has_header {
            format!("numbered 1 to {}, because there is no header", names.len())
        } else {
            let names: Vec<String> = names.iter().take(20).map(|name| shown(name)).collect();
            names.join(", ")
        };
        let wanted = wanted.to_owned();
        Problem::NoColumn { wanted, found }.in_file()
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

/// Unit of Windows file times.
pub(super) const FILETIME_TICK: Unit = Unit {
    name: "100 ns",
    power: 2,
};

const PICOSECOND: Unit = Unit {
    name: "ps",
    power: -3,
};

/// Returns the fields of a row. A separator between double quotes belongs to the field. With the separator `b' '`, any
/// number of spaces and tabs separates two fields.
pub(super) fn cells(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let is_space = separator == b' ';
    let mut quoted = false;
    line.split(move |&byte| {
        quoted ^= byte == b'"';
        !quoted && (byte == separator || is_space && byte == b'\t')
    })
    .filter(move |cell| !(is_space && cell.is_empty()))
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
    // Exports of flight logs name it `TimeUS`.
    let spaced = name.replacen("TimeUS", "Time us", 1);
    let mut words = words_of(spaced.as_bytes());
    let is_date = words.iter().any(|word| word == "date");
    words.retain(|word| !TIME_FILLERS.contains(&word.as_str()) && word.parse::<u32>().is_err());
    let mut words = words.iter().map(String::as_str);
    let Some(word) = words.next() else {
        // A column "Date" has a companion unless it contains the times too; its first row decides.
        return None;
    };
    if !TIME_WORDS.contains(&word) {
        return None;
    }
    let unit = match words.next() {
        Some(unit) => Some(unit_named(unit)?),
        None if is_date => None,
        None if word == "micros" => Some(MICROSECOND),
        None if word == "millis" => Some(MILLISECOND),
        None if word == "seconds" => Some(SECOND),
        None => None,
    };
    words.next().is_none().then_some((name, unit))
}

/// Words next to a time that do not change its meaning: `Date Time, GMT+01:00`, `rtcTime`, `Local Time`.
const TIME_FILLERS: &[&str] = &[
    "date", "utc", "gmt", "local", "rtc", "gps", "system", "sample", "log", "logged", "recorded",
    "cet", "cest",
];

/// Every name of a unit of time in headers, values and options.
const UNIT_NAMES: &[(Unit, &[&str])] = &[
    (SECOND, &["s", "sec", "secs", "second", "seconds"]),
    (
        MILLISECOND,
        &[
            "ms",
            "msec",
            "msecs",
            "millis",
            "millisecond",
            "milliseconds",
        ],
    ),
    // Unicode has two code points for the micro sign.
    (
        MICROSECOND,
        &[
            "us",
            "usec",
            "usecs",
            "\u{b5}s",
            "\u{3bc}s",
            "micros",
            "microsecond",
            "microseconds",
        ],
    ),
    (
        NANOSECOND,
        &["ns", "nsec", "nsecs", "nanos", "nanosecond", "nanoseconds"],
    ),
    (PICOSECOND, &["ps", "psec", "picosecond", "picoseconds"]),
];

/// Names of units whose length only the writer of a file knows, or whose length is not a power of ten of a second.
const FOREIGN_UNITS: &[&str] = &[
    "tick", "ticks", "cycle", "cycles", "kcycles", "mcycles", "clk", "clks", "clock", "clocks",
    "jiffies", "minute", "minutes", "mins", "h", "hr", "hrs", "hour", "hours", "day", "days",
];

pub(super) fn unit_named(name: &str) -> Option<Unit> {
    let found = UNIT_NAMES.iter().find(|(_, names)| names.contains(&name));
    found.map(|(unit, _)| *unit)
}

/// Returns the unit that a cell below a name states: `us`, `[ms]`.
pub(super) fn unit_in(cell: &[u8]) -> Option<Unit> {
    let text = str::from_utf8(unquoted(cell)).ok()?;
    unit_named(&text.trim_matches(['(', ')', '[', ']', ' ']).to_lowercase())
}

/// Returns true for a unit that [`unit_named`] does not know: `ticks`, or a multiple such as `100ns`.
pub(super) fn is_foreign_unit(name: &str) -> bool {
    let multiple = name.strip_prefix('x').unwrap_or(name);
    let unit = multiple.trim_start_matches(|c: char| c.is_ascii_digit());
    FOREIGN_UNITS.contains(&name) || unit.len() < multiple.len() && unit_named(unit).is_some()
}

/// Replaces a decimal comma by a point.
pub(super) fn pointed(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&b',') {
        return Cow::Borrowed(text);
    }
    let point = |&byte: &u8| if byte == b',' { b'.' } else { byte };
    Cow::Owned(text.iter().map(point).collect())
}

/// Returns true for a number in any form that [`Numerals`] knows.
pub(super) fn is_number(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    [
        Numerals::Decimal,
        Numerals::Grouped(b'.'),
        Numerals::Grouped(b','),
    ]
    .iter()
    .filter_map(|numerals| numerals.plain(text))
    .any(|plain| decimal(&plain, 0) != Err(Bad::NotANumber))
}

#[cfg(test)]
mod tests {
    use super::*;

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
