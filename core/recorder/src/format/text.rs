//! Lines: the names, gaps, samples, and where a mark goes.

use super::Format;
use super::decimal::Text;
use crate::gap::Gap;
use crate::limits::LINE_BYTES_MAX;

/// The first line of a file; no bytes if there is none.
pub(crate) fn header(format: &Format, line: &mut [u8; LINE_BYTES_MAX]) -> usize {
    let mut text = Text::new(line);
    match format {
        Format::Csv([schema, ..]) => schema.write_names(&mut text),
        Format::Lines { header, .. } if !header.is_empty() => {
            text.push(header.as_bytes());
            text.push(b"\r\n");
        }
        Format::Lines { .. } | Format::Csv(_) | Format::Binary(_) => (),
    }
    text.len()
}

/// Commas before a note, so that it stands in the last column.
pub(crate) fn indent(format: &Format) -> usize {
    match format {
        Format::Csv([schema, ..]) => schema.columns().len(),
        Format::Lines { .. } | Format::Csv(_) | Format::Binary(_) => 0,
    }
}

/// The line that says that samples are missing here.
pub(crate) fn gap(format: &Format, gap: Gap, line: &mut [u8; LINE_BYTES_MAX]) -> usize {
    let mut text = Text::new(line);
    text.push_repeated(b',', indent(format));
    for (name, number) in [
        ("#gap first=", gap.first),
        (" count=", gap.count),
        (" at_us=", gap.at_us),
    ] {
        text.push(name.as_bytes());
        text.push_unsigned(number);
    }
    text.push(b" cause=");
    text.push(gap.cause.word().as_bytes());
    text.push(b"\r\n");
    text.len()
}
