//! Presents a Parquet file whose columns are not those of a trace as the text of a CSV table.
//!
//! The readers of tables then determine the meaning of its columns. Columns of lists, decimals and other types that are
//! neither numbers, times nor texts are omitted.

use super::error::{Fault, Problem};
use super::parquet::{check_rows, decoded, footer};
use super::parquet_pages::{CheckedPages, check_chunk};
use super::parquet_units::time_unit_of;
use super::role::role;
use parquet::basic::{LogicalType, Type as Physical};
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::{
    BoolType, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::file::metadata::{FileMetaData, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::reader::ChunkReader;
use std::io::{self, Read, Write};
use std::sync::Arc;

/// Number of rows converted at once.
const BATCH_ROWS: usize = 1 << 12;

/// The text of a table, converted while it is read.
pub(super) struct Table<C> {
    file: Arc<C>,
    metadata: ParquetMetaData,
    length_bytes: u64,
    /// Indices of the columns that are converted.
    indices: Vec<usize>,
    groups_begun: usize,
    rows_left: usize,
    columns: Vec<Box<dyn Cells>>,
    text: Vec<u8>,
    /// Bytes of the text already taken.
    taken: usize,
    /// Error that ended the text.
    fault: Option<Fault>,
}

impl<C: ChunkReader + 'static> Table<C> {
    /// Opens a file; returns `None` if it has no column that a table can show.
    pub(super) fn open(file: Arc<C>) -> Result<Option<Table<C>>, Fault> {
        let length_bytes = file.len();
        let footer = footer(&*file, length_bytes)?;
        let metadata = decoded(|| ParquetMetaDataReader::decode_metadata(&footer))?;
        check_rows(&metadata, length_bytes)?;
        let names = metadata.file_metadata();
        let indices: Vec<usize> = (0..names.schema_descr().num_columns())
            .filter(|index| is_plain(names, *index))
            .collect();
        let header: Vec<String> = indices.iter().map(|index| name(names, *index)).collect();
        let mut text = header.join(",").into_bytes();
        text.push(b'\n');
        Ok((!indices.is_empty()).then_some(Table {
            file,
            metadata,
            length_bytes,
            indices,
            groups_begun: 0,
            rows_left: 0,
            columns: Vec::new(),
            text,
            taken: 0,
            fault: None,
        }))
    }

    /// Returns a note on columns that the table omits.
    pub(super) fn note(&self) -> Option<String> {
        let columns = self
            .metadata
            .file_metadata()
            .schema_descr()
            .columns()
            .iter();
        let left_out = columns
            .enumerate()
            .filter(|(index, _)| !self.indices.contains(index));
        let names: Vec<String> = left_out
            .map(|(_, column)| super::error::shown(column.path().string().as_bytes()))
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "Columns that are neither numbers, times nor texts are left out: {}.",
                names.join(", ")
            )
        })
    }

    /// Returns the error that ended the text early.
    pub(super) fn into_fault(self) -> Option<Fault> {
        self.fault
    }

    /// Converts the next rows; leaves the text empty at the end of the file.
    fn convert(&mut self) -> Result<(), Fault> {
        self.text.clear();
        self.taken = 0;
        while self.rows_left == 0 {
            if self.groups_begun == self.metadata.num_row_groups() {
                return Ok(());
            }
            self.begin_group()?;
        }
        let rows = self.rows_left.min(BATCH_ROWS);
        for column in &mut self.columns {
            column.decode(rows)?;
        }
        for _ in 0..rows {
            for (column, index) in self.columns.iter_mut().zip(0..) {
                if index > 0 {
                    self.text.push(b',');
                }
                column.show_next(&mut self.text);
            }
            self.text.push(b'\n');
        }
        self.rows_left -= rows;
        Ok(())
    }

    fn begin_group(&mut self) -> Result<(), Fault> {
        let group = self.metadata.row_group(self.groups_begun);
        let rows = usize::try_from(group.num_rows()).unwrap_or(0);
        let open = |index: &usize| {
            check_chunk(group.column(*index), self.length_bytes)?;
            let pages = CheckedPages::open(&self.file, group, *index, rows)?;
            let is_unsigned = matches!(
                pages.column().logical_type_ref(),
                Some(LogicalType::Integer(kind)) if !kind.is_signed
            );
            Ok(match (pages.column().physical_type(), is_unsigned) {
                (Physical::BOOLEAN, _) => column::<BoolType>(pages, |value, text| {
                    text.push(b'0' + u8::from(*value));
                }),
                (Physical::INT32, false) => column::<Int32Type>(pages, shown),
                (Physical::INT32, true) => {
                    column::<Int32Type>(pages, |value, text| shown(&(*value as u32), text))
                }
                (Physical::INT64, false) => column::<Int64Type>(pages, shown),
                (Physical::INT64, true) => {
                    column::<Int64Type>(pages, |value, text| shown(&(*value as u64), text))
                }
                (Physical::FLOAT, _) => column::<FloatType>(pages, shown),
                (Physical::DOUBLE, _) => column::<DoubleType>(pages, shown),
                _ => column::<ByteArrayType>(pages, |value, text| show_text(value.data(), text)),
            })
        };
        self.columns = self
            .indices
            .iter()
            .map(open)
            .collect::<Result<_, Fault>>()?;
        self.rows_left = rows;
        self.groups_begun += 1;
        Ok(())
    }
}

impl<C: ChunkReader + 'static> Read for Table<C> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.text.len()
            && self.fault.is_none()
            && let Err(fault) = self.convert()
        {
            self.text.clear();
            self.fault = Some(fault);
        }
        if self.fault.is_some() {
            return Err(io::Error::other("the Parquet file is damaged"));
        }
        let taken = (&self.text[self.taken..]).read(buffer)?;
        self.taken += taken;
        Ok(taken)
    }
}

/// Returns true for a column of numbers, times or texts.
fn is_plain(file: &FileMetaData, index: usize) -> bool {
    let column = file.schema_descr().column(index);
    let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
    let logical = column.logical_type_ref();
    is_flat
        && match column.physical_type() {
            Physical::BYTE_ARRAY => {
                matches!(
                    logical,
                    None | Some(LogicalType::String | LogicalType::Enum)
                )
            }
            Physical::BOOLEAN | Physical::FLOAT | Physical::DOUBLE => logical.is_none(),
            Physical::INT32 | Physical::INT64 => matches!(
                logical,
                None | Some(
                    LogicalType::Integer(_) | LogicalType::Time(_) | LogicalType::Timestamp(_)
                )
            ),
            Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => false,
        }
}

/// Returns the name of a column, followed by the unit of its type unless the name already states this unit.
fn name(file: &FileMetaData, index: usize) -> String {
    let column = file.schema_descr().column(index);
    let mut text = Vec::new();
    show_text(column.name().as_bytes(), &mut text);
    let name = String::from_utf8_lossy(&text).into_owned();
    match time_unit_of(file, index) {
        Some(unit) if role(name.as_bytes()).1 != Some(unit) => format!("{name}_{}", unit.name),
        _ => name,
    }
}

/// Decodes the cells of a column, and appends them to a text one at a time.
trait Cells {
    fn decode(&mut self, rows: usize) -> Result<(), Fault>;
    fn show_next(&mut self, text: &mut Vec<u8>);
}

struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// Values of the last rows decoded, without the missing ones.
    values: Vec<T::T>,
    /// For each of these rows, 1 for a value and 0 for a missing one; empty if no value may be missing.
    levels: Vec<i16>,
    row: usize,
    value: usize,
    show: fn(&T::T, &mut Vec<u8>),
}

fn column<T: DataType>(pages: CheckedPages, show: fn(&T::T, &mut Vec<u8>)) -> Box<dyn Cells> {
    Box::new(Column::<T> {
        reader: ColumnReaderImpl::new(pages.column(), Box::new(pages)),
        values: Vec::new(),
        levels: Vec::new(),
        row: 0,
        value: 0,
        show,
    })
}

impl<T: DataType> Cells for Column<T> {
    fn decode(&mut self, rows: usize) -> Result<(), Fault> {
        self.values.clear();
        self.levels.clear();
        (self.row, self.value) = (0, 0);
        let (reader, values, levels) = (&mut self.reader, &mut self.values, &mut self.levels);
        let (found, ..) = decoded(|| reader.read_records(rows, Some(levels), None, values))?;
        let present = match self.levels.is_empty() {
            true => rows,
            false => self.levels.iter().filter(|level| **level > 0).count(),
        };
        match found == rows && self.values.len() == present {
            true => Ok(()),
            false => Err(Problem::ParquetDamaged("a column ends too early".to_owned()).in_file()),
        }
    }

    fn show_next(&mut self, text: &mut Vec<u8>) {
        let is_missing = self.levels.get(self.row).is_some_and(|level| *level == 0);
        self.row += 1;
        if is_missing {
            text.extend(b"null");
        } else if let Some(value) = self.values.get(self.value) {
            (self.show)(value, text);
            self.value += 1;
        }
    }
}

fn shown<T: std::fmt::Display>(value: &T, text: &mut Vec<u8>) {
    write!(text, "{value}").unwrap_or_default();
}

/// Appends a text, with spaces in place of separators, quotes and control characters.
fn show_text(value: &[u8], text: &mut Vec<u8>) {
    let is_safe = |byte: &u8| !byte.is_ascii_control() && !b",;\"\t".contains(byte);
    text.extend(
        value
            .iter()
            .map(|byte| if is_safe(byte) { *byte } else { b' ' }),
    );
}
