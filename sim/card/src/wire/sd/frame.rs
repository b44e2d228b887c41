//! Frames on the CMD line: commands to the card and responses to the host.

use crate::wire::crc::crc7;

/// Number of bits, and clocks, of a command (4.7.2).
pub(super) const COMMAND_CLOCKS: u64 = 48;

/// A command with its 48 bits (4.7.2): start bit 0, transmission bit 1, index, argument, CRC7, end bit 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// Bits of the command in the order of transmission.
    pub bytes: [u8; 6],
}

impl Command {
    /// Creates a command with a correct checksum; uses the lower six bits of the index.
    pub fn new(index: u8, argument: u32) -> Command {
        Command {
            bytes: seal(0x40 | index & 0x3F, argument),
        }
    }

    /// Returns the command with a wrong checksum, as after a transmission error.
    pub fn with_bad_crc(mut self) -> Command {
        self.bytes[5] ^= 1 << 1;
        self
    }

    pub(super) fn index(&self) -> u8 {
        self.bytes[0] & 0x3F
    }

    pub(super) fn argument(&self) -> u32 {
        let [_, argument @ .., _] = self.bytes;
        u32::from_be_bytes(argument)
    }

    /// Returns true if the start and transmission bits are those of a host command.
    pub(super) fn is_framed(&self) -> bool {
        self.bytes[0] & 0xC0 == 0x40
    }

    pub(super) fn crc_matches(&self) -> bool {
        self.bytes[5] == crc7(&self.bytes[..5]) << 1 | 1
    }
}

/// A response on the CMD line (4.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// No response: the line stays high.
    None,
    /// 48 bits: R1, R1b, R3, R6 and R7. All of them except R3 end with a CRC7.
    Short([u8; 6]),
    /// 136 bits: R2. The CRC7 is that of the register in the response.
    Long([u8; 17]),
}

impl Response {
    /// Creates R1, R1b, R6 or R7, which repeat the command index (4.9.1, 4.9.5, 4.9.6).
    pub(super) fn short(index: u8, argument: u32) -> Response {
        Response::Short(seal(index, argument))
    }

    /// Creates R3 (4.9.4), with ones in place of index and checksum.
    pub(super) fn ocr(ocr: [u8; 4]) -> Response {
        let [a, b, c, d] = ocr;
        Response::Short([0x3F, a, b, c, d, 0xFF])
    }

    /// Creates R2 (4.9.3).
    pub(super) fn long(register: &[u8; 16]) -> Response {
        let mut bytes = [0x3F; 17];
        bytes[1..].copy_from_slice(register);
        Response::Long(bytes)
    }

    pub(super) fn clocks(&self) -> u64 {
        match self {
            Response::None => 0,
            Response::Short(_) => 48,
            Response::Long(_) => 136,
        }
    }

    /// Returns the 32 bits of a short response: card status, OCR, RCA with status, or voltage with check
    /// pattern.
    pub fn argument(&self) -> Option<u32> {
        match *self {
            Response::Short([_, a, b, c, d, _]) => Some(u32::from_be_bytes([a, b, c, d])),
            Response::None | Response::Long(_) => None,
        }
    }

    /// Returns the CID or CSD in a long response, with its CRC7 and end bit.
    pub fn register(&self) -> Option<[u8; 16]> {
        match self {
            Response::Long([_, register @ ..]) => Some(*register),
            Response::None | Response::Short(_) => None,
        }
    }
}

fn seal(head: u8, argument: u32) -> [u8; 6] {
    let [a, b, c, d] = argument.to_be_bytes();
    let mut bytes = [head, a, b, c, d, 0];
    bytes[5] = crc7(&bytes[..5]) << 1 | 1;
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_match_the_examples_of_the_specification() {
        // Examples from 4.5: CMD0, CMD17 and the response to CMD17.
        assert_eq!(Command::new(0, 0).bytes, [0x40, 0, 0, 0, 0, 0x95]);
        assert_eq!(Command::new(17, 0).bytes, [0x51, 0, 0, 0, 0, 0x55]);
        let response = Response::short(17, 0x900);
        assert_eq!(response, Response::Short([0x11, 0, 0, 0x09, 0, 0x67]));
    }

    #[test]
    fn a_command_with_a_bad_crc_is_framed_but_fails_the_check() {
        let command = Command::new(8, 0x1AA);
        assert!(command.is_framed() && command.crc_matches());
        assert!(command.with_bad_crc().is_framed() && !command.with_bad_crc().crc_matches());
        assert_eq!((command.index(), command.argument()), (8, 0x1AA));
    }
}
