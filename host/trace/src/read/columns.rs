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
}

impl<'a> Top<'a> {
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
        let columns = self.names_between(b' ').len();
        match columns > 1 && cells(row, b' ').count() == columns {
            true => b' ',
            false => b',',
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
                // The unit of the name before it: `time (ms)`.
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

/// Returns the fields of a row. A separator between double quotes belongs to the field. Any number of blanks
/// and tabs is one separator `b' '`.
pub(super) fn cells(line: &[u8], separator: u8) -> impl Iterator<Item = &[u8]> {
    let is_blank = separator == b' ';
    let mut quoted = false;
    line.split(move |&byte| {
        quoted ^= byte == b'"';
        !quoted && (byte == separator || is_blank && byte == b'\t')
    })
    .filter(move |cell| !(is_blank && cell.is_empty()))
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
