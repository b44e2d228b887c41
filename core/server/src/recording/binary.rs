//! Blocks of binary recordings, and the samples in them.

use super::{BLOCK_BYTES, Block, crc32};

const PAYLOAD_AT: usize = 36;
const CRC_AT: usize = BLOCK_BYTES - 4;
const NO_SAMPLE: usize = u16::MAX as usize;
/// Size of a gap in bytes.
const GAP_BYTES: usize = 33;
/// Keywords of causes, by number.
const CAUSES: [&str; 7] = [
    "busy",
    "no-card",
    "card-failed",
    "card-full",
    "file-not-ready",
    "read",
    "bad-sample",
];

/// Content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Header,
    Samples,
    Gap,
}

/// Fields of a block ahead of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHead {
    pub(crate) epoch: u32,
    pub(crate) content: Content,
    pub(crate) stream: u8,
    used: usize,
    /// Offset of the first sample that begins here; of a header, the number of its bytes in previous blocks.
    pub(crate) first: usize,
    /// Number of the first sample that begins here or later.
    pub(crate) sample: u64,
    pub(crate) age_ms: u32,
}

impl BlockHead {
    /// Parses block `index` of a recording. Returns `None` if it is damaged.
    pub(crate) fn of(block: &Block, index: u64) -> Option<BlockHead> {
        let u32_at = |at: usize| u32::from_le_bytes(core::array::from_fn(|byte| block[at + byte]));
        let u16_at = |at: usize| usize::from(u16::from_le_bytes([block[at], block[at + 1]]));
        let head = BlockHead {
            epoch: u32_at(0),
            content: match block[12] {
                0 => Content::Header,
                1 => Content::Samples,
                2 => Content::Gap,
                _ => return None,
            },
            stream: block[13],
            used: u16_at(14),
            first: u16_at(16),
            sample: u64::from(u32_at(20)) | u64::from(u32_at(24)) << 32,
            age_ms: u32_at(32),
        };
        let is_first_right =
            head.content == Content::Header || head.first == NO_SAMPLE || head.first <= head.used;
        let is_right = u64::from(u32_at(4)) == index
            && head.used <= CRC_AT - PAYLOAD_AT
            && is_first_right
            && u32_at(CRC_AT) == crc32(&block[..CRC_AT]);
        is_right.then_some(head)
    }

    pub(crate) fn payload<'b>(&self, block: &'b Block) -> &'b [u8] {
        &block[PAYLOAD_AT..][..self.used]
    }
}

/// A gap in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) first: u64,
    pub(crate) count: u64,
    pub(crate) at_us: u64,
    pub(crate) last_us: u64,
    pub(crate) cause: &'static str,
}

impl Gap {
    /// Parses the payload of a block.
    pub(crate) fn of(payload: &[u8]) -> Option<Gap> {
        let payload: &[u8; GAP_BYTES] = payload.try_into().ok()?;
        let number =
            |at: usize| u64::from_le_bytes(core::array::from_fn(|byte| payload[at + byte]));
        Some(Gap {
            first: number(0),
            count: number(8),
            at_us: number(16),
            last_us: number(24),
            cause: CAUSES.get(usize::from(payload[GAP_BYTES - 1]))?,
        })
    }
}

/// Position in the samples of a stream. The values of a sample that continues in the next block have been written,
/// except for one that the end of the block splits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Joiner {
    /// Bytes of the current sample in previous blocks.
    begun: u16,
    /// No block is missing before the next one.
    is_joined: bool,
    /// Number of the next sample.
    pub(crate) number: u64,
    /// Next value of the current sample.
    pub(crate) column: u8,
    /// Beginning of that value, from the previous block.
    cut: [u8; 8],
    cut_bytes: u8,
}

/// Result of [`Joiner::value`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The bytes of a value, in the first ones of the array.
    Value([u8; 8]),
    /// The block ends.
    End,
}

impl Joiner {
    /// Drops the beginning of a sample, because the next block does not follow it.
    pub(crate) fn interrupt(&mut self) {
        (self.begun, self.column, self.cut_bytes) = (0, 0, 0);
        self.is_joined = false;
    }

    /// Notes that the next block begins with a sample, after a header or a gap.
    pub(crate) fn restart(&mut self) {
        self.interrupt();
        self.is_joined = true;
    }

    /// Begins a block of samples. Returns the offset of the first value, or `None` if the block does not continue the
    /// previous one.
    pub(crate) fn begin(&mut self, head: &BlockHead, sample_bytes: usize) -> Option<usize> {
        let missing = match self.begun {
            0 => 0,
            begun => sample_bytes.saturating_sub(begun.into()),
        };
        let fits = match head.first {
            NO_SAMPLE => head.used <= missing,
            first => first == missing,
        };
        if !self.is_joined {
            self.number = head.sample;
            self.is_joined = head.first != NO_SAMPLE;
            return Some(head.first.min(head.used));
        }
        // The sample that ends here precedes the first one that begins here.
        self.number = head.sample.saturating_sub(u64::from(missing > 0));
        fits.then_some(0)
    }

    /// Takes the next value, of `bytes` bytes, from the payload of a block.
    pub(crate) fn value(&mut self, payload: &[u8], at: &mut usize, bytes: usize) -> Found {
        let begun = usize::from(self.cut_bytes).min(bytes);
        let rest = payload.get(*at..).unwrap_or_default();
        let count = rest.len().min(bytes - begun);
        self.cut[begun..begun + count].copy_from_slice(&rest[..count]);
        *at += count;
        self.begun += count as u16;
        if begun + count < bytes {
            self.cut_bytes = (begun + count) as u8;
            return Found::End;
        }
        self.cut_bytes = 0;
        self.column += 1;
        Found::Value(self.cut)
    }

    /// Notes that the last value of a sample was taken.
    pub(crate) fn end_sample(&mut self) {
        (self.begun, self.column) = (0, 0);
        self.number = self.number.wrapping_add(1);
    }

    /// Returns true if a sample was begun.
    pub(crate) fn is_begun(&self) -> bool {
        self.begun > 0
    }
}
