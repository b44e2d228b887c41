//! Sequence numbers of samples, which count losses without a clock.

/// Loss according to a column that counts the samples.
#[derive(Default)]
pub(super) struct Sequence {
    /// Samples whose number is missing.
    pub lost: u64,
    /// Samples with the number of the sample before.
    pub repeated: u64,
    /// Samples without a number.
    pub unnumbered: u64,
    last: Option<u64>,
    highest: u64,
}

impl Sequence {
    /// Adds the number of the next sample.
    pub(super) fn push(&mut self, number: Option<u64>) {
        let Some(number) = number else {
            self.unnumbered += 1;
            return;
        };
        self.highest = self.highest.max(number);
        let Some(last) = self.last.replace(number) else {
            return;
        };
        match number.checked_sub(last) {
            Some(0) => self.repeated += 1,
            Some(step) => self.lost = self.lost.saturating_add(step - 1),
            None => {
                let lost = self.lost_at_wrap(last, number);
                self.lost = self.lost.saturating_add(lost);
            }
        }
    }

    /// Forgets the last number, because the logger restarted.
    pub(super) fn restart(&mut self) {
        self.last = None;
    }

    /// Adds the figures of another source.
    pub(super) fn add(&mut self, other: &Sequence) {
        self.lost = self.lost.saturating_add(other.lost);
        self.repeated += other.repeated;
        self.unnumbered += other.unnumbered;
    }

    /// Returns the loss between two numbers, of which the second is lower: a counter of 8, 16 or 32 bits that wrapped, or
    /// one that restarted.
    fn lost_at_wrap(&self, last: u64, number: u64) -> u64 {
        let ranges = [1 << 8, 1 << 16, 1 << 32];
        let range = ranges.into_iter().find(|range| *range > self.highest);
        // A counter wraps near the end of its range.
        let wrapped = range.filter(|range| self.highest >= range / 4 * 3);
        let step = wrapped.map_or(0, |range| range - last + number);
        match wrapped {
            Some(range) if step <= range / 2 => step.saturating_sub(1),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(numbers: impl IntoIterator<Item = u64>) -> u64 {
        let mut sequence = Sequence::default();
        numbers
            .into_iter()
            .for_each(|number| sequence.push(Some(number)));
        sequence.lost
    }

    #[test]
    fn losses_are_counted_across_wraps_but_not_across_restarts() {
        for bits in [8, 16] {
            let range = 1_u64 << bits;
            let numbers = (0..3 * range)
                .filter(|n| n % 1000 != 999)
                .map(|n| n % range);
            assert_eq!(lost(numbers), 3 * range / 1000, "{bits} bits");
        }
        let near_the_end = (1_u64 << 32) - 5;
        assert_eq!(lost([near_the_end, near_the_end + 1, 3]), 6);
        assert_eq!(lost([10, 11, 12, 0, 1, 2]), 0);
        assert_eq!(lost([1, 2, 2, 5]), 2);
    }
}
