//! Times of day and dates, in the layouts that loggers and spreadsheets write.

use super::number::{Bad, NUMBER_MAX, whole};
use jiff::civil::{Date, Time};
use jiff::fmt::strtime::BrokenDownTime;
use std::borrow::Cow;

const NS_PER_S: u64 = 1_000_000_000;

/// Length of an hour in ns.
pub(super) const HOUR_NS: u64 = 3600 * NS_PER_S;

/// Length of a day in ns, after which a time without a date wraps to 0.
pub(super) const DAY_NS: u64 = 86_400 * NS_PER_S;

/// Order of day, month and year in a date of three numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DateOrder {
    /// Day, month, year.
    Dmy,
    /// Month, day, year.
    Mdy,
    /// Year, month, day.
    Ymd,
}

impl DateOrder {
    /// Returns the order with this name: `dmy`, `mdy` or `ymd`.
    pub fn named(name: &str) -> Option<DateOrder> {
        match name {
            "dmy" => Some(DateOrder::Dmy),
            "mdy" => Some(DateOrder::Mdy),
            "ymd" => Some(DateOrder::Ymd),
            _ => None,
        }
    }
}

use DateOrder::{Dmy, Mdy, Ymd};

/// Layouts of dates as in `strptime`. A text such as 01/02/26 fits several; see [`Layout::of_column`].
const DATES: &[(&str, DateOrder)] = &[
    ("%Y-%m-%d", Ymd),
    ("%Y/%m/%d", Ymd),
    ("%Y.%m.%d", Ymd),
    ("%Y%m%d", Ymd),
    // With points, the day comes first in every country that writes them.
    ("%d.%m.%Y", Dmy),
    ("%d.%m.%y", Dmy),
    ("%d/%m/%Y", Dmy),
    ("%m/%d/%Y", Mdy),
    ("%d-%m-%Y", Dmy),
    ("%m-%d-%Y", Mdy),
    ("%d/%m/%y", Dmy),
    ("%m/%d/%y", Mdy),
    ("%y/%m/%d", Ymd),
    ("%d-%m-%y", Dmy),
    ("%m-%d-%y", Mdy),
    ("%y-%m-%d", Ymd),
    ("%b %d %Y", Mdy),
    ("%b %d, %Y", Mdy),
    ("%B %d, %Y", Mdy),
    ("%d %b %Y", Dmy),
    ("%d %B %Y", Dmy),
    ("%d-%b-%Y", Dmy),
    ("%d-%b-%y", Dmy),
    ("%d/%b/%Y", Dmy),
    ("%a, %d %b %Y", Dmy),
];

/// Layout of C's `asctime`, in which the year follows the time.
const ASCTIME: &str = "%a %b %d %H:%M:%S %Y";

/// Layouts of times of day after a date. The first four need no date.
const TIMES: &[&str] = &[
    "%H:%M:%S%.f",
    "%I:%M:%S%.f %p",
    "%I:%M %p",
    "%H-%M-%S",
    "%H:%M",
    "%H%M%S%.f",
];
const TIMES_ALONE: usize = 4;

/// Reads the times in a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Layout of the date; `None` for a time of day.
    date: Option<(&'static str, DateOrder)>,
    /// Layout of the time of day; `None` for a date alone, and if the date contains it.
    time: Option<&'static str>,
    /// The only date that the layout may read, because another date would differ in another order of day and month.
    only: Option<Date>,
}

impl Layout {
    /// Returns the first layout that reads a text.
    pub(super) fn of(text: &[u8]) -> Option<Layout> {
        fitting(text).into_iter().next()
    }

    /// Returns the layout of a column from its first texts, and the order of day, month and year if known.
    pub(super) fn of_column(texts: &[Cow<'_, [u8]>], order: Option<DateOrder>) -> Option<Layout> {
        let first = texts.iter().find(|text| !fitting(text).is_empty())?;
        let mut layouts = fitting(first);
        let is_wanted = |layout: &Layout| layout.date.is_none_or(|(_, own)| Some(own) == order);
        if order.is_some() && layouts.iter().any(is_wanted) {
            layouts.retain(is_wanted);
        }
        for text in texts {
            // A text that fits none is an odd row.
            if layouts.iter().any(|layout| layout.ns(text).is_ok()) {
                layouts.retain(|layout| layout.ns(text).is_ok());
            }
        }
        let mut best = *layouts.first()?;
        let steps = |layout: &Layout| longest_step_ns(layout, texts);
        layouts.sort_by_key(steps);
        match layouts[..] {
            [near, far, ..]
                if far.date != near.date && far.date.map(|d| d.1) != near.date.map(|d| d.1) =>
            {
                // A log changes its date from one day to the next. In a wrong order, it jumps by months or years.
                let is_clear = steps(&near) <= DAY_NS && steps(&far) >= 25 * DAY_NS;
                best = near;
                if !is_clear {
                    best.only = near.date_of(first);
                }
            }
            _ => {}
        }
        Some(best)
    }

    /// Returns true for dates with a time of day.
    pub(super) fn has_both(self) -> bool {
        let date = self.date.map(|(layout, _)| layout);
        date == Some(ASCTIME) || date.is_some() && self.time.is_some()
    }

    /// Returns true for times of day without a date, which wrap at midnight.
    pub(super) fn is_of_day(self) -> bool {
        self.date.is_none()
    }

    /// Returns the time in ns: since 1970, or since midnight if there is no date.
    pub(super) fn ns(self, text: &[u8]) -> Result<u64, Bad> {
        let mut buffer = [0; TEXT_BYTES_MAX];
        let text = plain(text, &mut buffer)?;
        let (date, time, rest) = self.split(text).ok_or(Bad::NotANumber)?;
        if self.only.is_some() && date != self.only {
            return Err(Bad::AmbiguousDate);
        }
        let days_s = date.map_or(0, |date| date.duration_since(EPOCH).as_secs());
        let since_midnight = time.unwrap_or_default().duration_since(Time::midnight());
        let east_s = if date.is_some() {
            east_s(rest)?
        } else {
            no_zone(rest)?
        };
        let s = days_s - east_s;
        let ns = i128::from(s) * i128::from(NS_PER_S) + since_midnight.as_nanos();
        let ns = u64::try_from(ns).map_err(|_| Bad::Negative)?;
        (ns <= NUMBER_MAX).then_some(ns).ok_or(Bad::TooLarge)
    }

    fn date_of(self, text: &[u8]) -> Option<Date> {
        let mut buffer = [0; TEXT_BYTES_MAX];
        self.split(plain(text, &mut buffer).ok()?)?.0
    }

    /// Returns the date, the time of day, and the rest of a text.
    fn split(self, text: &[u8]) -> Option<(Option<Date>, Option<Time>, &[u8])> {
        let (date, rest, time) = match self.date {
            Some((layout, _)) => {
                let (parsed, length) = BrokenDownTime::parse_prefix(layout, text).ok()?;
                let date = parsed.to_date().ok()?;
                let rest = &text[length..];
                let is_joined = rest.first().is_none_or(|byte| b" Tt_;,-".contains(byte));
                if !is_joined || !(1970..=2261).contains(&date.year()) {
                    return None;
                }
                let start = rest.iter().position(|byte| !b" Tt_;,-".contains(byte));
                (
                    Some(date),
                    &rest[start.unwrap_or(rest.len())..],
                    parsed.to_time().ok(),
                )
            }
            None => (None, text, None),
        };
        match self.time {
            Some(layout) => {
                let (parsed, length) = BrokenDownTime::parse_prefix(layout, rest).ok()?;
                Some((date, Some(parsed.to_time().ok()?), &rest[length..]))
            }
            None => Some((date, time, rest)),
        }
    }
}

const EPOCH: Date = Date::constant(1970, 1, 1);

/// Returns the layouts that read a text.
fn fitting(text: &[u8]) -> Vec<Layout> {
    let may_be = |byte: &u8| byte.is_ascii_alphanumeric() || b"-/.:;,_+ []".contains(byte);
    if !text.iter().all(may_be) || !text.iter().any(u8::is_ascii_digit) {
        return Vec::new();
    }
    let layout = |date, time| Layout {
        date,
        time,
        only: None,
    };
    let reads = |layout: &Layout| layout.ns(text).is_ok();
    let alone = TIMES[..TIMES_ALONE]
        .iter()
        .map(|time| layout(None, Some(*time)));
    let mut found: Vec<Layout> = alone.filter(reads).collect();
    for date in DATES {
        let date = layout(Some(*date), None);
        let mut buffer = [0; TEXT_BYTES_MAX];
        let plain = plain(text, &mut buffer).ok();
        let Some((_, _, rest)) = plain.and_then(|text| date.split(text)) else {
            continue;
        };
        if rest.is_empty() {
            // A number of eight digits may be anything.
            found.extend(Some(date).filter(|_| !text.iter().all(u8::is_ascii_digit)));
        } else {
            let with_time = TIMES.iter().map(|time| layout(date.date, Some(*time)));
            found.extend(with_time.filter(reads));
        }
    }
    let asctime = layout(Some((ASCTIME, Ymd)), None);
    found.extend(Some(asctime).filter(reads));
    found
}

/// Longest step between consecutive texts.
fn longest_step_ns(layout: &Layout, texts: &[Cow<'_, [u8]>]) -> u64 {
    let times: Vec<u64> = texts
        .iter()
        .filter_map(|text| layout.ns(text).ok())
        .collect();
    let steps = times.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    steps.max().unwrap_or(0)
}

/// Longest text of a date and a time.
const TEXT_BYTES_MAX: usize = 48;

/// Returns a text without brackets, with a point as the decimal mark of its seconds.
fn plain<'a>(text: &[u8], buffer: &'a mut [u8; TEXT_BYTES_MAX]) -> Result<&'a [u8], Bad> {
    let text = text.trim_ascii();
    let bracketed = text
        .strip_prefix(b"[")
        .and_then(|text| text.strip_suffix(b"]"));
    let text = bracketed.unwrap_or(text);
    let copy = buffer.get_mut(..text.len()).ok_or(Bad::NotANumber)?;
    copy.copy_from_slice(text);
    let colons = || text.iter().enumerate().filter(|(_, byte)| **byte == b':');
    // Thousandths, millionths or billionths; two digits would be the frame number of a video timecode.
    if let Some((at, _)) = colons()
        .nth(2)
        .filter(|(at, _)| matches!(text.len() - at, 4 | 7 | 10))
    {
        copy[at] = b'.';
    } else if let Some((second, _)) = colons().nth(1)
        && let Some(at) = text[second..].iter().position(|byte| *byte == b',')
    {
        copy[second + at] = b'.';
    }
    Ok(copy)
}

/// Returns true for a date without a time: `2026-11-22`.
pub(super) fn is_date(text: &[u8]) -> bool {
    let is_date = |layout: Layout| layout.date.is_some() && layout.time.is_none();
    fitting(text).into_iter().any(is_date)
}

/// Returns true for a time without a date: `14:03:05`.
pub(super) fn is_time_of_day(text: &[u8]) -> bool {
    Layout::of(text).is_some_and(Layout::is_of_day)
}

fn no_zone(rest: &[u8]) -> Result<i64, Bad> {
    let rest = rest.trim_ascii();
    (rest.is_empty() || rest == b"Z")
        .then_some(0)
        .ok_or(Bad::NotANumber)
}

/// Returns the offset from UTC of a text such as `Z`, `UTC`, `+01:00`, `-0530` or `GMT+02`, in s. Offsets are
/// subtracted, because they change when daylight saving time begins or ends.
fn east_s(text: &[u8]) -> Result<i64, Bad> {
    let text = text.trim_ascii();
    let names: [&[u8]; 3] = [b"UTC", b"GMT", b"Z"];
    let text = names
        .iter()
        .find_map(|name| text.strip_prefix(*name))
        .unwrap_or(text);
    let (sign, text) = match text {
        [] => return Ok(0),
        [b'+', text @ ..] => (1, text),
        [b'-', text @ ..] => (-1, text),
        _ => return Err(Bad::NotANumber),
    };
    let (hours, minutes) = match text {
        [_, _] | [_] => (text, &b"0"[..]),
        [hours @ .., b':', _, _] | [hours @ .., _, _] => (hours, &text[text.len() - 2..]),
        [] => return Err(Bad::NotANumber),
    };
    let (hours, minutes) = (whole(hours)?, whole(minutes)?);
    if hours > 14 || minutes > 59 {
        return Err(Bad::NotANumber);
    }
    Ok(sign * (hours * 3600 + minutes * 60) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_ns(text: &[u8]) -> Result<u64, Bad> {
        Layout::of(text).ok_or(Bad::NotANumber)?.ns(text)
    }

    /// Expected values from `date -u -d TEXT +%s`.
    #[test]
    fn dates_and_times_of_day() {
        for (text, seconds) in [
            ("1970-01-01T00:00:00Z", 0),
            ("2000-02-29 12:00:00", 951_825_600),
            ("2026-11-22T14:03:05+01:00", 1_795_352_585),
            ("2026-10-25T02:30:00+0200", 1_792_888_200),
            ("2026-10-25T02:30:00+0100", 1_792_891_800),
            ("2026-11-22 14:03:05-05", 1_795_374_185),
            ("2024/12/31 23:59:59", 1_735_689_599),
            ("14:03:05", 50_585),
            ("2:03:05 PM", 50_585),
            ("12:00:05am", 5),
            ("20261122T140305+0100", 1_795_352_585),
            ("22.11.2026 13:03:05", 1_795_352_585),
            ("11/22/2026 01:03:05 PM", 1_795_352_585),
            ("22/11/2026 13:03:05", 1_795_352_585),
            ("[2026-11-22 13:03:05]", 1_795_352_585),
            ("22-11-2026 13:03:05", 1_795_352_585),
            ("11-22-2026 13:03:05", 1_795_352_585),
            ("11/22/26 01:03:05  PM", 1_795_352_585),
            ("2026-11-22;13:03:05", 1_795_352_585),
            ("20261122_130305", 1_795_352_585),
            ("2026/11/22  13:03:05", 1_795_352_585),
            ("2026-11-22 13:03:05 UTC", 1_795_352_585),
            ("2026-11-22T13:03:05.000Z", 1_795_352_585),
            ("Nov 22 2026 13:03:05", 1_795_352_585),
            ("22 Nov 2026 13:03:05", 1_795_352_585),
            ("22-Nov-26 13:03:05", 1_795_352_585),
            ("Sun Nov 22 13:03:05 2026", 1_795_352_585),
            ("2026-11-22 13:03", 1_795_352_580),
            ("13-03-05", 46_985),
        ] {
            assert_eq!(time_ns(text.as_bytes()), Ok(seconds * NS_PER_S), "{text}");
        }
        for text in ["00:00:01.250", "00:00:01,250", "00:00:01:250"] {
            assert_eq!(time_ns(text.as_bytes()), Ok(1_250_000_000), "{text}");
        }
        for text in [
            "",
            "12",
            "12:30",
            "24:00:00",
            "1:2:x",
            "2026-13-01 00:00:00",
            "13:00:00 PM",
            "00:00:01:25",
        ] {
            assert_eq!(time_ns(text.as_bytes()), Err(Bad::NotANumber), "{text}");
        }
    }
    fn of_column(texts: &[&str], order: Option<DateOrder>) -> Option<Layout> {
        let texts: Vec<Cow<'_, [u8]>> = texts.iter().map(|text| text.as_bytes().into()).collect();
        Layout::of_column(&texts, order)
    }

    #[test]
    fn a_later_date_decides_between_day_and_month() {
        let ns = |layout: Option<Layout>, text: &str| layout.unwrap().ns(text.as_bytes());
        let (second, day) = (NS_PER_S, DAY_NS);
        let first = "01/02/26 23:59:59";
        let in_february = 1_769_990_399 * second;
        // The thirteenth day, or the next day one second later.
        for texts in [[first, "13/02/26 00:00:00"], [first, "02/02/26 00:00:00"]] {
            assert_eq!(
                ns(of_column(&texts, None), first),
                Ok(in_february),
                "{texts:?}"
            );
        }
        // One date alone has the same intervals in any order, but no other date may follow.
        let one = of_column(&[first, first], None);
        assert!(ns(one, first).is_ok());
        assert_eq!(ns(one, "02/02/26 00:00:00"), Err(Bad::AmbiguousDate));
        let january = of_column(&[first], Some(Mdy));
        assert_eq!(ns(january, first), Ok(in_february - 30 * day));
    }
}
