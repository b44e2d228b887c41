//! Validates the Thrift structures of a Parquet file before the decoder reads them.
//!
//! The decoder trusts the length of a list that it skips. List elements may take no bytes at all, so a few bytes
//! can keep it busy for minutes. A structure with more elements than bytes is therefore rejected here.

const STOP: u8 = 0;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Maximum nesting depth; no Parquet file nests structures deeper.
const DEPTH_MAX: u32 = 32;

/// Returns true if the bytes start with a structure whose lists are no longer than the bytes allow.
pub(super) fn is_sound(bytes: &[u8]) -> bool {
    let mut walk = Walk {
        rest: bytes,
        elements_left: bytes.len(),
    };
    walk.skip(STRUCT, DEPTH_MAX).is_some()
}

/// Returns the decompressed length from the header of a page: its second field, after the kind of page.
pub(super) fn page_bytes(header: &[u8]) -> Option<u64> {
    /// First byte of the first two fields: the field number is that of the previous field plus 1, the type is a 32-bit
    /// integer.
    const NEXT_I32: u8 = 0x15;
    let mut walk = Walk {
        rest: header,
        elements_left: 0,
    };
    let mut number = 0;
    for _ in 0..2 {
        if walk.byte()? != NEXT_I32 {
            return None;
        }
        number = walk.varint()?;
    }
    // Thrift encodes a non-negative number n as 2n.
    (number % 2 == 0).then_some(number / 2)
}

struct Walk<'a> {
    rest: &'a [u8],
    elements_left: usize,
}

impl Walk<'_> {
    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match kind {
            // In this encoding, each of the two boolean values is a type of its own that takes no bytes.
            1 | 2 => Some(()),
            BYTE => self.bytes(1),
            I16..=I64 => self.varint().map(|_| ()),
            DOUBLE => self.bytes(8),
            BINARY => {
                let length = self.varint()?;
                self.bytes(length)
            }
            LIST | SET => {
                let head = self.byte()?;
                let count = match head >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                self.elements(count, &[head & 15], depth)
            }
            MAP => match self.varint()? {
                0 => Some(()),
                count => {
                    let kinds = self.byte()?;
                    self.elements(count, &[kinds >> 4, kinds & 15], depth)
                }
            },
            STRUCT => loop {
                let head = self.byte()?;
                if head & 15 == STOP {
                    return Some(());
                }
                if head >> 4 == 0 {
                    // Skip the explicit field number, which is present if it does not follow from the
                    // previous one.
                    self.varint()?;
                }
                self.skip(head & 15, depth)?;
            },
            UUID => self.bytes(16),
            _ => None,
        }
    }

    fn elements(&mut self, count: u64, kinds: &[u8], depth: u32) -> Option<()> {
        let count = usize::try_from(count).ok()?;
        self.elements_left = self.elements_left.checked_sub(count)?;
        for _ in 0..count {
            for &kind in kinds {
                self.skip(kind, depth)?;
            }
        }
        Some(())
    }

    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    fn bytes(&mut self, count: u64) -> Option<()> {
        self.rest = self.rest.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn varint(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_longer_than_the_bytes_are_rejected() {
        // The bytes encode field 1, a list of 15 or more booleans. A list of 20 fits in the 24 bytes; one of
        // 2^31 - 1 does not.
        let mut sound = vec![0x19, 0xF1, 20, 0];
        sound.resize(24, 0);
        assert!(is_sound(&sound));
        assert!(!is_sound(&[0x19, 0xF1, 0xFF, 0xFF, 0xFF, 0xFF, 0x07, 0]));
    }

    #[test]
    fn endless_nesting_and_missing_ends_are_rejected() {
        assert!(!is_sound(&[0x1C; 1000]));
        assert!(!is_sound(&[]));
        assert!(!is_sound(&[0x15, 0x80]));
        assert!(is_sound(&[0x15, 0x02, 0]));
    }
}
