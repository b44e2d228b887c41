//! A set of pages, one bit each.

use std::ops::Range;

const BITS: u32 = u64::BITS;

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

    /// Returns how many of the given bits are set.
    pub(super) fn count(&self, bits: Range<u32>) -> u32 {
        masks(bits)
            .map(|(at, mask)| (self.words[at] & mask).count_ones())
            .sum()
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
    fn ranges_change_and_count_exactly_their_bits() {
        for start in [0, 1, 63, 64, 65, 100] {
            for end in [start, start + 1, start + 63, start + 64, start + 130] {
                let mut bits = Bits::new(300);
                bits.insert_all(start..end);
                let set: Vec<u32> = (0..300).filter(|&bit| bits.contains(bit)).collect();
                assert_eq!(set, (start..end).collect::<Vec<_>>());
                assert_eq!(bits.count(0..300), end - start);
                bits.remove_all(start..end);
                assert_eq!(bits.count(0..300), 0);
            }
        }
    }
}
