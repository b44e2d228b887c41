//! Numbers for people: three digits and a unit. kB = 1000 B, KiB = 1024 B.

/// Formats a time in us, as `1.71 ms`.
pub fn time(us: f64) -> String {
    match rounded(us) {
        us if us < 1.0 => format!("{} ns", three_digits(us * 1e3)),
        us if us < 1_000.0 => format!("{} µs", three_digits(us)),
        us if us < 1e6 => format!("{} ms", three_digits(us / 1e3)),
        us => format!("{} s", three_digits(us / 1e6)),
    }
}

/// Formats a period in us with four digits, as `1.163 ms`, but `1 ms`.
pub fn period(us: f64) -> String {
    let (value, unit) = match us {
        us if us < 1.0 => (us * 1e3, "ns"),
        us if us < 1_000.0 => (us, "µs"),
        us if us < 1e6 => (us / 1e3, "ms"),
        us => (us / 1e6, "s"),
    };
    let decimals = match value {
        value if value < 9.9995 => 3,
        value if value < 99.995 => 2,
        value if value < 999.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text} {unit}")
}

/// Formats a payload in bytes, as `81.7 kB`.
pub fn bytes(bytes: f64) -> String {
    decimal(bytes, "B")
}

/// Formats a data rate in bytes per second, as `437 kB/s`.
pub fn rate(bytes_per_second: f64) -> String {
    decimal(bytes_per_second, "B/s")
}

/// Formats an energy in uJ, as `9.75 mJ`.
pub fn energy(uj: f64) -> String {
    signed(uj, |uj| match rounded(uj) {
        uj if uj < 1.0 => format!("{} nJ", three_digits(uj * 1e3)),
        uj if uj < 1e3 => format!("{} µJ", three_digits(uj)),
        uj if uj < 1e6 => format!("{} mJ", three_digits(uj / 1e3)),
        uj => format!("{} J", three_digits(uj / 1e6)),
    })
}

/// Formats a power in mW, as `97.5 mW`.
pub fn power(mw: f64) -> String {
    signed(mw, |mw| match rounded(mw) {
        mw if mw < 1.0 => format!("{} µW", three_digits(mw * 1e3)),
        mw if mw < 1e3 => format!("{} mW", three_digits(mw)),
        mw => format!("{} W", three_digits(mw / 1e3)),
    })
}

/// Formats a fraction from 0 to 1, as `12.3 %`.
pub fn percent(share: f64) -> String {
    signed(share, |share| format!("{} %", three_digits(share * 100.0)))
}

/// Formats a signed value: noise can make a measured energy negative.
fn signed(value: f64, show: impl Fn(f64) -> String) -> String {
    let sign = if value < 0.0 { "-" } else { "" };
    format!("{sign}{}", show(value.abs()))
}

/// Formats a size in bytes with binary units, as `64 KiB`.
pub fn binary_bytes(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b.is_multiple_of(1 << 20) => format!("{} MiB", b >> 20),
        b if b >= 1 << 10 && b.is_multiple_of(1 << 10) => format!("{} KiB", b >> 10),
        b => format!("{b} B"),
    }
}

/// Formats a count with its thousands separated, as `16,384`.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut grouped = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

fn decimal(value: f64, unit: &str) -> String {
    match rounded(value) {
        v if v < 1e3 => format!("{} {unit}", three_digits(v)),
        v if v < 1e6 => format!("{} k{unit}", three_digits(v / 1e3)),
        v if v < 1e9 => format!("{} M{unit}", three_digits(v / 1e6)),
        v => format!("{} G{unit}", three_digits(v / 1e9)),
    }
}

/// Rounds to the three digits that are shown, so that 999.7 µs reads 1 ms.
fn rounded(value: f64) -> f64 {
    match value > 0.0 && value.is_finite() {
        true => {
            let scale = libm::pow(10.0, libm::log10(value).floor() - 2.0);
            (value / scale).round() * scale
        }
        false => value,
    }
}

fn three_digits(value: f64) -> String {
    let text = match value {
        v if v < 9.995 => format!("{v:.2}"),
        v if v < 99.95 => format!("{v:.1}"),
        v => return format!("{v:.0}"),
    };
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        assert_eq!(time(0.4), "400 ns");
        assert_eq!(time(1712.1), "1.71 ms");
        assert_eq!(time(71_234.0), "71.2 ms");
        assert_eq!(time(2.5e6), "2.5 s");
        assert_eq!(time(999.7), "1 ms");
        assert_eq!(time(999.4), "999 µs");
        assert_eq!(bytes(999_600.0), "1 MB");
        assert_eq!(time(17_000.0), "17 ms");
        assert_eq!(bytes(81_700.0), "81.7 kB");
        assert_eq!(rate(437_250.0), "437 kB/s");
        assert_eq!(rate(0.0), "0 B/s");
        assert_eq!(energy(9750.0), "9.75 mJ");
        assert_eq!(energy(-0.5), "-500 nJ");
        assert_eq!(power(97.5), "97.5 mW");
        assert_eq!(percent(0.1234), "12.3 %");
        assert_eq!(binary_bytes(65_536), "64 KiB");
        assert_eq!(binary_bytes(1000), "1000 B");
        assert_eq!(count(16_384), "16,384");
        assert_eq!(count(100), "100");
    }
}
