//! Compares the files of a stream, one after another, with the samples of its feed.

use crate::{Feed, StreamReport};
use cardiograph_recorder::{Format, LINE_BYTES_MAX};
use std::fmt;
use std::io::{self, Read};
use std::ops::Range;

mod binary;

/// Number of bytes per read from a file.
const READ_BYTES: usize = 32 * 1024;
/// Upper limit on the length of a line in a file. The longest lines are checkpoint marks, which fill a block
/// up to its end.
const FILE_LINE_BYTES_MAX: usize = 2048;

/// The first difference between a file and its samples.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Offset of the difference in the file, in bytes.
    pub offset_bytes: u64,
    /// Index of the sample expected at this offset.
    pub expected: u64,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Mismatch {
            offset_bytes,
            expected,
        } = self;
        write!(
            f,
            "expected sample {expected} at byte {offset_bytes}, found other data"
        )
    }
}

/// Reads the next file of a track and compares it with the samples of `feed`. A binary file belongs to all
/// `streams`, a text file to the stream with the number `track`.
///
/// # Errors
/// Returns read errors in the outer result, a difference in the inner one.
pub fn verify_file(
    file: &mut dyn Read,
    streams: &mut [StreamReport],
    track: u8,
    feed: &dyn Feed,
) -> io::Result<Result<(), Mismatch>> {
    match feed.format() {
        Format::Binary(_) => binary::file(file, streams, feed),
        Format::Lines { .. } | Format::Csv(_) => streams[usize::from(track)].found.file(file, feed),
    }
}

/// Returns true if a line is the header of the files of a feed.
fn is_header(line: &[u8], feed: &dyn Feed) -> bool {
    match feed.format() {
        Format::Lines { header, .. } => {
            !header.is_empty() && line.strip_suffix(b"\r\n") == Some(header.as_bytes())
        }
        _ => false,
    }
}

/// Samples of a stream found in its files so far.
#[derive(Clone, Default)]
pub struct FoundSamples {
    /// Index of the next expected sample.
    pub next: u64,
    /// Number of samples found.
    pub count: u64,
    /// Total size of the samples found, in bytes.
    pub bytes: u64,
    /// Samples that the files report as missing, in order.
    pub missing: Vec<Range<u64>>,
}

impl FoundSamples {
    /// Reads the next text file and compares it with the samples.
    ///
    /// # Errors
    /// Returns read errors in the outer result, a difference in the inner one.
    pub fn file(
        &mut self,
        file: &mut dyn Read,
        feed: &dyn Feed,
    ) -> io::Result<Result<(), Mismatch>> {
        let mut buffer = vec![0; READ_BYTES];
        let (mut held, mut offset_bytes) = (0, 0);
        loop {
            let read = file.read(&mut buffer[held..])?;
            held += read;
            let mut start = 0;
            while let Some(len) = buffer[start..held].iter().position(|&byte| byte == b'\n') {
                let line = &buffer[start..=start + len];
                let is_header = offset_bytes == 0 && is_header(line, feed);
                if !is_header && !self.line(line, feed) {
                    let expected = self.next;
                    return Ok(Err(Mismatch {
                        offset_bytes,
                        expected,
                    }));
                }
                start += line.len();
                offset_bytes += line.len() as u64;
            }
            buffer.copy_within(start..held, 0);
            held -= start;
            if read == 0 && held == 0 {
                return Ok(Ok(()));
            }
            if read == 0 || held > FILE_LINE_BYTES_MAX {
                let expected = self.next;
                return Ok(Err(Mismatch {
                    offset_bytes,
                    expected,
                }));
            }
        }
    }

    /// Returns true if a line is the expected sample or a note of the recorder.
    fn line(&mut self, line: &[u8], feed: &dyn Feed) -> bool {
        if self.next < feed.count() {
            let mut expected = [0; LINE_BYTES_MAX];
            let len = feed.make(self.next, &mut expected);
            if line == &expected[..len] {
                self.next += 1;
                self.count += 1;
                self.bytes += len as u64;
                return true;
            }
        }
        let Some(note) = line.strip_prefix(b"#") else {
            return false;
        };
        match gap_of(note) {
            Some(gap) => self.gap(gap),
            // The `#file` line, or a checkpoint mark, which begins with spaces and `@`.
            None => note.starts_with(b"file ") || note.trim_ascii_start().starts_with(b"@"),
        }
    }

    /// Skips samples that a file reports as missing. Returns false if the gap does not begin at the next expected
    /// sample.
    fn gap(&mut self, gap: Range<u64>) -> bool {
        let is_expected = gap.start == self.next;
        if is_expected {
            self.next = gap.end;
            self.missing.push(gap);
        }
        is_expected
    }
}

/// Parses the note of a gap, `gap first=12 count=3 ...`; returns the missing samples.
fn gap_of(note: &[u8]) -> Option<Range<u64>> {
    let text = std::str::from_utf8(note).ok()?;
    let mut fields = text.strip_prefix("gap ")?.split_ascii_whitespace();
    let mut number = |name| fields.next()?.strip_prefix(name)?.parse::<u64>().ok();
    let first = number("first=")?;
    let count = number("count=")?;
    Some(first..first.checked_add(count)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{InputLines, Times};

    fn input() -> InputLines {
        let mut lines = InputLines::new(Times::Rate(1));
        for line in ["a\r\n", "b\r\n", "c\r\n", "d\r\n"] {
            lines.push(line.as_bytes()).unwrap();
        }
        lines
    }

    fn read(text: &str) -> (Option<Mismatch>, FoundSamples) {
        let mut found = FoundSamples::default();
        let result = found.file(&mut text.as_bytes(), &input()).unwrap();
        (result.err(), found)
    }

    #[test]
    fn lines_gaps_and_marks_are_distinguished() {
        let text = "#file number=3 first=0 at_us=7\r\n\
                    a\r\n#   @5F3A9C01 000001C0 00000180 9C01B2D4\r\n\
                    #gap first=1 count=2 at_us=7 last_us=9 cause=busy\r\nd\r\n";
        let (mismatch, found) = read(text);
        assert_eq!(mismatch, None);
        assert_eq!((found.next, found.count), (4, 2));
        assert_eq!(found.missing.as_slice(), std::slice::from_ref(&(1..3)));
    }

    #[test]
    fn unexpected_content_is_a_mismatch() {
        for (text, offset_bytes, expected) in [
            ("a\r\nc\r\n", 3, 1),
            ("a\r\nB\r\n", 3, 1),
            ("a\r\nb", 3, 1),
            ("a\r\n#gap first=2 count=1 at_us=7 cause=busy\r\n", 3, 1),
            ("#remark\r\n", 0, 0),
            ("a\r\nb\r\nc\r\nd\r\ne\r\n", 12, 4),
            ("a\n", 0, 0),
        ] {
            let (mismatch, _) = read(text);
            assert_eq!(
                mismatch,
                Some(Mismatch {
                    offset_bytes,
                    expected
                }),
                "{text:?}"
            );
        }
    }
}
