//! Marks: what a recording says of itself, so that its true end can be found.
//!
//! In a text file a mark is the end of a block, and of a line that begins with `#`:
//!
//! ```text
//!   #            @5F3A9C01 000001C0 00000180 9C01B2D4\r\n
//!                 epoch    index    durable  checksum
//! ```
//!
//! index is the block's number in the file; durable, how many blocks of the file were known to be durable
//! when it was made; the checksum is the CRC-32 of all that follows the mark before, up to the checksum.

use crate::crc32::crc32;
use crate::limits::{MARK_BLOCKS, MARK_TAIL_BYTES};
use cardiograph_card::{BLOCK_BYTES, Block};

/// What a mark says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) epoch: u32,
    pub(crate) index: u32,
    pub(crate) durable: u32,
}

/// Where the checksum begins in a block.
const CHECKSUM_AT: usize = BLOCK_BYTES - 2 - 8;
const TAIL_AT: usize = BLOCK_BYTES - MARK_TAIL_BYTES;

/// Whether every text file has a mark in this block: the first, and the last of every
/// [`MARK_BLOCKS`](crate::limits::MARK_BLOCKS).
pub(crate) fn is_mark_block(index: u32) -> bool {
    index == 0 || (index + 1).is_multiple_of(MARK_BLOCKS)
}

/// The mark block of this number, from 0.
pub(crate) fn mark_block(number: u32) -> u32 {
    (number * MARK_BLOCKS).saturating_sub(1)
}

/// Writes a mark at the end of a block. `crc` is that of the bytes between the mark before and this
/// block.
pub(crate) fn write(block: &mut Block, mark: Mark, crc: u32) {
    block[TAIL_AT] = b'@';
    for (number, at) in [mark.epoch, mark.index, mark.durable].into_iter().zip(0..) {
        let at = TAIL_AT + 1 + 9 * at;
        block[at..at + 8].copy_from_slice(&hex(number));
        block[at + 8] = b' ';
    }
    let crc = crc32(crc, &block[..CHECKSUM_AT]);
    block[CHECKSUM_AT..BLOCK_BYTES - 2].copy_from_slice(&hex(crc));
    block[BLOCK_BYTES - 2..].copy_from_slice(b"\r\n");
}

/// The mark at the end of a block, and its checksum, if it looks like one.
pub(crate) fn read(block: &Block) -> Option<(Mark, u32)> {
    if block[TAIL_AT] != b'@' || !block.ends_with(b"\r\n") {
        return None;
    }
    let mut numbers = [0; 4];
    for (number, at) in numbers.iter_mut().zip(0..) {
        let at = TAIL_AT + 1 + 9 * at;
        *number = number_of(&block[at..at + 8])?;
        if at + 8 < BLOCK_BYTES - 2 && block[at + 8] != b' ' {
            return None;
        }
    }
    let [epoch, index, durable, crc] = numbers;
    let mark = Mark {
        epoch,
        index,
        durable,
    };
    Some((mark, crc))
}

/// The checksum that a mark at the end of this block has to have.
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
        };
        write(&mut block, mark, 7);
        assert_eq!(read(&block), Some((mark, checksum(7, &block))));
        for at in TAIL_AT..BLOCK_BYTES {
            let mut other = block;
            other[at] ^= 1;
            let is_same =
                read(&other).is_some_and(|(read, crc)| read == mark && crc == checksum(7, &other));
            assert!(!is_same, "byte {at}");
        }
    }
}
