//! Binary recordings as CSV or ULog.
//!
//! ```text
//!   block ── checksum, epoch, number ──> header: stream                     ──> Csv: a file for each stream
//!                  │                     samples ── join ──> rows             │
//!                  └── wrong: noted      gap                                └─> Ulog: a topic for each
//! ```

mod csv;
pub(crate) mod decode;
pub(crate) mod header;
mod ulog;

use csv::Csv;
use decode::decode;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufReader, Read, Seek, Write};
use std::ops::RangeInclusive;
use ulog::{Survey, Ulog};

/// Content of a binary recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Streams.
    pub streams: u32,
    /// Samples that were written.
    pub samples: u64,
    /// Samples that the recording says are missing.
    pub lost: u64,
    /// Blocks that are damaged, and left out.
    pub damaged_blocks: u64,
}

/// Reason why a recording was not exported.
#[derive(Debug)]
pub enum ExportError {
    /// It could not be read.
    Read(io::Error),
    /// The output could not be written.
    Write(io::Error),
    /// Block 0 is not the header of a recording.
    NoHeader,
    /// Neither the file nor its columns have times.
    NoTimes,
}

impl fmt::Display for ExportError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            ExportError::Read(error) => write!(f, "{error}; check the medium"),
            ExportError::Write(error) => write!(f, "{error}; check the medium that is written to"),
            ExportError::NoHeader => f.write_str(
                "block 0, at byte 0, is not the header of a binary recording; give a .BIN file that a recorder made",
            ),
            ExportError::NoTimes => f.write_str(
                "a recording of version 0.1 without a column time_us or time_ms has no times, which a ULog needs; export it with --csv",
            ),
        }
    }
}

impl std::error::Error for ExportError {}

/// Writes a binary recording as CSV, one file for each stream. `open` gets the number of the stream and how
/// many streams share the recording, and returns where its rows go. `damaged` gets the numbers of blocks that
/// are left out; a note says so in their place.
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

/// Writes a binary recording as one ULog file. The recording is read twice.
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
