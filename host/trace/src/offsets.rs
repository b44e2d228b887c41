//! Offsets of scattered operations in 4 bytes each.
//!
//! Memory is allocated in fixed chunks. Full chunks may move to a temporary file; every pass then reads them one by one.

use crate::spill::Spill;
use std::sync::Arc;

/// Number of offsets per chunk of memory.
const CHUNK: usize = 1 << 16;

/// Place of a full chunk.
enum Full {
    Memory(Vec<u32>),
    /// Number of the block in the temporary file.
    Spilled(u64),
}

/// A growing list of offsets, in units of the payload.
#[derive(Default)]
pub(crate) struct Offsets {
    full: Vec<Full>,
    /// The chunk that is being filled.
    tail: Vec<u32>,
    spill: Option<Spill>,
    /// True after the temporary file could not be written: full chunks stay in memory.
    is_spill_full: bool,
}

impl Offsets {
    #[inline]
    pub(crate) fn push(&mut self, units: u32) {
        if self.tail.len() == self.tail.capacity() {
            self.start_chunk();
        }
        self.tail.push(units);
    }

    #[cold]
    fn start_chunk(&mut self) {
        if let Some(block) = self.spill_tail() {
            self.full.push(Full::Spilled(block));
            self.tail.clear();
            return;
        }
        let tail = std::mem::replace(&mut self.tail, Vec::with_capacity(CHUNK));
        if !tail.is_empty() {
            self.full.push(Full::Memory(tail));
        }
    }

    /// Moves the full tail to the temporary file; returns the number of its block, or `None` if it stays.
    fn spill_tail(&mut self) -> Option<u64> {
        let spill = self.spill.as_mut().filter(|_| !self.is_spill_full)?;
        if self.tail.len() < CHUNK {
            return None;
        }
        let block = spill.append(&self.tail);
        self.is_spill_full = block.is_err();
        block.ok()
    }

    pub(crate) fn spill_to(&mut self, spill: Spill) {
        // Chunks in an earlier file would be lost.
        if self.spill.is_none() {
            self.spill = Some(spill);
        }
    }

    pub(crate) fn spill_error(&self) -> Option<&std::io::Error> {
        self.spill.as_ref().and_then(Spill::error)
    }

    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter {
            offsets: self,
            next_chunk: 0,
            chunk: Loaded::Memory(&[]),
            at: 0,
        }
    }

    fn load(&self, index: usize) -> Option<Loaded<'_>> {
        match self.full.get(index) {
            Some(Full::Memory(chunk)) => Some(Loaded::Memory(chunk)),
            Some(Full::Spilled(block)) => {
                let mut values = Vec::new();
                self.spill.as_ref()?.read(*block, CHUNK, &mut values);
                Some(Loaded::Read(values.into()))
            }
            None => (index == self.full.len()).then_some(Loaded::Memory(&self.tail)),
        }
    }
}

/// A chunk in memory, or read from the temporary file.
#[derive(Clone)]
enum Loaded<'a> {
    Memory(&'a [u32]),
    Read(Arc<[u32]>),
}

/// All offsets, in order.
#[derive(Clone)]
pub(crate) struct Iter<'a> {
    offsets: &'a Offsets,
    next_chunk: usize,
    chunk: Loaded<'a>,
    /// Position in the chunk.
    at: usize,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            let chunk = match &self.chunk {
                Loaded::Memory(chunk) => chunk,
                Loaded::Read(chunk) => &chunk[..],
            };
            if let Some(&units) = chunk.get(self.at) {
                self.at += 1;
                return Some(units);
            }
            self.chunk = self.offsets.load(self.next_chunk)?;
            (self.next_chunk, self.at) = (self.next_chunk + 1, 0);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn offsets_come_back_from_memory_and_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let spill = || Spill::beside(&directory.path().join("t")).unwrap();
        for count in [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let values = (0..count as u32).map(|index| index.wrapping_mul(0x9E37_79B9));
            for spill in [None, Some(spill()), Some(spill().failing_after(1))] {
                let mut offsets = Offsets::default();
                if let Some(spill) = spill {
                    offsets.spill_to(spill);
                }
                values.clone().for_each(|units| offsets.push(units));
                assert!(offsets.iter().eq(values.clone()), "{count}");
                // A clone goes on where its original is.
                let mut iterator = offsets.iter();
                let passed = iterator.by_ref().take(CHUNK + 7).count();
                assert!(iterator.clone().eq(values.clone().skip(passed)));
                assert!(offsets.spill_error().is_none());
            }
        }
    }
}
