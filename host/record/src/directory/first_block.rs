//! The first block of a recording. Its checkpoint mark contains the epoch, the random number of the
//! recording.

use crate::crc::crc32;
use cardiograph_card::{BLOCK_BYTES, Block};

/// State of a first block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FirstBlock {
    /// The block has never been written.
    Unused,
    /// The block is the beginning of a recording.
    Recording { epoch: u32, is_binary: bool },
    /// The block was written by another program, or is damaged.
    Foreign,
}

const BINARY_CRC_AT: usize = BLOCK_BYTES - 4;
const TEXT_CRC_AT: usize = BLOCK_BYTES - 2 - 8;

impl FirstBlock {
    pub(crate) fn of(block: &Block) -> FirstBlock {
        if block.iter().all(|byte| *byte == 0) {
            return FirstBlock::Unused;
        }
        let epoch = binary(block).map(|epoch| (epoch, true));
        match epoch.or_else(|| text_mark(block).map(|epoch| (epoch, false))) {
            Some((epoch, is_binary)) => FirstBlock::Recording { epoch, is_binary },
            None => FirstBlock::Foreign,
        }
    }
}

fn binary(block: &Block) -> Option<u32> {
    let number = |at: usize| u32::from_le_bytes(core::array::from_fn(|index| block[at + index]));
    let is_first = number(BINARY_CRC_AT) == crc32(&block[..BINARY_CRC_AT]) && number(4) == 0;
    is_first.then(|| number(0))
}

/// Parses the checkpoint mark at the end of a first block: `@epoch index ... crc` and a line end. The CRC
/// covers the whole block; returns the epoch.
fn text_mark(block: &Block) -> Option<u32> {
    let fields = text_fields(block)?;
    let crc = *fields.last()?;
    (fields[1] == 0 && crc == crc32(&block[..TEXT_CRC_AT])).then_some(fields[0])
}

/// Returns true if the block ends with a checkpoint mark, regardless of its block index and recording.
pub(super) fn ends_with_mark(block: &Block) -> bool {
    text_fields(block).is_some()
}

fn text_fields(block: &Block) -> Option<Vec<u32>> {
    let line = block.strip_suffix(b"\r\n")?;
    let start = line.iter().rposition(|byte| *byte == b'@')? + 1;
    let text = str::from_utf8(&line[start..]).ok()?;
    let field = |field: &str| {
        u32::from_str_radix(field, 16)
            .ok()
            .filter(|_| field.len() == 8)
    };
    let fields: Vec<u32> = text.split(' ').map(field).collect::<Option<_>>()?;
    // Marks written by version 0.1 contain no totals.
    matches!(fields.len(), 4 | 8).then_some(fields)
}

/// Returns true if a text begins like a file of the recorder: with the `#file` line, possibly after a line of
/// column names.
pub(crate) fn is_text_of_recorder(text: &[u8]) -> bool {
    let is_about = |line: &[u8]| {
        let indent = |byte: &u8| matches!(byte, b',' | b'"');
        let start = line.iter().position(|byte| !indent(byte));
        start.is_some_and(|start| line[start..].starts_with(b"#file number="))
    };
    text.ends_with(b"\n") && text.split(|byte| *byte == b'\n').take(2).any(is_about)
}
