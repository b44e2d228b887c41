//! Samples of a producer, and their due times.

use cardiograph_recorder::{LINE_BYTES_MAX, Session};

/// Samples of one stream, in order.
pub trait Samples {
    /// Returns the due time of a sample, in ns from the start of sampling; `None` after the last sample. Due
    /// times never decrease.
    fn due_ns(&mut self, index: u64) -> Option<u64>;

    /// Generates a sample; returns its length in bytes.
    fn make(&mut self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize;

    /// Returns the session that begins before a sample; none by default.
    fn session(&mut self, _index: u64) -> Option<Session> {
        None
    }

    /// Receives the result of beginning the session before a sample: true if the producer accepted the
    /// session.
    fn note_session(&mut self, _index: u64, _is_begun: bool) {}

    /// Returns true if no more samples shall be pushed. Called from time to time while the next sample is not due yet.
    fn is_over(&mut self) -> bool {
        false
    }

    /// Receives the result of pushing a sample: true if it was lost, and the level of the ring buffer afterwards.
    fn note_push(&mut self, _index: u64, _is_lost: bool, _level_bytes: usize) {}
}

/// Lines of text of equal length at a fixed rate. Each line contains its own index, so that a missing line is
/// detected.
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

impl Samples for Lines {
    fn due_ns(&mut self, index: u64) -> Option<u64> {
        (index < self.count).then(|| due_ns(index, self.rate_hz))
    }

    fn make(&mut self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let len = self.line_bytes.clamp(LINE_BYTES_MIN, LINE_BYTES_MAX);
        line(index, &mut sample[..len]);
        len
    }
}

/// Returns the due time of sample `index`, in ns from the start: index / rate, rounded down, without drift.
pub fn due_ns(index: u64, rate_hz: u32) -> u64 {
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
