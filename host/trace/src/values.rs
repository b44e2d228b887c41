//! A growing list of 32-bit values: times or offsets of a trace.
//!
//! Memory is allocated in fixed chunks, so that a growing list is never copied. Full chunks may move to a temporary file;
//! every pass then reads them one by one.

use crate::spill::Spill;
use crate::stop::StopFlag;
use std::ops::Deref;
use std::sync::Arc;

/// Number of values per chunk of memory.
pub(crate) const CHUNK: usize = 1 << 16;

/// Place of a full chunk.
enum Full {
    Memory(Vec<u32>),
    /// Number of the block in the temporary file.
    Spilled(u64),
}

/// A growing list of values.
#[derive(Default)]
pub(crate) struct Values {
    full: Vec<Full>,
    /// The chunk that is being filled.
    tail: Vec<u32>,
    spill: Option<Spill>,
    stop: Option<StopFlag>,
    /// True after the temporary file could not be written: full chunks stay in memory.
    is_spill_full: bool,
}

impl Values {
    #[inline]
    pub(crate) fn push(&mut self, value: u32) {
        if self.tail.len() == self.tail.capacity() {
            self.start_chunk();
        }
        self.tail.push(value);
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

    /// Makes every pass unwind at the next chunk after the flag is raised.
    pub(crate) fn stop_with(&mut self, stop: StopFlag) {
        self.stop = Some(stop);
    }

    pub(crate) fn spill_error(&self) -> Option<&std::io::Error> {
        self.spill.as_ref().and_then(Spill::error)
    }

    /// Returns all values, in order.
    pub(crate) fn iter(&self) -> Iter<'_> {
        Iter {
            values: self,
            next_chunk: 0,
            chunk: Chunk::Memory(&[]),
            at: 0,
        }
    }

    /// Returns all values in order, as chunks. Lists of the same length have chunks of the same lengths.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk<'_>> {
        (0..).map_while(|index| self.chunk(index))
    }

    /// Returns a chunk of a pass. Every pass gets all of its chunks here.
    fn chunk(&self, index: usize) -> Option<Chunk<'_>> {
        if let Some(stop) = &self.stop {
            stop.unwind_if_raised();
        }
        match self.full.get(index) {
            Some(Full::Memory(chunk)) => Some(Chunk::Memory(chunk)),
            Some(Full::Spilled(block)) => {
                let mut values = Vec::new();
                self.spill.as_ref()?.read(*block, CHUNK, &mut values);
                Some(Chunk::Read(Arc::new(values)))
            }
            None => (index == self.full.len()).then_some(Chunk::Memory(&self.tail)),
        }
    }

    /// Returns for each full chunk whether it is in the temporary file.
    #[cfg(all(test, unix))]
    pub(crate) fn spilled(&self) -> Vec<bool> {
        let full = self.full.iter();
        full.map(|full| matches!(full, Full::Spilled(_))).collect()
    }
}

/// A chunk in memory, or read from the temporary file.
#[derive(Clone)]
pub(crate) enum Chunk<'a> {
    Memory(&'a [u32]),
    Read(Arc<Vec<u32>>),
}

impl Deref for Chunk<'_> {
    type Target = [u32];

    #[inline]
    fn deref(&self) -> &[u32] {
        match self {
            Chunk::Memory(chunk) => chunk,
            Chunk::Read(chunk) => chunk,
        }
    }
}

/// All values of a list, in order.
#[derive(Clone)]
pub(crate) struct Iter<'a> {
    values: &'a Values,
    next_chunk: usize,
    chunk: Chunk<'a>,
    /// Position in the chunk.
    at: usize,
}

impl Iterator for Iter<'_> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some(&value) = self.chunk.get(self.at) {
                self.at += 1;
                return Some(value);
            }
            self.chunk = self.values.chunk(self.next_chunk)?;
            (self.next_chunk, self.at) = (self.next_chunk + 1, 0);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_from_memory_and_from_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let spill = || Spill::beside(&directory.path().join("t")).unwrap();
        for count in [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK + 5] {
            let values = (0..count as u32).map(|index| index.wrapping_mul(0x9E37_79B9));
            for spill in [None, Some(spill()), Some(spill().failing_after(1))] {
                let mut list = Values::default();
                if let Some(spill) = spill {
                    list.spill_to(spill);
                }
                values.clone().for_each(|value| list.push(value));
                assert!(list.iter().eq(values.clone()), "{count}");
                // A clone goes on where its original is.
                let mut iterator = list.iter();
                let passed = iterator.by_ref().take(CHUNK + 7).count();
                assert!(iterator.clone().eq(values.clone().skip(passed)));
                assert!(list.spill_error().is_none());
                let chunks = list.chunks().flat_map(|chunk| chunk.to_vec());
                assert!(chunks.eq(values.clone()));
            }
        }
    }
}
