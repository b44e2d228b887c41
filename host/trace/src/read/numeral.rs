//! Numbers as people and spreadsheets write them: with decimal commas and thousands separators.

use super::error::shown;
use std::borrow::Cow;

/// Meaning of a point or comma that occurs once in a number, for all numbers of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Numerals {
    /// The point or comma is the decimal mark.
    Decimal,
    /// This character separates thousands.
    Grouped(u8),
}

/// Characters that only ever separate thousands: apostrophes, underscores and spaces.
const GROUP_MARKS: &[&str] = &[
    "'", "_", " ", "\u{2019}", "\u{a0}", "\u{202f}", "\u{2009}", "\u{fffd}",
];

impl Numerals {
    /// Returns a number with a decimal point and no thousands separators; `None` if its separators contradict their
    /// meaning in this column.
    pub(super) fn plain(self, text: &[u8]) -> Option<Cow<'_, [u8]>> {
        let text = text.trim_ascii();
        let text = text.strip_prefix(b"+").unwrap_or(text);
        let points = text.iter().filter(|byte| **byte == b'.').count();
        let has_others = || text.iter().any(|byte| is_mark(*byte) && *byte != b'.');
        if points == 0 && !has_others() || self == Numerals::Decimal && points == 1 && !has_others()
        {
            return Some(Cow::Borrowed(text));
        }
        let text = without_marks(text)?;
        let commas = text.iter().filter(|byte| **byte == b',').count();
        let points = text.iter().filter(|byte| **byte == b'.').count();
        let plain = match (self, points, commas) {
            (_, 1.., 1..) => {
                // The last mark is the decimal mark.
                let decimal = text.iter().rposition(|byte| matches!(byte, b'.' | b','))?;
                let whole = without(
                    &text[..decimal],
                    if text[decimal] == b'.' { b',' } else { b'.' },
                )?;
                [&whole[..], b".", &text[decimal + 1..]].concat()
            }
            (Numerals::Grouped(mark), ..) if text.contains(&mark) => without(&text, mark)?,
            (_, 0, 1) => text
                .iter()
                .map(|b| if *b == b',' { b'.' } else { *b })
                .collect(),
            (_, 2.., _) | (_, _, 2..) => return None,
            _ => text,
        };
        Some(Cow::Owned(plain))
    }
}

fn is_mark(byte: u8) -> bool {
    // Marks outside ASCII begin with a byte that is not ASCII.
    matches!(byte, b',' | b'.' | b'\'' | b'_' | b' ') || !byte.is_ascii()
}

/// Removes the marks that only ever separate thousands.
fn without_marks(text: &[u8]) -> Option<Vec<u8>> {
    let text = String::from_utf8_lossy(text);
    let Some(mark) = GROUP_MARKS.iter().find(|mark| text.contains(**mark)) else {
        return Some(text.as_bytes().to_vec());
    };
    let end = text
        .find(['.', ','])
        .filter(|at| text[*at..].find(mark).is_none());
    let (whole, decimals) = text.split_at(end.unwrap_or(text.len()));
    let groups: Vec<&[u8]> = whole.split(mark).map(str::as_bytes).collect();
    are_groups(&groups).then(|| [&groups.concat(), decimals.as_bytes()].concat())
}

/// Removes a thousands separator.
fn without(text: &[u8], mark: u8) -> Option<Vec<u8>> {
    let groups: Vec<&[u8]> = text.split(|byte| *byte == mark).collect();
    are_groups(&groups).then(|| groups.concat())
}

/// Returns true if each group but the first has three digits.
fn are_groups(groups: &[&[u8]]) -> bool {
    let Some((first, others)) = groups.split_first() else {
        return false;
    };
    let first = first.strip_prefix(b"-").unwrap_or(first);
    let are_digits = |group: &[u8]| group.iter().all(u8::is_ascii_digit);
    let is_first = (1..=3).contains(&first.len()) || others.is_empty();
    is_first
        && are_digits(first)
        && others
            .iter()
            .all(|group| group.len() == 3 && are_digits(group))
}

/// Evidence for the meaning of the points and commas in a column.
#[derive(Default)]
pub(super) struct Points {
    /// A number below 1000 has no mark.
    has_small: bool,
    /// A mark does not separate thousands, or a number above 999 has none.
    has_decimals: bool,
    /// A number with a single mark before its last three digits, and its line.
    grouped: Option<(u8, String, u64)>,
    /// Mark that occurs several times in one number.
    certain: Option<u8>,
}

impl Points {
    /// Examines a number.
    pub(super) fn push(&mut self, text: &[u8], line: u64) {
        if self.has_decimals && self.certain.is_none() && self.grouped.is_none() {
            return;
        }
        let text = text.trim_ascii();
        let Some(at) = text.iter().position(|byte| matches!(byte, b'.' | b',')) else {
            let is_plain = !text.iter().any(|byte| is_mark(*byte));
            self.has_decimals |= text.len() > 3 && is_plain;
            self.has_small |= text.len() <= 3;
            return;
        };
        let mark = text[at];
        let groups: Vec<&[u8]> = text.split(|byte| *byte == mark).collect();
        if !are_groups(&groups) || text[0] == b'0' {
            self.has_decimals = true;
        } else if groups.len() > 2 {
            self.certain = Some(mark);
        } else if self.grouped.is_none() {
            self.grouped = Some((mark, shown(text), line));
        }
    }

    /// Returns the meaning of the points and commas, and a note if this meaning is uncertain.
    pub(super) fn decide(&self) -> (Numerals, Option<String>) {
        if self.has_decimals {
            return (Numerals::Decimal, None);
        }
        match (self.certain, &self.grouped) {
            (Some(mark), _) => (Numerals::Grouped(mark), None),
            (None, None) => (Numerals::Decimal, None),
            (None, Some((mark, text, _))) if self.has_small => {
                let marks = name_of(*mark);
                let note = format!(
                    "The {marks}s are read as separators of thousands ({text}), because numbers below 1000 have none."
                );
                (Numerals::Grouped(*mark), Some(note))
            }
            (None, Some((mark, text, _))) => {
                let (marks, mark) = (name_of(*mark), char::from(*mark));
                let note = format!(
                    "Every number has three digits after its {marks}, which is read as the decimal {marks} ({text}); if it \
                     separates thousands, run tr -d {mark} < FILE | cardiograph analyze - instead, unless {marks}s \
                     separate the columns too."
                );
                (Numerals::Decimal, Some(note))
            }
        }
    }

    /// Returns a number whose mark was read as a decimal mark, although the numbers examined show that it separates
    /// thousands; with the mark and the line.
    pub(super) fn misread(self) -> Option<(u8, String, u64)> {
        let (numerals, _) = self.decide();
        self.grouped.filter(|_| numerals != Numerals::Decimal)
    }
}

fn name_of(mark: u8) -> &'static str {
    if mark == b'.' { "point" } else { "comma" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_plain_form() {
        let plain = |numerals: Numerals, text: &str| {
            let plain = numerals.plain(text.as_bytes());
            plain.map(|plain| String::from_utf8(plain.into_owned()).unwrap())
        };
        for (text, expected) in [
            ("812", "812"),
            ("0.812", "0.812"),
            ("0,812", "0.812"),
            ("131'793", "131793"),
            ("131_793_000", "131793000"),
            ("131 793,5", "131793.5"),
            ("131\u{a0}793", "131793"),
            ("131\u{202f}793", "131793"),
            ("1.234,5", "1234.5"),
            ("1,234.5", "1234.5"),
            ("-1,5", "-1.5"),
            ("+500", "500"),
            ("1.5e-3", "1.5e-3"),
        ] {
            assert_eq!(
                plain(Numerals::Decimal, text).as_deref(),
                Some(expected),
                "{text}"
            );
        }
        for text in ["131.793.000", "1'2", "12 34", "1,2,3"] {
            assert_eq!(plain(Numerals::Decimal, text), None, "{text}");
        }
        let grouped = Numerals::Grouped(b'.');
        assert_eq!(plain(grouped, "131.793.000").as_deref(), Some("131793000"));
        assert_eq!(plain(grouped, "812").as_deref(), Some("812"));
        assert_eq!(plain(grouped, "1.5"), None);
    }

    #[test]
    fn marks_of_a_column() {
        for (texts, expected, is_noted) in [
            (&["812", "790", "85.012"][..], Numerals::Grouped(b'.'), true),
            (&["812", "1.234", "0.5"], Numerals::Decimal, false),
            (&["0.812", "1.234", "12"], Numerals::Decimal, false),
            (&["812", "1.234", "1200"], Numerals::Decimal, false),
            (&["1.234", "1.290"], Numerals::Decimal, true),
            (&["1,234", "131,290,000"], Numerals::Grouped(b','), false),
            (&["812", "790"], Numerals::Decimal, false),
        ] {
            let mut points = Points::default();
            texts
                .iter()
                .for_each(|text| points.push(text.as_bytes(), 1));
            let (numerals, note) = points.decide();
            assert_eq!(
                (numerals, note.is_some()),
                (expected, is_noted),
                "{texts:?}"
            );
        }
    }
}
