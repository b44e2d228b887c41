//! Lines between the chunks of a body.

use crate::limits::CHUNK_LINE_BYTES_MAX;

/// A line with a chunk's size, the line end after a chunk, or a trailer field.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ChunkLine {
    /// Bytes so far, without the line end.
    pub(crate) len: usize,
    size: u64,
    digits: u8,
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Digits of the size.
    #[default]
    Size,
    /// An extension, or the text of a trailer.
    Text,
    /// CR was seen.
    End,
}

impl ChunkLine {
    /// Adds a byte. Returns true at the end of the line, and `None` if the line is damaged or too long.
    pub(crate) fn push(&mut self, byte: u8) -> Option<bool> {
        match (self.state, byte) {
            (State::End, b'\n') => return Some(true),
            (State::End, _) | (_, b'\n') => return None,
            (_, b'\r') => {
                self.state = State::End;
                return Some(false);
            }
            (State::Size, byte) => match char::from(byte).to_digit(16) {
                // 60 bits: sums of sizes never overflow.
                Some(digit) if self.size < 1 << 56 => {
                    self.size = self.size << 4 | u64::from(digit);
                    self.digits = self.digits.saturating_add(1);
                }
                // Not a size, but perhaps a trailer field.
                Some(_) => {
                    self.state = State::Text;
                    self.digits = 0;
                }
                None => self.state = State::Text,
            },
            (State::Text, _) => (),
        }
        // The first byte that is not a digit: an extension begins with a semicolon, possibly after spaces.
        self.len += 1;
        let is_first_of_text =
            self.state == State::Text && self.len == usize::from(self.digits) + 1;
        if is_first_of_text && !matches!(byte, b';' | b' ' | b'\t') {
            self.digits = 0;
        }
        (self.len <= CHUNK_LINE_BYTES_MAX).then_some(false)
    }

    /// Returns the size, if the line begins with one.
    pub(crate) fn size(&self) -> Option<u64> {
        (self.digits > 0).then_some(self.size)
    }
}
