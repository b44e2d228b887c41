//! Lengths of writes in a table.

use super::header::{Header, Lengths};
use super::scales::sample;
use crate::read::ReadOptions;
use crate::read::error::{Fault, Problem, shown};
use crate::read::lines::Line;
use crate::read::number::{Bad, NUMBER_MAX, decimal, whole};
use crate::read::numeral::Numerals;
use crate::read::role::byte_unit;

impl Lengths {
    /// Parses a length: a number in the unit of the column, or a number followed by its own unit.
    pub(super) fn bytes(&self, text: &[u8], line: &Line<'_>) -> Result<u64, Fault> {
        /// Number of decimals that are taken into account.
        const POWER: i32 = 6;
        let fault = |bad: Bad| bad.in_column("the length", text, line);
        let (number, factor) = with_unit(text).unwrap_or((text, self.factor));
        // Numbers of bytes have no decimals, so a point or comma in them separates thousands.
        let grouped = [b',', b'.'].map(Numerals::Grouped);
        let plain = match factor {
            1 => grouped.iter().find_map(|numerals| numerals.plain(number)),
            _ => Numerals::Decimal.plain(number),
        };
        let plain = plain.unwrap_or(number.into());
        if factor == 1 {
            return whole(&plain).map_err(|bad| match decimal(&plain, POWER) {
                Ok(_) if bad == Bad::NotANumber => {
                    let text = shown(text);
                    Problem::Length { text }.at_line(line.number)
                }
                _ => fault(bad),
            });
        }
        let millionths = decimal(&plain, POWER).map_err(fault)?;
        let bytes = u128::from(millionths) * u128::from(factor) / 10_u128.pow(6);
        u64::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes <= NUMBER_MAX)
            .ok_or_else(|| fault(Bad::TooLarge))
    }
}

/// Splits `4KiB`, or `4k` as dd and fio write it, into the number and the factor of its unit.
fn with_unit(text: &[u8]) -> Option<(&[u8], u64)> {
    let text = text.trim_ascii();
    let at = text.iter().rposition(u8::is_ascii_digit)? + 1;
    let unit = str::from_utf8(&text[at..]).ok()?.trim().to_lowercase();
    let factor = match unit.as_str() {
        "k" => 1 << 10,
        "m" => 1 << 20,
        unit => byte_unit(unit)?.1,
    };
    Some((text[..at].trim_ascii(), factor))
}

/// Returns the note about assumed lengths, an assumed unit, or a column of lengths that is not used.
pub(super) fn note(header: &Header, head: &[u8], options: &ReadOptions) -> Option<String> {
    /// Lengths below this are implausible in bytes.
    const SMALL_BYTES: u64 = 16;
    let block_bytes = options.block_bytes;
    match (&header.bytes, &header.unread) {
        (None, Some(name)) => Some(format!(
            "The column \"{name}\" is ignored, and each write is assumed to be {block_bytes} B; if the column contains the \
             lengths of the writes, name it bytes or size_KiB."
        )),
        (None, None) => Some(crate::read::block_note(block_bytes)),
        (Some(lengths), _) if matches!(lengths.unit, "kB" | "MB") => {
            let (unit, name, factor) = (lengths.unit, &lengths.name, lengths.factor);
            let binary = if unit == "kB" { "KiB" } else { "MiB" };
            Some(format!(
                "The lengths in column \"{name}\" are read as {unit} of {factor} B; if the writer meant {binary}, \
                 name the column size_{binary}."
            ))
        }
        (Some(lengths), Some(other)) => Some(format!(
            "The lengths are those of the column \"{}\"; the column \"{other}\" is not used.",
            lengths.name
        )),
        (Some(lengths), None) => {
            let mut found = sample(header, head)
                .map(|row| header.text(row, lengths.index))
                .peekable();
            let is_small = |text: &[u8]| whole(text).is_ok_and(|bytes| bytes < SMALL_BYTES);
            (lengths.factor == 1 && found.peek().is_some() && found.all(is_small)).then(|| {
                format!(
                    "The lengths in column \"{}\" are read as bytes; if they have another unit, name it in the column \
                     (size_KiB).",
                    lengths.name
                )
            })
        }
    }
}
