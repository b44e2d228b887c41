//! Date and time, once a server has told them.

use cardiograph_network::fat_time;
use cardiograph_recorder::DosTime;
use core::cell::Cell;
use critical_section::Mutex;
use embassy_time::Instant;

/// Time of the start of the chip, in ms since 1970.
static START_UNIX_MS: Mutex<Cell<Option<u64>>> = Mutex::new(Cell::new(None));

/// Sets the clock.
pub fn set_unix_ms(unix_ms: u64) {
    let start_ms = unix_ms.checked_sub(Instant::now().as_millis());
    critical_section::with(|section| START_UNIX_MS.borrow(section).set(start_ms));
}

/// Returns date and time in UTC, for directory entries.
pub fn now_fat() -> DosTime {
    let start_ms = critical_section::with(|section| START_UNIX_MS.borrow(section).get());
    let unix_s = start_ms.map(|start_ms| (start_ms + Instant::now().as_millis()) / 1000);
    match unix_s.and_then(fat_time) {
        Some((date, time)) => DosTime { date, time },
        None => DosTime::NO_CLOCK,
    }
}
