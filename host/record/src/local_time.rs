//! Local time, in which FAT dates files. A directory entry does not contain the zone.

use cardiograph_recorder::DosTime;
use chrono::{DateTime, Datelike, Local, NaiveDateTime, TimeZone, Timelike};

/// Returns the current local time of this computer, in the format of FAT directory entries.
pub fn dos_time_now() -> DosTime {
    dos_time(Local::now().naive_local())
}

/// Returns the seconds since 1970 of a time of a directory entry, which is local to this computer. `local_s` are the
/// seconds that this time would have in UTC.
pub fn unix_s_of_local(local_s: u64) -> u64 {
    let converted = i64::try_from(local_s).ok().and_then(|local_s| {
        let naive = DateTime::from_timestamp(local_s, 0)?.naive_utc();
        // The hour that is repeated at the end of daylight saving time is ambiguous, and the one that is left out at its
        // beginning does not exist.
        let found = Local.from_local_datetime(&naive).earliest();
        u64::try_from(found?.timestamp()).ok()
    });
    converted.unwrap_or(local_s)
}

fn dos_time(time: NaiveDateTime) -> DosTime {
    let years = u16::try_from(time.year() - 1980).ok();
    let Some(years) = years.filter(|years| *years < 128) else {
        return DosTime::NO_CLOCK;
    };
    DosTime {
        date: years << 9 | (time.month() << 5 | time.day()) as u16,
        time: (time.hour() << 11 | time.minute() << 5 | (time.second() / 2)) as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected values from `date -u -d @SECONDS`.
    #[test]
    fn times_become_calendar_dates() {
        let of = |unix_s| dos_time(DateTime::from_timestamp(unix_s, 0).unwrap().naive_utc());
        for (unix_s, (year, month, day), (hour, minute, second)) in [
            (315_532_800, (1980, 1, 1), (0, 0, 0)),
            (951_782_400, (2000, 2, 29), (0, 0, 0)),
            (1_709_251_199, (2024, 2, 29), (23, 59, 59)),
            (1_709_251_200, (2024, 3, 1), (0, 0, 0)),
            (4_102_444_799, (2099, 12, 31), (23, 59, 59)),
        ] {
            let expected = DosTime {
                date: (year - 1980) << 9 | month << 5 | day,
                time: (hour << 11) + (minute << 5) + second / 2,
            };
            assert_eq!(of(unix_s), expected, "{unix_s}");
        }
        assert_eq!(of(0), DosTime::NO_CLOCK);
        assert_eq!(of(4_354_819_200), DosTime::NO_CLOCK);
    }
}
