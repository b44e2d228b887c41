//! Date and time in the format of FAT.

/// Seconds from 1970-01-01 to 1980-01-01, the beginning of FAT's time.
const FAT_EPOCH_S: u64 = 315_532_800;
const DAY_S: u64 = 86_400;
/// Days of four years, from 1980 to 2099.
const FOUR_YEARS_D: u64 = 1461;

/// Returns date and time of a directory entry, in UTC, from seconds since 1970. `None` before 1980 and from 2100 on.
pub fn fat_time(unix_s: u64) -> Option<(u16, u16)> {
    let seconds = unix_s.checked_sub(FAT_EPOCH_S)?;
    let (days, second) = (seconds / DAY_S, seconds % DAY_S);
    let (four_years, mut day) = (days / FOUR_YEARS_D, days % FOUR_YEARS_D);
    let mut year = 4 * four_years;
    // The first of the four years is the leap year.
    if day >= 366 {
        year += 1 + (day - 366) / 365;
        day = (day - 366) % 365;
    }
    // 2100 is no leap year.
    if year >= 120 {
        return None;
    }
    let mut month = 1;
    for length in lengths(year) {
        if day < length {
            break;
        }
        day -= length;
        month += 1;
    }
    let date = (year as u16) << 9 | month << 5 | (day as u16 + 1);
    let (minutes, second) = (second / 60, second % 60);
    let time = (minutes / 60) << 11 | (minutes % 60) << 5 | (second / 2);
    Some((date, time as u16))
}

/// Returns the lengths of the months of a year since 1980, in days.
fn lengths(year: u64) -> [u64; 12] {
    let february = if year.is_multiple_of(4) { 29 } else { 28 };
    [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Year, month, day, hour, minute and second.
    fn parts(unix_s: u64) -> Option<[u16; 6]> {
        let (date, time) = fat_time(unix_s)?;
        let date = [1980 + (date >> 9), date >> 5 & 15, date & 31];
        let time = [time >> 11, time >> 5 & 63, 2 * (time & 31)];
        Some([date[0], date[1], date[2], time[0], time[1], time[2]])
    }

    /// Seconds from `date -u +%s`.
    #[test]
    fn known_times() {
        for (unix_s, expected) in [
            (315_532_799, None),
            (315_532_800, Some([1980, 1, 1, 0, 0, 0])),
            (951_782_399, Some([2000, 2, 28, 23, 59, 58])),
            (951_782_400, Some([2000, 2, 29, 0, 0, 0])),
            (951_868_800, Some([2000, 3, 1, 0, 0, 0])),
            (1_795_523_696, Some([2026, 11, 24, 12, 34, 56])),
            (4_102_444_799, Some([2099, 12, 31, 23, 59, 58])),
            (4_102_444_800, None),
            (u64::MAX, None),
        ] {
            assert_eq!(parts(unix_s), expected, "{unix_s}");
        }
    }

    #[test]
    fn every_day_follows_the_one_before() {
        let mut last = parts(FAT_EPOCH_S).unwrap();
        let mut leap_days = 0;
        for day in 1..(4_102_444_800 - FAT_EPOCH_S) / DAY_S {
            let next = parts(FAT_EPOCH_S + day * DAY_S).unwrap();
            match next[2] {
                1 => assert!(next[1] == last[1] + 1 || next[..2] == [last[0] + 1, 1]),
                _ => assert_eq!((next[2], next[..2].as_ref()), (last[2] + 1, &last[..2])),
            }
            leap_days += u32::from(next[1..3] == [2, 29]);
            last = next;
        }
        assert_eq!(
            (last[..3].as_ref(), leap_days),
            ([2099, 12, 31].as_ref(), 30)
        );
    }
}
