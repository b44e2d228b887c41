//! Columns of tables that other programs wrote: separators, quotes, decimal commas, and the names and units of
//! time columns.

use std::borrow::Cow;

const TIME_WORDS: &[&str] = &[
    "time",
    "t",
    "timestamp",
    "ts",
    "elapsed",
    "uptime",
    "millis",
    "micros",
];

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Unit {
    pub name: &'static str,
    /// Size of the unit as a power of ten: the unit is 10^power ns.
    pub power: i32,
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
