//! Marks: the ends of blocks in a recording of text.

use super::{BLOCK_BYTES, Block};

/// Interval of the marks that every recording has, in blocks.
pub(crate) const MARK_BLOCKS: u64 = 64;
/// Offset of a mark in its block.
const MARK_AT: usize = 438;

/// Fields of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Samples in the file up to here.
    pub(crate) samples: u32,
    /// Samples lost up to here.
    pub(crate) lost: u32,
    /// Age of the file in ms.
    pub(crate) age_ms: u32,
}

/// Returns the mark at the end of block `index`.
pub(crate) fn read(block: &Block, index: u64) -> Option<Mark> {
    if block[MARK_AT] != b'@' || !block.ends_with(b"\r\n") {
        return None;
    }
    let mut numbers = [0; 8];
    for (number, at) in numbers.iter_mut().zip((MARK_AT + 1..).step_by(9)) {
        *number = hexadecimal(&block[at..at + 8])?;
        if at + 8 < BLOCK_BYTES - 2 && block[at + 8] != b' ' {
            return None;
        }
    }
    let [_, block_index, _, samples, _, lost, age_ms, _] = numbers;
    (u64::from(block_index) == index).then_some(Mark {
        samples,
        lost,
        age_ms,
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number << 4 | u32::from(digit - b'0')),
        b'A'..=b'F' => Some(number << 4 | u32::from(digit - b'A' + 10)),
        _ => None,
    })
}

/// Returns the bytes of a block ahead of the line with its mark.
pub(crate) fn without_mark(block: &Block) -> &[u8] {
    let line_end = block[..MARK_AT].iter().rposition(|byte| *byte == b'\n');
    &block[..line_end.map_or(0, |at| at + 1)]
}
