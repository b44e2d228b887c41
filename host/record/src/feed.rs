//! Lines to record, which can be made again to compare what was read back.

use cardiograph_recorder::LINE_BYTES_MAX;
use cardiograph_sim_device::{LINE_BYTES_MIN, Lines, due_ns, line};

/// Lines and when they are due. Each can be made as often as wanted, and is the same each time.
pub trait Feed {
    /// How many there are.
    fn lines(&self) -> u64;

    /// When a line is due, in ns from the start; no earlier than the one before it.
    fn due_ns(&self, index: u64) -> u64;

    /// Makes a line with its CR LF; returns its length in bytes.
    fn make(&self, index: u64, line: &mut [u8; LINE_BYTES_MAX]) -> usize;

    /// Bytes of all lines.
    fn bytes(&self) -> u64;

    /// Bytes of the longest line, its CR LF included.
    fn line_bytes_max(&self) -> usize;
}

impl Feed for Lines {
    fn lines(&self) -> u64 {
        self.count
    }

    fn due_ns(&self, index: u64) -> u64 {
        due_ns(index, self.rate_hz)
    }

    fn make(&self, index: u64, made: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let len = self.line_bytes_max();
        line(index, &mut made[..len]);
        len
    }

    fn bytes(&self) -> u64 {
        self.count * self.line_bytes_max() as u64
    }

    fn line_bytes_max(&self) -> usize {
        self.line_bytes.clamp(LINE_BYTES_MIN, LINE_BYTES_MAX)
    }
}

/// Lines that somebody else made.
pub struct Given {
    text: Vec<u8>,
    /// Where each line ends in the text; none has its end there.
    ends: Vec<usize>,
    times: Times,
}

/// When given lines are due.
pub enum Times {
    /// So many a second, in Hz.
    Rate(u32),
    /// Each at its own time, in ns from the start.
    Own(Vec<u64>),
}

/// A line that is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// Which, from 0.
    pub index: u64,
    /// Its bytes, with CR LF.
    pub bytes: usize,
}

const LINE_END: &[u8] = b"\r\n";

impl Given {
    /// No lines yet.
    pub fn new(times: Times) -> Given {
        Given {
            text: Vec::new(),
            ends: Vec::new(),
            times,
        }
    }

    /// Adds a line; its end may be with it or not.
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

    fn line_bytes_max(&self) -> usize {
        let lens = (0..self.ends.len()).map(|index| self.line(index).len());
        lens.max().unwrap_or(0) + LINE_END.len()
    }
}
