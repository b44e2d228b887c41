//! Stalls above a threshold, and the payload between them.

use crate::Histogram;

/// Stall statistics in one pass and fixed memory.
///
/// A stall is a run of consecutive writes whose latencies exceed the threshold; the latency of a stall is
/// its longest write. Spacing is counted in payload bytes from the start of a stall to the start of the
/// next. `BUCKETS` is [`buckets_below`](crate::buckets_below) of the number of bits that the longest latency
/// in ns or the widest spacing in bytes needs.
#[derive(Clone, Debug)]
pub struct Stalls<const BUCKETS: usize> {
    threshold_ns: u64,
    spacings_bytes: Histogram<BUCKETS>,
    latencies_ns: Histogram<BUCKETS>,
    count: u64,
    position_bytes: u64,
    last_start_bytes: u64,
    latency_ns: u64,
}

impl<const BUCKETS: usize> Stalls<BUCKETS> {
    /// Creates a detector for latencies longer than `threshold_ns`.
    pub fn above(threshold_ns: u64) -> Self {
        Stalls {
            threshold_ns,
            spacings_bytes: Histogram::default(),
            latencies_ns: Histogram::default(),
            count: 0,
            position_bytes: 0,
            last_start_bytes: 0,
            latency_ns: 0,
        }
    }

    /// Adds a write of `bytes` with a latency of `ns`.
    #[inline]
    pub fn push(&mut self, ns: u64, bytes: u64) {
        if ns > self.threshold_ns {
            self.add_slow(ns);
        } else if self.latency_ns > 0 {
            self.end_stall();
        }
        self.position_bytes = self.position_bytes.saturating_add(bytes);
    }

    fn add_slow(&mut self, ns: u64) {
        if self.latency_ns == 0 {
            if self.count > 0 {
                self.spacings_bytes
                    .push(self.position_bytes - self.last_start_bytes);
            }
            self.count += 1;
            self.last_start_bytes = self.position_bytes;
        }
        self.latency_ns = self.latency_ns.max(ns);
    }

    fn end_stall(&mut self) {
        self.latencies_ns.push(self.latency_ns);
        self.latency_ns = 0;
    }

    /// Closes a stall that is still open at the last write. Call once, after the last write.
    pub fn finish(&mut self) {
        if self.latency_ns > 0 {
            self.end_stall();
        }
    }

    /// Threshold in ns.
    pub fn threshold_ns(&self) -> u64 {
        self.threshold_ns
    }

    /// Number of stalls.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Bytes from the start of each stall to the start of the next.
    pub fn spacings_bytes(&self) -> &Histogram<BUCKETS> {
        &self.spacings_bytes
    }

    /// Latency of each stall in ns, complete after [`Stalls::finish`].
    pub fn latencies_ns(&self) -> &Histogram<BUCKETS> {
        &self.latencies_ns
    }

    /// Median spacing in bytes, within 1 %, or `None` with fewer than two stalls.
    pub fn median_spacing_bytes(&self) -> Option<u64> {
        self.spacings_bytes.percentile(500_000)
    }

    /// Most frequent spacing in bytes: the centre of the fullest bin of [`Stalls::spacing_bin_bytes`], or `None`
    /// with fewer than two stalls.
    pub fn mode_spacing_bytes(&self) -> Option<u64> {
        self.spacings_bytes.mode(self.spacing_bin_bytes()?)
    }

    /// Width of the bins for the mode: the least of 1, 2, 5, 10, ... that is at least a twentieth of the median,
    /// or `None` with fewer than two stalls.
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

    /// Median latency of the stalls in ns, within 1 %, or `None` without a stall.
    pub fn median_latency_ns(&self) -> Option<u64> {
        self.latencies_ns.percentile(500_000)
    }
}

/// Returns the stall threshold in ns that is used if none is given: the geometric mean of mean and worst-case
/// latency, at least twice the median, rounded up to two digits.
///
/// A device whose worst-case latency is less than twice the median has no stalls.
pub fn default_threshold_ns(mean_ns: u64, median_ns: u64, max_ns: u64) -> u64 {
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

    type TestStalls = Stalls<{ buckets_below(64) }>;

    /// Starts (in bytes) and latencies of all stalls, determined from every pair of neighbouring writes.
    fn reference(writes: &[(u64, u64)], threshold_ns: u64) -> Vec<(u64, u64)> {
        let mut stalls = Vec::new();
        for (i, &(ns, _)) in writes.iter().enumerate() {
            let starts = ns > threshold_ns && (i == 0 || writes[i - 1].0 <= threshold_ns);
            if starts {
                let start = writes[..i].iter().map(|w| w.1).sum();
                let run = writes[i..].iter().take_while(|w| w.0 > threshold_ns);
                stalls.push((start, run.map(|w| w.0).max().unwrap_or(0)));
            }
        }
        stalls
    }

    proptest! {
        #[test]
        fn peaks_match_the_reference(
            writes in prop::collection::vec((0..100u64, 1..60u64), 0..300),
            threshold_ns in 0..100u64,
        ) {
            let mut stalls = TestStalls::above(threshold_ns);
            writes.iter().for_each(|&(ns, bytes)| stalls.push(ns, bytes));
            stalls.finish();
            let expected = reference(&writes, threshold_ns);
            prop_assert_eq!(stalls.count(), expected.len() as u64);

            let mut spacings: Vec<u64> = expected.windows(2).map(|w| w[1].0 - w[0].0).collect();
            spacings.sort_unstable();
            prop_assert_eq!(stalls.spacings_bytes().total(), spacings.len() as u64);
            if let Some(&median) = spacings.get(spacings.len().saturating_sub(1) / 2) {
                let near = stalls.median_spacing_bytes().unwrap();
                prop_assert!(near.abs_diff(median) <= median / 128 + 1, "{near} for {median}");
            }
            let mut latencies: Vec<u64> = expected.iter().map(|p| p.1).collect();
            latencies.sort_unstable();
            if let Some(&median) = latencies.get(latencies.len().saturating_sub(1) / 2) {
                let near = stalls.median_latency_ns().unwrap();
                prop_assert!(near.abs_diff(median) <= median / 128 + 1, "{near} for {median}");
            }
        }
    }

    #[test]
    fn consecutive_slow_writes_are_one_stall() {
        let mut stalls = TestStalls::above(10);
        for ns in [1, 50, 70, 60, 1, 1, 20] {
            stalls.push(ns, 100);
        }
        stalls.finish();
        assert_eq!(stalls.count(), 2);
        assert_eq!(stalls.spacings_bytes().percentile(500_000), Some(502));
        assert_eq!(stalls.latencies_ns().total(), 2);
    }

    #[test]
    fn the_bin_width_is_one_two_or_five_of_a_decade() {
        let mut stalls = TestStalls::above(10);
        for _ in 0..3 {
            stalls.push(20, 40_000);
            stalls.push(1, 40_000);
        }
        assert_eq!(stalls.spacing_bin_bytes(), Some(5_000));
        assert_eq!(stalls.mode_spacing_bytes(), Some(82_500));
    }

    #[test]
    fn the_default_threshold_lies_between_mean_and_worst_case() {
        assert_eq!(default_threshold_ns(22_000, 20_000, 75_000), 41_000);
        // A device with even latencies has no stalls.
        assert!(default_threshold_ns(100, 100, 150) > 150);
        assert_eq!(default_threshold_ns(0, 0, 0), 0);
        assert!(default_threshold_ns(u64::MAX, u64::MAX, u64::MAX) > u64::MAX / 2);
    }
}
