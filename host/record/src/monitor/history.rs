//! The newest samples of a stream.

use std::collections::VecDeque;

/// Maximum number of bytes kept per stream.
const BYTES: usize = 1 << 20;
/// Maximum number of samples kept per stream.
const SAMPLES_MAX: usize = 1 << 14;

/// The newest samples, in a fixed amount of memory.
pub(super) struct History {
    bytes: Box<[u8]>,
    /// Entries, oldest first. Sample indices increase, but samples may be missing.
    entries: VecDeque<Entry>,
    /// Offset in the memory at which the next sample is stored.
    at: usize,
}

#[derive(Clone, Copy)]
struct Entry {
    index: u64,
    at: usize,
    len: usize,
}

impl Default for History {
    fn default() -> Self {
        History::with_room(BYTES, SAMPLES_MAX)
    }
}

impl History {
    fn with_room(bytes: usize, samples: usize) -> History {
        History {
            bytes: vec![0; bytes].into(),
            entries: VecDeque::with_capacity(samples),
            at: 0,
        }
    }

    /// Adds a sample, which replaces the oldest samples if the memory is full.
    pub(super) fn push(&mut self, index: u64, sample: &[u8]) {
        if sample.len() > self.bytes.len() {
            return;
        }
        if self.at + sample.len() > self.bytes.len() {
            // The oldest samples are between `at` and the end of the memory.
            while self.entries.front().is_some_and(|it| it.at >= self.at) {
                self.entries.pop_front();
            }
            self.at = 0;
        }
        let (at, end) = (self.at, self.at + sample.len());
        let is_overwritten = |oldest: &Entry| (at..end).contains(&oldest.at);
        while self.entries.len() == self.entries.capacity()
            || self.entries.front().is_some_and(is_overwritten)
        {
            self.entries.pop_front();
        }
        self.bytes[at..end].copy_from_slice(sample);
        let len = sample.len();
        self.entries.push_back(Entry { index, at, len });
        self.at = end;
    }

    /// Returns the sample with the given index, or `None` if the history does not contain it.
    pub(super) fn get(&self, index: u64) -> Option<Vec<u8>> {
        let found = self
            .entries
            .binary_search_by_key(&index, |entry| entry.index);
        let entry = self.entries[found.ok()?];
        Some(self.bytes[entry.at..entry.at + entry.len].to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the history with a list of all samples: the newest samples that fit must be in the history.
    #[test]
    fn the_newest_samples_are_kept() {
        let mut history = History::with_room(1000, 64);
        let sample = |index: u64| vec![index as u8; 1 + (index * index % 97) as usize];
        for index in 0..5000 {
            // Every seventh sample is missing.
            if index % 7 != 0 {
                history.push(index, &sample(index));
            }
            let mut kept = 0;
            for old in index.saturating_sub(80)..=index {
                if let Some(found) = history.get(old) {
                    assert_eq!(found, sample(old));
                    kept += 1;
                }
            }
            // At least half of the memory is in use: at its end, less than the length of one sample stays unused.
            assert!(kept >= 8 || index < 100, "{kept} at {index}");
        }
        assert_eq!(history.get(4991), None);
        assert_eq!(history.get(0), None);
        assert_eq!(history.get(5000), None);
    }
}
