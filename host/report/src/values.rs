//! Parsers of option values that several commands share.

use humantime::DurationError;
use std::fmt::Display;
use std::num::NonZeroU32;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// Rates of a recorded stream, in samples per second.
pub const RECORD_RATES_HZ: RangeInclusive<NonZeroU32> =
    NonZeroU32::MIN..=NonZeroU32::new(1_000_000).unwrap();

/// Returns a parser of whole numbers in a range.
pub fn whole<N>(
    range: RangeInclusive<N>,
) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync + 'static
where
    N: FromStr + PartialOrd + Display + Clone + Send + Sync + 'static,
{
    move |text| match text.parse() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!(
            "use a whole number from {} to {}, without a unit",
            range.start(),
            range.end()
        )),
    }
}

/// Parses a rate per second.
pub fn rate_hz(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (0.001..=1e6).contains(&rate) => Ok(rate),
        _ => Err("use a number from 0.001 to 1000000 per second, without a unit".to_string()),
    }
}

/// Parses a duration such as `50ms`, `60s` or `2min`.
pub fn duration(text: &str) -> Result<Duration, String> {
    const HELP: &str = "use a number and a unit, such as 50ms, 60s or 2min";
    if is_negative(text) {
        return Err(format!("a time cannot be negative; {HELP}"));
    }
    match humantime::parse_duration(text) {
        Ok(duration) if u64::try_from(duration.as_nanos()).is_ok() => Ok(duration),
        Ok(_) | Err(DurationError::NumberOverflow) => {
            Err("out of range; use 1ns to 584 years".to_string())
        }
        Err(_) => Err(HELP.to_string()),
    }
}

/// Parses a size such as `512B`, `64KiB`, `8.5 MiB` or `1MB`. A unit that may mean 1000 or 1024 is refused.
pub fn bytes(text: &str) -> Result<u64, String> {
    const HELP: &str = "use a number and a unit, such as 512B, 64KiB or 1MB";
    let text = text.trim();
    if is_negative(text) {
        return Err(format!("a size cannot be negative; {HELP}"));
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim_start());
    if number.is_empty() {
        return Err(HELP.to_string());
    }
    let factor: u64 = match unit {
        "B" => 1,
        "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        unit if unit.eq_ignore_ascii_case("kib") => 1 << 10,
        unit if unit.eq_ignore_ascii_case("mib") => 1 << 20,
        unit if unit.eq_ignore_ascii_case("gib") => 1 << 30,
        unit if unit.eq_ignore_ascii_case("tib") => 1 << 40,
        "" => {
            return Err(format!(
                "a size needs a unit: {number}B, or {number}KiB for 1024 times as much"
            ));
        }
        unit => return Err(both_spellings(number, unit).unwrap_or_else(|| HELP.to_string())),
    };
    scaled(number, factor)
}

fn is_negative(text: &str) -> bool {
    let number = text.strip_prefix('-');
    number.is_some_and(|number| number.starts_with(|c: char| c.is_ascii_digit() || c == '.'))
}

/// Parses the length of a run: at least a second.
pub fn run_time(text: &str) -> Result<Duration, String> {
    let run = duration(text)?;
    match run >= Duration::from_secs(1) {
        true => Ok(run),
        false => Err("too short; use at least 1s".to_string()),
    }
}

/// Parses a rate in samples per second.
pub fn sample_rate_hz(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e9).contains(&rate) => Ok(rate),
        _ => Err("use a number from 0.001 to 1000000000 per second, without a unit".to_string()),
    }
}

/// Parses a buffer size such as `64KiB`, `100kB` or `2048B`.
pub fn buffer_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if (1..=1 << 40).contains(&size) => Ok(size),
        _ => Err("out of range; use 1B to 1TiB".to_string()),
    }
}

/// Explains both meanings of a unit such as `K`, `KB` or `mb`; returns `None` if it is not a unit of size.
fn both_spellings(number: &str, unit: &str) -> Option<String> {
    let (decimal, binary, power) = match unit.to_ascii_lowercase().as_str() {
        "k" | "kb" => ("kB", "KiB", 1),
        "m" | "mb" => ("MB", "MiB", 2),
        "g" | "gb" => ("GB", "GiB", 3),
        "t" | "tb" => ("TB", "TiB", 4),
        _ => return None,
    };
    Some(format!(
        "{unit} may mean {} or {} bytes: write {number}{decimal} or {number}{binary}",
        1000_u64.pow(power),
        1024_u64.pow(power)
    ))
}

/// Multiplies a decimal number; the product has to be a whole number of bytes.
fn scaled(number: &str, factor: u64) -> Result<u64, String> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{decimals}");
    let places = u32::try_from(decimals.len()).ok();
    let divisor = places.and_then(|places| 10_u128.checked_pow(places));
    let product = digits
        .parse::<u128>()
        .ok()
        .and_then(|digits| digits.checked_mul(u128::from(factor)));
    let (Some(product), Some(divisor)) = (product, divisor) else {
        return Err("expected a number of at most 20 digits and a unit, such as 64KiB".to_string());
    };
    if product % divisor != 0 {
        return Err(format!(
            "{number} times {factor} is not a whole number of bytes"
        ));
    }
    u64::try_from(product / divisor)
        .map_err(|_| "too large; the maximum is 2^64 - 1 bytes".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_spelling_for_each_meaning() {
        for (text, expected) in [
            ("512B", 512),
            ("512 B", 512),
            ("0B", 0),
            ("64KiB", 65_536),
            ("64kib", 65_536),
            ("64kB", 64_000),
            ("8.5 MiB", 8_912_896),
            ("0.5kB", 500),
            ("1MB", 1_000_000),
            ("2GiB", 2_147_483_648),
            ("1TB", 1_000_000_000_000),
            ("1TiB", 1_099_511_627_776),
            ("3GB", 3_000_000_000),
        ] {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn ambiguous_sizes_are_refused_with_both_spellings() {
        for (text, decimal, binary) in [
            ("64K", "64kB", "64KiB"),
            ("64KB", "64kB", "64KiB"),
            ("64k", "64kB", "64KiB"),
            ("1.5M", "1.5MB", "1.5MiB"),
            ("2g", "2GB", "2GiB"),
            ("16", "16B", "16KiB"),
        ] {
            let message = bytes(text).unwrap_err();
            assert!(
                message.contains(decimal) && message.contains(binary),
                "{message}"
            );
        }
        for text in [
            "",
            "KiB",
            "-1B",
            "1.2.3B",
            "64bits",
            "1e3B",
            "0.3B",
            "99999999999999GiB",
        ] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_duration_out_of_range_is_told_from_one_without_a_unit() {
        assert_eq!(duration("584y"), Ok(Duration::from_secs(584 * 31_557_600)));
        for text in ["585y", "99999999999999999999y", "99999999999999y", "0.5ns"] {
            assert!(duration(text).unwrap_err().contains("584 years"), "{text}");
        }
        for text in ["", "5", "s", "-1s", "5 parsecs", "--rate"] {
            let message = duration(text).unwrap_err();
            assert!(message.contains("a unit"), "{text}");
            assert_eq!(message.contains("negative"), text == "-1s", "{text}");
        }
    }

    #[test]
    fn a_whole_number_out_of_range_or_with_a_unit_is_refused_with_the_range() {
        let parse = whole(1..=1000_u32);
        assert_eq!([parse("1"), parse("1000")], [Ok(1), Ok(1000)]);
        for text in ["0", "1001", "-1", "", "1.5", "5s", "99999999999999999999"] {
            assert!(
                parse(text).unwrap_err().contains("from 1 to 1000"),
                "{text}"
            );
        }
    }
}
