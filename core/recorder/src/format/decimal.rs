//! Numbers as text, without floating-point arithmetic: small cores have no FPU and need thousands of cycles
//! per operation.

/// Text in a buffer of fixed size.
pub(crate) struct Text<'a> {
    bytes: &'a mut [u8],
    len: usize,
    /// Bytes that are still to be skipped.
    skip: usize,
    /// Bytes pushed, including those skipped and those without room.
    pushed: usize,
}

impl<'a> Text<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Text::behind(bytes, 0)
    }

    /// Creates a text that skips its first `skip` bytes.
    pub(crate) fn behind(bytes: &'a mut [u8], skip: usize) -> Self {
        Text {
            bytes,
            len: 0,
            skip,
            pushed: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the length of the whole text, including skipped bytes and those without room.
    pub(crate) fn pushed(&self) -> usize {
        self.pushed
    }

    /// Appends as many bytes as there is room for.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.pushed += bytes.len();
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        let bytes = &bytes[skipped..];
        let room = &mut self.bytes[self.len..];
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        self.len += count;
    }

    pub(crate) fn push_repeated(&mut self, byte: u8, count: usize) {
        for _ in 0..count {
            self.push(&[byte]);
        }
    }

    pub(crate) fn push_unsigned(&mut self, number: u64) {
        self.push_digits(u128::from(number), 0);
    }

    pub(crate) fn push_signed(&mut self, number: i64) {
        if number < 0 {
            self.push(b"-");
        }
        self.push_unsigned(number.unsigned_abs());
    }

    /// Appends an IEEE 754 double with this number of decimal places, at most [`DECIMALS_MAX`], rounded half
    /// to even. Magnitudes of 2^63 and above are written as infinity.
    pub(crate) fn push_f64(&mut self, number: f64, decimals: u8) {
        let bits = number.to_bits();
        let exponent = (bits >> 52) as i32 & 0x7FF;
        let fraction = bits & ((1 << 52) - 1);
        if exponent == 0x7FF && fraction != 0 {
            return self.push(b"nan");
        }
        if bits >> 63 != 0 {
            self.push(b"-");
        }
        if exponent - 1023 >= 63 {
            return self.push(b"inf");
        }
        // Zero and subnormal numbers have no leading 1, but with it they are just as far below the last decimal.
        let mantissa = fraction | 1 << 52;
        let decimals = decimals.min(DECIMALS_MAX);
        self.push_digits(scaled(mantissa, exponent - 1075, decimals), decimals);
    }

    /// Appends a number in units of 10^-decimals.
    fn push_digits(&mut self, number: u128, decimals: u8) {
        let mut digits = [b'0'; DIGITS_MAX];
        let (mut at, mut rest) = (DIGITS_MAX, number);
        while rest > 0 {
            let (left, nine) = split(rest);
            let end = at;
            at = write_digits(nine, &mut digits[..end], end);
            // Keep leading zeros of a group of nine digits, except in the first group.
            at = if left > 0 { end - 9 } else { at };
            rest = left;
        }
        let decimals = usize::from(decimals);
        at = at.min(DIGITS_MAX - decimals - 1);
        let (whole, behind) = digits[at..].split_at(DIGITS_MAX - at - decimals);
        self.push(whole);
        if decimals > 0 {
            self.push(b".");
            self.push(behind);
        }
    }
}

/// Maximum number of digits.
const DIGITS_MAX: usize = 45;

/// Splits a number into the part before its last nine digits, and those digits. Small cores divide 32 bits with one
/// instruction and need hundreds for more.
fn split(number: u128) -> (u128, u32) {
    const NINE_DIGITS: u32 = 1_000_000_000;
    if let Ok(short) = u32::try_from(number) {
        return (u128::from(short / NINE_DIGITS), short % NINE_DIGITS);
    }
    if let Ok(long) = u64::try_from(number) {
        let nine_digits = u64::from(NINE_DIGITS);
        let left = long / nine_digits;
        return (u128::from(left), (long - left * nine_digits) as u32);
    }
    let nine_digits = u128::from(NINE_DIGITS);
    (number / nine_digits, (number % nine_digits) as u32)
}

/// Writes the digits so that they end at `at`; returns the position of the first.
fn write_digits(mut number: u32, digits: &mut [u8], mut at: usize) -> usize {
    while number > 0 && at > 0 {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    at
}

/// Maximum number of decimal places.
pub const DECIMALS_MAX: u8 = 9;

/// Returns mantissa * 2^exponent * 10^decimals, rounded half to even.
fn scaled(mantissa: u64, exponent: i32, decimals: u8) -> u128 {
    // 53 bits and 30 bits, shifted left by at most 10, because the value is below 2^63.
    let product = u128::from(mantissa) * u128::from(10_u64.pow(u32::from(decimals)));
    if exponent >= 0 {
        return product << exponent;
    }
    let shift = exponent.unsigned_abs();
    if shift > 127 {
        return 0;
    }
    let (whole, rest) = (product >> shift, product & ((1 << shift) - 1));
    let half = 1_u128 << (shift - 1);
    match rest.cmp(&half) {
        core::cmp::Ordering::Less => whole,
        core::cmp::Ordering::Equal => whole + (whole & 1),
        core::cmp::Ordering::Greater => whole + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_world::Seed;
    use std::format;
    use std::string::String;

    fn text(write: impl FnOnce(&mut Text)) -> String {
        let mut bytes = [0; 64];
        let mut text = Text::new(&mut bytes);
        write(&mut text);
        let len = text.len();
        String::from_utf8(bytes[..len].to_vec()).unwrap()
    }

    /// The standard library rounds the exact value, half to even.
    #[test]
    fn doubles_are_written_as_the_standard_library_does() {
        let mut random = Seed::new(1).stream("doubles");
        let mut tried = 0;
        while tried < 200_000 {
            let mut bits = random.next_u64();
            if tried % 2 == 0 {
                // Exponents typical of measurements.
                let exponent = 1023 - 40 + random.below(80);
                bits = bits & !(0x7FF << 52) | exponent << 52;
            }
            let number = f64::from_bits(bits);
            if !number.is_finite() || number.abs() >= 9.2e18 {
                continue;
            }
            let decimals = random.below(10) as u8;
            let ours = text(|text| text.push_f64(number, decimals));
            assert_eq!(ours, format!("{number:.*}", usize::from(decimals)));
            tried += 1;
        }
    }

    #[test]
    fn edges_of_doubles() {
        for (number, expected) in [
            (0.5, "0"),
            (1.5, "2"),
            (-0.0, "-0"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
            (1e19, "inf"),
        ] {
            assert_eq!(text(|text| text.push_f64(number, 0)), expected);
        }
        for number in [0.0, -0.0, f64::from_bits(1), -f64::MIN_POSITIVE / 2.0] {
            let ours = text(|text| text.push_f64(number, 9));
            assert_eq!(ours, format!("{number:.9}"));
        }
        for number in [0, 1, -1, 999_999_999, -1_000_000_000, i64::MIN, i64::MAX] {
            let ours = text(|text| text.push_signed(number));
            assert_eq!(ours, format!("{number}"));
        }
        assert_eq!(text(|text| text.push_repeated(b',', 3)), ",,,");
        assert_eq!(
            text(|text| text.push_unsigned(u64::MAX)),
            format!("{}", u64::MAX)
        );
    }
}
