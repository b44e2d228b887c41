//! Traces as Arrow tables.

use crate::arguments::{column, optional, text, whole};
use crate::columns::{batch_of, batches};
use crate::error::{error, json};
use crate::figures::threshold_ns;
use crate::progress::{Callback, Watch};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use cardiograph_trace::{
    About, Existing, Loaded, NewFile, Operation, OperationKind, ReadOptions, TimeUnit, WriteError,
    read_with_progress, write_csv_to, write_parquet_to,
};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PySlice};
use serde_json::json as object;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Operations of a file or a run.
#[pyclass(frozen, module = "cardiograph")]
pub struct Trace {
    trace: cardiograph_trace::Trace,
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
            trace,
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
        py.detach(|| {
            let copy = copy_of(&self.trace);
            let report = cardiograph_report::figures_of(Loaded::Trace(copy), stall_threshold_ns);
            json(&report.summary_with_warnings())
        })
    }

    fn _write(&self, py: Python<'_>, path: PathBuf, force: bool) -> PyResult<()> {
        let existing = match force {
            true => Existing::Replace,
            false => Existing::Keep,
        };
        py.detach(|| {
            let mut file = NewFile::create_with(&path, existing).map_err(unwritten)?;
            let is_csv = path.extension().is_some_and(|extension| extension == "csv");
            let written = match is_csv {
                true => write_csv_to(&self.trace, &mut file),
                false => write_parquet_to(&self.trace, &mut file),
            };
            written.map_err(|failed| unwritten(WriteError::new(&path, failed)))?;
            file.commit().map_err(unwritten)
        })
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

fn copy_of(trace: &cardiograph_trace::Trace) -> cardiograph_trace::Trace {
    let mut copy = cardiograph_trace::Trace::new(trace.about.clone());
    for operation in trace.operations() {
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

/// Reads a file with progress and signals.
pub fn load(path: &Path, options: &ReadOptions, progress: &Callback) -> PyResult<Loaded> {
    let total = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let mut watch = Watch::new(progress, total);
    // A reader cannot be stopped; a signal is raised at its end.
    let loaded = read_with_progress(path, options, &mut |bytes| {
        let _ = watch.show(bytes);
    });
    watch.end(loaded.map_err(error))
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
    py.detach(|| match load(&path, &options, &progress)? {
        Loaded::Trace(trace) => Ok(Trace::of(trace, &[])),
        Loaded::Recording(recording) => {
            let details = object!({
                "samples": recording.samples,
                "time_column": recording.time_column,
                "time_unit": recording.time_unit,
                "warnings": [],
            });
            Ok(Trace {
                trace: recording.trace,
                kind: "recording",
                details: details.to_string(),
                batch: OnceLock::new(),
            })
        }
        Loaded::Histogram(_) | Loaded::Aggregate(_) => Err(error(format!(
            "{name}: contains no individual operations; use analyze, which returns its figures"
        ))),
    })
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
        for row in 0..rows {
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
        Ok(Trace::of(trace, &[]))
    })
}
