//! `index,start_us,end_us`: three integers per row, times in microseconds.
//!
//! Files of ten million rows are common, so whole blocks are parsed eight digits at a time. A row that this
//! fast path cannot parse goes to a slow path, which parses the row or determines the error.

use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{self, Bad, Field, NUMBER_MAX};
use super::remedy::of_negative;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

const NS_PER_US: u64 = 1000;

/// Number of fields in a row.
const FIELDS: usize = 3;

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    about: About,
    block_bytes: u64,
) -> Result<Trace, Fault> {
    lines.next_row()?;
    let mut trace = Trace::new(about);
    let mut operation = Operation {
        kind: OperationKind::Write,
        file: 0,
        offset_bytes: 0,
        length_bytes: block_bytes,
        start_ns: 0,
        end_ns: 0,
    };
    loop {
        let (text, whole) = lines.whole_lines();
        let (bytes, rows) = read_quickly(text, whole, &mut trace, &mut operation);
        lines.take(bytes, rows);
        // An invalid row, an unusual row, or a row that continues in the next block.
        let Some(line) = lines.next_row()? else {
            return Ok(trace);
        };
        if line.is_cut(b',', FIELDS) {
            let note = line.cut_note();
            trace.about.notes.push(note);
            return Ok(trace);
        }
        read_row(&line, &mut trace, &mut operation)?;
    }
}

/// Reads rows by the fast path as long as it can parse them; returns the number of bytes and rows consumed.
fn read_quickly(
    text: &[u8],
    whole: usize,
    trace: &mut Trace,
    operation: &mut Operation,
) -> (usize, u64) {
    let mut at = 0;
    let mut last_row = 0;
    let mut rows = 0;
    let times = std::iter::from_fn(|| {
        if at >= whole {
            return None;
        }
        let (start_us, end_us, next) = row(text, at)?;
        if end_us > NUMBER_MAX / NS_PER_US || start_us > end_us {
            return None;
        }
        last_row = at;
        at = next;
        rows += 1;
        Some((start_us * NS_PER_US, end_us * NS_PER_US))
    });
    let taken = trace.push_run(operation, times);
    operation.offset_bytes = operation
        .offset_bytes
        .wrapping_add(operation.length_bytes.wrapping_mul(taken));
    // A row whose time lies before the previous one was parsed but not appended.
    (if taken < rows { last_row } else { at }, taken)
}

/// Parses a row; returns its start and end times, and the position of the next row.
#[inline]
fn row(text: &[u8], at: usize) -> Option<(u64, u64, usize)> {
    let (_, at) = digits(text, at)?;
    let (start_us, at) = digits(text, comma(text, at)?)?;
    let (end_us, at) = digits(text, comma(text, at)?)?;
    let next = match text.get(at)? {
        b'\n' => at + 1,
        b'\r' if text.get(at + 1) == Some(&b'\n') => at + 2,
        _ => return None,
    };
    Some((start_us, end_us, next))
}

#[inline]
fn comma(text: &[u8], at: usize) -> Option<usize> {
    (*text.get(at)? == b',').then_some(at + 1)
}

/// Parses a number of 1 to 15 digits; returns it with the position after its last digit.
#[inline]
fn digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let (high, count) = up_to_eight_digits(text, at)?;
    if count < 8 {
        return (count > 0).then_some((high, at + count));
    }
    let (low, count) = up_to_eight_digits(text, at + 8)?;
    let power = *POWERS_OF_TEN.get(count)?;
    Some((high * power + low, at + 8 + count))
}

/// Powers of ten below 10^8. Numbers of 16 or more digits would need 10^8; the slow path parses them.
const POWERS_OF_TEN: [u64; 8] = [1, 10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Returns the number formed by the leading digits of eight bytes, and the count of these digits.
#[inline]
fn up_to_eight_digits(text: &[u8], at: usize) -> Option<(u64, usize)> {
    let word = u64::from_le_bytes(*text.get(at..)?.first_chunk()?);
    // Every byte that is a digit becomes its value, 0 to 9.
    let values = word ^ 0x3030_3030_3030_3030;
    // Sets the top bit of the first byte that is not a digit; the top bits of later bytes may be wrong.
    let others = (values.wrapping_add(0x7676_7676_7676_7676) | values) & 0x8080_8080_8080_8080;
    let count = (others.trailing_zeros() / 8) as usize;
    if count == 0 {
        return Some((0, 0));
    }
    // Shifts the digits to the end of the word, with zeros before them.
    let values = values << (64 - 8 * count);
    // Joins neighbouring digits: eight digits become four pairs, then two quadruples, then one number.
    let pairs = values.wrapping_mul(10).wrapping_add(values >> 8) & 0x00FF_00FF_00FF_00FF;
    let fours = pairs.wrapping_mul(100).wrapping_add(pairs >> 16) & 0x0000_FFFF_0000_FFFF;
    let number = fours.wrapping_mul(10_000).wrapping_add(fours >> 32) & 0xFFFF_FFFF;
    Some((number, count))
}

fn read_row(line: &Line<'_>, trace: &mut Trace, operation: &mut Operation) -> Result<(), Fault> {
    let mut fields = line.text.split(|&byte| byte == b',');
    let (Some(index), Some(start), Some(end), None) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(line.wrong_fields(FIELDS, line.text.split(|&byte| byte == b',').count()));
    };
    let field = |column, text| Field { column, text, line };
    field("index", index).whole()?;
    let time_ns = |index, column: &'static str, text| {
        if number::whole(text) == Err(Bad::Negative) {
            let (column, text) = (column.to_owned(), shown(text));
            return Err(of_negative(column, text, b',', index, 1).at_line(line.number));
        }
        field(column, text).whole_times(NS_PER_US)
    };
    operation.start_ns = time_ns(1, "start_us", start)?;
    operation.end_ns = time_ns(2, "end_us", end)?;
    if operation.end_ns < operation.start_ns {
        return Err(Problem::EndBeforeStart {
            start: (operation.start_ns / NS_PER_US).to_string(),
            end: (operation.end_ns / NS_PER_US).to_string(),
        }
        .at_line(line.number));
    }
    trace.push(operation).map_err(|_| {
        Problem::Backward {
            time: (operation.start_ns / NS_PER_US).to_string(),
            before: (trace.last_end_ns() / NS_PER_US).to_string(),
        }
        .at_line(line.number)
    })?;
    operation.offset_bytes = operation.offset_bytes.wrapping_add(operation.length_bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_digits_agree_with_plain_parsing() {
        for text in [
            "0",
            "7",
            "1234567",
            "12345678",
            "123456789",
            "123456789012345",
            "00012",
        ] {
            let padded = format!("{text},99999999999");
            assert_eq!(
                digits(padded.as_bytes(), 0),
                Some((text.parse().unwrap(), text.len()))
            );
        }
        for text in ["", "-1", "1234567890123456"] {
            assert_eq!(digits(format!("{text},99999999999").as_bytes(), 0), None);
        }
    }

    #[test]
    fn only_ascii_digits_count_as_digits() {
        for other in (0..=u8::MAX).filter(|byte| !byte.is_ascii_digit()) {
            for position in 0..8 {
                let mut text = *b"1234567890";
                text[position] = other;
                let (_, count) = up_to_eight_digits(&text, 0).unwrap();
                assert_eq!(count, position, "{other:#x}");
            }
        }
    }

    fn read_text(text: &str) -> Result<Vec<(u64, u64)>, String> {
        let mut lines = Lines::new(text.as_bytes()).map_err(|fault| format!("{fault:?}"))?;
        read(&mut lines, About::default(), 512)
            .map(|trace| {
                trace
                    .operations()
                    .map(|o| (o.start_ns / NS_PER_US, o.end_ns / NS_PER_US))
                    .collect()
            })
            .map_err(|fault| format!("{fault:?}"))
    }

    /// Returns a text of several blocks, in which rows span block boundaries and some rows can only be
    /// parsed by the slow path, and the times in these rows.
    fn long_text() -> (String, Vec<(u64, u64)>) {
        use std::fmt::Write;
        let mut text = "index,start_us,end_us\n".to_owned();
        let mut expected = Vec::new();
        let mut now_us = 99_000_000;
        for index in 0..60_000_u64 {
            let (start_us, end_us) = (now_us + index % 3, now_us + 200 + index % 1000);
            let _ = match index % 97 {
                0 => writeln!(text, " {index}, {start_us}, {end_us}\r"),
                1 => writeln!(text, "{index},{start_us},{end_us}\r"),
                2 => writeln!(text, "\n{index},{start_us:020},{end_us}"),
                _ => writeln!(text, "{index},{start_us},{end_us}"),
            };
            expected.push((start_us, end_us));
            now_us = end_us;
        }
        (text, expected)
    }

    #[test]
    fn ordinary_and_unusual_rows_mix() {
        let (text, expected) = long_text();
        assert_eq!(read_text(&text), Ok(expected));
    }

    #[test]
    fn a_backward_row_is_reported_with_its_line() {
        let (mut text, _) = long_text();
        let number = text.lines().count() + 1;
        text.push_str("60000,5,6\n60001,7,8\n");
        let error = read_text(&text).unwrap_err();
        assert!(error.contains("Backward") && error.contains(&format!("Line({number})")));
    }
}
