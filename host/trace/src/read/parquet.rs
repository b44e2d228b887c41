//! Reader of Cardiograph Parquet, described in docs/formats.md.
//!
//! A foreign file may contain anything, so the claims of the footer and the page headers are checked against the
//! actual bytes before the decoder sees them.

use super::error::{Fault, Problem};
use super::guard::guarded;
use super::parquet_about::merged;
use super::parquet_pages::{CheckedPages, check_chunk};
use super::parquet_units::unit_of;
use super::thrift::is_sound;
use super::{COLUMNS, ReadOptions};
use crate::trace::{About, Trace};
use crate::write::{READ, WRITE};
use bytes::Bytes;
use cardiograph_workload::{Operation, OperationKind};
use parquet::basic::Type as Physical;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use parquet::schema::types::ColumnDescPtr;
use std::sync::Arc;

/// Number of rows decoded at once; all columns of these rows stay in the processor's cache.
const BATCH_ROWS: usize = 1 << 12;

/// Maximum number of rows per byte of a valid file: in a perfectly regular trace, 256 rows take about 30 bytes of
/// packed deltas.
const ROWS_PER_BYTE_MAX: u64 = 64;

const COLUMN_COUNT: usize = COLUMNS.len();

const FOOTER_MAGIC: &[u8] = b"PAR1";

/// Refuses options that Parquet traces would ignore.
fn refuse(options: &ReadOptions) -> Result<(), Fault> {
    match options.first_set() {
        Some(option) => {
            let format = "Parquet trace";
            Err(Problem::FixedFormat { format, option }.in_file())
        }
        None => Ok(()),
    }
}

/// Reads a file; reports the number of bytes in finished row groups to `progress`.
pub(super) fn read<C: ChunkReader + 'static>(
    file: &Arc<C>,
    about: About,
    options: &ReadOptions,
    progress: &mut dyn FnMut(u64),
) -> Result<Trace, Fault> {
    let length_bytes = file.len();
    let footer = footer(&**file, length_bytes)?;
    let metadata = decoded(|| ParquetMetaDataReader::decode_metadata(&footer))?;
    let indices = check_columns(metadata.file_metadata())?;
    refuse(options)?;
    let factors = factors(metadata.file_metadata(), indices)?;
    check_rows(&metadata, length_bytes)?;
    let mut trace = Trace::new(merged(about, metadata.file_metadata()));
    let mut done_bytes = 0_u64;
    for group in 0..metadata.num_row_groups() {
        Group::new(file, &metadata, group, indices, length_bytes)?.read(&mut trace, factors)?;
        let group_bytes = metadata.row_group(group).compressed_size();
        done_bytes = done_bytes.saturating_add(u64::try_from(group_bytes).unwrap_or(0));
        // In a damaged file, row groups may share bytes.
        progress(done_bytes.min(length_bytes));
    }
    Ok(trace)
}

/// Returns the footer: the structure at the end of a file that describes its contents.
pub(super) fn footer(file: &impl ChunkReader, length_bytes: u64) -> Result<Bytes, Fault> {
    // The file ends with four bytes of length and the magic number, and starts with another magic number.
    let end = length_bytes
        .checked_sub(8)
        .filter(|&end| end >= 4)
        .and_then(|end| file.get_bytes(end, 8).ok());
    let Some((length, magic)) = end.as_deref().and_then(|end| end.split_first_chunk()) else {
        return Err(Problem::ParquetTruncated.in_file());
    };
    if magic != FOOTER_MAGIC {
        return Err(Problem::ParquetTruncated.in_file());
    }
    let length = u32::from_le_bytes(*length);
    (length_bytes - 12)
        .checked_sub(u64::from(length))
        .and_then(|_| {
            let start = length_bytes - 8 - u64::from(length);
            file.get_bytes(start, length as usize).ok()
        })
        .filter(|footer| is_sound(footer))
        .ok_or_else(|| Problem::ParquetDamaged("its footer is malformed".to_owned()).in_file())
}

/// Runs the decoder and converts its errors and panics.
pub(super) fn decoded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, Fault> {
    match guarded(decode) {
        Some(result) => result.map_err(|error| damaged(&error)),
        None => Err(Problem::ParquetDamaged("it cannot be decoded".to_owned()).in_file()),
    }
}

fn damaged(error: &ParquetError) -> Fault {
    // The decoder's message may quote the file at length, so shorten it.
    let text: String = error.to_string().chars().take(200).collect();
    Problem::ParquetDamaged(text.escape_debug().to_string()).in_file()
}

/// Returns the index of each column of a trace. Other programs may add columns and change the order.
fn check_columns(file: &FileMetaData) -> Result<[usize; COLUMN_COUNT], Fault> {
    let columns = file.schema_descr().columns();
    let mut indices = [0; COLUMN_COUNT];
    let mut are_ours = true;
    for (slot, (at, name)) in indices.iter_mut().zip(COLUMNS.iter().enumerate()) {
        let physical = if at < 2 {
            Physical::INT32
        } else {
            Physical::INT64
        };
        let index = columns.iter().position(|column| {
            column.path().string() == *name
                && column.physical_type() == physical
                && column.max_def_level() <= 1
                && column.max_rep_level() == 0
        });
        are_ours &= index.is_some();
        *slot = index.unwrap_or(0);
    }
    if are_ours {
        return Ok(indices);
    }
    let has = |name: &&str| {
        columns
            .iter()
            .any(|column| column.path().string() == **name)
    };
    let are_named = COLUMNS.iter().all(has);
    let is_other = |at: usize| {
        let mut named = columns
            .iter()
            .filter(|column| column.path().string() == COLUMNS[at]);
        named.any(|column| column.physical_type() != Physical::INT32)
    };
    if are_named && (is_other(0) || is_other(1)) {
        return Err(Problem::ParquetTypes.in_file());
    }
    const SHOWN_MAX: usize = 10;
    let mut found: Vec<String> = columns
        .iter()
        .take(SHOWN_MAX)
        .map(|column| {
            let optional = if column.max_def_level() > 0 {
                " optional"
            } else {
                ""
            };
            let name = super::error::shown(column.path().string().as_bytes());
            format!("{name} ({}{optional})", column.physical_type())
        })
        .collect();
    if columns.len() > SHOWN_MAX {
        found.push("...".to_owned());
    }
    let found = found.join(", ");
    let is_ours = |column: &&ColumnDescPtr| {
        let mut names = COLUMNS.iter();
        names.any(|name| name.eq_ignore_ascii_case(column.name()))
    };
    let is_trace = 2 * columns.iter().filter(is_ours).count() > COLUMN_COUNT;
    Err(Problem::ParquetColumns { found, is_trace }.in_file())
}

/// Returns the lengths of the units of the starts and of the ends, in ns.
fn factors(file: &FileMetaData, indices: [usize; COLUMN_COUNT]) -> Result<[i64; 2], Fault> {
    let [.., start, end] = indices;
    let factor = |index: usize| {
        let unit = unit_of(file, index).ok_or_else(|| {
            let name = file.schema_descr().column(index).name().to_owned();
            let found = format!("{name} of a type that is neither a number nor a time");
            let is_trace = true;
            Problem::ParquetColumns { found, is_trace }.in_file()
        })?;
        Ok(10_i64.pow(unit.power.unsigned_abs()))
    };
    Ok([factor(start)?, factor(end)?])
}

/// Checks that the file can hold the declared rows, because memory is reserved for them.
pub(super) fn check_rows(metadata: &ParquetMetaData, length_bytes: u64) -> Result<(), Fault> {
    let rows = metadata.row_groups().iter().try_fold(0_u64, |rows, group| {
        rows.checked_add(u64::try_from(group.num_rows()).ok()?)
    });
    match rows {
        Some(rows) if rows <= length_bytes.saturating_mul(ROWS_PER_BYTE_MAX) => Ok(()),
        rows => Err(Problem::ParquetRows {
            rows: rows.unwrap_or(u64::MAX),
            bytes: length_bytes,
        }
        .in_file()),
    }
}

/// The columns of a row group, decoded together in batches of rows.
struct Group {
    rows: usize,
    operation: Column<Int32Type>,
    file: Column<Int32Type>,
    offset: Column<Int64Type>,
    length: Column<Int64Type>,
    start: Column<Int64Type>,
    end: Column<Int64Type>,
}

impl Group {
    fn new<C: ChunkReader + 'static>(
        file: &Arc<C>,
        metadata: &ParquetMetaData,
        group: usize,
        indices: [usize; COLUMN_COUNT],
        length_bytes: u64,
    ) -> Result<Group, Fault> {
        let group = metadata.row_group(group);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        for index in indices {
            check_chunk(group.column(index), length_bytes)?;
        }
        let [operation, number, offset, length, start, end] = indices;
        Ok(Group {
            rows,
            operation: Column::new(
                CheckedPages::open(file, group, operation, rows)?,
                COLUMNS[0],
            ),
            file: Column::new(CheckedPages::open(file, group, number, rows)?, COLUMNS[1]),
            offset: Column::new(CheckedPages::open(file, group, offset, rows)?, COLUMNS[2]),
            length: Column::new(CheckedPages::open(file, group, length, rows)?, COLUMNS[3]),
            start: Column::new(CheckedPages::open(file, group, start, rows)?, COLUMNS[4]),
            end: Column::new(CheckedPages::open(file, group, end, rows)?, COLUMNS[5]),
        })
    }

    fn read(mut self, trace: &mut Trace, factors: [i64; 2]) -> Result<(), Fault> {
        let mut left = self.rows;
        while left > 0 {
            let rows = left.min(BATCH_ROWS);
            self.operation.decode(rows)?;
            self.file.decode(rows)?;
            self.offset.decode(rows)?;
            self.length.decode(rows)?;
            self.start.decode(rows)?;
            self.end.decode(rows)?;
            let are_ns = scale(&mut self.start.values, factors[0])
                .and_then(|()| scale(&mut self.end.values, factors[1]));
            if are_ns.is_none() {
                let column = "start_ns or end_ns".to_owned();
                let text = format!("above {}", i64::MAX / factors[0].max(factors[1]));
                return Err(Problem::TooLarge { column, text }.at_row(trace.len() as u64 + 1));
            }
            self.push_batch(trace)?;
            left -= rows;
        }
        Ok(())
    }

    fn push_batch(&self, trace: &mut Trace) -> Result<(), Fault> {
        let rows = self.start.values.len();
        let mut at = 0;
        while at < rows {
            let taken = match self.operation_at(at) {
                Some(first) => {
                    let count = self.run_from(at, &first);
                    let starts = self.start.values[at..at + count].iter();
                    let ends = self.end.values[at..at + count].iter();
                    let times = starts
                        .zip(ends)
                        .map(|(&start, &end)| (start as u64, end as u64));
                    trace.push_run(&first, times) as usize
                }
                None => 0,
            };
            if taken == 0 {
                let row = trace.len() as u64 + 1;
                return Err(self.mistake(at, trace).at_row(row));
            }
            at += taken;
        }
        Ok(())
    }

    /// Returns a row, or `None` if its values are invalid.
    fn operation_at(&self, at: usize) -> Option<Operation> {
        let number = |column: &Column<Int64Type>| u64::try_from(column.values[at]).ok();
        Some(Operation {
            kind: match self.operation.values[at] {
                WRITE => OperationKind::Write,
                READ => OperationKind::Read,
                _ => return None,
            },
            file: self.file.values[at] as u32,
            offset_bytes: number(&self.offset)?,
            length_bytes: number(&self.length)?,
            start_ns: number(&self.start)?,
            end_ns: number(&self.end)?,
        })
    }

    /// Returns the number of consecutive rows from `at` on that form a run and have no negative times.
    fn run_from(&self, at: usize, first: &Operation) -> usize {
        let (kind, file) = (self.operation.values[at], self.file.values[at]);
        let length = first.length_bytes as i64;
        let mut offset = first.offset_bytes as i64;
        let columns = (self.operation.values[at..]
            .iter()
            .zip(&self.file.values[at..]))
        .zip(
            self.offset.values[at..]
                .iter()
                .zip(&self.length.values[at..]),
        )
        .zip(self.start.values[at..].iter().zip(&self.end.values[at..]));
        let mut count = 0;
        for (((&k, &f), (&o, &l)), (&start, &end)) in columns {
            if k != kind || f != file || l != length || o != offset || start | end < 0 {
                break;
            }
            // An offset that wrapped is negative, and no valid row has a negative offset.
            offset = offset.wrapping_add(length);
            if offset < 0 {
                return count + 1;
            }
            count += 1;
        }
        count
    }

    /// Returns the problem with a row that could not be appended to the trace.
    #[cold]
    fn mistake(&self, at: usize, trace: &Trace) -> Problem {
        let kind = self.operation.values[at];
        if kind != WRITE && kind != READ {
            return Problem::Operation {
                text: kind.to_string(),
            };
        }
        let columns = [&self.offset, &self.length, &self.start, &self.end];
        let numbers = columns.map(|column| column.values[at]);
        if let Some((number, column)) = numbers.iter().zip(&COLUMNS[2..]).find(|(n, _)| **n < 0) {
            return Problem::Negative {
                column: (*column).to_owned(),
                text: number.to_string(),
            };
        }
        let [_, _, start, end] = numbers.map(|number| number.to_string());
        if numbers[3] < numbers[2] {
            Problem::EndBeforeStart { start, end }
        } else {
            Problem::Backward {
                time: start,
                before: trace.last_end_ns().to_string(),
            }
        }
    }
}

/// Converts times to ns; returns `None` if one is out of range.
fn scale(times: &mut [i64], factor: i64) -> Option<()> {
    if factor == 1 {
        return Some(());
    }
    times.iter_mut().try_for_each(|time| {
        *time = time.checked_mul(factor)?;
        Some(())
    })
}

/// A column and its most recently decoded values.
struct Column<T: DataType> {
    name: &'static str,
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
    /// 0 for a missing value, 1 for a value; empty if all values are required.
    levels: Vec<i16>,
}

impl<T: DataType> Column<T> {
    fn new(pages: CheckedPages, name: &'static str) -> Column<T> {
        Column {
            name,
            levels: Vec::new(),
            reader: ColumnReaderImpl::new(pages.column(), Box::new(pages)),
            values: Vec::with_capacity(BATCH_ROWS),
        }
    }

    /// Decodes exactly `rows` values.
    fn decode(&mut self, rows: usize) -> Result<(), Fault> {
        self.values.clear();
        self.levels.clear();
        let (reader, values, levels) = (&mut self.reader, &mut self.values, &mut self.levels);
        let (found, _, _) = decoded(|| reader.read_records(rows, Some(levels), None, values))?;
        if found == rows && self.values.len() == rows {
            Ok(())
        } else if found == rows {
            Err(Problem::ParquetNull { column: self.name }.in_file())
        } else {
            Err(Problem::ParquetDamaged("a column ends too early".to_owned()).in_file())
        }
    }
}
