//! Format detection by the first line of the text.

use super::error::{Fault, Problem};
use super::{ReadOptions, fio, number, own_csv, qiita, recording, summary, thesis, writes};

pub(super) enum Format {
    OwnCsv,
    Integers,
    Thesis,
    Qiita,
    Blinky,
    Fio,
    Writes(writes::Header),
    Recording(recording::Header),
}

/// Column names of the simplest format, a list of start and end times.
const INTEGERS: &[&str] = &["index", "start_us", "end_us"];

/// Returns the format of a text that starts with `head`.
pub(super) fn detect(head: &[u8], options: &ReadOptions) -> Result<Format, Fault> {
    if head.is_empty() {
        return Err(Problem::Empty.in_file());
    }
    if head.starts_with(b"\xFF\xFE") || head.starts_with(b"\xFE\xFF") {
        return Err(Problem::Utf16.in_file());
    }
    let is_recorded = head.trim_ascii_start().starts_with(b"#file number=");
    let mut lines = (1..).zip(head.split(|&byte| byte == b'\n'));
    let Some((number, line)) =
        lines.find(|(_, line)| !line.trim_ascii().is_empty() && !recording::is_note(line))
    else {
        return Err(Problem::Empty.in_file());
    };
    let line = line.trim_ascii();
    if line.contains(&0) {
        return Err(if line.iter().all(|&byte| byte == 0 || is_text(byte)) {
            Problem::Nul.at_line(number)
        } else {
            Problem::NotText.in_file()
        });
    }
    summary::refuse(head)?;
    let format = if thesis::begins(line) {
        Format::Thesis
    } else if names_are(line, own_csv::COLUMNS) {
        Format::OwnCsv
    } else if options.names_columns() {
        table(line, options)?
    } else if is_recorded {
        let first = Some("1".to_owned());
        let options = ReadOptions {
            time_column: first,
            ..options.clone()
        };
        let header = recording::Header::parse(line, &options)?;
        Format::Recording(header.ok_or_else(|| Problem::Unknown.in_file())?)
    } else if names_are(line, INTEGERS) {
        Format::Integers
    } else if names_are(line, qiita::COLUMNS) {
        Format::Qiita
    } else if fio::is_row(line) {
        Format::Fio
    } else if number::decimal(line, 0) != Err(number::Bad::NotANumber) {
        Format::Blinky
    } else {
        table(line, options)?
    };
    check_options(&format, options)?;
    Ok(format)
}

/// Returns the format of a table with a header, or whose columns the options name.
fn table(line: &[u8], options: &ReadOptions) -> Result<Format, Fault> {
    if let Some(header) = writes::Header::parse(line, options)? {
        Ok(Format::Writes(header))
    } else if let Some(header) = recording::Header::parse(line, options)? {
        Ok(Format::Recording(header))
    } else if line.iter().all(|&byte| is_text(byte)) || std::str::from_utf8(line).is_ok() {
        Err(Problem::Unknown.in_file())
    } else {
        Err(Problem::NotText.in_file())
    }
}

/// Refuses options that a format would ignore.
fn check_options(format: &Format, options: &ReadOptions) -> Result<(), Fault> {
    let format = match format {
        Format::Blinky | Format::Writes(_) | Format::Recording(_) => return Ok(()),
        Format::OwnCsv => "Cardiograph trace",
        Format::Integers => "list of index,start_us,end_us",
        Format::Thesis => "MagOD2 results file",
        Format::Qiita => "CSV of the library comparison",
        Format::Fio => "fio latency log",
    };
    match options.first_set() {
        Some(option) => Err(Problem::FixedFormat { format, option }.in_file()),
        None => Ok(()),
    }
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || byte.is_ascii_whitespace()
}

/// Returns true if a line consists of the given names, ignoring case and surrounding blanks.
fn names_are(line: &[u8], names: &[&str]) -> bool {
    let mut fields = line.split(|&byte| byte == b',');
    names.iter().all(|name| {
        fields
            .next()
            .is_some_and(|field| field.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    }) && fields.next().is_none()
}
