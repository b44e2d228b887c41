//! A set of pages, one bit each.

use std::ops::Range;

const BITS: u32 = u64::BITS;

/// Largest number of kinds of pages: bits per cell.
pub(crate) const KINDS_MAX: usize = 3;

/// Returns a word in which bit 0 and every bit at a multiple of `kinds` is set.
fn every(kinds: u32) -> u64 {
    match kinds {
        1 => u64::MAX,
        2 => 0x5555_5555_5555_5555,
        _ => 0x9249_2492_4924_9249,
    }
}

#[derive(Clone)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(super) fn new(bits: u32) -> Bits {
        Bits {
            words: vec![0; bits.div_ceil(BITS) as usize],
        }
    }

    pub(super) fn contains(&self, bit: u32) -> bool {
        self.words[(bit / BITS) as usize] >> (bit % BITS) & 1 == 1
    }

    pub(super) fn insert(&mut self, bit: u32) {
        self.words[(bit / BITS) as usize] |= 1 << (bit % BITS);
    }

    pub(super) fn insert_all(&mut self, bits: Range<u32>) {
        self.change(bits, |word, mask| *word |= mask);
    }

    pub(super) fn remove_all(&mut self, bits: Range<u32>) {
        self.change(bits, |word, mask| *word &= !mask);
    }

    /// Returns how many of the given bits are set, for each remainder of their distance from `first` divided by `kinds`.
    pub(super) fn count_kinds(&self, bits: Range<u32>, first: u32, kinds: u32) -> [u32; KINDS_MAX] {
        let mut counts = [0; KINDS_MAX];
        for (at, mask) in masks(bits) {
            let word = self.words[at] & mask;
            // Distance of the word's first bit, from 0 to kinds - 1.
            let distance = (at as u32 * BITS + kinds - first % kinds) % kinds;
            for (kind, count) in (0..kinds).zip(&mut counts) {
                let offset = (kind + kinds - distance) % kinds;
                *count += (word & every(kinds) << offset).count_ones();
            }
        }
        counts
    }

    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }

    pub(super) fn set_word(&mut self, at: usize, word: u64) {
        self.words[at] = word;
    }

    fn change(&mut self, bits: Range<u32>, change: impl Fn(&mut u64, u64)) {
        for (at, mask) in masks(bits) {
            change(&mut self.words[at], mask);
        }
    }
}

/// Returns the words that contain the given bits, with a mask of these bits in each.
fn masks(bits: Range<u32>) -> impl Iterator<Item = (usize, u64)> {
    let (first, last) = (bits.start / BITS, bits.end.saturating_sub(1) / BITS);
    let words = match bits.is_empty() {
        true => 0..0,
        false => first..last + 1,
    };
    words.map(move |at| {
        let from = bits.start.max(at * BITS) % BITS;
        let to = (bits.end - 1).min(at * BITS + (BITS - 1)) % BITS;
        (at as usize, u64::MAX >> (BITS - 1 - to + from) << from)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted_by_kind() {
        let mut bits = Bits::new(300);
        (0..300)
            .filter(|bit| bit * 7919 % 11 < 6)
            .for_each(|bit| bits.insert(bit));
        for kinds in 1..=3 {
            for (first, start, end) in [(0, 0, 300), (64, 64, 128), (96, 100, 257), (7, 9, 9)] {
                let mut expected = [0; KINDS_MAX];
                let set = (start..end).filter(|&bit| bits.contains(bit));
                set.for_each(|bit| expected[((bit - first) % kinds) as usize] += 1);
                assert_eq!(bits.count_kinds(start..end, first, kinds), expected);
            }
        }
    }

    #[test]
    fn ranges_change_and_count_exactly_their_bits() {
        for start in [0, 1, 63, 64, 65, 100] {
            for end in [start, start + 1, start + 63, start + 64, start + 130] {
                let mut bits = Bits::new(300);
                bits.insert_all(start..end);
                let set: Vec<u32> = (0..300).filter(|&bit| bits.contains(bit)).collect();
                assert_eq!(set, (start..end).collect::<Vec<_>>());
                assert_eq!(bits.count_kinds(0..300, 0, 1), [end - start, 0, 0]);
                bits.remove_all(start..end);
                assert_eq!(bits.count_kinds(0..300, 0, 1), [0; KINDS_MAX]);
            }
        }
    }
}
