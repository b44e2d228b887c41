//! File contents: text with marks, or blocks with checksums. docs/formats.md documents every byte.

pub(crate) mod binary;
#[cfg(test)]
mod block_tests;
pub(crate) mod decimal;
mod encode_binary;
mod encode_text;
mod encoder;
pub(crate) mod header;
pub(crate) mod mark;
mod position;
mod schema;
#[cfg(test)]
mod shared_tests;
#[cfg(test)]
pub(crate) mod test_decoder;
#[cfg(test)]
mod tests;
pub(crate) mod text;

use crate::limits::{LINE_BYTES_MAX, SCHEMAS_MAX};
use cardiograph_card::BLOCK_BYTES;
pub use decimal::DECIMALS_MAX;
use decimal::Text;
pub(crate) use encoder::Encoder;
pub(crate) use position::FilePosition;
pub use schema::{Column, Kind, MAGOD2, Schema};

/// Format of a stream's samples in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Samples are already lines of text, of any length up to `line_bytes_max`, newline included.
    Lines {
        /// First line of each file without its newline; empty for none.
        header: &'static str,
        /// Maximum length of a line, newline included; at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
        line_bytes_max: u16,
    },
    /// Samples of one of 1 to 8 schemas, written as rows of text. The first schema applies until a session
    /// chooses another.
    Csv(&'static [Schema]),
    /// Samples of one of 1 to 8 schemas, stored unchanged in blocks with checksums.
    Binary(&'static [Schema]),
}

impl Format {
    /// Returns the extension of the file names.
    pub fn extension(&self) -> [u8; 3] {
        match self {
            Format::Lines { .. } | Format::Csv(_) => *b"CSV",
            Format::Binary(_) => *b"BIN",
        }
    }

    /// Returns true if all lines and the number of schemas are within their limits.
    pub(crate) fn fits(&self) -> bool {
        match self {
            Format::Lines {
                header,
                line_bytes_max,
            } => {
                let line_bytes_max = usize::from(*line_bytes_max);
                header.len() + 2 <= LINE_BYTES_MAX && line_bytes_max <= LINE_BYTES_MAX
            }
            // `Schema::new` has checked each schema.
            Format::Csv(schemas) | Format::Binary(schemas) => {
                (1..=SCHEMAS_MAX).contains(&schemas.len())
            }
        }
    }

    /// Returns the schemas; none for lines.
    pub fn schemas(&self) -> &'static [Schema] {
        match self {
            Format::Lines { .. } => &[],
            Format::Csv(schemas) | Format::Binary(schemas) => schemas,
        }
    }

    /// Returns the schema at this index.
    pub(crate) fn schema(&self, place: u8) -> Option<&'static Schema> {
        self.schemas().get(usize::from(place))
    }

    /// Writes the names of the columns of a schema, separated by commas and without line end, to `row`; returns their
    /// length. Lines have the columns of their header.
    pub fn write_columns(&self, schema: u8, row: &mut [u8]) -> usize {
        let mut text = Text::new(row);
        match (self, self.schema(schema)) {
            (_, Some(schema)) => {
                for (at, column) in schema.columns().iter().enumerate() {
                    text.push(if at > 0 { b"," } else { b"" });
                    text.push(column.name.as_bytes());
                }
            }
            (Format::Lines { header, .. }, _) => text.push(header.as_bytes()),
            _ => (),
        }
        text.len()
    }

    /// Writes a sample as text, without line end, to `row`; returns its length.
    pub fn write_sample(&self, schema: u8, sample: &[u8], row: &mut [u8]) -> usize {
        let mut text = Text::new(row);
        match self.schema(schema) {
            Some(schema) if sample.len() == schema.sample_bytes() => {
                schema.write_row(sample, &mut text);
            }
            _ => text.push(sample),
        }
        let len = text.len();
        row[..len].trim_ascii_end().len()
    }

    /// Returns the number of bytes of samples in a block without headers and marks.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Format::Binary(_) => binary::PAYLOAD_BYTES,
            // A mark and the lines that it splits take about one part in 64.
            _ => BLOCK_BYTES - BLOCK_BYTES / 64,
        }
    }

    /// Returns the value stored with an unfinished file, from which recovery knows whether the file is
    /// binary.
    pub(crate) fn note(&self) -> u32 {
        u32::from(matches!(self, Format::Binary(_)))
    }

    pub(crate) fn is_binary(note: u32) -> bool {
        note & 1 != 0
    }
}
