//! Traces as Arrow tables.

use crate::arguments::{column, flag, optional, text, whole};
use crate::columns::{batch_of, batches};
use crate::error::{error, json};
use crate::figures::threshold_ns;
use crate::progress::{Callback, Job, Watch, in_background};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use cardiograph_report::figures_of;
use cardiograph_trace::{
    About, Existing, Loaded, NewFile, Operation, OperationKind, ReadOptions, TimeUnit, WriteError,
    read_with_progress, write_csv_to, write_parquet_to,
};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PySlice};
use serde_json::json as object;
use std::io::{self, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Rows between two looks at the clock.
const ROWS_PER_LOOK: usize = 1 << 16;
/// Bytes of a file between two looks at the clock.
const BYTES_PER_LOOK: usize = 1 << 16;

/// Operations of a file or a run.
#[pyclass(frozen, module = "cardiograph")]
pub struct Trace {
    trace: Arc<cardiograph_trace::Trace>,
    /// `trace` for writes or reads, `recording` for the intervals between samples.
    kind: &'static str,
    /// Properties beyond the operations, as JSON.
    details: String,
    batch: OnceLock<RecordBatch>,
}

impl Trace {
    /// Wraps the trace of a run.
    pub fn of(trace: cardiograph_trace::Trace, warnings: &[String]) -> Trace {
        Trace {
            trace: Arc::new(trace),
            kind: "trace",
            details: object!({ "warnings": warnings }).to_string(),
            batch: OnceLock::new(),
        }
    }

    fn batch(&self) -> PyResult<&RecordBatch> {
        if self.batch.get().is_none() {
            let made = batch_of(&self.trace).map_err(error)?;
            // Another thread may have made the same batch meanwhile.
            drop(self.batch.set(made));
        }
        self.batch
            .get()
            .ok_or_else(|| error("the table is not available; call again"))
    }
}

#[pymethods]
impl Trace {
    fn __len__(&self) -> usize {
        self.trace.len()
    }

    #[getter]
    fn kind(&self) -> &'static str {
        self.kind
    }

    #[getter]
    fn target(&self) -> &str {
        &self.trace.about.target
    }

    #[getter]
    fn workload(&self) -> &str {
        &self.trace.about.workload
    }

    #[getter]
    fn notes(&self) -> Vec<String> {
        self.trace.about.notes.clone()
    }

    #[getter]
    fn _details(&self) -> &str {
        &self.details
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol permits to ignore the request.
        drop(requested_schema);
        let batch = py.detach(|| self.batch())?.clone();
        let schema = batch.schema();
        let batches = RecordBatchIterator::new([Ok(batch)], schema);
        PyCapsule::new_with_value(
            py,
            FFI_ArrowArrayStream::new(Box::new(batches)),
            c"arrow_array_stream",
        )
    }

    /// Copies the columns into arrays of int32, uint32 and four times int64, each with a value per row.
    fn _fill(&self, py: Python<'_>, arrays: [Bound<'_, PyAny>; 6]) -> PyResult<()> {
        let [operation, file, offset, length, start_ns, end_ns] = arrays;
        let mut row = 0;
        batches(&self.trace, |columns| {
            copy(&columns.operation, &operation, row)?;
            copy(&columns.file, &file, row)?;
            copy(&columns.offset, &offset, row)?;
            copy(&columns.length, &length, row)?;
            copy(&columns.start_ns, &start_ns, row)?;
            copy(&columns.end_ns, &end_ns, row)?;
            row += columns.start_ns.len();
            py.check_signals()
        })
    }

    fn _figures(&self, py: Python<'_>, stall_threshold_us: &Bound<'_, PyAny>) -> PyResult<String> {
        let stall_threshold_ns = threshold_ns(stall_threshold_us)?;
        if self.kind != "trace" {
            return Err(error(
                "a recording is analysed from its file; pass the path to analyze",
            ));
        }
        let trace = Arc::clone(&self.trace);
        py.detach(|| {
            let none: Callback = None;
            in_background(Watch::new(&none, 0), move |job| {
                let mut copy = copy_of(&trace, trace.about.clone(), || {
                    job.report(0);
                    ControlFlow::Continue(())
                });
                copy.stop_with(job.stop());
                let report = figures_of(Loaded::Trace(copy), stall_threshold_ns);
                json(&report.summary_with_warnings())
            })
        })
    }

    /// Returns the same trace with the given target and workload; an empty text keeps that of the trace.
    fn _described(
        &self,
        py: Python<'_>,
        target: &Bound<'_, PyAny>,
        workload: &Bound<'_, PyAny>,
    ) -> PyResult<Trace> {
        let mut about = self.trace.about.clone();
        for (own, given) in [
            (&mut about.target, text("target", target)?),
            (&mut about.workload, text("workload", workload)?),
        ] {
            if !given.is_empty() {
                *own = given;
            }
        }
        let trace = match about == self.trace.about {
            true => Arc::clone(&self.trace),
            false => py.detach(|| {
                let none: Callback = None;
                let mut watch = Watch::new(&none, 0);
                let copy = copy_of(&self.trace, about, || watch.show(0));
                watch.end(Ok(Arc::new(copy)))
            })?,
        };
        Ok(Trace {
            trace,
            kind: self.kind,
            details: self.details.clone(),
            batch: OnceLock::new(),
        })
    }

    fn _write(&self, py: Python<'_>, path: PathBuf, force: &Bound<'_, PyAny>) -> PyResult<()> {
        let existing = match flag("force", force)? {
            true => Existing::Replace,
            false => Existing::Keep,
        };
        if self.kind != "trace" {
            return Err(error(
                "table is a recording, and a trace cannot hold its gaps and its number of samples; keep the recording's \
                 own file, or write its intervals with to_pandas()",
            ));
        }
        if self.trace.is_empty() {
            return Err(error(
                "table has no rows; use one with a row per operation, and a reader that nothing has read from before",
            ));
        }
        py.detach(|| {
            let none: Callback = None;
            let mut watch = Watch::new(&none, 0);
            let mut file = NewFile::create_with(&path, existing).map_err(unwritten)?;
            let polled = Polled {
                file: &mut file,
                watch: &mut watch,
            };
            let mut out = BufWriter::with_capacity(BYTES_PER_LOOK, polled);
            let is_csv = path.extension().is_some_and(|extension| extension == "csv");
            let written = match is_csv {
                true => write_csv_to(&self.trace, &mut out),
                false => write_parquet_to(&self.trace, &mut out),
            };
            let written = written.and_then(|()| out.flush());
            drop(out);
            watch.end(written.map_err(|failed| unwritten(WriteError::new(&path, failed))))?;
            file.commit().map_err(unwritten)
        })
    }
}

/// A new file that is given up after a signal.
struct Polled<'a, 'b> {
    file: &'a mut NewFile,
    watch: &'a mut Watch<'b>,
}

impl Write for Polled<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.watch.show(0) {
            ControlFlow::Continue(()) => self.file.write(bytes),
            ControlFlow::Break(()) => Err(io::Error::other("stopped")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Names the argument of Python instead of the option of the command.
fn unwritten(failed: WriteError) -> PyErr {
    let sentence = failed.to_string();
    match sentence.strip_suffix("--force") {
        Some(start) => error(format!("{start}force=True")),
        None => error(sentence),
    }
}

/// Copies values into an array from `row` on.
fn copy<T: Element + Copy>(values: &[T], array: &Bound<'_, PyAny>, row: usize) -> PyResult<()> {
    let py = array.py();
    let rows = PySlice::new(py, row as isize, (row + values.len()) as isize, 1);
    let part = array.get_item(rows)?;
    PyBuffer::get(&part)?.copy_from_slice(py, values)
}

/// Copies a trace under another description, up to a `Break` of `poll`.
fn copy_of(
    trace: &cardiograph_trace::Trace,
    about: About,
    mut poll: impl FnMut() -> ControlFlow<()>,
) -> cardiograph_trace::Trace {
    let mut copy = cardiograph_trace::Trace::new(about);
    for (operation, row) in trace.operations().zip(0usize..) {
        if row.is_multiple_of(ROWS_PER_LOOK) && poll().is_break() {
            break;
        }
        // The operations come from a trace, so they are in order.
        let _ = copy.push(&operation);
    }
    copy
}

/// Parses options of the formats that lack them.
pub fn options(
    block_bytes: &Bound<'_, PyAny>,
    time_unit: &Bound<'_, PyAny>,
    time_column: &Bound<'_, PyAny>,
    latency_column: &Bound<'_, PyAny>,
) -> PyResult<ReadOptions> {
    Ok(ReadOptions {
        time_unit: optional(time_unit, |value| {
            let name = text("time_unit", value)?;
            TimeUnit::named(&name)
                .ok_or_else(|| error(format!("time_unit is {name}; use s, ms, us or ns")))
        })?,
        time_column: optional(time_column, |value| column("time_column", value))?,
        latency_column: optional(latency_column, |value| column("latency_column", value))?,
        ..block_options(block_bytes)?
    })
}

/// Parses the payload of each write, the only option.
pub fn block_options(block_bytes: &Bound<'_, PyAny>) -> PyResult<ReadOptions> {
    let block_bytes = whole("block_bytes", block_bytes, 1..=1 << 30)?;
    Ok(ReadOptions::with_block_bytes(block_bytes))
}

/// Returns the size of a file in bytes; 0 if it is unknown.
pub fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |metadata| metadata.len())
}

/// Reads a file with progress; the passes over its operations end when the job is stopped.
pub fn load(path: &Path, options: &ReadOptions, job: &Job) -> PyResult<Loaded> {
    let before = job.done();
    let loaded = read_with_progress(path, options, &mut |bytes| job.report(before + bytes));
    let mut loaded = loaded.map_err(error)?;
    job.report(before + size(path));
    match &mut loaded {
        Loaded::Trace(trace) => trace.stop_with(job.stop()),
        Loaded::Recording(recording) => recording.trace.stop_with(job.stop()),
        Loaded::Histogram(_) | Loaded::Aggregate(_) => (),
    }
    Ok(loaded)
}

/// Reads a trace or recording.
#[pyfunction]
pub fn read(
    py: Python<'_>,
    path: PathBuf,
    block_bytes: &Bound<'_, PyAny>,
    time_unit: &Bound<'_, PyAny>,
    time_column: &Bound<'_, PyAny>,
    latency_column: &Bound<'_, PyAny>,
    progress: Callback,
) -> PyResult<Trace> {
    let options = options(block_bytes, time_unit, time_column, latency_column)?;
    let name = path.display().to_string();
    let loaded = py.detach(|| {
        let watch = Watch::new(&progress, size(&path));
        in_background(watch, move |job| load(&path, &options, job))
    })?;
    match loaded {
        Loaded::Trace(trace) => Ok(Trace::of(trace, &[])),
        Loaded::Recording(recording) => {
            let details = object!({
                "samples": recording.samples,
                "time_column": recording.time_column,
                "time_unit": recording.time_unit,
                "warnings": [],
            });
            Ok(Trace {
                trace: Arc::new(recording.trace),
                kind: "recording",
                details: details.to_string(),
                batch: OnceLock::new(),
            })
        }
        Loaded::Histogram(_) | Loaded::Aggregate(_) => Err(error(format!(
            "{name}: contains no individual operations; use analyze, which returns its figures"
        ))),
    }
}

/// Creates a trace from columns: each is the memory of little-endian 64-bit numbers.
#[pyfunction]
pub fn trace_of_columns(
    py: Python<'_>,
    columns: [Bound<'_, PyBytes>; 6],
    target: &Bound<'_, PyAny>,
    workload: &Bound<'_, PyAny>,
) -> PyResult<Trace> {
    let (target, workload) = (text("target", target)?, text("workload", workload)?);
    let columns = columns.each_ref().map(|column| column.as_bytes());
    py.detach(|| {
        let rows = columns[0].len() / 8;
        let number = |column: usize, row: usize| -> PyResult<u64> {
            let bytes = columns[column].get(row * 8..row * 8 + 8);
            let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
            let value = bytes.map(i64::from_le_bytes).unwrap_or(-1);
            let names = ["operation", "file", "offset", "length", "start_ns", "end_ns"];
            u64::try_from(value).map_err(|_| {
                error(format!(
                    "row {row}: {} is {value}; use whole numbers from 0",
                    names[column]
                ))
            })
        };
        let mut trace = cardiograph_trace::Trace::new(About {
            target,
            workload,
            ..About::default()
        });
        let none: Callback = None;
        let mut watch = Watch::new(&none, 0);
        for row in 0..rows {
            if row.is_multiple_of(ROWS_PER_LOOK) && watch.show(0).is_break() {
                break;
            }
            let kind = match number(0, row)? {
                0 => OperationKind::Write,
                1 => OperationKind::Read,
                other => {
                    return Err(error(format!(
                        "row {row}: operation is {other}; use 0 for a write and 1 for a read"
                    )));
                }
            };
            let file = u32::try_from(number(1, row)?)
                .map_err(|_| error(format!("row {row}: file is too large; use a number below 2^32")))?;
            let operation = Operation {
                kind,
                file,
                offset_bytes: number(2, row)?,
                length_bytes: number(3, row)?,
                start_ns: number(4, row)?,
                end_ns: number(5, row)?,
            };
            trace.push(&operation).map_err(|_| {
                error(format!(
                    "row {row}: the operation starts before the previous one ends, or ends before it starts; sort the \
                     rows by start_ns"
                ))
            })?;
        }
        watch.end(Ok(Trace::of(trace, &[])))
    })
}
