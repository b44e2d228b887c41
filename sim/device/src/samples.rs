//! What a producer samples, and when.

use cardiograph_recorder::{LINE_BYTES_MAX, Session};

/// Samples of one stream, in order.
pub trait Samples {
    /// When a sample is due, in ns from the start of sampling; `None` after the last. Later samples are
    /// due later.
    fn due_ns(&mut self, index: u64) -> Option<u64>;

    /// Makes a sample; returns its length.
    fn make(&mut self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize;

    /// A session that begins before a sample; none by default.
    fn session(&mut self, _index: u64) -> Option<Session> {
        None
    }

    /// Takes note that the session before this sample was begun, or refused.
    fn note_session(&mut self, _index: u64, _is_begun: bool) {}
}

/// Lines of one length at a fixed rate, each of which tells its number, so that a missing one shows.
#[derive(Clone, Copy, Debug)]
pub struct Lines {
    /// Lines a second.
    pub rate_hz: u32,
    /// Bytes of a line, with its CR LF.
    pub line_bytes: usize,
    /// Lines in all.
    pub count: u64,
}

/// The shortest line that has room for its number.
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

/// When sample `index` is due, in ns from the start: index / rate, rounded down, without drift.
pub fn due_ns(index: u64, rate_hz: u32) -> u64 {
    let rate = u64::from(rate_hz.max(1));
    index / rate * 1_000_000_000 + index % rate * 1_000_000_000 / rate
}

/// Fills a line: its number in eleven digits, a comma, and digits that depend on the number.
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
