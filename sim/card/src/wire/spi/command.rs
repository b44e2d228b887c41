//! Command frames from the host, and responses from the card.

use super::levels::RELEASED;
use crate::wire::crc::crc7;

/// Bits of R1 (7.3.2.1).
pub(super) mod r1 {
    pub(crate) const IDLE: u8 = 1;
    pub(crate) const ERASE_RESET: u8 = 1 << 1;
    pub(crate) const ILLEGAL_COMMAND: u8 = 1 << 2;
    pub(crate) const CRC_ERROR: u8 = 1 << 3;
    pub(crate) const ERASE_SEQUENCE_ERROR: u8 = 1 << 4;
    pub(crate) const ADDRESS_ERROR: u8 = 1 << 5;
    pub(crate) const PARAMETER_ERROR: u8 = 1 << 6;
}

/// Bits of the second byte of R2 (7.3.2.3).
pub(super) mod r2 {
    pub(crate) const WRITE_PROTECT_ERASE_SKIP: u8 = 1 << 1;
    pub(crate) const ERROR: u8 = 1 << 2;
    pub(crate) const CARD_ECC_FAILED: u8 = 1 << 4;
    pub(crate) const WRITE_PROTECT_VIOLATION: u8 = 1 << 5;
    pub(crate) const ERASE_PARAMETER: u8 = 1 << 6;
    pub(crate) const OUT_OF_RANGE: u8 = 1 << 7;
}

/// A received command (7.3.1.1).
#[derive(Clone, Copy)]
pub(super) struct Command {
    pub(super) index: u8,
    pub(super) argument: u32,
    pub(super) crc_matches: bool,
}

/// Assembles the six bytes of a command.
#[derive(Default)]
pub(super) struct Frame {
    bytes: [u8; 6],
    len: usize,
}

impl Frame {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Takes a byte from the host; returns the command that it completes.
    pub(super) fn push(&mut self, byte: u8) -> Option<Command> {
        // A command begins with a start bit and a transmission bit; any other byte is filler.
        if self.len == 0 && byte & 0xC0 != 0x40 {
            return None;
        }
        self.bytes[self.len] = byte;
        self.len += 1;
        if self.len < self.bytes.len() {
            return None;
        }
        self.len = 0;
        let [head, argument @ .., sum] = self.bytes;
        Some(Command {
            index: head & 0x3F,
            argument: u32::from_be_bytes(argument),
            crc_matches: sum == crc7(&self.bytes[..5]) << 1 | 1,
        })
    }
}

/// Maximum length of a response in bytes: stuff byte, NCR, R1 and the additional bytes of R3 and R7.
const RESPONSE_BYTES_MAX: usize = 1 + 8 + 1 + 4;

/// A response that the card is sending; all other data waits until the response is complete.
#[derive(Default)]
pub(super) struct Response {
    bytes: [u8; RESPONSE_BYTES_MAX],
    at: usize,
    len: usize,
}

impl Response {
    /// Creates a response that follows `filler` filler bytes.
    pub(super) fn after(filler: usize, response: &[u8]) -> Response {
        let mut bytes = [RELEASED; RESPONSE_BYTES_MAX];
        let len = filler + response.len();
        bytes[filler..len].copy_from_slice(response);
        Response { bytes, at: 0, len }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.at == self.len
    }

    pub(super) fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes[..self.len].get(self.at)?;
        self.at += 1;
        Some(byte)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_begins_at_its_start_bits_and_its_checksum_is_verified() {
        let mut frame = Frame::default();
        assert!(frame.push(0xFF).is_none());
        let bytes = [0x48, 0, 0, 1, 0xAA, 0x87];
        let command = bytes.iter().find_map(|byte| frame.push(*byte)).unwrap();
        assert_eq!((command.index, command.argument), (8, 0x1AA));
        assert!(command.crc_matches);
        let bytes = [0x48, 0, 0, 1, 0xAB, 0x87];
        let command = bytes.iter().find_map(|byte| frame.push(*byte)).unwrap();
        assert!(!command.crc_matches);
    }
}
