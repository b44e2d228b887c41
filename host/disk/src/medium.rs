//! Storage that is read and written at byte offsets.

use std::io;

/// Storage of a fixed capacity. Offsets and lengths are multiples of [`Medium::block_bytes`].
pub trait Medium {
    /// Returns the capacity that the storage claims.
    fn capacity_bytes(&self) -> u64;

    /// Returns the smallest unit of access.
    fn block_bytes(&self) -> u32;

    /// Fills `buffer` from `offset_bytes`.
    fn read_at(&mut self, offset_bytes: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Writes all of `data` at `offset_bytes`.
    fn write_at(&mut self, offset_bytes: u64, data: &[u8]) -> io::Result<()>;

    /// Returns when the storage has all data, and forgets what this computer has cached of it.
    fn flush(&mut self) -> io::Result<()>;
}

/// Memory at a multiple of 4096 B, as O_DIRECT requires.
pub struct Aligned {
    memory: Vec<u8>,
    begin: usize,
    length: usize,
}

/// Alignment in bytes: the largest that a disk requires.
const ALIGNMENT: usize = 4096;

impl Aligned {
    /// Returns the given number of zeros.
    pub fn zeros(length: usize) -> Aligned {
        let memory = vec![0; length + ALIGNMENT];
        let begin = memory.as_ptr().align_offset(ALIGNMENT).min(ALIGNMENT);
        Aligned {
            memory,
            begin,
            length,
        }
    }

    /// Returns the bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[self.begin..self.begin + self.length]
    }
}
