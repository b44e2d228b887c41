//! Format detection from the first line of the text.

use super::columns::{Top, is_number};
use super::error::{Fault, Problem};
use super::recording::is_note;
use super::{
    ReadOptions, biosnoop, blinky, blkparse, doubt, fio, foreign, hdr_log, histogram, ioping,
    own_csv, prose, qiita, recording, summary, thesis, unknown, writes,
};

pub(super) enum Format {
    OwnCsv,
    Integers,
    Thesis,
    Qiita,
    Blinky,
    Fio,
    Biosnoop,
    Blkparse,
    Ioping,
    Hgrm,
    HdrLog,
    Writes(Box<writes::Header>),
    Recording(recording::Header),
}

/// Column names of the simplest format, a list of start and end times.
const INTEGERS: &[&str] = &["index", "start_us", "end_us"];

/// A format, and the number of lines before its first line.
pub(super) struct Detected {
    pub format: Format,
    pub preamble: usize,
}

/// Returns the format of a text that starts with `head`.
pub(super) fn detect(head: &[u8], options: &ReadOptions) -> Result<Detected, Fault> {
    if head.is_empty() {
        return Err(Problem::Empty.in_file());
    }
    foreign::refuse_binary(head)?;
    if let Some(name) = encoding(head) {
        return Err(Problem::Encoding { name }.in_file());
    }
    let lines = (0..).zip(head.split(|&byte| byte == b'\n'));
    let mut rows = lines.filter(|(_, line)| !line.trim_ascii().is_empty() && !is_note(line));
    let Some((first, line)) = rows.next() else {
        return Err(Problem::Empty.in_file());
    };
    if line.contains(&0) {
        let is_text = line.iter().all(|&byte| byte == 0 || is_text(byte));
        return Err(if is_text {
            let bytes_before = head.iter().take_while(|byte| **byte != 0).count() as u64;
            Problem::Nul { bytes_before }.at_line(first as u64 + 1)
        } else {
            Problem::NotText.in_file()
        });
    }
    if !ioping::is_row(line) {
        summary::refuse(head)?;
    }
    let mut rows = rows.map(|(number, line)| (number, line.trim_ascii()));
    let mut top = Top::above(line.trim_ascii(), rows.clone().map(|(_, line)| line));
    if !ioping::is_row(line) && !options.names_columns() {
        foreign::refuse_text(head, top.line, top.below)?;
        prose::refuse_assigned(top.line, top.below)?;
    }
    let is_recorded = head.trim_ascii_start().starts_with(b"#file number=");
    if summary::is_ioping_batch(top.line, top.below) {
        let tool = "ioping -B";
        let remedy = "run ioping without -B, which prints one line per request";
        return Err(Problem::Summary { tool, remedy }.in_file());
    }
    if let Some(format) = commented(head, first, top.line, options).filter(|_| !is_recorded) {
        check_options(&format, options)?;
        return Ok(Detected {
            format,
            preamble: 0,
        });
    }
    let found = format(top, is_recorded, head, options);
    if !found.as_ref().is_ok_and(|format| fits(format, top)) {
        let first = top;
        // Text before the names of the columns.
        for _ in 0..PREAMBLE_LINES_MAX {
            let Some((preamble, line)) = rows.next() else {
                break;
            };
            top = Top::above(line, rows.clone().map(|(_, line)| line));
            let format = named(top, options);
            if let Some(format) = format.filter(|format| fits(format, top)) {
                return Ok(Detected { format, preamble });
            }
        }
        if !options.names_columns() {
            prose::refuse(head, first.line, first.below)?;
            // A first row of words and numbers does not contain the names of columns.
            if found.is_ok()
                && first.names().iter().any(|name| is_number(name))
                && !first.below.is_empty()
            {
                return Err(unknown::table(head).unwrap_or(Problem::Unknown).in_file());
            }
        }
    }
    let format = found.map_err(|fault| match unknown::table(head) {
        Some(problem) if fault.is_of_unknown_format() => problem.in_file(),
        _ => fault,
    })?;
    check_options(&format, options)?;
    Ok(Detected {
        format,
        preamble: 0,
    })
}

/// Returns the encoding of a text whose characters take two or four bytes.
fn encoding(head: &[u8]) -> Option<&'static str> {
    const CHARACTERS: usize = 16;
    let marks: &[(&[u8], &str)] = &[
        (b"\xFF\xFE\0\0", "UTF-32"),
        (b"\0\0\xFE\xFF", "UTF-32"),
        (b"\xFF\xFE", "UTF-16"),
        (b"\xFE\xFF", "UTF-16"),
    ];
    if let Some((_, name)) = marks.iter().find(|(mark, _)| head.starts_with(mark)) {
        return Some(name);
    }
    // Without a byte order mark, one byte of each character is text and the others are 0.
    let is = |width: usize, at: usize| {
        let mut characters = head.chunks_exact(width).take(CHARACTERS).peekable();
        characters.peek().is_some()
            && characters.all(|bytes| (0..width).all(|byte| (byte == at) == (bytes[byte] != 0)))
    };
    let names = [
        (4, 0, "UTF-32LE"),
        (4, 3, "UTF-32BE"),
        (2, 0, "UTF-16LE"),
        (2, 1, "UTF-16BE"),
    ];
    let found = names.iter().find(|(width, at, _)| is(*width, *at));
    found.map(|(.., name)| *name)
}

/// Returns the format of a table whose names are in the comment before its first row.
fn commented(head: &[u8], first: usize, row: &[u8], options: &ReadOptions) -> Option<Format> {
    let mut above: Vec<&[u8]> = head.split(|&byte| byte == b'\n').take(first).collect();
    above.retain(|line| !line.trim_ascii().is_empty());
    let names = above.pop()?.trim_ascii().strip_prefix(b"#")?.trim_ascii();
    let top = Top::of(names, row);
    let format = table(top, options).ok()?;
    let has_names = |cell: &&[u8]| cell.iter().any(u8::is_ascii_alphabetic);
    let has_names = top.names().iter().all(|cell| has_names(&&**cell));
    if !has_names || !fits(&format, top) {
        return None;
    }
    match format {
        Format::Writes(header) => Some(Format::Writes(Box::new(header.in_comment()))),
        Format::Recording(header) => Some(Format::Recording(header.in_comment())),
        _ => None,
    }
}

/// Maximum number of lines of text before the names of the columns.
const PREAMBLE_LINES_MAX: usize = 100;

/// Returns true if the row below the first line has the columns that the first line names.
fn fits(format: &Format, top: Top<'_>) -> bool {
    match format {
        Format::Writes(header) => header.fits(top.below),
        Format::Recording(header) => header.fits(top.first),
        _ => true,
    }
}

fn format(
    top: Top<'_>,
    is_recorded: bool,
    head: &[u8],
    options: &ReadOptions,
) -> Result<Format, Fault> {
    let line = top.line;
    Ok(if thesis::begins(line) {
        Format::Thesis
    } else if names_are(line, own_csv::COLUMNS) {
        Format::OwnCsv
    } else if options.names_columns() {
        doubt::refuse_decimal_commas(head)?;
        table(top, options)?
    } else if is_recorded {
        let first = Some("1".to_owned());
        let options = ReadOptions {
            time_column: first,
            ..options.clone()
        };
        let header = recording::Header::parse(top, &options)?;
        Format::Recording(header.ok_or_else(|| Problem::Unknown.in_file())?)
    } else if names_are(line, INTEGERS) {
        Format::Integers
    } else if names_are(line, qiita::COLUMNS) {
        Format::Qiita
    } else if let Some(header) = writes::Header::of_msr(line, options) {
        Format::Writes(Box::new(header))
    } else if fio::is_row(line) {
        Format::Fio
    } else if biosnoop::is_header(line) || biosnoop::columns_of_row(line).is_some() {
        Format::Biosnoop
    } else if blkparse::is_row(line) {
        Format::Blkparse
    } else if ioping::is_row(line) {
        Format::Ioping
    } else if hdr_log::is_row(line) {
        Format::HdrLog
    } else if histogram::is_hgrm(line) {
        Format::Hgrm
    } else if blinky::is_row(line) {
        Format::Blinky
    } else {
        doubt::refuse_decimal_commas(head)?;
        table(top, options)?
    })
}

/// Returns the format of a table with names, below a preamble.
fn named(top: Top<'_>, options: &ReadOptions) -> Option<Format> {
    if names_are(top.line, own_csv::COLUMNS) {
        Some(Format::OwnCsv)
    } else if names_are(top.line, INTEGERS) {
        Some(Format::Integers)
    } else {
        table(top, options).ok()
    }
}

/// Returns the format of a table with a header, or whose columns the options name.
fn table(top: Top<'_>, options: &ReadOptions) -> Result<Format, Fault> {
    let line = top.line;
    if let Some(header) = writes::Header::parse(top, options)? {
        Ok(Format::Writes(Box::new(header)))
    } else if let Some(header) = recording::Header::parse(top, options)? {
        Ok(Format::Recording(header))
    } else if line.iter().all(|&byte| is_text(byte)) || std::str::from_utf8(line).is_ok() {
        Err(Problem::Unknown.in_file())
    } else {
        Err(Problem::NotText.in_file())
    }
}

/// Refuses options that a format would ignore.
fn check_options(format: &Format, options: &ReadOptions) -> Result<(), Fault> {
    if let (Format::Blinky | Format::Writes(_), Some(option)) =
        (format, options.first_of_recordings())
    {
        return Err(Problem::OfRecordings { option }.in_file());
    }
    let format = match format {
        Format::Blinky | Format::Writes(_) | Format::Recording(_) => return Ok(()),
        Format::Hgrm | Format::HdrLog if !options.names_columns() => return Ok(()),
        Format::HdrLog => "HdrHistogram interval log",
        Format::Hgrm => "HdrHistogram percentile file",
        Format::Biosnoop => "biosnoop output",
        Format::Blkparse => "blkparse output",
        Format::Ioping => "ioping output",
        Format::OwnCsv => "Cardiograph trace",
        Format::Integers => "list of index,start_us,end_us",
        Format::Thesis => "MagOD2 results file",
        Format::Qiita => "CSV of the library comparison",
        // Its unit depends on the version of fio.
        Format::Fio if !options.names_columns() => return Ok(()),
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

/// Returns true if a line consists of the given names, ignoring case and surrounding spaces.
fn names_are(line: &[u8], names: &[&str]) -> bool {
    let mut fields = line.split(|&byte| byte == b',');
    names.iter().all(|name| {
        fields
            .next()
            .is_some_and(|field| field.trim_ascii().eq_ignore_ascii_case(name.as_bytes()))
    }) && fields.next().is_none()
}
