//! Lines of a text in bounded memory.
//!
//! The text is read in blocks. A reader takes one line at a time, or inspects all complete lines in memory at
//! once and reports how many lines and bytes it consumed.

use super::columns::cells;
use super::error::{Fault, Problem};
use std::io::{self, BufRead, ErrorKind, Read};

/// Longest supported line, including its line ending.
pub(super) const LINE_BYTES_MAX: usize = 256 * 1024;

/// Padding after the text in memory, in bytes, so that a word can be loaded at any byte of the text.
const PADDING: usize = 8;

const BOM: &[u8] = b"\xEF\xBB\xBF";

pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// True if lines end with CR alone, as on old Macs; they are converted.
    ends_with_cr: bool,
    lines_taken: u64,
    bytes_taken: u64,
    /// True once a row without a line end was returned.
    ends_open: bool,
    /// True if lines may contain NUL bytes.
    accepts_nul: bool,
}

/// One line and its position in the file.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Line without its line ending.
    pub text: &'a [u8],
    /// Line number, counted from 1.
    pub number: u64,
    /// Start of the line, in bytes from the start of the file.
    pub offset_bytes: u64,
    /// Length of the line including its line ending.
    pub length_bytes: u64,
    /// True if a line feed follows; the last line of a file may lack it.
    pub ended: bool,
}

impl Line<'_> {
    /// Returns true if the file may end within this row: no line end follows, and the row has too few fields or its
    /// last number may be truncated. Short files are often typed by hand without a final line end, so in these, only
    /// the number of fields counts.
    pub(super) fn is_cut(&self, separator: u8, expected: usize) -> bool {
        const TYPED_LINES_MAX: u64 = 11;
        let has_few = || cells(self.text, separator).count() < expected;
        !self.ended && (self.number > TYPED_LINES_MAX || has_few())
    }

    /// Returns the note about a row that [`Line::is_cut`].
    pub(super) fn cut_note(&self) -> String {
        format!(
            "The file ends within line {}; this row was skipped.",
            self.number
        )
    }

    /// Returns the error for a row with a wrong number of fields.
    pub(super) fn wrong_fields(&self, expected: usize, found: usize) -> Fault {
        if self.ended || found >= expected {
            Problem::Fields { expected, found }.at_line(self.number)
        } else {
            Problem::Truncated { expected, found }.at_line(self.number)
        }
    }
}

impl<R: Read> Lines<R> {
    /// Reads the first block.
    pub(super) fn new(reader: R) -> Result<Lines<R>, Fault> {
        let mut lines = Lines {
            reader,
            buffer: vec![0; LINE_BYTES_MAX + PADDING],
            start: 0,
            end: 0,
            at_end: false,
            ends_with_cr: false,
            lines_taken: 0,
            bytes_taken: 0,
            ends_open: false,
            accepts_nul: false,
        };
        lines.fill()?;
        let head = lines.in_memory();
        if head.contains(&b'\r') && !head.contains(&b'\n') && !head.contains(&0) {
            lines.ends_with_cr = true;
            lines.convert(lines.start);
        }
        if lines.in_memory().starts_with(BOM) {
            lines.start += BOM.len();
            lines.bytes_taken += BOM.len() as u64;
        }
        Ok(lines)
    }

    /// Accepts NUL bytes, which a serial port receives when it is opened.
    pub(super) fn accept_nul(&mut self) {
        self.accepts_nul = true;
    }

    /// Text that has been read but not yet taken: up to the end of the file, or a full block.
    pub(super) fn in_memory(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns all remaining text, including the part not read yet.
    pub(super) fn into_rest(self) -> impl Read {
        io::Cursor::new(self.in_memory().to_vec()).chain(self.reader)
    }

    /// Returns the next line that is not blank.
    pub(super) fn next_row(&mut self) -> Result<Option<Line<'_>>, Fault> {
        self.next_row_but(|_| false)
    }

    /// Returns the next line that is neither blank nor to be skipped.
    pub(super) fn next_row_but(
        &mut self,
        is_skipped: impl Fn(&[u8]) -> bool,
    ) -> Result<Option<Line<'_>>, Fault> {
        loop {
            let Some(length) = self.line_in_memory()? else {
                return Ok(None);
            };
            let from = self.start;
            let offset_bytes = self.bytes_taken;
            self.take(length, 1);
            let line = &self.buffer[from..from + length];
            let ended = line.ends_with(b"\n");
            let text = line.strip_suffix(b"\n").unwrap_or(line);
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if text.trim_ascii().is_empty() || is_skipped(text) {
                continue;
            }
            if !self.accepts_nul
                && let Some(at) = text.iter().position(|byte| *byte == 0)
            {
                let bytes_before = offset_bytes + at as u64;
                return Err(Problem::Nul { bytes_before }.at_line(self.lines_taken));
            }
            self.ends_open = !ended;
            let span = from..from + text.len();
            return Ok(Some(Line {
                text: &self.buffer[span],
                number: self.lines_taken,
                offset_bytes,
                length_bytes: length as u64,
                ended,
            }));
        }
    }

    /// Returns true if the last row has no line end, so that its last number may be truncated.
    pub(super) fn end_open(&self) -> bool {
        self.ends_open
    }

    /// Skips lines, including blank ones.
    pub(super) fn skip(&mut self, count: usize) -> Result<(), Fault> {
        for _ in 0..count {
            if let Some(length) = self.line_in_memory()? {
                self.take(length, 1);
            }
        }
        Ok(())
    }

    /// Returns the text in memory and the number of bytes that complete lines occupy; the bytes after the
    /// complete lines are meaningless.
    pub(super) fn whole_lines(&self) -> (&[u8], usize) {
        let whole = self
            .in_memory()
            .iter()
            .rposition(|&byte| byte == b'\n')
            .map_or(0, |last| last + 1);
        (&self.buffer[self.start..], whole)
    }

    /// Consumes lines that [`Lines::whole_lines`] returned.
    pub(super) fn take(&mut self, bytes: usize, lines: u64) {
        self.start += bytes;
        self.bytes_taken += bytes as u64;
        self.lines_taken += lines;
    }

    /// Loads the next line and returns its length including the line ending; `None` at the end of the file.
    fn line_in_memory(&mut self) -> Result<Option<usize>, Fault> {
        let mut searched = 0;
        loop {
            // `skip_until` is the standard library's fastest search for a byte.
            let mut rest = &self.in_memory()[searched..];
            let length = searched + skip_line(&mut rest);
            if length > 0 && self.in_memory()[length - 1] == b'\n' {
                return Ok(Some(length));
            }
            if self.at_end {
                return Ok((length > 0).then_some(length));
            }
            if length == LINE_BYTES_MAX {
                let number = self.lines_taken + 1;
                let nul = self.in_memory().iter().position(|byte| *byte == 0);
                return Err(match nul {
                    Some(at) => {
                        let bytes_before = self.bytes_taken + at as u64;
                        Problem::Nul { bytes_before }.at_line(number)
                    }
                    None => Problem::LongLine.at_line(number),
                });
            }
            searched = length;
            self.fill()?;
        }
    }

    /// Moves the remaining text to the front and fills the block.
    fn fill(&mut self) -> Result<(), Fault> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let before = self.end;
        while self.end < LINE_BYTES_MAX && !self.at_end {
            match self.reader.read(&mut self.buffer[self.end..LINE_BYTES_MAX]) {
                Ok(0) => self.at_end = true,
                Ok(count) => self.end += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(Problem::Read(error).at_line(self.lines_taken + 1)),
            }
        }
        self.convert(before);
        Ok(())
    }

    /// Replaces CR by LF from a position on if the lines end with CR.
    fn convert(&mut self, from: usize) {
        if self.ends_with_cr {
            let ends = self.buffer[from..self.end].iter_mut();
            ends.filter(|byte| **byte == b'\r')
                .for_each(|byte| *byte = b'\n');
        }
    }
}

/// Advances past the next line feed, or to the end; returns the number of bytes skipped.
fn skip_line(rest: &mut &[u8]) -> usize {
    // Reading from memory cannot fail.
    rest.skip_until(b'\n').unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(text: &[u8]) -> Vec<(Vec<u8>, u64, u64, u64)> {
        let mut lines = Lines::new(text).unwrap();
        let mut rows = Vec::new();
        while let Some(line) = lines.next_row().unwrap() {
            rows.push((
                line.text.to_vec(),
                line.number,
                line.offset_bytes,
                line.length_bytes,
            ));
        }
        rows
    }

    #[test]
    fn lines_report_their_position() {
        assert_eq!(
            rows(b"\xEF\xBB\xBFa\r\n\n b\nc"),
            [
                (b"a".to_vec(), 1, 3, 3),
                (b" b".to_vec(), 3, 7, 3),
                (b"c".to_vec(), 4, 10, 1),
            ]
        );
    }

    #[test]
    fn lines_may_end_with_cr_alone() {
        let numbers: Vec<u64> = rows(b"a\rb\r\rc").into_iter().map(|row| row.1).collect();
        assert_eq!(numbers, [1, 2, 4]);
        let long = b"abc\r".repeat(LINE_BYTES_MAX);
        assert_eq!(rows(&long).len(), LINE_BYTES_MAX);
    }

    #[test]
    fn lines_are_joined_across_blocks() {
        let line = [vec![b'x'; 1000], vec![b'\n']].concat();
        let text = line.repeat(1000);
        let rows = rows(&text);
        assert_eq!(rows.len(), 1000);
        assert!(rows.iter().all(|(text, ..)| text.len() == 1000));
    }

    #[test]
    fn the_longest_supported_line_is_read_and_a_longer_one_is_rejected() {
        let mut text = vec![b'x'; LINE_BYTES_MAX - 1];
        text.push(b'\n');
        assert_eq!(rows(&text).len(), 1);
        text.insert(0, b'x');
        assert!(Lines::new(&text[..]).unwrap().next_row().is_err());
    }
}
