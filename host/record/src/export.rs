//! Binary recordings as CSV or ULog.
//!
//! ```text
//!   block ── checksum, epoch, index ──> header: stream                     ──> Csv: one file per stream
//!                  │                    samples ── join ──> rows             │
//!                  └── wrong: noted     gap                                └─> Ulog: one topic per stream
//! ```

mod csv;
pub(crate) mod decode;
pub(crate) mod header;
mod ulog;

use csv::Csv;
#[cfg(not(target_family = "wasm"))]
pub(crate) use csv::row_of;
use decode::decode;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read, Seek, Write};
use std::ops::RangeInclusive;
use ulog::{Survey, Ulog};

/// Statistics of an exported recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of streams.
    pub streams: u32,
    /// Number of samples exported.
    pub samples: u64,
    /// Number of lost samples, according to the gaps in the recording.
    pub lost: u64,
    /// Number of damaged blocks, which were omitted.
    pub damaged_blocks: u64,
}

/// Reason why a recording was not exported.
#[derive(Debug)]
pub enum ExportError {
    /// The recording could not be read.
    Read(io::Error),
    /// The output could not be written.
    Write(io::Error),
    /// Block 0 is not the header of a recording.
    NoHeader,
    /// Neither the file nor its columns contain times.
    NoTimes,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ExportError::Read(error) => write!(f, "{error}; check the storage device"),
            ExportError::Write(error) => {
                write!(f, "could not write the output ({error}); check the storage device of the output")
            }
            ExportError::NoHeader => f.write_str(
                "block 0 at byte 0 is not the header of a binary recording; use a .BIN file written by the recorder",
            ),
            ExportError::NoTimes => f.write_str(
                "ULog requires times, but a version 0.1 recording without a column time_us or time_ms has none; export it with --csv",
            ),
        }
    }
}

impl std::error::Error for ExportError {}

/// Exports a binary recording as CSV, one file per stream. Calls `open` with the number of a stream and the
/// number of streams in the recording; `open` returns the output for the rows. Calls `damaged` with the
/// indices of omitted blocks; the CSV contains a note in place of these blocks.
///
/// # Errors
/// [`ExportError`].
pub fn export_csv<Out: Write>(
    input: impl Read,
    open: impl FnMut(u8, u8) -> io::Result<Out>,
    damaged: impl FnMut(RangeInclusive<u64>),
) -> Result<Exported, ExportError> {
    let mut csv = Csv {
        open,
        damaged,
        files: BTreeMap::new(),
    };
    let exported = decode(input, &mut csv)?;
    for file in csv.files.values_mut() {
        file.out.flush().map_err(ExportError::Write)?;
    }
    Ok(exported)
}

/// Exports a binary recording as one ULog file. Reads the recording twice.
///
/// # Errors
/// [`ExportError`].
pub fn export_ulog(
    mut input: impl Read + Seek,
    out: impl Write,
    damaged: impl FnMut(RangeInclusive<u64>),
) -> Result<Exported, ExportError> {
    let mut survey = Survey::default();
    decode(BufReader::new(&mut input), &mut survey)?;
    input.rewind().map_err(ExportError::Read)?;
    let mut log = Ulog::new(out, damaged, &survey)?;
    let exported = decode(BufReader::new(&mut input), &mut log)?;
    log.out.flush().map_err(ExportError::Write)?;
    Ok(exported)
}
