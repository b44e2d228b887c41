//! Results as Parquet: a file per part, a row per recording and buffer size. The card is in the folder's name.

use crate::SweepError;
use crate::sweep::fnv_1a;
use crate::task::Row;
use ::parquet::basic::{LogicalType, Repetition, Type as Physical};
use ::parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;
use ::parquet::file::reader::{FileReader, SerializedFileReader};
use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use ::parquet::schema::types::Type;
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Kind of a column.
#[derive(Clone, Copy)]
enum Kind {
    Text,
    Bool,
    Small,
    Large,
    OptionalLarge,
}

const COLUMNS: [(&str, Kind); 13] = [
    ("mode", Kind::Text),
    ("member", Kind::Small),
    ("board", Kind::Text),
    ("policy", Kind::Text),
    ("rate_hz", Kind::Small),
    ("sample_bytes", Kind::Small),
    ("buffer_bytes", Kind::Large),
    ("run_s", Kind::Large),
    ("seed", Kind::Large),
    ("task", Kind::Large),
    ("lost", Kind::Bool),
    ("lost_samples", Kind::OptionalLarge),
    ("peak_backlog_bytes", Kind::Large),
];

/// Columns of a result that the answer groups by, and the result.
pub(crate) struct Outcome {
    pub(crate) board: String,
    pub(crate) policy: String,
    pub(crate) member: u32,
    pub(crate) rate_hz: u32,
    pub(crate) buffer_bytes: u64,
    pub(crate) lost: bool,
}

/// Key of the sweep and the part in the metadata of a file.
const ORIGIN: &str = "cardiograph.part";
/// Key of the checksum, which covers every byte of the file: it is computed with [`NO_CHECKSUM`] in its place.
const CHECKSUM: &str = "cardiograph.checksum";
const NO_CHECKSUM: &str = "0000000000000000";

/// Writes rows as a Parquet file that states its origin and a checksum; equal rows give equal bytes.
pub(crate) fn to_bytes(rows: &[Row], origin: &str) -> Result<Vec<u8>, SweepError> {
    let write = || -> Result<Vec<u8>, ParquetError> {
        let properties = WriterProperties::builder()
            .set_created_by(concat!("cardiograph ", env!("CARGO_PKG_VERSION")).to_owned())
            .set_offset_index_disabled(true)
            .set_key_value_metadata(Some(vec![
                KeyValue::new(ORIGIN.to_string(), origin.to_string()),
                KeyValue::new(CHECKSUM.to_string(), NO_CHECKSUM.to_string()),
            ]))
            .build();
        let mut file =
            SerializedFileWriter::new(Vec::new(), Arc::new(schema()?), Arc::new(properties))?;
        let mut group = file.next_row_group()?;
        write_group(&mut group, rows)?;
        group.close()?;
        let mut bytes = file.into_inner()?;
        let sum = checksum(&bytes);
        if let Some(place) = place_of(&bytes, NO_CHECKSUM) {
            bytes[place].copy_from_slice(sum.as_bytes());
        }
        Ok(bytes)
    };
    write().map_err(|error| SweepError::new(format!("the results cannot be encoded: {error}")))
}

/// Returns the checksum of a file as 16 hexadecimal digits.
fn checksum(bytes: &[u8]) -> String {
    format!("{:016x}", fnv_1a(bytes))
}

/// Returns the place of a checksum: behind the last key, in the metadata at the end of the file.
fn place_of(bytes: &[u8], sum: &str) -> Option<Range<usize>> {
    let last = |wanted: &[u8]| {
        bytes
            .windows(wanted.len())
            .rposition(|place| place == wanted)
    };
    let start = last(sum.as_bytes())?;
    (last(CHECKSUM.as_bytes())? < start).then_some(start..start + sum.len())
}

/// Refuses a file in which any bit has changed.
fn verify(bytes: &mut [u8], sum: &str) -> Result<(), ParquetError> {
    let is_sound = sum.len() == NO_CHECKSUM.len()
        && place_of(bytes, sum).is_some_and(|place| {
            bytes[place].copy_from_slice(NO_CHECKSUM.as_bytes());
            checksum(bytes) == sum
        });
    match is_sound {
        true => Ok(()),
        false => Err(ParquetError::General("its checksum differs".to_string())),
    }
}

fn schema() -> Result<Type, ParquetError> {
    let column = |(name, kind): &(&str, Kind)| {
        let physical = match kind {
            Kind::Text => Physical::BYTE_ARRAY,
            Kind::Bool => Physical::BOOLEAN,
            Kind::Small => Physical::INT32,
            Kind::Large | Kind::OptionalLarge => Physical::INT64,
        };
        let repetition = match kind {
            Kind::OptionalLarge => Repetition::OPTIONAL,
            _ => Repetition::REQUIRED,
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        let builder = match kind {
            Kind::Text => builder.with_logical_type(Some(LogicalType::String)),
            _ => builder,
        };
        builder.build().map(Arc::new)
    };
    let columns = COLUMNS.iter().map(column).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("sweep")
        .with_fields(columns)
        .build()
}

fn write_group(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let text = |value: &str| ByteArray::from(value.as_bytes().to_vec());
    column::<ByteArrayType>(group, rows, |row| text(row.mode))?;
    column::<Int32Type>(group, rows, |row| row.member as i32)?;
    column::<ByteArrayType>(group, rows, |row| text(&row.board))?;
    column::<ByteArrayType>(group, rows, |row| text(row.policy))?;
    column::<Int32Type>(group, rows, |row| row.rate_hz as i32)?;
    column::<Int32Type>(group, rows, |row| row.sample_bytes as i32)?;
    column::<Int64Type>(group, rows, |row| row.buffer_bytes as i64)?;
    column::<Int64Type>(group, rows, |row| row.run_s as i64)?;
    column::<Int64Type>(group, rows, |row| row.seed as i64)?;
    column::<Int64Type>(group, rows, |row| row.task as i64)?;
    column::<BoolType>(group, rows, |row| row.lost)?;
    optional(group, rows, |row| row.lost_samples)?;
    column::<Int64Type>(group, rows, |row| row.peak_backlog_bytes as i64)
}

fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[Row],
    value: impl Fn(&Row) -> T::T,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = rows.iter().map(value).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}

fn optional(
    group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
    rows: &[Row],
    value: impl Fn(&Row) -> Option<u64>,
) -> Result<(), ParquetError> {
    let present: Vec<i64> = rows
        .iter()
        .filter_map(|row| value(row).map(|value| value as i64))
        .collect();
    let levels: Vec<i16> = rows
        .iter()
        .map(|row| i16::from(value(row).is_some()))
        .collect();
    if let Some(mut column) = group.next_column()? {
        let typed = column.typed::<Int64Type>();
        typed.write_batch(&present, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}

/// Reads the results of a file, and their origin, after a check of every bit.
pub(crate) fn outcomes(bytes: Vec<u8>) -> Result<(String, Vec<Outcome>), ParquetError> {
    let bytes = Bytes::from(bytes);
    let file = SerializedFileReader::new(bytes.clone())?;
    let pairs = file.metadata().file_metadata().key_value_metadata();
    let value = |key: &str| {
        let found = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == key));
        found
            .and_then(|pair| pair.value.clone())
            .unwrap_or_default()
    };
    verify(&mut bytes.to_vec(), &value(CHECKSUM))?;
    let origin = value(ORIGIN);
    let names = file.metadata().file_metadata().schema().get_fields();
    let names: Vec<&str> = names.iter().map(|field| field.name()).collect();
    if names != COLUMNS.map(|(name, _)| name) {
        return Err(ParquetError::General("unknown columns".to_string()));
    }
    let mut all = Vec::new();
    for group in 0..file.num_row_groups() {
        let (boards, policies) = (texts(&file, group, 2)?, texts(&file, group, 3)?);
        let members = values::<Int32Type>(&file, group, 1)?;
        let rates = values::<Int32Type>(&file, group, 4)?;
        let buffers = values::<Int64Type>(&file, group, 6)?;
        let lost = values::<BoolType>(&file, group, 10)?;
        for (at, board) in boards.into_iter().enumerate() {
            all.push(Outcome {
                board,
                policy: policies[at].clone(),
                member: members[at] as u32,
                rate_hz: rates[at] as u32,
                buffer_bytes: buffers[at] as u64,
                lost: lost[at],
            });
        }
    }
    Ok((origin, all))
}

fn texts(
    file: &SerializedFileReader<Bytes>,
    group: usize,
    column: usize,
) -> Result<Vec<String>, ParquetError> {
    let values = values::<ByteArrayType>(file, group, column)?;
    let text = |value: ByteArray| value.as_utf8().map(str::to_string);
    values.into_iter().map(text).collect()
}

fn values<T: DataType>(
    file: &SerializedFileReader<Bytes>,
    group: usize,
    column: usize,
) -> Result<Vec<T::T>, ParquetError> {
    let group = file.get_row_group(group)?;
    let rows = group.metadata().num_rows() as usize;
    let reader = group.get_column_reader(column)?;
    let mut reader = ::parquet::column::reader::get_typed_column_reader::<T>(reader);
    let mut values = Vec::with_capacity(rows);
    while values.len() < rows {
        let (_, read, _) = reader.read_records(rows - values.len(), None, None, &mut values)?;
        if read == 0 {
            return Err(ParquetError::General("a column is too short".to_string()));
        }
    }
    Ok(values)
}
