//! Representations of times in the texts of a column.

use super::calendar;
use super::columns::{Unit, is_number, unit_named};
use super::number::{Bad, decimal};
use super::numeral::Numerals;
use super::wrap::Unwrapped;

/// Conversion of the texts of a column to ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Scale {
    /// Numbers in this unit, with decimal points or commas.
    Unit(Unit),
    /// Numbers in this unit, with this character as thousands separator.
    Grouped(Unit, u8),
    /// Every number is followed by its unit: `850us`, `1.2 s`.
    InTexts,
    /// Dates or times of day.
    Calendar,
}

impl Scale {
    /// Returns the scale that a text itself states; `None` for a plain number and for any other text.
    pub(super) fn of(text: &[u8]) -> Option<Scale> {
        if with_unit(text).is_some() {
            Some(Scale::InTexts)
        } else if calendar::time_ns(text).is_ok() {
            Some(Scale::Calendar)
        } else {
            None
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
            Scale::Calendar => calendar::time_ns(text),
        }
    }

    /// Returns the correction for wraps of a clock whose times have this scale.
    pub(super) fn clock(self) -> Unwrapped {
        match self {
            Scale::Unit(unit) | Scale::Grouped(unit, _) => Unwrapped::counter(unit),
            Scale::InTexts => Unwrapped::endless(),
            Scale::Calendar => Unwrapped::day(),
        }
    }
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
    fn a_comma_is_decimal_unless_it_separates_thousands() {
        assert_eq!(Scale::Unit(MILLISECOND).ns(b"0,812"), Ok(812_000));
        let grouped = Scale::Grouped(MILLISECOND, b',');
        assert_eq!(grouped.ns(b"1,812"), Ok(1_812_000_000));
    }
}
