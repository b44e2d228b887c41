//! Lines to record, which can be made again to compare them with what is read back.

use crate::lines::due_ns;
use cardiograph_recorder::{Format, LINE_BYTES_MAX};

/// Lines and the times at which they are due. Each can be made any number of times, always with the same bytes.
pub trait Feed {
    /// Number of lines.
    fn lines(&self) -> u64;

    /// Time at which a line is due, in ns from the start; no earlier than the one before it.
    fn due_ns(&self, index: u64) -> u64;

    /// Makes a line with its CR LF, or a sample of a schema; returns its length in bytes.
    fn make(&self, index: u64, line: &mut [u8; LINE_BYTES_MAX]) -> usize;

    /// Bytes of all lines.
    fn bytes(&self) -> u64;

    /// Format in which the samples are recorded.
    fn format(&self) -> Format;
}

/// Returns the format of text lines of up to `line_bytes_max` bytes, without a header.
pub(crate) fn text_format(line_bytes_max: usize) -> Format {
    Format::Lines {
        header: "",
        line_bytes_max: line_bytes_max as u16,
    }
}

/// Lines made by others.
pub struct Given {
    text: Vec<u8>,
    /// End of each line in the text, which has no line ends.
    ends: Vec<usize>,
    times: Times,
}

/// Times of given lines.
pub enum Times {
    /// Lines per second, in Hz.
    Rate(u32),
    /// Each at its own time, in ns from the start.
    Own(Vec<u64>),
}

/// A line that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Number of the line, from 0.
    pub index: u64,
    /// Its bytes, with CR LF.
    pub bytes: usize,
}

const LINE_END: &[u8] = b"\r\n";

impl Given {
    /// Creates an empty list.
    pub fn new(times: Times) -> Given {
        Given {
            text: Vec::new(),
            ends: Vec::new(),
            times,
        }
    }

    /// Adds a line, with or without its line end.
    ///
    /// # Errors
    /// [`TooLong`] if no recording can hold it.
    pub fn push(&mut self, line: &[u8]) -> Result<(), TooLong> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let bytes = line.len() + LINE_END.len();
        if bytes > LINE_BYTES_MAX {
            let index = self.ends.len() as u64;
            return Err(TooLong { index, bytes });
        }
        self.text.extend_from_slice(line);
        self.ends.push(self.text.len());
        Ok(())
    }

    /// Returns the bytes of the longest line, its CR LF included.
    pub fn line_bytes_max(&self) -> usize {
        let lens = (0..self.ends.len()).map(|index| self.line(index).len());
        lens.max().unwrap_or(0) + LINE_END.len()
    }

    fn line(&self, index: usize) -> &[u8] {
        let start = match index {
            0 => 0,
            index => self.ends[index - 1],
        };
        &self.text[start..self.ends[index]]
    }
}

impl Feed for Given {
    fn lines(&self) -> u64 {
        match &self.times {
            Times::Rate(_) => self.ends.len() as u64,
            Times::Own(times_ns) => self.ends.len().min(times_ns.len()) as u64,
        }
    }

    fn due_ns(&self, index: u64) -> u64 {
        match &self.times {
            Times::Rate(rate_hz) => due_ns(index, *rate_hz),
            Times::Own(times_ns) => times_ns[index as usize],
        }
    }

    fn make(&self, index: u64, made: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let line = self.line(index as usize);
        let len = line.len() + LINE_END.len();
        made[..line.len()].copy_from_slice(line);
        made[line.len()..len].copy_from_slice(LINE_END);
        len
    }

    fn bytes(&self) -> u64 {
        (self.text.len() + self.ends.len() * LINE_END.len()) as u64
    }

    fn format(&self) -> Format {
        text_format(self.line_bytes_max())
    }
}
