//! Stalls above a threshold, and the payload between them.

use crate::Histogram;

/// Peaks in one pass and fixed memory.
///
/// A peak is a run of write times above the threshold; its height is the longest of them. Spacing is
/// counted in payload bytes from the start of a peak to the start of the next. `BUCKETS` is
/// [`buckets_below`](crate::buckets_below) of the bits that the greatest height in ns or spacing in
/// bytes needs.
#[derive(Clone, Debug)]
pub struct Peaks<const BUCKETS: usize> {
    threshold_ns: u64,
    spacings_bytes: Histogram<BUCKETS>,
    heights_ns: Histogram<BUCKETS>,
    count: u64,
    position_bytes: u64,
    last_start_bytes: u64,
    height_ns: u64,
}

impl<const BUCKETS: usize> Peaks<BUCKETS> {
    /// Looks for write times longer than `threshold_ns`.
    pub fn above(threshold_ns: u64) -> Self {
        Peaks {
            threshold_ns,
            spacings_bytes: Histogram::default(),
            heights_ns: Histogram::default(),
            count: 0,
            position_bytes: 0,
            last_start_bytes: 0,
            height_ns: 0,
        }
    }

    /// Takes in a write of `bytes` that took `ns`.
    #[inline]
    pub fn push(&mut self, ns: u64, bytes: u64) {
        if ns > self.threshold_ns {
            self.rise(ns);
        } else if self.height_ns > 0 {
            self.end_peak();
        }
        self.position_bytes = self.position_bytes.saturating_add(bytes);
    }

    fn rise(&mut self, ns: u64) {
        if self.height_ns == 0 {
            if self.count > 0 {
                self.spacings_bytes
                    .push(self.position_bytes - self.last_start_bytes);
            }
            self.count += 1;
            self.last_start_bytes = self.position_bytes;
        }
        self.height_ns = self.height_ns.max(ns);
    }

    fn end_peak(&mut self) {
        self.heights_ns.push(self.height_ns);
        self.height_ns = 0;
    }

    /// Counts a peak that the last write was still in. Call once after the last write.
    pub fn finish(&mut self) {
        if self.height_ns > 0 {
            self.end_peak();
        }
    }

    /// The threshold in ns.
    pub fn threshold_ns(&self) -> u64 {
        self.threshold_ns
    }

    /// Number of peaks.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes from the start of each peak to the start of the next.
    pub fn spacings_bytes(&self) -> &Histogram<BUCKETS> {
        &self.spacings_bytes
    }

    /// Longest write time of each peak in ns; complete after [`Peaks::finish`].
    pub fn heights_ns(&self) -> &Histogram<BUCKETS> {
        &self.heights_ns
    }

    /// Median spacing in bytes, within 1 %. `None` with fewer than two peaks.
    pub fn median_spacing_bytes(&self) -> Option<u64> {
        self.spacings_bytes.percentile(500_000)
    }

    /// Most frequent spacing in bytes: the centre of the fullest bin of
    /// [`Peaks::spacing_bin_bytes`]. `None` with fewer than two peaks.
    pub fn mode_spacing_bytes(&self) -> Option<u64> {
        self.spacings_bytes.mode(self.spacing_bin_bytes()?)
    }

    /// Width of the bins for the mode: the least of 1, 2, 5, 10, ... that is no less than a
    /// twentieth of the median. `None` with fewer than two peaks.
    pub fn spacing_bin_bytes(&self) -> Option<u64> {
        let least = self.median_spacing_bytes()?.div_ceil(20);
        let mut decade = 1u64;
        loop {
            if let Some(width) = [1, 2, 5]
                .map(|n| n * decade)
                .into_iter()
                .find(|&w| w >= least)
            {
                return Some(width);
            }
            decade = decade.checked_mul(10)?;
        }
    }

    /// Median height in ns, within 1 %. `None` without a peak.
    pub fn median_height_ns(&self) -> Option<u64> {
        self.heights_ns.percentile(500_000)
    }
}

/// A threshold in ns that tells stalls from the rest when none is given: half way on a logarithmic
/// axis between mean and longest, at least twice the median, to two digits.
///
/// On an even medium, where the longest write is less than twice the median, nothing is a peak.
pub fn chosen_threshold_ns(mean_ns: u64, median_ns: u64, max_ns: u64) -> u64 {
    let half_way = (u128::from(mean_ns) * u128::from(max_ns)).isqrt() as u64;
    two_digits(half_way.max(median_ns.saturating_mul(2)))
}

fn two_digits(value: u64) -> u64 {
    let unit = 10u64.pow(value.checked_ilog10().unwrap_or(0).saturating_sub(1));
    value.div_ceil(unit).saturating_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets_below;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    type TestPeaks = Peaks<{ buckets_below(64) }>;

    /// Starts (in bytes) and heights of all peaks, by looking at every pair of neighbours.
    fn reference(writes: &[(u64, u64)], threshold_ns: u64) -> Vec<(u64, u64)> {
        let mut peaks = Vec::new();
        for (i, &(ns, _)) in writes.iter().enumerate() {
            let starts = ns > threshold_ns && (i == 0 || writes[i - 1].0 <= threshold_ns);
            if starts {
                let start = writes[..i].iter().map(|w| w.1).sum();
                let run = writes[i..].iter().take_while(|w| w.0 > threshold_ns);
                peaks.push((start, run.map(|w| w.0).max().unwrap_or(0)));
            }
        }
        peaks
    }

    proptest! {
        #[test]
        fn peaks_match_the_reference(
            writes in prop::collection::vec((0..100u64, 1..60u64), 0..300),
            threshold_ns in 0..100u64,
        ) {
            let mut peaks = TestPeaks::above(threshold_ns);
            writes.iter().for_each(|&(ns, bytes)| peaks.push(ns, bytes));
            peaks.finish();
            let expected = reference(&writes, threshold_ns);
            prop_assert_eq!(peaks.count(), expected.len() as u64);

            let mut spacings: Vec<u64> = expected.windows(2).map(|w| w[1].0 - w[0].0).collect();
            spacings.sort_unstable();
            prop_assert_eq!(peaks.spacings_bytes().total(), spacings.len() as u64);
            if let Some(&median) = spacings.get(spacings.len().saturating_sub(1) / 2) {
                let near = peaks.median_spacing_bytes().unwrap();
                prop_assert!(near.abs_diff(median) <= median / 128 + 1, "{near} for {median}");
            }
            let mut heights: Vec<u64> = expected.iter().map(|p| p.1).collect();
            heights.sort_unstable();
            if let Some(&median) = heights.get(heights.len().saturating_sub(1) / 2) {
                let near = peaks.median_height_ns().unwrap();
                prop_assert!(near.abs_diff(median) <= median / 128 + 1, "{near} for {median}");
            }
        }
    }

    #[test]
    fn slow_writes_in_a_row_are_one_peak() {
        let mut peaks = TestPeaks::above(10);
        for ns in [1, 50, 70, 60, 1, 1, 20] {
            peaks.push(ns, 100);
        }
        peaks.finish();
        assert_eq!(peaks.count(), 2);
        assert_eq!(peaks.spacings_bytes().percentile(500_000), Some(502));
        assert_eq!(peaks.heights_ns().total(), 2);
    }

    #[test]
    fn the_bin_width_is_one_two_or_five_of_a_decade() {
        let mut peaks = TestPeaks::above(10);
        for _ in 0..3 {
            peaks.push(20, 40_000);
            peaks.push(1, 40_000);
        }
        assert_eq!(peaks.spacing_bin_bytes(), Some(5_000));
        assert_eq!(peaks.mode_spacing_bytes(), Some(82_500));
    }

    #[test]
    fn the_chosen_threshold_lies_between_mean_and_longest() {
        assert_eq!(chosen_threshold_ns(22_000, 20_000, 75_000), 41_000);
        // An even medium has no peaks.
        assert!(chosen_threshold_ns(100, 100, 150) > 150);
        assert_eq!(chosen_threshold_ns(0, 0, 0), 0);
        assert!(chosen_threshold_ns(u64::MAX, u64::MAX, u64::MAX) > u64::MAX / 2);
    }
}
