//! Median of the steps in bounded memory.

use crate::Replay;
use alloc::vec;

/// Number of values of a digit of 16 bits.
const DIGITS: usize = 1 << 16;

/// Returns the step that `rank` steps do not exceed, by counting 16 bits at a time. `longest_ns` is the longest step.
pub(super) fn nth_step_ns(steps: &(impl Replay + ?Sized), rank: u64, longest_ns: u64) -> u64 {
    let (mut rank, mut known) = (rank, 0u64);
    let mut counts = vec![0u64; DIGITS];
    let digits = (64 - longest_ns.leading_zeros()).div_ceil(16);
    for shift in (0..digits).rev().map(|digit| digit * 16) {
        counts.fill(0);
        steps.replay(|ns, _| {
            if ns.checked_shr(shift + 16).unwrap_or(0) == known {
                counts[(ns >> shift) as usize % DIGITS] += 1;
            }
        });
        let mut digit = 0;
        while digit + 1 < DIGITS && counts[digit] < rank {
            rank -= counts[digit];
            digit += 1;
        }
        known = known << 16 | digit as u64;
    }
    known
}
