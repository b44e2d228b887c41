//! What a sample is made of.

use super::binary::PAYLOAD_BYTES;
use super::decimal::{DECIMALS_MAX, Text};
use crate::limits::{COLUMNS_MAX, LINE_BYTES_MAX, SAMPLE_BYTES_MAX};

/// The columns of a sample. In the ring a sample is its values one after the other, little endian, without
/// anything between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schema {
    columns: &'static [Column],
}

/// One value of every sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    /// What the first row of a CSV file calls it; unit last.
    pub name: &'static str,
    /// How it is stored.
    pub kind: Kind,
}

/// How a value is stored, and written as text.
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
    /// An IEEE 754 single, written with so many digits behind the point (at most 9).
    F32(u8),
    /// An IEEE 754 double, written likewise.
    F64(u8),
}

impl Kind {
    /// Bytes of a value.
    pub const fn bytes(self) -> usize {
        match self {
            Kind::U8 => 1,
            Kind::U16 | Kind::I16 => 2,
            Kind::U32 | Kind::I32 | Kind::F32(_) => 4,
            Kind::U64 | Kind::I64 | Kind::F64(_) => 8,
        }
    }

    /// The word for it in the header of a binary file.
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

    /// Longest text of a value.
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
    /// A schema of these columns.
    ///
    /// # Panics
    /// At compile time in a constant: if there are none or too many columns, or a sample, a row or the
    /// row of names is too long.
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
        // Name, blank, kind, point, digit, line end: a header has two blocks at most.
        assert!(super::header::FILE_BYTES_MAX + names + 6 * columns.len() <= 2 * PAYLOAD_BYTES);
        Schema { columns }
    }

    /// The columns.
    pub const fn columns(&self) -> &'static [Column] {
        self.columns
    }

    /// Bytes of a sample in the ring.
    pub const fn sample_bytes(&self) -> usize {
        let (mut bytes, mut at) = (0, 0);
        while at < self.columns.len() {
            bytes += self.columns[at].kind.bytes();
            at += 1;
        }
        bytes
    }

    /// The row of names; a column for notes comes last.
    pub(crate) fn write_names(&self, text: &mut Text) {
        for column in self.columns {
            text.push(column.name.as_bytes());
            text.push(b",");
        }
        text.push(NOTE.as_bytes());
        text.push(b"\r\n");
    }

    /// A line for each column, its name and its kind.
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

/// Name of the last column, in which marks and gaps stand.
const NOTE: &str = "note";

/// A measurement of the MagOD2, 100 bytes: a spectrometer for magnetic bacteria (thesis of the University
/// of Twente, 2020, section 2.2).
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
