//! What stands in files: text with marks, or blocks with checksums. docs/formats.md has every byte.

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
pub use decimal::DECIMALS_MAX;
pub(crate) use encoder::Encoder;
pub(crate) use position::FilePosition;
pub use schema::{Column, Kind, MAGOD2, Schema};

/// How a stream's samples are written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Samples are lines of text already, of any length up to `line_bytes_max`, each with its end.
    Lines {
        /// The first line of each file without its end, or nothing.
        header: &'static str,
        /// Longest line, its end included; at most [`LINE_BYTES_MAX`](crate::LINE_BYTES_MAX).
        line_bytes_max: u16,
    },
    /// Samples of one of 1 to 8 schemas, written as rows of text. The first one holds until a session
    /// chooses another.
    Csv(&'static [Schema]),
    /// The same, as they are, in blocks with checksums.
    Binary(&'static [Schema]),
}

impl Format {
    /// What file names end with.
    pub fn extension(&self) -> [u8; 3] {
        match self {
            Format::Lines { .. } | Format::Csv(_) => *b"CSV",
            Format::Binary(_) => *b"BIN",
        }
    }

    /// Returns true if no line of it is longer than lines may be, and its number of schemas is allowed.
    pub(crate) fn fits(&self) -> bool {
        match self {
            Format::Lines {
                header,
                line_bytes_max,
            } => {
                let line_bytes_max = usize::from(*line_bytes_max);
                header.len() + 2 <= LINE_BYTES_MAX && line_bytes_max <= LINE_BYTES_MAX
            }
            // Each was checked when it was made.
            Format::Csv(schemas) | Format::Binary(schemas) => {
                (1..=SCHEMAS_MAX).contains(&schemas.len())
            }
        }
    }

    /// The schemas; none for lines.
    pub fn schemas(&self) -> &'static [Schema] {
        match self {
            Format::Lines { .. } => &[],
            Format::Csv(schemas) | Format::Binary(schemas) => schemas,
        }
    }

    /// The schema at this place of the list.
    pub(crate) fn schema(&self, place: u8) -> Option<&'static Schema> {
        self.schemas().get(usize::from(place))
    }

    /// Kept with an unfinished file, so that its end can be found by anyone: whether it is binary.
    pub(crate) fn note(&self) -> u32 {
        u32::from(matches!(self, Format::Binary(_)))
    }

    pub(crate) fn is_binary(note: u32) -> bool {
        note & 1 != 0
    }
}
