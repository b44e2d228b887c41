//! Representations of times in the texts of a column.

use super::calendar::{DateOrder, Layout};
use super::columns::{Unit, is_number, unit_named};
use super::number::{Bad, decimal, whole};
use super::numeral::Numerals;
use super::wrap::Unwrapped;
use std::borrow::Cow;

/// Conversion of the texts of a column to ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scale {
    /// Numbers in this unit, with decimal points or commas.
    Unit(Unit),
    /// Numbers in this unit, with this character as thousands separator.
    Grouped(Unit, u8),
    /// Every number is followed by its unit: `850us`, `1.2 s`.
    InTexts,
    /// Windows file times: units of 100 ns since 1601.
    Filetime,
    /// Dates or times of day.
    Calendar(Layout),
}

impl Scale {
    /// Returns the scale that a text itself states; `None` for a plain number and for any other text.
    pub(super) fn of(text: &[u8]) -> Option<Scale> {
        if with_unit(text).is_some() {
            return Some(Scale::InTexts);
        }
        if filetime_ns(text).is_some() {
            return Some(Scale::Filetime);
        }
        Layout::of(text).map(Scale::Calendar)
    }

    /// Returns the scale that the first texts of a column state.
    pub(super) fn of_column(texts: &[Cow<'_, [u8]>], order: Option<DateOrder>) -> Option<Scale> {
        match texts.iter().find_map(|text| Scale::of(text))? {
            Scale::Calendar(_) => Layout::of_column(texts, order).map(Scale::Calendar),
            scale => Some(scale),
        }
    }

    /// Returns the scale of plain numbers.
    pub(super) fn of_numbers(unit: Unit, numerals: Numerals) -> Scale {
        match numerals {
            Numerals::Decimal => Scale::Unit(unit),
            Numerals::Grouped(mark) => Scale::Grouped(unit, mark),
        }
    }

    /// Parses a text; returns ns.
    pub(super) fn ns(self, text: &[u8]) -> Result<u64, Bad> {
        let number = |numerals: Numerals, text, unit: Unit| {
            let plain = numerals.plain(text).ok_or(Bad::NotANumber)?;
            decimal(&plain, unit.power)
        };
        match self {
            Scale::Unit(unit) => number(Numerals::Decimal, text, unit),
            Scale::Grouped(unit, mark) => number(Numerals::Grouped(mark), text, unit),
            Scale::InTexts => {
                let (text, unit) = with_unit(text).ok_or(Bad::NotANumber)?;
                number(Numerals::Decimal, text, unit)
            }
            Scale::Filetime => filetime_ns(text).ok_or(Bad::NotANumber),
            Scale::Calendar(layout) => layout.ns(text),
        }
    }

    /// Returns the correction for wraps of a clock whose times have this scale.
    pub(super) fn clock(self) -> Unwrapped {
        match self {
            Scale::Unit(unit) | Scale::Grouped(unit, _) => Unwrapped::counter(unit),
            Scale::Calendar(layout) if layout.is_of_day() => Unwrapped::day(),
            Scale::InTexts | Scale::Filetime | Scale::Calendar(_) => Unwrapped::endless(),
        }
    }
}

/// Returns the time since 1970 of a Windows file time of the years 2001 to 2039. As a number of ns since 1970, it would
/// be one of the year 1974.
fn filetime_ns(text: &[u8]) -> Option<u64> {
    const TICKS_TO_1970: u64 = 116_444_736_000_000_000;
    const TICKS: std::ops::Range<u64> = 126_227_808_000_000_000..138_538_080_000_000_000;
    let text = text.trim_ascii();
    let ticks = (text.len() == 18).then(|| whole(text).ok())??;
    TICKS
        .contains(&ticks)
        .then(|| (ticks - TICKS_TO_1970) * 100)
}

/// Splits `850us` into its number and its unit.
fn with_unit(text: &[u8]) -> Option<(&[u8], Unit)> {
    let text = text.trim_ascii();
    let at = text
        .iter()
        .rposition(|byte| byte.is_ascii_digit() || *byte == b'.')?
        + 1;
    let unit = str::from_utf8(&text[at..]).ok()?.trim();
    let unit = unit_named(&unit.to_lowercase())?;
    let number = text[..at].trim_ascii();
    is_number(number).then_some((number, unit))
}

#[cfg(test)]
mod tests {
    use super::super::columns::MILLISECOND;
    use super::*;

    #[test]
    fn texts_that_state_their_own_unit() {
        for (text, ns) in [
            ("12 ms", 12_000_000),
            ("850us", 850_000),
            ("1.2s", 1_200_000_000),
            ("3 \u{b5}s", 3_000),
            ("7 nsec", 7),
            ("1e3ns", 1_000),
        ] {
            assert_eq!(Scale::of(text.as_bytes()), Some(Scale::InTexts), "{text}");
            assert_eq!(Scale::InTexts.ns(text.as_bytes()), Ok(ns), "{text}");
        }
        for text in ["12", "ms", "12 kg", "x1 ms", ""] {
            assert_eq!(Scale::of(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn windows_file_times_count_from_1601() {
        // 1 January 2020, from `w32tm /ntte`.
        let text = b"132223104000000000";
        assert_eq!(Scale::of(text), Some(Scale::Filetime));
        assert_eq!(Scale::Filetime.ns(text), Ok(1_577_836_800_000_000_000));
        assert_eq!(Scale::of(b"1577836800000000000"), None);
    }

    #[test]
    fn a_comma_is_decimal_unless_it_separates_thousands() {
        assert_eq!(Scale::Unit(MILLISECOND).ns(b"0,812"), Ok(812_000));
        let grouped = Scale::Grouped(MILLISECOND, b',');
        assert_eq!(grouped.ns(b"1,812"), Ok(1_812_000_000));
    }
}
