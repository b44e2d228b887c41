//! Text in responses: escapes and dates.

use core::fmt::{self, Display, Formatter};

/// Text as part of a JSON string.
pub(crate) struct Json<'a>(pub &'a str);

impl Display for Json<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '"' | '\\' => write!(f, "\\{letter}"),
            '\0'..='\x1F' | '\x7F' => write!(f, "\\u{:04x}", u32::from(letter)),
            letter => write!(f, "{letter}"),
        })
    }
}

/// Text that a function writes, as a JSON string; `null` if it writes none.
pub(crate) struct JsonOf<F>(pub F);

impl<F: Fn(&mut dyn fmt::Write) -> fmt::Result> Display for JsonOf<F> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        struct Escaped<'f, 'g> {
            f: &'f mut Formatter<'g>,
            is_begun: bool,
        }
        impl fmt::Write for Escaped<'_, '_> {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                if !text.is_empty() && !self.is_begun {
                    self.is_begun = true;
                    self.f.write_str("\"")?;
                }
                write!(self.f, "{}", Json(text))
            }
        }
        let mut escaped = Escaped { f, is_begun: false };
        (self.0)(&mut escaped)?;
        let end = if escaped.is_begun { "\"" } else { "null" };
        escaped.f.write_str(end)
    }
}

/// Text in HTML, also in attributes.
pub(crate) struct Html<'a>(pub &'a str);

impl Display for Html<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.0.chars().try_for_each(|letter| match letter {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '\'' => f.write_str("&#39;"),
            letter => write!(f, "{letter}"),
        })
    }
}

/// Path in a URL; slashes stay.
pub(crate) struct Url<'a>(pub &'a str);

impl Display for Url<'_> {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        self.0.bytes().try_for_each(|byte| match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => write!(f, "{}", char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => write!(f, "{}", char::from(byte)),
            byte => write!(f, "%{byte:02X}"),
        })
    }
}

/// Splits a text into pieces of at most 64 bytes, each short enough for a buffer after escaping.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    core::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (piece, after) = rest.split_at(rest.floor_char_boundary(64));
        rest = after;
        Some(piece)
    })
}

/// A date and time in UTC, split into its parts.
struct Parts {
    year: u64,
    month: u64,
    day: u64,
    second_of_day: u64,
    weekday: usize,
}

fn parts(seconds: u64) -> Parts {
    // Years begin in March, so that the leap day is the last one; 400 years have 146,097 days.
    let days = seconds / 86_400;
    let since_march = days + 719_468;
    let (era, day_of_era) = (since_march / 146_097, since_march % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let is_after_december = month >= 10;
    Parts {
        year: era * 400 + year_of_era + u64::from(is_after_december),
        month: if is_after_december {
            month - 9
        } else {
            month + 3
        },
        day: day_of_year - (153 * month + 2) / 5 + 1,
        second_of_day: seconds % 86_400,
        weekday: ((days + 4) % 7) as usize,
    }
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// A date and time as a number that grows with time, but not evenly.
fn rank(year: u64, month: u64, day: u64, second_of_day: u64) -> u64 {
    ((year << 4 | month) << 5 | day) << 17 | second_of_day
}

/// Returns the rank of a time in s since 1970.
pub(crate) fn rank_of(seconds: u64) -> u64 {
    let parts = parts(seconds.min(LAST_SECOND));
    rank(parts.year, parts.month, parts.day, parts.second_of_day)
}

/// Returns the rank of a date in one of the three formats of HTTP (RFC 9110, section 5.6.7); `None` for other text.
pub(crate) fn rank_of_date(text: &str) -> Option<u64> {
    let (mut day, mut month, mut year, mut second) = (None, None, None, None);
    for word in text.split([' ', ',', '-']) {
        if let Some(index) = MONTHS.iter().position(|month| *month == word) {
            month = Some(index as u64 + 1);
        } else if word.contains(':') {
            second = Some(second_of_day(word)?);
        } else if let Ok(number) = word.parse::<u16>() {
            // In all formats, the day comes before the year.
            let place = if day.is_none() { &mut day } else { &mut year };
            *place = Some(u64::from(number));
        }
    }
    let year = match year? {
        // The obsolete format has two digits.
        year @ ..70 => 2000 + year,
        year @ 70..100 => 1900 + year,
        year => year,
    };
    Some(rank(year, month?, day.filter(|day| *day < 32)?, second?))
}

fn second_of_day(text: &str) -> Option<u64> {
    let mut second = 0;
    let mut parts = text.split(':');
    for max in [23, 59, 60] {
        let part = u64::from(parts.next()?.parse::<u8>().ok()?);
        second = second * 60 + Some(part).filter(|part| *part <= max)?;
    }
    Some(second)
}

/// Date and time in the format of HTTP.
pub(crate) struct HttpDate(pub u64);

impl Display for HttpDate {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        const WEEKDAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
        let parts = parts(self.0.min(LAST_SECOND));
        let (weekday, month) = (WEEKDAYS[parts.weekday], MONTHS[parts.month as usize - 1]);
        let (day, year, s) = (parts.day, parts.year, parts.second_of_day);
        let (hour, minute, second) = (s / 3600, s / 60 % 60, s % 60);
        write!(
            f,
            "{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT"
        )
    }
}

/// Date and time as shown in lists: `2026-11-22 13:38`.
pub(crate) struct ShortDate(pub u64);

impl Display for ShortDate {
    fn fmt(&self, f: &mut Formatter) -> fmt::Result {
        let parts = parts(self.0.min(LAST_SECOND));
        let (year, month, day, s) = (parts.year, parts.month, parts.day, parts.second_of_day);
        let (hour, minute) = (s / 3600, s / 60 % 60);
        write!(f, "{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}")
    }
}

/// Last second of the year 9999.
const LAST_SECOND: u64 = 253_402_300_799;

/// Returns the media type of a file by its name.
pub(crate) fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    const TYPES: [(&str, &str); 11] = [
        ("csv", "text/csv; charset=utf-8"),
        ("txt", "text/plain; charset=utf-8"),
        ("log", "text/plain; charset=utf-8"),
        ("htm", "text/html; charset=utf-8"),
        ("html", "text/html; charset=utf-8"),
        ("css", "text/css; charset=utf-8"),
        ("js", "text/javascript; charset=utf-8"),
        ("json", "application/json"),
        ("png", "image/png"),
        ("jpg", "image/jpeg"),
        ("pdf", "application/pdf"),
    ];
    let found = TYPES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(extension));
    found.map_or("application/octet-stream", |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    /// The examples of RFC 9110, section 5.6.7, are one time: `date -u -d '...' +%s` prints 784111777.
    #[test]
    fn dates_of_http_are_compared() {
        let example = rank_of(784_111_777);
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(rank_of_date(text), Some(example), "{text}");
        }
        for seconds in [
            0,
            1,
            59,
            951_782_399,
            951_782_400,
            4_102_444_799,
            LAST_SECOND,
        ] {
            let text = HttpDate(seconds).to_string();
            assert_eq!(rank_of_date(&text), Some(rank_of(seconds)), "{text}");
            assert!(rank_of(seconds) < rank_of(seconds + 1) || seconds == LAST_SECOND);
        }
        for text in [
            "",
            "yesterday",
            "06 Nov 1994",
            "Sun, 06 Nov 1994 08:49 GMT",
            "Sun, 06 Nov 1994 24:00:00 GMT",
            "Sun, 32 Nov 1994 08:49:37 GMT",
            "Sun, 06 Nov 999999 08:49:37 GMT",
            "1794-11-06T08:49:37Z",
        ] {
            assert_eq!(rank_of_date(text), None, "{text}");
        }
    }

    #[test]
    fn written_text_becomes_a_json_string_or_null() {
        let of = |pieces: &'static [&'static str]| {
            let write = move |text: &mut dyn fmt::Write| {
                pieces.iter().try_for_each(|piece| text.write_str(piece))
            };
            JsonOf(write).to_string()
        };
        assert_eq!(of(&[]), "null");
        assert_eq!(of(&["", ""]), "null");
        assert_eq!(
            of(&["the card is ", "\"full\"\n"]),
            "\"the card is \\\"full\\\"\\u000a\""
        );
    }
}
