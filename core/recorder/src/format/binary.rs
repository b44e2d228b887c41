//! A block of the binary format.
//!
//! ```text
//!     0  epoch u32 │ index u32 │ durable u32 │ kind u8 │ stream u8 │ used u16
//!    16  first u16 │ gaps u16 │ sample u64 │ lost u32
//!    32  age_ms u32
//!    36  payload, 472 bytes                                      508  crc u32
//! ```
//!
//! All fields are little endian. `first` is the offset in the payload of the first sample that begins there,
//! or 0xFFFF if none does; `sample` is the index of the first sample that begins there or later. `gaps` and
//! `lost` are the stream's totals in this file, this block included; both saturate.

use crate::crc32::crc32;
use crate::gap::Gap;
use cardiograph_card::{BLOCK_BYTES, Block};

/// Size of a block's payload in bytes.
pub(crate) const PAYLOAD_BYTES: usize = 472;
pub(crate) const PAYLOAD_AT: usize = 36;
const CRC_AT: usize = BLOCK_BYTES - 4;
const _: () = assert!(PAYLOAD_AT + PAYLOAD_BYTES == CRC_AT);

/// Size of a gap in bytes: four numbers and the cause.
pub(crate) const GAP_BYTES: usize = 4 * 8 + 1;

/// Value of `first` if no sample begins in the block.
pub(crate) const NO_SAMPLE: u16 = u16::MAX;

/// Content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum BlockKind {
    Header = 0,
    Samples = 1,
    Gap = 2,
}

/// All fields before the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) epoch: u32,
    pub(crate) index: u32,
    /// Number of durable blocks; in block 0, the number of the recording.
    pub(crate) durable: u32,
    pub(crate) kind: u8,
    pub(crate) stream: u8,
    pub(crate) used: u16,
    pub(crate) first: u16,
    pub(crate) gaps: u16,
    pub(crate) sample: u64,
    pub(crate) lost: u32,
    pub(crate) age_ms: u32,
}

/// Writes everything except the payload.
pub(crate) fn seal(block: &mut Block, head: &Head) {
    block[0..4].copy_from_slice(&head.epoch.to_le_bytes());
    block[4..8].copy_from_slice(&head.index.to_le_bytes());
    block[8..12].copy_from_slice(&head.durable.to_le_bytes());
    block[12] = head.kind;
    block[13] = head.stream;
    block[14..16].copy_from_slice(&head.used.to_le_bytes());
    block[16..18].copy_from_slice(&head.first.to_le_bytes());
    block[18..20].copy_from_slice(&head.gaps.to_le_bytes());
    block[20..28].copy_from_slice(&head.sample.to_le_bytes());
    block[28..32].copy_from_slice(&head.lost.to_le_bytes());
    block[32..36].copy_from_slice(&head.age_ms.to_le_bytes());
    block[PAYLOAD_AT + usize::from(head.used)..CRC_AT].fill(0);
    let crc = crc32(0, &block[..CRC_AT]);
    block[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// Returns the head of a block with a valid checksum. In blocks of version 0.1 the fields that it did not
/// have are meaningless.
pub(crate) fn read(block: &Block) -> Option<Head> {
    if u32_at(block, CRC_AT) != crc32(0, &block[..CRC_AT]) {
        return None;
    }
    Some(Head {
        epoch: u32_at(block, 0),
        index: u32_at(block, 4),
        durable: u32_at(block, 8),
        kind: block[12],
        stream: block[13],
        used: u16_at(block, 14),
        first: u16_at(block, 16),
        gaps: u16_at(block, 18),
        sample: u64::from(u32_at(block, 20)) | u64::from(u32_at(block, 24)) << 32,
        lost: u32_at(block, 28),
        age_ms: u32_at(block, 32),
    })
}

fn u16_at(block: &Block, at: usize) -> u16 {
    u16::from_le_bytes([block[at], block[at + 1]])
}

fn u32_at(block: &Block, at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

/// Writes the payload of a gap block; returns its length.
pub(crate) fn write_gap(payload: &mut [u8], gap: &Gap) -> usize {
    let numbers = [gap.first, gap.count, gap.at_us, gap.last_us];
    for (number, place) in numbers.iter().zip(payload.chunks_exact_mut(8)) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    payload[GAP_BYTES - 1] = gap.cause as u8;
    GAP_BYTES
}
