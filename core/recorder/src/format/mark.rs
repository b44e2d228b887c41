//! Marks of text files: they contain the recording's epoch, the position, and the number of durable blocks.
//!
//! A mark ends a block and a line that begins with `#`:
//!
//! ```text
//!   #   @5F3A9C01 000001C0 00000180 00002F1A 00000001 00000025 0001D4C0 9C01B2D4\r\n
//!        epoch    index    durable  samples  gaps     lost     age_ms   checksum
//! ```
//!
//! - `index` is the block's index in the file.
//! - `durable` is the number of blocks known to be durable when the mark was made; in block 0, it is the number of the
//!   recording.
//! - `samples`, `gaps` and `lost` are totals of the file.
//! - `age_ms` is the time since the file began.
//! - The checksum is the CRC-32 of all bytes since the previous mark.
//!
//! Version 0.1 had no totals and no age.

use crate::crc32::crc32;
use crate::limits::{MARK_BLOCKS, MARK_TAIL_BYTES};
use cardiograph_card::{BLOCK_BYTES, Block};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) epoch: u32,
    pub(crate) index: u32,
    /// Number of durable blocks; in block 0, the number of the recording.
    pub(crate) durable: u32,
    pub(crate) samples: u32,
    pub(crate) gaps: u32,
    pub(crate) lost: u32,
    pub(crate) age_ms: u32,
}

/// Offset of the checksum in a block.
const CHECKSUM_AT: usize = BLOCK_BYTES - 2 - 8;
const TAIL_AT: usize = BLOCK_BYTES - MARK_TAIL_BYTES;
/// Length of a mark's fields in version 0.1, in bytes.
pub(crate) const TAIL_V1_BYTES: usize = 1 + 4 * 8 + 3 + 2;
const TAIL_V1_AT: usize = BLOCK_BYTES - TAIL_V1_BYTES;

/// Returns true if every text file has a mark in this block: block 0, and the last of every
/// [`MARK_BLOCKS`](crate::limits::MARK_BLOCKS) blocks.
pub(crate) fn is_mark_block(index: u32) -> bool {
    index == 0 || (index + 1).is_multiple_of(MARK_BLOCKS)
}

/// Returns the index of the mark block with this number; numbers start at 0.
pub(crate) fn mark_block(number: u32) -> u32 {
    (number * MARK_BLOCKS).saturating_sub(1)
}

/// Writes a mark at the end of a block. `crc` is the CRC of the bytes between the previous mark and this
/// block.
pub(crate) fn write(block: &mut Block, mark: &Mark, crc: u32) {
    let numbers = [
        mark.epoch,
        mark.index,
        mark.durable,
        mark.samples,
        mark.gaps,
        mark.lost,
        mark.age_ms,
    ];
    block[TAIL_AT] = b'@';
    for (number, at) in numbers.into_iter().zip(0..) {
        let at = TAIL_AT + 1 + 9 * at;
        block[at..at + 8].copy_from_slice(&hex(number));
        block[at + 8] = b' ';
    }
    let crc = crc32(crc, &block[..CHECKSUM_AT]);
    block[CHECKSUM_AT..BLOCK_BYTES - 2].copy_from_slice(&hex(crc));
    block[BLOCK_BYTES - 2..].copy_from_slice(b"\r\n");
}

/// Returns the mark at the end of a block and its checksum, if the block has the form of one.
pub(crate) fn read(block: &Block) -> Option<(Mark, u32)> {
    let [epoch, index, durable, samples, gaps, lost, age_ms, crc] = fields(block, TAIL_AT)?;
    let mark = Mark {
        epoch,
        index,
        durable,
        samples,
        gaps,
        lost,
        age_ms,
    };
    Some((mark, crc))
}

/// Returns a mark of version 0.1 and its checksum.
pub(crate) fn read_v1(block: &Block) -> Option<(Mark, u32)> {
    let [epoch, index, durable, crc] = fields(block, TAIL_V1_AT)?;
    let mark = Mark {
        epoch,
        index,
        durable,
        ..Mark::default()
    };
    Some((mark, crc))
}

/// Returns the numbers from the `@` at this offset to the end of the block.
fn fields<const N: usize>(block: &Block, tail_at: usize) -> Option<[u32; N]> {
    if block[tail_at] != b'@' || !block.ends_with(b"\r\n") {
        return None;
    }
    let mut numbers = [0; N];
    for (number, at) in numbers.iter_mut().zip(0..) {
        let at = tail_at + 1 + 9 * at;
        *number = number_of(&block[at..at + 8])?;
        if at + 8 < BLOCK_BYTES - 2 && block[at + 8] != b' ' {
            return None;
        }
    }
    Some(numbers)
}

/// Returns the checksum that a mark at the end of this block must have.
pub(crate) fn checksum(crc: u32, block: &Block) -> u32 {
    crc32(crc, &block[..CHECKSUM_AT])
}

fn hex(number: u32) -> [u8; 8] {
    core::array::from_fn(|at| b"0123456789ABCDEF"[(number >> (28 - 4 * at) & 15) as usize])
}

fn number_of(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'A'..=b'F' => digit - b'A' + 10,
            _ => return None,
        };
        Some(number << 4 | u32::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_it_was_written() {
        let mut block = [b' '; BLOCK_BYTES];
        let mark = Mark {
            epoch: 0x5F3A_9C01,
            index: 448,
            durable: u32::MAX,
            samples: 7,
            gaps: 1,
            lost: 0x8000_0000,
            age_ms: 60_000,
        };
        write(&mut block, &mark, 7);
        assert_eq!(read(&block), Some((mark, checksum(7, &block))));
        assert_eq!(read_v1(&block), None);
        for at in TAIL_AT..BLOCK_BYTES {
            let mut other = block;
            other[at] ^= 1;
            let is_same =
                read(&other).is_some_and(|(read, crc)| read == mark && crc == checksum(7, &other));
            assert!(!is_same, "byte {at}");
        }
    }

    #[test]
    fn the_fields_of_a_mark_are_separated_by_spaces() {
        let mut block = [b' '; BLOCK_BYTES];
        write(&mut block, &Mark::default(), 0);
        // The first field begins after the `@`, and each has eight digits.
        for field in 0..7 {
            let mut other = block;
            other[TAIL_AT + 9 * (field + 1)] = b'0';
            assert_eq!(read(&other), None, "after field {field}");
        }
        for (at, byte) in [(TAIL_AT, b'0'), (510, b'0'), (511, b'0')] {
            let mut other = block;
            other[at] = byte;
            assert_eq!(read(&other), None, "byte {at}");
        }
    }

    #[test]
    fn a_mark_of_version_0_1_is_read() {
        let mut block = [b' '; BLOCK_BYTES];
        block[474..].copy_from_slice(b"@5F3A9C01 000001C0 00000180 9C01B2D4\r\n");
        let (mark, crc) = read_v1(&block).unwrap();
        assert_eq!((mark.epoch, mark.index), (0x5F3A_9C01, 0x1C0));
        assert_eq!((mark.durable, crc), (0x180, 0x9C01_B2D4));
        assert_eq!(read(&block), None);
    }
}
