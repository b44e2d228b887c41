//! What goes over the CMD line: commands one way, responses the other.

use crate::wire::crc::crc7;

/// Bits of a command (4.7.2).
pub(super) const COMMAND_CLOCKS: u64 = 48;

/// A command as its 48 bits (4.7.2): start bit 0, transmission bit 1, index, argument, CRC7, end
/// bit 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// The bits, first ones first.
    pub bytes: [u8; 6],
}

impl Command {
    /// A command with the checksum that belongs to it; of the index, the lower six bits.
    pub fn new(index: u8, argument: u32) -> Command {
        Command {
            bytes: seal(0x40 | index & 0x3F, argument),
        }
    }

    /// The same with a checksum that does not hold, as a disturbed line has it.
    pub fn spoilt(mut self) -> Command {
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

    /// Whether it begins as a command of a host does.
    pub(super) fn is_framed(&self) -> bool {
        self.bytes[0] & 0xC0 == 0x40
    }

    pub(super) fn crc_holds(&self) -> bool {
        self.bytes[5] == crc7(&self.bytes[..5]) << 1 | 1
    }
}

/// What the card says on the CMD line (4.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Response {
    /// Nothing: the line stays high.
    None,
    /// 48 bits: R1, R1b, R3, R6 and R7. All but R3 end with a CRC7.
    Short([u8; 6]),
    /// 136 bits: R2. Its CRC7 is that of the register within.
    Long([u8; 17]),
}

impl Response {
    /// R1, R1b, R6 and R7: the index of the command comes back (4.9.1, 4.9.5, 4.9.6).
    pub(super) fn short(index: u8, argument: u32) -> Response {
        Response::Short(seal(index, argument))
    }

    /// R3 (4.9.4): ones stand where index and checksum would.
    pub(super) fn ocr(ocr: [u8; 4]) -> Response {
        let [a, b, c, d] = ocr;
        Response::Short([0x3F, a, b, c, d, 0xFF])
    }

    /// R2 (4.9.3).
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

    /// The 32 bits that a short response carries: card status, OCR, RCA with status, or voltage with
    /// pattern.
    pub fn argument(&self) -> Option<u32> {
        match *self {
            Response::Short([_, a, b, c, d, _]) => Some(u32::from_be_bytes([a, b, c, d])),
            Response::None | Response::Long(_) => None,
        }
    }

    /// CID or CSD, with its CRC7 and end bit.
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
    fn the_examples_of_the_specification() {
        // 4.5: CMD0, CMD17 and the answer to CMD17.
        assert_eq!(Command::new(0, 0).bytes, [0x40, 0, 0, 0, 0, 0x95]);
        assert_eq!(Command::new(17, 0).bytes, [0x51, 0, 0, 0, 0, 0x55]);
        let answer = Response::short(17, 0x900);
        assert_eq!(answer, Response::Short([0x11, 0, 0, 0x09, 0, 0x67]));
    }

    #[test]
    fn a_command_spoilt_is_framed_and_does_not_hold() {
        let command = Command::new(8, 0x1AA);
        assert!(command.is_framed() && command.crc_holds());
        assert!(command.spoilt().is_framed() && !command.spoilt().crc_holds());
        assert_eq!((command.index(), command.argument()), (8, 0x1AA));
    }
}
