//! Samples to record, which can be generated again to verify the files.

use crate::lines::due_ns;
use cardiograph_recorder::{Format, LINE_BYTES_MAX};
use std::io::{self, BufRead, Read};

/// Reproducible samples with due times. A sample can be generated any number of times, always with the same
/// bytes.
pub trait Feed {
    /// Returns the number of samples in the feed.
    fn count(&self) -> u64;

    /// Returns the time at which a sample is due, in ns from the start. Times never decrease.
    fn due_ns(&self, index: u64) -> u64;

    /// Generates a sample, which is a line of text with its line end or a binary sample; returns its length in
    /// bytes.
    fn make(&self, index: u64, line: &mut [u8; LINE_BYTES_MAX]) -> usize;

    /// Returns the total size of all samples, in bytes.
    fn bytes(&self) -> u64;

    /// Returns the format in which the samples are recorded.
    fn format(&self) -> Format;
}

/// Returns the format of text lines of up to `line_bytes_max` bytes, without a header.
pub(crate) fn text_format(line_bytes_max: usize) -> Format {
    Format::Lines {
        header: "",
        line_bytes_max: line_bytes_max as u16,
    }
}

/// Lines of text from a file or a pipe.
pub struct InputLines {
    /// First line of each recorded file, without its line end; empty for none.
    header: &'static str,
    /// Lines with their line ends. The beginning of a line that is too long has none, so that the recorder rejects it.
    text: Vec<u8>,
    /// End offset of each line in `text`.
    ends: Vec<usize>,
    times: Times,
}

/// Due times of input lines.
pub enum Times {
    /// A fixed rate, in Hz.
    Rate(u32),
    /// One time per line, in ns from the start.
    PerLine(Vec<u64>),
}

/// A line is longer than a recording can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Index of the line, from 0.
    pub index: u64,
    /// Length of the line in bytes, including its line end.
    pub bytes: usize,
}

impl InputLines {
    /// Creates an empty list of lines.
    pub fn new(times: Times) -> InputLines {
        InputLines {
            header: "",
            text: Vec::new(),
            ends: Vec::new(),
            times,
        }
    }

    /// Reads all lines of an input, or the first `lines_max` of them. A line that is too long becomes a sample that the
    /// recorder rejects and reports in a gap, as in a recording in real time.
    ///
    /// # Errors
    /// Errors of the input.
    pub fn read(times: Times, input: &mut impl BufRead, lines_max: u64) -> io::Result<InputLines> {
        let mut lines = InputLines::new(times);
        while lines.count() < lines_max
            && let Some(line) = next_line(input)?
        {
            lines.append(&line[..line.len().min(LINE_BYTES_MAX)]);
        }
        Ok(lines)
    }

    /// Begins each recorded file with this line, such as the names of the columns, given without its line end.
    ///
    /// # Errors
    /// [`TooLong`] if it is longer than a recording can hold.
    pub fn set_header(&mut self, header: &str) -> Result<(), TooLong> {
        let bytes = header.len() + "\r\n".len();
        if bytes > LINE_BYTES_MAX {
            return Err(TooLong { index: 0, bytes });
        }
        // A format borrows its header for the lifetime of the program. The leak is small: a program records one input.
        self.header = String::from(header).leak();
        Ok(())
    }

    /// Appends a line, with or without its line end.
    ///
    /// # Errors
    /// [`TooLong`] if the line is longer than a recording can hold.
    pub fn push(&mut self, line: &[u8]) -> Result<(), TooLong> {
        let mut line = line.to_vec();
        finish_line(&mut line);
        if line.len() > LINE_BYTES_MAX {
            return Err(TooLong {
                index: self.ends.len() as u64,
                bytes: line.len(),
            });
        }
        self.append(&line);
        Ok(())
    }

    fn append(&mut self, line: &[u8]) {
        self.text.extend_from_slice(line);
        self.ends.push(self.text.len());
    }

    /// Returns the length of the longest line in bytes, including its line end.
    pub fn line_bytes_max(&self) -> usize {
        let lens = (0..self.ends.len()).map(|index| self.line(index).len());
        lens.max().unwrap_or(0)
    }

    fn line(&self, index: usize) -> &[u8] {
        let start = match index {
            0 => 0,
            index => self.ends[index - 1],
        };
        &self.text[start..self.ends[index]]
    }
}

impl Feed for InputLines {
    fn count(&self) -> u64 {
        match &self.times {
            Times::Rate(_) => self.ends.len() as u64,
            Times::PerLine(times_ns) => self.ends.len().min(times_ns.len()) as u64,
        }
    }

    fn due_ns(&self, index: u64) -> u64 {
        match &self.times {
            Times::Rate(rate_hz) => due_ns(index, *rate_hz),
            Times::PerLine(times_ns) => times_ns[index as usize],
        }
    }

    fn make(&self, index: u64, made: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let line = self.line(index as usize);
        made[..line.len()].copy_from_slice(line);
        line.len()
    }

    fn bytes(&self) -> u64 {
        self.text.len() as u64
    }

    fn format(&self) -> Format {
        Format::Lines {
            header: self.header,
            line_bytes_max: self.line_bytes_max() as u16,
        }
    }
}

/// Returns the next line of an input with its line end. A line that is too long is truncated to one byte above the limit,
/// so that the recorder rejects it.
pub(crate) fn next_line(input: &mut impl BufRead) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = LINE_BYTES_MAX as u64 + 1;
    if input.take(most).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.len() as u64 == most && !line.ends_with(b"\n") {
        input.skip_until(b'\n')?;
    } else {
        finish_line(&mut line);
    }
    Ok(Some(line))
}

/// Beginnings of the recorder's own notes.
const NOTES: [&[u8]; 2] = [b"#gap ", b"#file "];

/// Appends a line end to a line without one, such as the last line of an input. Inserts a space into a line that looks
/// like a note of the recorder, `#gap` or `#file`: otherwise, readers would believe that samples are missing.
fn finish_line(line: &mut Vec<u8>) {
    if !line.ends_with(b"\n") {
        line.push(b'\n');
    }
    // The commas and the quote put a note into its column.
    let at = line.iter().take_while(|it| matches!(it, b',' | b'"'));
    let at = at.count();
    if NOTES.iter().any(|note| line[at..].starts_with(note)) {
        line.insert(at + 1, b' ');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_input_are_no_notes_of_the_recorder() {
        for (input, stored) in [
            ("1,2\r\n", "1,2\r\n"),
            ("1,2", "1,2\n"),
            ("#gap first=0 count=5\n", "# gap first=0 count=5\n"),
            (",,#gap first=0", ",,# gap first=0\n"),
            (",,\"#file number=1\"\n", ",,\"# file number=1\"\n"),
            ("#file number=1\n", "# file number=1\n"),
            ("#gaps\n", "#gaps\n"),
            ("# gap first=0\n", "# gap first=0\n"),
            ("1,#gap first=0\n", "1,#gap first=0\n"),
        ] {
            let line = next_line(&mut input.as_bytes()).unwrap();
            assert_eq!(line.as_deref(), Some(stored.as_bytes()), "{input:?}");
            let mut lines = InputLines::new(Times::Rate(1));
            lines.push(input.as_bytes()).unwrap();
            assert_eq!(lines.line(0), stored.as_bytes(), "{input:?}");
        }
    }
}
