//! Numbers in text.

use super::error::{Fault, Problem, shown};
use super::lines::Line;

/// Largest supported number. Sums and differences of times up to this number stay in range.
pub(super) const NUMBER_MAX: u64 = i64::MAX as u64;

/// Reason for rejecting a text as a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Bad {
    NotANumber,
    Negative,
    NotAboveZero,
    TooLarge,
    Above32Bits,
    /// A date whose day, month and year could be in another order.
    AmbiguousDate,
}

impl Bad {
    /// Builds the error for a field of a table whose text is not an acceptable number.
    pub(super) fn in_column(self, column: &str, text: &[u8], line: &Line<'_>) -> Fault {
        let column = column.to_owned();
        let text = shown(text);
        match self {
            Bad::NotANumber if column == text => {
                let rows = line.number - 1;
                Problem::HeaderAgain { column, rows }
            }
            Bad::NotANumber => Problem::NotANumber { column, text },
            Bad::Negative => Problem::Negative { column, text },
            Bad::NotAboveZero => Problem::NotAboveZero { column, text },
            Bad::TooLarge => Problem::TooLarge { column, text },
            Bad::Above32Bits => Problem::Above32Bits { column, text },
            Bad::AmbiguousDate => Problem::AmbiguousDate { column, text },
        }
        .at_line(line.number)
    }
}

/// A field of a row and the name of its column, for error messages.
pub(super) struct Field<'a> {
    pub column: &'a str,
    pub text: &'a [u8],
    pub line: &'a Line<'a>,
}

impl Field<'_> {
    /// Parses the field as an integer.
    pub(super) fn whole(&self) -> Result<u64, Fault> {
        whole(self.text).map_err(|bad| self.fault(bad))
    }

    /// Parses the field as a 32-bit integer.
    pub(super) fn whole_u32(&self) -> Result<u32, Fault> {
        u32::try_from(self.whole()?).map_err(|_| self.fault(Bad::Above32Bits))
    }

    /// Parses the field as an integer and multiplies it by a factor.
    pub(super) fn whole_times(&self, factor: u64) -> Result<u64, Fault> {
        self.whole()?
            .checked_mul(factor)
            .filter(|&product| product <= NUMBER_MAX)
            .ok_or_else(|| self.fault(Bad::TooLarge))
    }

    /// Parses the field as a decimal number times 10^`power`, rounded to an integer.
    pub(super) fn decimal(&self, power: i32) -> Result<u64, Fault> {
        decimal(self.text, power).map_err(|bad| self.fault(bad))
    }

    /// Parses the field as a non-negative floating-point number.
    pub(super) fn float(&self) -> Result<f64, Fault> {
        let number = self.signed_float()?;
        if number < 0.0 {
            return Err(self.fault(Bad::Negative));
        }
        Ok(number)
    }

    /// Parses the field as a positive floating-point number, suitable as a divisor.
    pub(super) fn float_above_zero(&self) -> Result<f64, Fault> {
        let number = self.signed_float()?;
        if number <= 0.0 {
            return Err(self.fault(Bad::NotAboveZero));
        }
        Ok(number)
    }

    /// Parses the field as a floating-point number of either sign.
    pub(super) fn signed_float(&self) -> Result<f64, Fault> {
        std::str::from_utf8(self.text)
            .ok()
            .and_then(|text| text.trim().parse().ok())
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| self.fault(Bad::NotANumber))
    }

    pub(super) fn fault(&self, bad: Bad) -> Fault {
        bad.in_column(self.column, self.text.trim_ascii(), self.line)
    }
}

/// Parses an integer of at most [`NUMBER_MAX`], with optional spaces around it.
pub(super) fn whole(text: &[u8]) -> Result<u64, Bad> {
    let text = text.trim_ascii();
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Bad::NotANumber);
    }
    let number = digits.iter().try_fold(0_u64, |number, digit| {
        number
            .checked_mul(10)?
            .checked_add(u64::from(digit - b'0'))
            .filter(|&number| number <= NUMBER_MAX)
    });
    match number {
        Some(0) => Ok(0),
        _ if digits.len() < text.len() => Err(Bad::Negative),
        Some(number) => Ok(number),
        None => Err(Bad::TooLarge),
    }
}

/// Parses a decimal number with an optional exponent, times 10^`power`, rounded.
pub(super) fn decimal(text: &[u8], power: i32) -> Result<u64, Bad> {
    let text = text.trim_ascii();
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let negative = unsigned.len() < text.len();
    let mut mantissa = 0_u128;
    let mut digits = 0_usize;
    // The value is mantissa * 10^shift.
    let mut shift = i64::from(power);
    let mut after_point = false;
    let mut rest = unsigned;
    while let [byte, tail @ ..] = rest {
        match byte {
            b'0'..=b'9' => {
                digits += 1;
                // A number of 30 digits exceeds every valid result; further digits only change the exponent.
                if mantissa < 10_u128.pow(30) {
                    mantissa = mantissa * 10 + u128::from(byte - b'0');
                    shift -= i64::from(after_point);
                } else {
                    shift += i64::from(!after_point);
                }
            }
            b'.' if !after_point => after_point = true,
            b'e' | b'E' if digits > 0 => {
                shift += exponent(tail)?;
                break;
            }
            _ => return Err(Bad::NotANumber),
        }
        rest = tail;
    }
    if digits == 0 {
        return Err(Bad::NotANumber);
    }
    if mantissa == 0 {
        return Ok(0);
    }
    if negative {
        return Err(Bad::Negative);
    }
    let ten = |power: i64| {
        u32::try_from(power)
            .ok()
            .and_then(|p| 10_u128.checked_pow(p))
    };
    let number = if shift >= 0 {
        ten(shift).and_then(|factor| mantissa.checked_mul(factor))
    } else {
        // A divisor too large for 128 bits rounds the result to 0.
        Some(ten(-shift).map_or(0, |divisor| (mantissa + divisor / 2) / divisor))
    };
    number
        .and_then(|number| u64::try_from(number).ok())
        .filter(|&number| number <= NUMBER_MAX)
        .ok_or(Bad::TooLarge)
}

/// Parses the exponent of a decimal number, clamped to ±1000.
fn exponent(text: &[u8]) -> Result<i64, Bad> {
    let (sign, digits) = match text {
        [b'-', digits @ ..] => (-1, digits),
        [b'+', digits @ ..] => (1, digits),
        digits => (1, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Bad::NotANumber);
    }
    let size = digits.iter().fold(0_i64, |size, digit| {
        (size * 10 + i64::from(digit - b'0')).min(1000)
    });
    Ok(sign * size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers() {
        assert_eq!(whole(b" 1203 "), Ok(1203));
        assert_eq!(whole(b"9223372036854775807"), Ok(NUMBER_MAX));
        assert_eq!(whole(b"9223372036854775808"), Err(Bad::TooLarge));
        assert_eq!(whole(&[b'9'; 100]), Err(Bad::TooLarge));
        assert_eq!(whole(b"-1"), Err(Bad::Negative));
        assert_eq!(whole(b"-0"), Ok(0));
        for text in ["", "-", "1.5", "1 2", "x", "+1", "--1"] {
            assert_eq!(whole(text.as_bytes()), Err(Bad::NotANumber), "{text}");
        }
    }

    #[test]
    fn decimal_numbers() {
        let number = |text: &str| decimal(text.as_bytes(), 6);
        assert_eq!(number("145153"), Ok(145_153_000_000));
        assert_eq!(number("0.05"), Ok(50_000));
        assert_eq!(number(".5"), Ok(500_000));
        assert_eq!(number("5."), Ok(5_000_000));
        assert_eq!(number("1.450000000000000000e+03"), Ok(1_450_000_000));
        assert_eq!(number("1E-6"), Ok(1));
        assert_eq!(number("1e-7"), Ok(0));
        assert_eq!(number("5e-7"), Ok(1));
        assert_eq!(number("1e-9999999999"), Ok(0));
        assert_eq!(number("-0.0"), Ok(0));
        assert_eq!(number("-0.1"), Err(Bad::Negative));
        assert_eq!(number("1e300"), Err(Bad::TooLarge));
        assert_eq!(number("9223372036854.775807"), Ok(NUMBER_MAX));
        assert_eq!(number("9223372036854.775808"), Err(Bad::TooLarge));
        assert_eq!(number(&"9".repeat(200)), Err(Bad::TooLarge));
        assert_eq!(number(&format!("0.{}", "3".repeat(200))), Ok(333_333));
        for text in [
            "", ".", "e5", "1e", "1e+", "1.2.3", "nan", "inf", "1,5", "0x10",
        ] {
            assert_eq!(number(text), Err(Bad::NotANumber), "{text}");
        }
    }
}
