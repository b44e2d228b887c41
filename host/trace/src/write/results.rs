//! The results files of studies 1 and 3, described in docs/formats.md.

mod library_comparison;
mod magod2;

use crate::trace::Trace;
use cardiograph_workload::{Operation, OperationKind};
use std::fmt;
use std::io::{self, Write};

/// Study whose results file is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultsOf {
    /// Study 1: the start and end of every write, a column for each file.
    Magod2,
    /// Study 3: a row of statistics for each file.
    LibraryComparison,
}

/// Reason why a trace does not fit the results file of a study, as a clause with the remedy.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsuitable(String);

impl fmt::Display for Unsuitable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unsuitable {}

/// A trace that fits the results file of a study.
pub struct Results(Layout);

enum Layout {
    Magod2(magod2::Results),
    LibraryComparison(Vec<library_comparison::Row>),
}

impl Results {
    /// Arranges the writes of a trace for a results file; reads are omitted.
    ///
    /// # Errors
    /// [`Unsuitable`] if the file cannot represent the trace.
    pub fn of(trace: &Trace, study: ResultsOf) -> Result<Results, Unsuitable> {
        let writes = trace
            .operations()
            .filter(|operation| operation.kind == OperationKind::Write);
        let files = files_of(writes);
        if files.is_empty() {
            return Err(Unsuitable(
                "the trace contains no writes; use --csv-format cardiograph".to_string(),
            ));
        }
        let layout = match study {
            ResultsOf::Magod2 => Layout::Magod2(magod2::Results::of(files, &trace.about.workload)?),
            ResultsOf::LibraryComparison => {
                Layout::LibraryComparison(library_comparison::rows(&files)?)
            }
        };
        Ok(Results(layout))
    }

    /// Writes the file. The caller provides the buffering.
    ///
    /// # Errors
    /// The error of the writer.
    pub fn write(&self, mut out: impl Write) -> io::Result<()> {
        match &self.0 {
            Layout::Magod2(results) => results.write(&mut out)?,
            Layout::LibraryComparison(rows) => library_comparison::write(rows, &mut out)?,
        }
        out.flush()
    }
}

/// Groups consecutive writes to the same file.
fn files_of(writes: impl Iterator<Item = Operation>) -> Vec<Vec<Operation>> {
    let mut files: Vec<Vec<Operation>> = Vec::new();
    for write in writes {
        match files.last_mut() {
            Some(file) if file.last().is_some_and(|last| last.file == write.file) => {
                file.push(write);
            }
            _ => files.push(vec![write]),
        }
    }
    files
}
