//! File contents: text with marks, or blocks with checksums. docs/formats.md documents every byte.

pub(crate) mod binary;
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
