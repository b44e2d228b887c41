//! Generated lines of text. Each contains its own index, so that a missing line is detected.

use crate::Feed;
use crate::feed::text_format;
use cardiograph_recorder::{Format, LINE_BYTES_MAX};

/// Generated lines of equal length at a fixed rate.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Lines per second.
    pub rate_hz: u32,
    /// Bytes per line, including CR LF.
    pub line_bytes: usize,
    /// Total number of lines.
    pub count: u64,
}

/// Length of the shortest line, in bytes: index, comma, CR LF.
pub const LINE_BYTES_MIN: usize = 14;

impl Lines {
    fn line_bytes_max(&self) -> usize {
        self.line_bytes.clamp(LINE_BYTES_MIN, LINE_BYTES_MAX)
    }
}

impl Feed for Lines {
    fn count(&self) -> u64 {
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

    fn format(&self) -> Format {
        text_format(self.line_bytes_max())
    }
}

/// Returns the due time of sample `index`, in ns from the start: index / rate, rounded down, without drift.
pub(crate) fn due_ns(index: u64, rate_hz: u32) -> u64 {
    let rate = u64::from(rate_hz.max(1));
    index / rate * 1_000_000_000 + index % rate * 1_000_000_000 / rate
}

/// Fills a line: its index in eleven digits, a comma, digits derived from the index, CR LF.
pub fn line(index: u64, line: &mut [u8]) {
    let end = line.len() - 2;
    let mut left = index;
    for digit in line[..LINE_BYTES_MIN - 3].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    line[LINE_BYTES_MIN - 3] = b',';
    let mut state = index.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for byte in &mut line[LINE_BYTES_MIN - 2..end] {
        state = state.rotate_left(5).wrapping_mul(0x2545_F491_4F6C_DD1D) ^ index;
        *byte = b'0' + (state >> 60) as u8 % 10;
    }
    line[end..].copy_from_slice(b"\r\n");
}
