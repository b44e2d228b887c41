//! Values of samples, as text.

use core::fmt::{self, Write};

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Unsigned { bytes: u8 },
    Signed { bytes: u8 },
    F32 { decimals: u8 },
    F64 { decimals: u8 },
}

impl Kind {
    /// Parses the word for a type in a header.
    pub(crate) fn of(word: &str) -> Option<Kind> {
        let (word, decimals) = word.split_once('.').unwrap_or((word, "0"));
        let decimals = decimals.parse().ok().filter(|decimals| *decimals <= 9)?;
        Some(match word {
            "u8" => Kind::Unsigned { bytes: 1 },
            "u16" => Kind::Unsigned { bytes: 2 },
            "u32" => Kind::Unsigned { bytes: 4 },
            "u64" => Kind::Unsigned { bytes: 8 },
            "i16" => Kind::Signed { bytes: 2 },
            "i32" => Kind::Signed { bytes: 4 },
            "i64" => Kind::Signed { bytes: 8 },
            "f32" => Kind::F32 { decimals },
            "f64" => Kind::F64 { decimals },
            _ => return None,
        })
    }

    /// Returns the size of a value in bytes.
    pub(crate) fn bytes(self) -> usize {
        match self {
            Kind::Unsigned { bytes } | Kind::Signed { bytes } => bytes.into(),
            Kind::F32 { .. } => 4,
            Kind::F64 { .. } => 8,
        }
    }

    /// Writes a value, which is in the first bytes.
    pub(crate) fn write(self, bytes: [u8; 8], out: &mut impl Write) -> fmt::Result {
        let unused = 64 - 8 * self.bytes() as u32;
        let number = u64::from_le_bytes(bytes) << unused;
        match self {
            Kind::Unsigned { .. } => write!(out, "{}", number >> unused),
            Kind::Signed { .. } => write!(out, "{}", number as i64 >> unused),
            Kind::F32 { decimals } => float(
                out,
                f32::from_bits((number >> unused) as u32).into(),
                decimals,
            ),
            Kind::F64 { decimals } => float(out, f64::from_bits(number), decimals),
        }
    }
}

fn float(out: &mut impl Write, number: f64, decimals: u8) -> fmt::Result {
    // The recorder writes no digits for numbers from 2^63 on.
    const INFINITE_FROM: f64 = 9_223_372_036_854_775_808.0;
    match number {
        _ if number.is_nan() => out.write_str("nan"),
        _ if number >= INFINITE_FROM => out.write_str("inf"),
        _ if number <= -INFINITE_FROM => out.write_str("-inf"),
        _ => write!(out, "{number:.*}", usize::from(decimals)),
    }
}
