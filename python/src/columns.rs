//! The columns of a trace, which are those of Cardiograph's Parquet files.

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, UInt32Array};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use cardiograph_trace::{OperationKind, Run, RunOrder, Trace};
use std::convert::Infallible;
use std::iter::repeat_n;
use std::sync::Arc;

/// Rows of a batch: all columns fit in the processor's cache.
const BATCH_ROWS: usize = 1 << 12;

/// Consecutive rows of a trace, or all of them.
#[derive(Default)]
pub struct Columns {
    pub operation: Vec<i32>,
    pub file: Vec<u32>,
    pub offset: Vec<i64>,
    pub length: Vec<i64>,
    pub start_ns: Vec<i64>,
    pub end_ns: Vec<i64>,
}

impl Columns {
    fn with_capacity(rows: usize) -> Columns {
        let numbers = || Vec::with_capacity(rows);
        Columns {
            operation: Vec::with_capacity(rows),
            file: Vec::with_capacity(rows),
            offset: numbers(),
            length: numbers(),
            start_ns: numbers(),
            end_ns: numbers(),
        }
    }

    fn clear(&mut self) {
        self.operation.clear();
        self.file.clear();
        self.offset.clear();
        self.length.clear();
        self.start_ns.clear();
        self.end_ns.clear();
    }

    fn append(&mut self, other: &Columns) {
        self.operation.extend_from_slice(&other.operation);
        self.file.extend_from_slice(&other.file);
        self.offset.extend_from_slice(&other.offset);
        self.length.extend_from_slice(&other.length);
        self.start_ns.extend_from_slice(&other.start_ns);
        self.end_ns.extend_from_slice(&other.end_ns);
    }

    /// Appends kind, file, offset and length of `count` operations of a run, from `first` on. `scattered` has their offsets, if the run is
    /// scattered, in units of their length.
    fn push_run(
        &mut self,
        run: &Run,
        first: u64,
        count: usize,
        scattered: &mut impl Iterator<Item = u32>,
    ) {
        let kind = match run.kind {
            OperationKind::Write => 0,
            OperationKind::Read => 1,
        };
        self.operation.extend(repeat_n(kind, count));
        self.length.extend(repeat_n(run.length_bytes as i64, count));
        let indices = first..first + count as u64;
        if run.order == RunOrder::Scattered {
            let units = scattered.take(count).map(u64::from);
            let offsets = units.map(|units| (units * run.length_bytes) as i64);
            self.file.extend(indices.map(|index| run.file_of(index)));
            self.offset.extend(offsets);
            return;
        }
        // The rule of most runs is simple enough for vector instructions.
        if run.files == 1 {
            let (offset, length) = (run.offset_bytes as i64, run.length_bytes as i64);
            let at = |index| offset.wrapping_add(length.wrapping_mul(index as i64));
            self.file.extend(repeat_n(run.file, count));
            self.offset.extend(indices.map(at));
        } else {
            for (file, offset_bytes) in indices.map(|index| run.file_and_offset(index)) {
                self.file.push(file);
                self.offset.push(offset_bytes as i64);
            }
        }
    }
}

/// The next operation in the runs of a trace.
struct Cursor<'a, S> {
    runs: &'a [Run],
    /// Number of the operation in its run.
    index: u64,
    scattered: S,
}

impl<S: Iterator<Item = u32>> Cursor<'_, S> {
    fn take(&mut self, rows: usize, columns: &mut Columns) {
        let mut left = rows;
        while let Some((run, later)) = self.runs.split_first().filter(|_| left > 0) {
            let count = left.min((run.count - self.index) as usize);
            columns.push_run(run, self.index, count, &mut self.scattered);
            left -= count;
            self.index += count as u64;
            if self.index == run.count {
                (self.runs, self.index) = (later, 0);
            }
        }
    }
}

/// Calls `take` with all rows in batches, in order, up to its first error.
pub fn batches<E>(trace: &Trace, mut take: impl FnMut(&Columns) -> Result<(), E>) -> Result<(), E> {
    let mut columns = Columns::with_capacity(BATCH_ROWS);
    let mut cursor = Cursor {
        runs: trace.runs(),
        index: 0,
        scattered: trace.scattered_offsets(),
    };
    let mut result = Ok(());
    let mut finish = |columns: &mut Columns| {
        cursor.take(columns.start_ns.len(), columns);
        if result.is_ok() {
            result = take(columns);
        }
        columns.clear();
    };
    trace.times(|start_ns, end_ns| {
        columns.start_ns.push(start_ns as i64);
        columns.end_ns.push(end_ns as i64);
        if columns.start_ns.len() == BATCH_ROWS {
            finish(&mut columns);
        }
    });
    finish(&mut columns);
    result
}

/// Converts a trace.
pub fn batch_of(trace: &Trace) -> Result<RecordBatch, ArrowError> {
    let mut all = Columns::with_capacity(trace.len());
    let taken: Result<(), Infallible> = batches(trace, |columns| {
        all.append(columns);
        Ok(())
    });
    let Ok(()) = taken;
    let field = |name: &str, kind| Field::new(name, kind, false);
    let schema = Schema::new(vec![
        field("operation", DataType::Int32),
        field("file", DataType::UInt32),
        field("offset", DataType::Int64),
        field("length", DataType::Int64),
        field("start_ns", DataType::Int64),
        field("end_ns", DataType::Int64),
    ]);
    let arrays: Vec<ArrayRef> = vec![
        Arc::new(Int32Array::from(all.operation)),
        Arc::new(UInt32Array::from(all.file)),
        Arc::new(Int64Array::from(all.offset)),
        Arc::new(Int64Array::from(all.length)),
        Arc::new(Int64Array::from(all.start_ns)),
        Arc::new(Int64Array::from(all.end_ns)),
    ];
    RecordBatch::try_new(Arc::new(schema), arrays)
}
