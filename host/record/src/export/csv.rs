//! CSV: the text that the recorder would have written, without checkpoint marks; one file per stream.

use super::ExportError;
use super::decode::{CAUSES, Gap, Sink};
use super::header::{FileKeys, Header};
use cardiograph_recorder::Kind;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::ops::RangeInclusive;

pub(super) struct Csv<Open, Out, Damaged> {
    pub(super) open: Open,
    pub(super) damaged: Damaged,
    pub(super) files: BTreeMap<u8, CsvFile<Out>>,
}

pub(super) struct CsvFile<Out> {
    pub(super) out: Out,
    columns: Vec<(String, Kind)>,
}

impl<Open, Out, Damaged> Sink for Csv<Open, Out, Damaged>
where
    Open: FnMut(u8, u8) -> io::Result<Out>,
    Out: Write,
    Damaged: FnMut(RangeInclusive<u64>),
{
    fn stream(&mut self, stream: u8, header: &Header) -> Result<(), ExportError> {
        let streams = header.file.as_ref().map_or(1, |file| file.streams.max(1));
        let mut file = CsvFile {
            out: (self.open)(stream, streams).map_err(ExportError::Write)?,
            columns: header.columns.clone(),
        };
        file.names()?;
        if let Some(keys) = &header.file {
            file.about(keys)?;
        }
        self.files.insert(stream, file);
        Ok(())
    }

    fn samples(&mut self, stream: u8, samples: &[Vec<u8>], _: u32) -> Result<(), ExportError> {
        let Some(file) = self.files.get_mut(&stream) else {
            return Ok(());
        };
        samples.iter().try_for_each(|sample| file.row(sample))
    }

    fn gap(&mut self, stream: u8, gap: &Gap) -> Result<(), ExportError> {
        let Some(file) = self.files.get_mut(&stream) else {
            return Ok(());
        };
        let Gap {
            first,
            count,
            at_us,
            ..
        } = gap;
        let last_us = gap.last_us.map(|last_us| format!(" last_us={last_us}"));
        let last_us = last_us.unwrap_or_default();
        let cause = CAUSES[usize::from(gap.cause)];
        file.note(&format!(
            "#gap first={first} count={count} at_us={at_us}{last_us} cause={cause}"
        ))
    }

    fn damaged(&mut self, blocks: RangeInclusive<u64>) -> Result<(), ExportError> {
        let note = format!("#damaged blocks={}..{}", blocks.start(), blocks.end());
        for file in self.files.values_mut() {
            file.note(&note)?;
        }
        (self.damaged)(blocks);
        Ok(())
    }
}

impl<Out: Write> CsvFile<Out> {
    fn write(&mut self, text: &str) -> Result<(), ExportError> {
        self.out
            .write_all(text.as_bytes())
            .map_err(ExportError::Write)
    }

    fn names(&mut self) -> Result<(), ExportError> {
        let names = self.columns.iter().map(|(name, _)| format!("{name},"));
        let names: String = names.collect();
        self.write(&format!("{names}note\r\n"))
    }

    fn note(&mut self, note: &str) -> Result<(), ExportError> {
        let indent = ",".repeat(self.columns.len());
        self.write(&format!("{indent}{note}\r\n"))
    }

    fn about(&mut self, keys: &FileKeys) -> Result<(), ExportError> {
        let mut note = format!(
            "#file number={} first={} at_us={}",
            keys.number, keys.first, keys.at_us
        );
        for (name, value) in [("session", &keys.session), ("settings", &keys.settings)] {
            if !value.is_empty() {
                note.push_str(&format!(" {name}={value}"));
            }
        }
        // A field that contains a comma must be quoted.
        match keys.settings.contains(',') {
            true => self.note(&format!("\"{note}\"")),
            false => self.note(&note),
        }
    }

    fn row(&mut self, sample: &[u8]) -> Result<(), ExportError> {
        let kinds = self.columns.iter().map(|(_, kind)| *kind);
        let row = row_of(kinds, sample);
        self.write(&(row + "\r\n"))
    }
}

/// Formats the values of a sample as a row, without line end.
pub(crate) fn row_of(kinds: impl Iterator<Item = Kind>, sample: &[u8]) -> String {
    let mut row = String::new();
    let mut rest = sample;
    for (at, kind) in kinds.enumerate() {
        let (value, after) = rest.split_at(kind.bytes().min(rest.len()));
        if at > 0 {
            row.push(',');
        }
        row.push_str(&text_of(kind, value));
        rest = after;
    }
    row
}

/// Formats a value as the recorder does. The standard library rounds in the same way as the recorder.
fn text_of(kind: Kind, bytes: &[u8]) -> String {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let unsigned = u64::from_le_bytes(wide);
    match kind {
        Kind::U8 | Kind::U16 | Kind::U32 | Kind::U64 => unsigned.to_string(),
        Kind::I16 => (unsigned as i16).to_string(),
        Kind::I32 => (unsigned as i32).to_string(),
        Kind::I64 => (unsigned as i64).to_string(),
        Kind::F32(decimals) => float(f32::from_bits(unsigned as u32).into(), decimals),
        Kind::F64(decimals) => float(f64::from_bits(unsigned), decimals),
    }
}

fn float(number: f64, decimals: u8) -> String {
    // The recorder writes no digits for magnitudes of 2^63 or more.
    const INFINITE_FROM: f64 = 9_223_372_036_854_775_808.0;
    match number {
        _ if number.is_nan() => "nan".to_string(),
        _ if number.abs() < INFINITE_FROM => format!("{number:.*}", usize::from(decimals)),
        _ if number < 0.0 => "-inf".to_string(),
        _ => "inf".to_string(),
    }
}
