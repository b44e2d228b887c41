//! Times of day and dates: `14:03:05.250`, `2:03:05 PM`, `2026-11-22T14:03:05Z`, `20261122T140305Z`,
//! `22.11.2026 14:03:05,250`.

use super::number::{Bad, NUMBER_MAX, decimal, whole};

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_DAY: u64 = 86_400;

/// Power of ten for conversion to ns: a second is 10^9 ns.
const POWER: i32 = 9;

/// Returns the time in ns: since 1970, or since midnight if there is no date.
pub(super) fn time_ns(text: &[u8]) -> Result<u64, Bad> {
    let text = text.trim_ascii();
    let bracketed = text.strip_prefix(b"[");
    let text = bracketed
        .and_then(|text| text.strip_suffix(b"]"))
        .unwrap_or(text);
    let (text, half) = half_of_day(text);
    let (date, time) = match text.iter().position(|byte| matches!(byte, b'T' | b' ')) {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    let days = date.map_or(Ok(0), days)?;
    let time = time.strip_suffix(b"Z").unwrap_or(time);
    // Offsets are subtracted, because they change when daylight saving time begins or ends.
    let at = time.iter().position(|byte| matches!(byte, b'+' | b'-'));
    let (time, offset) = match at {
        Some(at) if date.is_some() => (&time[..at], Some(&time[at..])),
        _ => (time, None),
    };
    let east_s = offset.map_or(Ok(0), east_s)?;
    let (hour, minute, ns) = time_of_day(time, date.is_some())?;
    let hour = match half {
        None => hour,
        Some(_) if !(1..=12).contains(&hour) => return Err(Bad::NotANumber),
        Some(from) => hour % 12 + from,
    };
    // A minute with a leap second has 61 s.
    if hour > 23 || minute > 59 || ns >= 61 * NS_PER_S {
        return Err(Bad::NotANumber);
    }
    let local_s = days * S_PER_DAY + hour * 3600 + minute * 60;
    let s = local_s.checked_add_signed(-east_s).ok_or(Bad::Negative)?;
    let ns = s.checked_mul(NS_PER_S).and_then(|s| s.checked_add(ns));
    ns.filter(|&ns| ns <= NUMBER_MAX).ok_or(Bad::TooLarge)
}

/// Returns true for a date without a time: `2026-11-22`.
pub(super) fn is_date(text: &[u8]) -> bool {
    text.iter().any(|byte| b"-/.".contains(byte)) && days(text).is_ok()
}

/// Returns true for a time without a date: `14:03:05`.
pub(super) fn is_time_of_day(text: &[u8]) -> bool {
    text.contains(&b':') && !text.contains(&b'-') && time_ns(text).is_ok_and(|ns| ns < DAY_NS)
}

/// Splits off `AM` or `PM`, and returns the hour at which that half of the day begins.
fn half_of_day(text: &[u8]) -> (&[u8], Option<u64>) {
    let Some((time, mark)) = text.split_last_chunk::<2>() else {
        return (text, None);
    };
    match mark.to_ascii_lowercase()[..] {
        [b'a', b'm'] => (time.trim_ascii_end(), Some(0)),
        [b'p', b'm'] => (time.trim_ascii_end(), Some(12)),
        _ => (text, None),
    }
}

/// Returns the hour and minute of a time of day, and its seconds in ns.
fn time_of_day(time: &[u8], has_date: bool) -> Result<(u64, u64, u64), Bad> {
    let parts: Vec<&[u8]> = time.split(|&byte| byte == b':').collect();
    let (hour, minute, second) = match parts[..] {
        [hour, minute, second] => (hour, minute, second.to_vec()),
        // Milliseconds, microseconds or nanoseconds; two digits would be the frame number of a video timecode.
        [hour, minute, second, part] if matches!(part.len(), 3 | 6 | 9) => {
            whole(part)?;
            (hour, minute, [second, b".", part].concat())
        }
        // Without a date, 140305.250 is a number.
        [basic] if has_date && basic.len() >= 6 => (&basic[..2], &basic[2..4], basic[4..].to_vec()),
        _ => return Err(Bad::NotANumber),
    };
    let point = |byte: u8| if byte == b',' { b'.' } else { byte };
    let second: Vec<u8> = second.into_iter().map(point).collect();
    Ok((whole(hour)?, whole(minute)?, decimal(&second, POWER)?))
}

/// Returns the offset from UTC of a text such as `+01:00`, `-0530` or `+02`, in s.
fn east_s(text: &[u8]) -> Result<i64, Bad> {
    let (sign, text) = text.split_at(1);
    let digits: Vec<u8> = text.iter().copied().filter(|byte| *byte != b':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (whole(&digits)?, 0),
        4 => (whole(&digits[..2])?, whole(&digits[2..])?),
        _ => return Err(Bad::NotANumber),
    };
    if hours > 14 || minutes > 59 {
        return Err(Bad::NotANumber);
    }
    let s = (hours * 3600 + minutes * 60) as i64;
    Ok(if sign == b"-" { -s } else { s })
}

/// Length of a day in ns, after which a time without a date wraps to 0.
pub(super) const DAY_NS: u64 = S_PER_DAY * NS_PER_S;

/// Returns year, month and day of a date: `2026-11-22`, `20261122`, `22.11.2026`, or, if the day is greater than 12,
/// `11/22/2026` and `22/11/2026`.
fn date_of(date: &[u8]) -> Result<(u64, u64, u64), Bad> {
    if date.len() == 8 && date.iter().all(u8::is_ascii_digit) {
        return Ok((whole(&date[..4])?, whole(&date[4..6])?, whole(&date[6..])?));
    }
    let mark = |byte: &&u8| matches!(byte, b'-' | b'/' | b'.');
    let mark = *date.iter().find(mark).ok_or(Bad::NotANumber)?;
    let parts: Vec<&[u8]> = date.split(|&byte| byte == mark).collect();
    let [first, second, third] = parts[..] else {
        return Err(Bad::NotANumber);
    };
    let (first, second, third) = (whole(first)?, whole(second)?, whole(third)?);
    match mark {
        b'.' => Ok((third, second, first)),
        b'/' if first <= 31 && second > 12 => Ok((third, first, second)),
        b'/' if second <= 12 && (13..=31).contains(&first) => Ok((third, second, first)),
        _ => Ok((first, second, third)),
    }
}

/// Returns the number of days from 1970 to a date.
fn days(date: &[u8]) -> Result<u64, Bad> {
    let (year, month, day) = date_of(date)?;
    if !(1970..=2261).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(Bad::NotANumber);
    }
    // In this calculation, years begin in March, so that the leap day is the last day of a year (Hinnant, chrono
    // algorithms).
    let year = if month > 2 { year } else { year - 1 };
    let month_index = (month + 9) % 12;
    let day_of_year = (153 * month_index + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + day_of_year;
    days.checked_sub(719_468).ok_or(Bad::NotANumber)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            "26-11-22T1:1:1",
            "13:00:00 PM",
            "00:00:01:25",
            // Day and month cannot be distinguished.
            "11/10/2026 14:03:05",
        ] {
            assert_eq!(time_ns(text.as_bytes()), Err(Bad::NotANumber), "{text}");
        }
    }
}
