//! The bytes of a card, stored sparsely: chunks that are all zero take no memory, and clones share chunks until
//! one of them writes.

use crate::state::{Reader, Writer};
use crate::{BLOCK_BYTES, StateError};
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

/// Number of blocks per chunk of memory.
const CHUNK_BLOCKS: u64 = 8;
const CHUNK_BYTES: usize = CHUNK_BLOCKS as usize * BLOCK_BYTES;

#[derive(Clone, Default)]
pub(crate) struct Storage {
    chunks: HashMap<u64, Arc<[u8; CHUNK_BYTES]>, HashBlocks>,
}

/// A set of block numbers.
pub(crate) type BlockSet = HashSet<u64, HashBlocks>;

/// Hashes block numbers; several times faster than the default, whose defence against chosen keys a simulation does not
/// need.
type HashBlocks = BuildHasherDefault<BlockHasher>;

/// A hash function for a single `u64`.
#[derive(Default)]
pub(crate) struct BlockHasher(u64);

impl Hasher for BlockHasher {
    /// Moves the upper bits of the product, which depend on all bits of the number, to where the table is indexed.
    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u64(&mut self, number: u64) {
        // Any odd constant with mixed bits does; this one is 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Storage {
    pub(crate) fn read(&self, block: u64, data: &mut [u8; BLOCK_BYTES]) {
        match self.chunks.get(&(block / CHUNK_BLOCKS)) {
            Some(chunk) => data.copy_from_slice(&chunk[range(block)]),
            None => data.fill(0),
        }
    }

    pub(crate) fn write(&mut self, block: u64, data: &[u8; BLOCK_BYTES]) {
        let key = block / CHUNK_BLOCKS;
        if let Some(chunk) = self.chunks.get_mut(&key) {
            Arc::make_mut(chunk)[range(block)].copy_from_slice(data);
        } else if *data != [0; BLOCK_BYTES] {
            let mut chunk = Arc::new([0; CHUNK_BYTES]);
            Arc::make_mut(&mut chunk)[range(block)].copy_from_slice(data);
            self.chunks.insert(key, chunk);
        }
    }

    /// Writes all chunks that hold data, in order.
    pub(crate) fn write_state(&self, to: &mut Writer) {
        let mut chunks: Vec<_> = self.chunks.iter().collect();
        chunks.retain(|(_, chunk)| chunk.iter().any(|&byte| byte != 0));
        chunks.sort_unstable_by_key(|(key, _)| **key);
        to.u32(chunks.len() as u32);
        for (key, chunk) in chunks {
            to.u64(*key);
            to.bytes(&chunk[..]);
        }
    }

    /// Reads the chunks of a card of the given capacity.
    pub(crate) fn read_state(from: &mut Reader, blocks: u64) -> Result<Storage, StateError> {
        let mut storage = Storage::default();
        for _ in 0..from.u32()? {
            let key = from.u64()?;
            if key >= blocks.div_ceil(CHUNK_BLOCKS) {
                return Err(StateError::OutOfRange { what: "chunk" });
            }
            let chunk = from.bytes(CHUNK_BYTES)?.as_array();
            let chunk = chunk.ok_or(StateError::Damaged)?;
            storage.chunks.insert(key, Arc::new(*chunk));
        }
        Ok(storage)
    }

    /// Returns true if all blocks have the same contents in both storages.
    pub(crate) fn is_same(&self, other: &Storage) -> bool {
        let zeros = [0; CHUNK_BYTES];
        let is_in = |one: &Storage, other: &Storage| {
            one.chunks
                .iter()
                .all(|(key, chunk)| match other.chunks.get(key) {
                    Some(twin) => Arc::ptr_eq(chunk, twin) || chunk == twin,
                    None => **chunk == zeros,
                })
        };
        is_in(self, other) && is_in(other, self)
    }

    /// Sets blocks to zero; takes host time only in proportion to the data stored.
    pub(crate) fn erase(&mut self, blocks: std::ops::Range<u64>) {
        self.chunks.retain(|key, chunk| {
            let first = key * CHUNK_BLOCKS;
            let from = blocks.start.clamp(first, first + CHUNK_BLOCKS) - first;
            let to = blocks.end.clamp(first, first + CHUNK_BLOCKS) - first;
            // Whole chunks are dropped below; only parts of a chunk have to be cleared.
            if from < to && to - from < CHUNK_BLOCKS {
                Arc::make_mut(chunk)[from as usize * BLOCK_BYTES..to as usize * BLOCK_BYTES]
                    .fill(0);
            }
            to.saturating_sub(from) < CHUNK_BLOCKS
        });
    }
}

fn range(block: u64) -> std::ops::Range<usize> {
    let at = (block % CHUNK_BLOCKS) as usize * BLOCK_BYTES;
    at..at + BLOCK_BYTES
}
