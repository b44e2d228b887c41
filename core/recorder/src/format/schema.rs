//! Sample layouts.

use super::binary::PAYLOAD_BYTES;
use super::decimal::{DECIMALS_MAX, Text};
use crate::limits::{COLUMNS_MAX, LINE_BYTES_MAX, SAMPLE_BYTES_MAX};

/// The columns of a sample. In the ring, a sample is the sequence of its values, little endian and without
/// padding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    columns: &'static [Column],
}

/// One value of each sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// Name in the first row of a CSV file, with the unit last.
    pub name: &'static str,
    /// Type and text format.
    pub kind: Kind,
}

/// Type of a value, and its text format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One byte.
    U8,
    /// Two bytes.
    U16,
    /// Four bytes.
    U32,
    /// Eight bytes.
    U64,
    /// Two bytes, signed.
    I16,
    /// Four bytes, signed.
    I32,
    /// Eight bytes, signed.
    I64,
    /// An IEEE 754 single, written with the given number of decimal places (at most 9).
    F32(u8),
    /// An IEEE 754 double, written with the given number of decimal places (at most 9).
    F64(u8),
}

impl Kind {
    /// Returns the size of a value in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Kind::U8 => 1,
            Kind::U16 | Kind::I16 => 2,
            Kind::U32 | Kind::I32 | Kind::F32(_) => 4,
            Kind::U64 | Kind::I64 | Kind::F64(_) => 8,
        }
    }

    /// Returns the keyword for the type in the header of a binary file.
    pub const fn word(self) -> &'static str {
        match self {
            Kind::U8 => "u8",
            Kind::U16 => "u16",
            Kind::U32 => "u32",
            Kind::U64 => "u64",
            Kind::I16 => "i16",
            Kind::I32 => "i32",
            Kind::I64 => "i64",
            Kind::F32(_) => "f32",
            Kind::F64(_) => "f64",
        }
    }

    /// Returns the maximum length of a value as text.
    const fn text_bytes_max(self) -> usize {
        match self {
            Kind::U8 => 3,
            Kind::U16 => 5,
            Kind::I16 => 6,
            Kind::U32 => 10,
            Kind::I32 => 11,
            Kind::U64 | Kind::I64 => 20,
            Kind::F32(decimals) | Kind::F64(decimals) => 1 + 19 + 1 + decimals as usize,
        }
    }

    fn write(self, bytes: &[u8], text: &mut Text) {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unsigned = u64::from_le_bytes(wide);
        match self {
            Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => text.push_unsigned(unsigned),
            Kind::I16 => text.push_signed(i64::from(unsigned as i16)),
            Kind::I32 => text.push_signed(i64::from(unsigned as i32)),
            Kind::I64 => text.push_signed(unsigned as i64),
            Kind::F32(decimals) => {
                text.push_f64(f64::from(f32::from_bits(unsigned as u32)), decimals);
            }
            Kind::F64(decimals) => text.push_f64(f64::from_bits(unsigned), decimals),
        }
    }
}

impl Schema {
    /// Creates a schema with these columns.
    ///
    /// # Panics
    /// Panics (at compile time in a constant) if there are no columns or too many, or if a sample, a row or
    /// the row of names is too long.
    pub const fn new(columns: &'static [Column]) -> Schema {
        assert!(!columns.is_empty() && columns.len() <= COLUMNS_MAX);
        let (mut bytes, mut row, mut names, mut at) = (0, 1, 1, 0);
        while at < columns.len() {
            if let Kind::F32(decimals) | Kind::F64(decimals) = columns[at].kind {
                assert!(decimals <= DECIMALS_MAX);
            }
            bytes += columns[at].kind.bytes();
            row += columns[at].kind.text_bytes_max() + 1;
            names += columns[at].name.len() + 1;
            at += 1;
        }
        assert!(bytes <= SAMPLE_BYTES_MAX && row <= LINE_BYTES_MAX);
        assert!(names + NOTE.len() < LINE_BYTES_MAX);
        // Name, space, type, dot, digit, newline: a header has at most two blocks.
        assert!(super::header::FILE_BYTES_MAX + names + 6 * columns.len() <= 2 * PAYLOAD_BYTES);
        Schema { columns }
    }

    /// Returns the columns.
    pub const fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Returns the size of a sample in the ring, in bytes.
    pub const fn sample_bytes(&self) -> usize {
        let (mut bytes, mut at) = (0, 0);
        while at < self.columns.len() {
            bytes += self.columns[at].kind.bytes();
            at += 1;
        }
        bytes
    }

    /// Writes the row of names; the last column is for notes.
    pub(crate) fn write_names(&self, text: &mut Text) {
        for column in self.columns {
            text.push(column.name.as_bytes());
            text.push(b",");
        }
        text.push(NOTE.as_bytes());
        text.push(b"\r\n");
    }

    /// Writes a line with name and type for each column.
    pub(crate) fn describe(&self, text: &mut Text) {
        for column in self.columns {
            text.push(column.name.as_bytes());
            text.push(b" ");
            text.push(column.kind.word().as_bytes());
            if let Kind::F32(decimals) | Kind::F64(decimals) = column.kind {
                text.push(b".");
                text.push_unsigned(decimals.into());
            }
            text.push(b"\n");
        }
    }

    pub(crate) fn write_row(&self, sample: &[u8], text: &mut Text) {
        let mut rest = sample;
        for (column, at) in self.columns.iter().zip(0..) {
            if at > 0 {
                text.push(b",");
            }
            let (value, after) = rest.split_at(column.kind.bytes());
            column.kind.write(value, text);
            rest = after;
        }
        text.push(b"\r\n");
    }
}

// A sample that begins in one block ends in the next one at the latest.
const _: () = assert!(SAMPLE_BYTES_MAX <= PAYLOAD_BYTES);

/// Name of the last column, which contains marks and gaps.
const NOTE: &str = "note";

/// A measurement of the MagOD2, a spectrometer for magnetic bacteria: 100 bytes (thesis of the University of
/// Twente, 2020, section 2.2).
pub const MAGOD2: Schema = {
    const fn double(name: &'static str) -> Column {
        Column {
            name,
            kind: Kind::F64(6),
        }
    }
    const fn int(name: &'static str) -> Column {
        Column {
            name,
            kind: Kind::I32,
        }
    }
    Schema::new(&[
        Column {
            name: "time_ms",
            kind: Kind::U32,
        },
        double("photodiode_v"),
        double("reference_diode_v"),
        double("supply_v"),
        double("voltage_4_v"),
        double("voltage_5_v"),
        double("voltage_6_v"),
        double("temperature_c"),
        double("optical_density"),
        int("led_type"),
        int("loop"),
        double("feedback_x_v"),
        double("feedback_y_v"),
        double("feedback_z_v"),
    ])
};
const _: () = assert!(MAGOD2.sample_bytes() == 100);
