//! Times of day and dates: `14:03:05.250`, `2026-11-22T14:03:05Z`, `2026-11-22 14:03:05.250`.

use super::number::{Bad, NUMBER_MAX, decimal, whole};

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_DAY: u64 = 86_400;

/// Power of ten for conversion to ns: a second is 10^9 ns.
const POWER: i32 = 9;

/// Returns the time in ns: since 1970, or since midnight if there is no date.
pub(super) fn time_ns(text: &[u8]) -> Result<u64, Bad> {
    let text = text.trim_ascii();
    let (date, time) = match text.iter().position(|byte| matches!(byte, b'T' | b' ')) {
        Some(at) => (Some(&text[..at]), &text[at + 1..]),
        None => (None, text),
    };
    let days = date.map_or(Ok(0), days)?;
    let time = time.strip_suffix(b"Z").unwrap_or(time);
    // The offset changes where daylight saving time begins and ends.
    let at = time.iter().position(|byte| matches!(byte, b'+' | b'-'));
    let (time, offset) = match at {
        Some(at) if date.is_some() => (&time[..at], Some(&time[at..])),
        _ => (time, None),
    };
    let east_s = offset.map_or(Ok(0), east_s)?;
    let mut parts = time.splitn(3, |&byte| byte == b':');
    let mut next = || parts.next().ok_or(Bad::NotANumber);
    let (hour, minute) = (whole(next()?)?, whole(next()?)?);
    let ns = decimal(next()?, POWER)?;
    // A leap second is the 61st.
    if hour > 23 || minute > 59 || ns >= 61 * NS_PER_S {
        return Err(Bad::NotANumber);
    }
    let local_s = days * S_PER_DAY + hour * 3600 + minute * 60;
    let s = local_s.checked_add_signed(-east_s).ok_or(Bad::Negative)?;
    let ns = s.checked_mul(NS_PER_S).and_then(|s| s.checked_add(ns));
    ns.filter(|&ns| ns <= NUMBER_MAX).ok_or(Bad::TooLarge)
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

/// Length of a day in ns, after which a time without a date begins again.
pub(super) const DAY_NS: u64 = S_PER_DAY * NS_PER_S;

/// Returns the days since 1970 of a date such as `2026-11-22`.
fn days(date: &[u8]) -> Result<u64, Bad> {
    let mut parts = date.splitn(3, |&byte| matches!(byte, b'-' | b'/'));
    let mut next = || parts.next().ok_or(Bad::NotANumber).and_then(whole);
    let (year, month, day) = (next()?, next()?, next()?);
    if !(1970..=2261).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Err(Bad::NotANumber);
    }
    // In this calculation years begin in March, so that the leap day is the last day of a year (Hinnant, chrono
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
        ] {
            assert_eq!(time_ns(text.as_bytes()), Ok(seconds * NS_PER_S), "{text}");
        }
        assert_eq!(time_ns(b"00:00:01.250"), Ok(1_250_000_000));
        for text in [
            "",
            "12",
            "12:30",
            "24:00:00",
            "1:2:x",
            "2026-13-01 00:00:00",
            "26-11-22T1:1:1",
        ] {
            assert_eq!(time_ns(text.as_bytes()), Err(Bad::NotANumber), "{text}");
        }
    }
}
