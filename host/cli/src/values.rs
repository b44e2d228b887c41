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

/// Parses a size: `65536`, `64KiB`, `1MB`.
pub fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let text = text.trim();
    let found = UNITS
        .iter()
        .find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.unwrap_or((text, 1));
    let number: Option<u64> = number.trim_end().parse().ok();
    let size = number.and_then(|number| number.checked_mul(factor));
    size.ok_or("expected an integer and a unit, such as 64KiB or 1MB".to_string())
}
