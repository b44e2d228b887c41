//! Writers for Cardiograph's own two formats and for the results files of two studies, described in docs/formats.md.

mod csv;
mod parquet;
mod results;

use crate::publish::{NewFile, WriteError};
use crate::trace::Trace;
use std::io::{self, Write};
use std::path::Path;

pub use results::{Results, ResultsOf, Unsuitable};

pub(crate) use parquet::{
    CLOCK_OVERHEAD, CLOCK_RESOLUTION, NOTE, PART_0_1, PHASE, READ, TARGET, WORKLOAD, WRITE,
};

/// Writes a trace as Parquet to a new file.
///
/// # Errors
/// If the file exists or cannot be written; no partial file remains.
pub fn write_parquet(trace: &Trace, path: &Path) -> Result<(), WriteError> {
    write_file(path, |file| parquet::write(trace, file))
}

/// Writes a trace as Parquet to any writer.
///
/// # Errors
/// The error of the writer.
pub fn write_parquet_to(trace: &Trace, out: impl Write + Send) -> io::Result<()> {
    parquet::write(trace, out)
}

/// Writes a trace as CSV to a new file.
///
/// # Errors
/// If the file exists or cannot be written; no partial file remains.
pub fn write_csv(trace: &Trace, path: &Path) -> Result<(), WriteError> {
    write_file(path, |file| csv::write(trace, file))
}

/// Writes a trace as CSV to any writer, such as standard output. The caller provides the buffering.
///
/// # Errors
/// The error of the writer.
pub fn write_csv_to(trace: &Trace, out: impl Write) -> io::Result<()> {
    csv::write(trace, out)
}

fn write_file(
    path: &Path,
    write: impl FnOnce(&mut NewFile) -> io::Result<()>,
) -> Result<(), WriteError> {
    let mut file = NewFile::create(path)?;
    write(&mut file).map_err(|error| WriteError::new(path, error))?;
    file.commit()
}
