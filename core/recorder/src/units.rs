//! Units of flash: where files begin and end. On many cards, a unit that is not written as a whole costs a merge later,
//! which is a stall.

use crate::limits::{UNIT_BLOCKS_MAX, UNIT_OF_CARD_PART, UNUSED_PART};

/// Returns the largest unit, in blocks, to which a file of this length is aligned on a card of `card_blocks`: at most an
/// eighth of the length is left unused up to the next file.
pub(crate) fn unit_of_start(blocks: u32, card_blocks: u32) -> u32 {
    let unit = largest(blocks, |unit| (unit - blocks % unit) % unit);
    let of_card = 1 << (card_blocks / UNIT_OF_CARD_PART).max(1).ilog2();
    unit.min(of_card)
}

/// Returns the length of a file of at most this length, in blocks, which ends with a unit: at least seven eighths of it.
pub(crate) fn whole_units(blocks: u32) -> u32 {
    blocks - blocks % largest(blocks, |unit| blocks % unit)
}

/// Returns the largest unit that leaves little of a length unused.
fn largest(blocks: u32, unused: impl Fn(u32) -> u32) -> u32 {
    let mut unit = UNIT_BLOCKS_MAX;
    while unused(unit) > blocks / UNUSED_PART {
        unit /= 2;
    }
    unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Compares with all powers of two.
    #[test]
    fn units_are_the_largest_that_waste_an_eighth_at_most() {
        let powers: Vec<u32> = (0..=13).map(|power| 1 << power).collect();
        let lengths = (1..3000).chain([8191, 8192, 16_384, 18_432, 57_400, 92_160, u32::MAX]);
        for blocks in lengths {
            let most = u64::from(blocks) / 8;
            let ends: Vec<u64> = powers
                .iter()
                .map(|unit| u64::from(blocks).next_multiple_of(u64::from(*unit)))
                .collect();
            let fits = |end: &u64| end - u64::from(blocks) <= most;
            let at = ends.iter().rposition(fits).unwrap();
            assert_eq!(unit_of_start(blocks, u32::MAX), powers[at], "{blocks}");
            // 1 GiB, and 64 MiB.
            assert_eq!(unit_of_start(blocks, 1 << 21), powers[at], "{blocks}");
            assert_eq!(
                unit_of_start(blocks, 1 << 17),
                powers[at.min(10)],
                "{blocks}"
            );
            let lengths: Vec<u32> = powers.iter().map(|unit| blocks / unit * unit).collect();
            let fits = |length: &u32| u64::from(blocks - length) <= most;
            let at = lengths.iter().rposition(fits).unwrap();
            assert_eq!(whole_units(blocks), lengths[at], "{blocks}");
            // Files of this length may follow each other without a gap.
            assert!(
                unit_of_start(lengths[at], u32::MAX) >= powers[at],
                "{blocks}"
            );
            // The least length of a file remains one.
            assert!(blocks < 128 || lengths[at] >= 128, "{blocks}");
        }
    }
}
