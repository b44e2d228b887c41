//! Cardiograph Parquet.
//!
//! The encodings make a sequential trace small and fast to read: operation, file and length rarely change, so a
//! dictionary reduces them to runs; offsets and times increase evenly, so they are stored as packed deltas.

use crate::read::COLUMNS;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::io::{self, Write};
use std::sync::Arc;

/// Rows per row group. The columns of a row group are encoded in memory before they are written.
const GROUP_ROWS: usize = 1 << 20;

/// Rows passed to the encoder at once.
const BATCH_ROWS: usize = 1 << 13;

/// Rows per page, the smallest unit that a reader has to decode.
const PAGE_ROWS: usize = 1 << 15;

/// Values in the column `operation`.
pub(crate) const WRITE: i32 = 0;
pub(crate) const READ: i32 = 1;

/// Keys of the footer metadata.
pub(crate) const TARGET: &str = "cardiograph.target";
pub(crate) const WORKLOAD: &str = "cardiograph.workload";
pub(crate) const CLOCK_RESOLUTION: &str = "cardiograph.clock_resolution_ns";
pub(crate) const CLOCK_OVERHEAD: &str = "cardiograph.clock_overhead_ns";
/// Key prefix of notes in the footer, followed by the number of the note.
pub(crate) const NOTE: &str = "cardiograph.note.";
/// Key prefix of phases in the footer, followed by the number of the phase.
pub(crate) const PHASE: &str = "cardiograph.phase.";
/// Key prefix of phases in files written by version 0.1.
pub(crate) const PART_0_1: &str = "cardiograph.part.";

pub(super) fn write(trace: &Trace, out: impl Write + Send) -> io::Result<()> {
    write_groups(trace, out).map_err(|error| match error {
        // Distinguishes a full disk from an encoder error.
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    })
}

fn write_groups(trace: &Trace, out: impl Write + Send) -> Result<(), ParquetError> {
    let mut file =
        SerializedFileWriter::new(out, Arc::new(schema()?), Arc::new(properties(&trace.about)))?;
    let mut operations = trace.operations();
    let mut left = trace.len();
    while left > 0 {
        let rows = left.min(GROUP_ROWS);
        let group = operations.clone().take(rows);
        let mut columns = file.next_row_group()?;
        for (index, _) in COLUMNS.iter().enumerate() {
            if let Some(column) = columns.next_column()? {
                write_column(column, index, group.clone())?;
            }
        }
        columns.close()?;
        left -= rows;
        if left > 0 {
            operations.nth(rows - 1);
        }
    }
    file.close()?;
    Ok(())
}

fn write_column(
    mut column: SerializedColumnWriter<'_>,
    index: usize,
    operations: impl Iterator<Item = Operation>,
) -> Result<(), ParquetError> {
    match index {
        0 => write_values::<Int32Type>(&mut column, operations.map(|o| Ok(code(o.kind)))),
        // The schema declares this 32-bit column as unsigned.
        1 => write_values::<Int32Type>(&mut column, operations.map(|o| Ok(o.file as i32))),
        2 => write_values::<Int64Type>(&mut column, operations.map(|o| fitting(o.offset_bytes))),
        3 => write_values::<Int64Type>(&mut column, operations.map(|o| fitting(o.length_bytes))),
        4 => write_values::<Int64Type>(&mut column, operations.map(|o| fitting(o.start_ns))),
        _ => write_values::<Int64Type>(&mut column, operations.map(|o| fitting(o.end_ns))),
    }?;
    column.close()
}

fn write_values<T: DataType>(
    column: &mut SerializedColumnWriter<'_>,
    mut values: impl Iterator<Item = Result<T::T, ParquetError>>,
) -> Result<(), ParquetError> {
    let writer = column.typed::<T>();
    loop {
        let batch = values
            .by_ref()
            .take(BATCH_ROWS)
            .collect::<Result<Vec<_>, _>>()?;
        if batch.is_empty() {
            return Ok(());
        }
        writer.write_batch(&batch, None, None)?;
    }
}

fn code(kind: OperationKind) -> i32 {
    match kind {
        OperationKind::Write => WRITE,
        OperationKind::Read => READ,
    }
}

fn fitting(number: u64) -> Result<i64, ParquetError> {
    i64::try_from(number)
        .map_err(|_| ParquetError::General(format!("{number} does not fit in 63 bits")))
}

fn schema() -> Result<Type, ParquetError> {
    let fields = COLUMNS
        .iter()
        .enumerate()
        .map(|(index, name)| {
            let column = if index < 2 {
                Type::primitive_type_builder(name, Physical::INT32)
                    .with_logical_type(Some(LogicalType::integer(32, false)))
            } else {
                Type::primitive_type_builder(name, Physical::INT64)
            };
            column
                .with_repetition(Repetition::REQUIRED)
                .build()
                .map(Arc::new)
        })
        .collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("trace")
        .with_fields(fields)
        .build()
}

fn properties(about: &About) -> WriterProperties {
    let column = |index: usize| ColumnPath::from(COLUMNS[index]);
    let mut builder = WriterProperties::builder()
        .set_created_by(concat!("cardiograph ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(key_values(about)))
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true);
    for delta in [2, 4, 5] {
        builder = builder
            .set_column_dictionary_enabled(column(delta), false)
            .set_column_encoding(column(delta), Encoding::DELTA_BINARY_PACKED);
    }
    builder.build()
}

fn key_values(about: &About) -> Vec<KeyValue> {
    let pair = |key: &str, value: String| KeyValue::new(key.to_owned(), value);
    let mut pairs = vec![
        pair(TARGET, about.target.clone()),
        pair(WORKLOAD, about.workload.clone()),
    ];
    let clock = [
        (CLOCK_RESOLUTION, about.clock_resolution_ns),
        (CLOCK_OVERHEAD, about.clock_overhead_ns),
    ];
    pairs.extend(
        clock
            .into_iter()
            .filter_map(|(key, ns)| Some(pair(key, ns?.to_string()))),
    );
    pairs.extend(
        (1..)
            .zip(&about.notes)
            .map(|(number, note)| pair(&format!("{NOTE}{number}"), note.clone())),
    );
    pairs.extend((1..).zip(&about.phases).map(|(number, phase)| {
        let value = format!("{} {}", phase.first_file, phase.label);
        pair(&format!("{PHASE}{number}"), value)
    }));
    pairs
}
