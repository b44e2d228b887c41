//! Units of the times in a Parquet file: pandas and pyarrow write timestamps and durations in s, ms, us or ns.
//!
//! Parquet itself has a type for timestamps. Durations are plain numbers, whose unit is only in Arrow's schema, a
//! FlatBuffers message in the footer.

use super::columns::{MICROSECOND, MILLISECOND, NANOSECOND, SECOND, Unit};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parquet::basic::{LogicalType, TimeUnit};
use parquet::file::metadata::FileMetaData;

/// Returns the unit of a column; `None` if its type is neither a time nor a plain number.
pub(super) fn unit_of(file: &FileMetaData, index: usize) -> Option<Unit> {
    match file.schema_descr().column(index).logical_type_ref() {
        None | Some(LogicalType::Integer(_) | LogicalType::Timestamp(_)) => {
            Some(time_unit_of(file, index).unwrap_or(NANOSECOND))
        }
        Some(_) => None,
    }
}

/// Returns the unit of a column whose type is a time or a duration; `None` for any other type.
pub(super) fn time_unit_of(file: &FileMetaData, index: usize) -> Option<Unit> {
    let column = file.schema_descr().column(index);
    let unit = match column.logical_type_ref() {
        Some(LogicalType::Timestamp(timestamp)) => timestamp.unit,
        Some(LogicalType::Time(time)) => time.unit,
        None | Some(LogicalType::Integer(_)) => {
            return duration(&arrow_schema(file)?, column.name());
        }
        Some(_) => return None,
    };
    Some(match unit {
        TimeUnit::MILLIS => MILLISECOND,
        TimeUnit::MICROS => MICROSECOND,
        TimeUnit::NANOS => NANOSECOND,
    })
}

/// Returns the message with Arrow's schema.
fn arrow_schema(file: &FileMetaData) -> Option<Vec<u8>> {
    let mut pairs = file.key_value_metadata()?.iter();
    let pair = pairs.find(|pair| pair.key == "ARROW:schema")?;
    let message = BASE64_STANDARD.decode(pair.value.as_ref()?).ok()?;
    // A mark of four bytes and the length precede the message; old versions lack the mark.
    let from = if message.starts_with(&[0xFF; 4]) {
        8
    } else {
        4
    };
    Some(message.get(from..)?.to_vec())
}

/// Returns the unit of a column whose type in Arrow's schema is a duration.
fn duration(schema: &[u8], name: &str) -> Option<Unit> {
    // Slots of the tables in Arrow's Schema.fbs and Message.fbs.
    const MESSAGE_HEADER: usize = 2;
    const SCHEMA_FIELDS: usize = 1;
    const FIELD_NAME: usize = 0;
    const FIELD_TYPE_TYPE: usize = 2;
    const FIELD_TYPE: usize = 3;
    const DURATION_UNIT: usize = 0;
    const DURATION: u8 = 18;
    let buffer = Buffer(schema);
    let message = buffer.follow(0)?;
    let header = buffer.follow(buffer.slot(message, MESSAGE_HEADER)?)?;
    let fields = buffer.follow(buffer.slot(header, SCHEMA_FIELDS)?)?;
    let count = buffer.u32(fields)?;
    for index in 0..count {
        let field = buffer.follow(fields.checked_add(4)?.checked_add(4 * index)?)?;
        let text = buffer.follow(buffer.slot(field, FIELD_NAME)?)?;
        let length = buffer.u32(text)?;
        if buffer.0.get(text + 4..(text + 4).checked_add(length)?)? != name.as_bytes() {
            continue;
        }
        if *buffer.0.get(buffer.slot(field, FIELD_TYPE_TYPE)?)? != DURATION {
            return None;
        }
        let kind = buffer.follow(buffer.slot(field, FIELD_TYPE)?)?;
        return match buffer.slot(kind, DURATION_UNIT) {
            // The default is omitted.
            None => Some(MILLISECOND),
            Some(at) => [SECOND, MILLISECOND, MICROSECOND, NANOSECOND]
                .get(usize::from(*buffer.0.get(at)?))
                .copied(),
        };
    }
    None
}

/// Access to FlatBuffers; every position is checked.
struct Buffer<'a>(&'a [u8]);

impl Buffer<'_> {
    fn u32(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    }

    fn u16(&self, at: usize) -> Option<usize> {
        let bytes = self.0.get(at..)?.first_chunk()?;
        Some(usize::from(u16::from_le_bytes(*bytes)))
    }

    /// Returns the position that the offset stored at a position refers to.
    fn follow(&self, at: usize) -> Option<usize> {
        at.checked_add(self.u32(at)?)
    }

    /// Returns the position of a field of a table; `None` if it has its default.
    fn slot(&self, table: usize, slot: usize) -> Option<usize> {
        let back = i32::from_le_bytes(*self.0.get(table..)?.first_chunk()?);
        let fields = i64::try_from(table).ok()?.checked_sub(i64::from(back))?;
        let fields = usize::try_from(fields).ok()?;
        let at = 4 + 2 * slot;
        if at + 2 > self.u16(fields)? {
            return None;
        }
        let offset = self.u16(fields.checked_add(at)?)?;
        (offset > 0).then(|| table.checked_add(offset)).flatten()
    }
}
