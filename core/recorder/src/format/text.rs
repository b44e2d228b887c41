//! Lines of text files: column names, the line that describes the file, gaps, and indentation of marks.

use super::decimal::Text;
use super::{Format, Schema};
use crate::gap::Gap;
use crate::limits::LINE_BYTES_MAX;
use crate::session::{Session, SessionName};

/// Beginning of the line that describes a file, after its commas.
const FILE: &str = "#file number=";

/// Writes the first line of a file and returns its length; 0 if there is none.
pub(crate) fn names(format: &Format, schema: u8, line: &mut [u8; LINE_BYTES_MAX]) -> usize {
    let mut text = Text::new(line);
    match (format, format.schema(schema)) {
        (_, Some(schema)) => schema.write_names(&mut text),
        (Format::Lines { header, .. }, _) if !header.is_empty() => {
            text.push(header.as_bytes());
            text.push(b"\r\n");
        }
        _ => (),
    }
    text.len()
}

/// Returns the number of commas before a note, which puts it in the last column.
pub(crate) fn indent(schema: Option<&Schema>) -> usize {
    schema.map_or(0, |schema| schema.columns().len())
}

/// Content of the line that describes a file.
pub(crate) struct About<'a> {
    pub(crate) number: u32,
    pub(crate) first: u64,
    pub(crate) at_us: u64,
    pub(crate) session: Option<&'a Session>,
}

/// Writes the line with the file's number and session.
pub(crate) fn about(
    schema: Option<&Schema>,
    about: &About,
    line: &mut [u8; LINE_BYTES_MAX],
) -> usize {
    let settings = about.session.map_or("", |it| it.settings().as_str());
    // A field with a comma needs quotes in CSV; settings contain no quotes themselves.
    let quote: &[u8] = match schema.is_some() && settings.contains(',') {
        true => b"\"",
        false => b"",
    };
    let mut text = Text::new(line);
    text.push_repeated(b',', indent(schema));
    text.push(quote);
    for (name, number) in [
        (FILE, about.number.into()),
        (" first=", about.first),
        (" at_us=", about.at_us),
    ] {
        text.push(name.as_bytes());
        text.push_unsigned(number);
    }
    if let Some(session) = about.session {
        text.push(b" session=");
        text.push(session.name().as_str().as_bytes());
    }
    if !settings.is_empty() {
        text.push(b" settings=");
        text.push(settings.as_bytes());
    }
    text.push(quote);
    text.push(b"\r\n");
    text.len()
}

/// The fields of that line that recovery needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileLine {
    pub(crate) at_us: u64,
    pub(crate) session: Option<SessionName>,
}

/// Parses a line, if it is the one that describes a file.
pub(crate) fn read_about(line: &[u8]) -> Option<FileLine> {
    let line = core::str::from_utf8(line).ok()?;
    let line = line.trim_start_matches(',').trim_start_matches('"');
    let mut fields = line.strip_prefix(FILE)?.split([' ', '\r']).skip(1);
    let mut number = |name| fields.next()?.strip_prefix(name)?.parse::<u64>().ok();
    number("first=")?;
    let at_us = number("at_us=")?;
    let session = fields.next().and_then(|it| it.strip_prefix("session="));
    let session = session.and_then(|it| SessionName::new(it.trim_end_matches('"')).ok());
    Some(FileLine { at_us, session })
}

/// Writes the line that reports a gap.
pub(crate) fn gap(schema: Option<&Schema>, gap: &Gap, line: &mut [u8; LINE_BYTES_MAX]) -> usize {
    let mut text = Text::new(line);
    text.push_repeated(b',', indent(schema));
    for (name, number) in [
        ("#gap first=", gap.first),
        (" count=", gap.count),
        (" at_us=", gap.at_us),
        (" last_us=", gap.last_us),
    ] {
        text.push(name.as_bytes());
        text.push_unsigned(number);
    }
    text.push(b" cause=");
    text.push(gap.cause.word().as_bytes());
    text.push(b"\r\n");
    text.len()
}
