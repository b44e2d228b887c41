//! A block of the binary format.
//!
//! ```text
//!     0  epoch u32 │ index u32 │ durable u32 │ kind u8 │ 0 │ used u16
//!    16  first u16 │ 0 u16 │ sample u64 │
//!    28  payload, 480 bytes                                      508  crc u32
//! ```
//!
//! All little endian. `first` is where in the payload the first sample begins that begins there, and
//! `sample` its index; 0xFFFF if none does.

use super::mark::Mark;
use crate::crc32::crc32;
use crate::gap::Gap;
use cardiograph_card::{BLOCK_BYTES, Block};

/// Bytes of samples in a block.
pub(crate) const PAYLOAD_BYTES: usize = 480;
pub(crate) const PAYLOAD_AT: usize = 28;
const CRC_AT: usize = BLOCK_BYTES - 4;
const _: () = assert!(PAYLOAD_AT + PAYLOAD_BYTES == CRC_AT);

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    Header = 0,
    Samples = 1,
    Gap = 2,
}

/// What stands before the payload.
pub(crate) struct Head {
    pub(crate) mark: Mark,
    pub(crate) kind: BlockKind,
    pub(crate) used: u16,
    pub(crate) first: u16,
    pub(crate) sample: u64,
}

/// Fills in all but the payload.
pub(crate) fn seal(block: &mut Block, head: &Head) {
    block[0..4].copy_from_slice(&head.mark.epoch.to_le_bytes());
    block[4..8].copy_from_slice(&head.mark.index.to_le_bytes());
    block[8..12].copy_from_slice(&head.mark.durable.to_le_bytes());
    block[12] = head.kind as u8;
    block[13] = 0;
    block[14..16].copy_from_slice(&head.used.to_le_bytes());
    block[16..18].copy_from_slice(&head.first.to_le_bytes());
    block[18..20].fill(0);
    block[20..28].copy_from_slice(&head.sample.to_le_bytes());
    block[PAYLOAD_AT + usize::from(head.used)..CRC_AT].fill(0);
    let crc = crc32(0, &block[..CRC_AT]);
    block[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// The mark of a block whose checksum is right.
pub(crate) fn read(block: &Block) -> Option<Mark> {
    let number = |at: usize| {
        let [a, b, c, d] = [block[at], block[at + 1], block[at + 2], block[at + 3]];
        u32::from_le_bytes([a, b, c, d])
    };
    (number(CRC_AT) == crc32(0, &block[..CRC_AT])).then(|| Mark {
        epoch: number(0),
        index: number(4),
        durable: number(8),
    })
}

/// The payload that says that samples are missing here; returns its length.
pub(crate) fn write_gap(payload: &mut [u8], gap: Gap) -> usize {
    payload[0..8].copy_from_slice(&gap.first.to_le_bytes());
    payload[8..16].copy_from_slice(&gap.count.to_le_bytes());
    payload[16..24].copy_from_slice(&gap.at_us.to_le_bytes());
    payload[24] = gap.cause as u8;
    25
}
