//! Parsers of option values that several commands share.

use std::time::Duration;

/// Parses a duration such as `50ms`, `60s` or `2min`.
pub fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if u64::try_from(duration.as_nanos()).is_ok() => Ok(duration),
        Ok(_) => Err("too long; the maximum is 584 years".to_string()),
        Err(_) => Err("expected a number and a unit, such as 50ms, 60s or 2min".to_string()),
    }
}
