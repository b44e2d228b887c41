//! Least, greatest, mean and percentiles of write times.

use crate::Histogram;

/// Write times in one pass and fixed memory: least, greatest and mean exact, percentiles within 1 %.
///
/// `BUCKETS` is [`buckets_below`](crate::buckets_below) of the bits that the longest write time in
/// ns needs; longer ones only blur the percentiles they fall on.
#[derive(Clone, Debug)]
pub struct WriteTimes<const BUCKETS: usize> {
    histogram: Histogram<BUCKETS>,
    count: u64,
    sum_ns: u128,
    bytes: u64,
    min_ns: u64,
    max_ns: u64,
}

impl<const BUCKETS: usize> Default for WriteTimes<BUCKETS> {
    fn default() -> Self {
        WriteTimes {
            histogram: Histogram::default(),
            count: 0,
            sum_ns: 0,
            bytes: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl<const BUCKETS: usize> WriteTimes<BUCKETS> {
    /// Takes in a write of `bytes` that took `ns`.
    pub fn push(&mut self, ns: u64, bytes: u64) {
        self.push_alike(bytes, core::iter::once(ns));
    }

    /// Takes in writes of `bytes` each, given by their durations in ns.
    pub fn push_alike(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
        // Locals stay in registers where fields would be stored at every write.
        let (mut sum_ns, mut min_ns, mut max_ns) = (self.sum_ns, self.min_ns, self.max_ns);
        let mut count = 0u64;
        for ns in durations_ns {
            self.histogram.push(ns);
            count += 1;
            sum_ns += u128::from(ns);
            min_ns = min_ns.min(ns);
            max_ns = max_ns.max(ns);
        }
        (self.sum_ns, self.min_ns, self.max_ns) = (sum_ns, min_ns, max_ns);
        self.count += count;
        self.bytes = self.bytes.saturating_add(count.saturating_mul(bytes));
    }

    /// Number of writes.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Payload of all writes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sum of all write times in ns: pauses between writes do not count.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Shortest write time in ns. `None` when there was no write.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min_ns)
    }

    /// Longest write time in ns. `None` when there was no write.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// Mean write time in ns, rounded down. `None` when there was no write.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns
            .checked_div(u128::from(self.count()))
            .map(|mean| mean as u64)
    }

    /// Write time in ns that `ppm` millionths of the writes do not exceed, within 1 %.
    pub fn percentile_ns(&self, ppm: u32) -> Option<u64> {
        let near = self.histogram.percentile(ppm)?;
        Some(near.clamp(self.min_ns, self.max_ns))
    }

    /// The write times in ns as a histogram.
    pub fn histogram(&self) -> &Histogram<BUCKETS> {
        &self.histogram
    }
}

#[cfg(any(feature = "alloc", test))]
impl<const BUCKETS: usize> crate::Pass for WriteTimes<BUCKETS> {
    fn take_alike(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
        self.push_alike(bytes, durations_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets_below;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn least_greatest_and_mean_are_exact(
            writes in prop::collection::vec((any::<u64>(), 0..4096u64), 1..200),
        ) {
            let mut times = WriteTimes::<{ buckets_below(40) }>::default();
            let (one_by_one, together) = writes.split_at(writes.len() / 2);
            one_by_one.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
            for alike in together.chunk_by(|a, b| a.1 == b.1) {
                times.push_alike(alike[0].1, alike.iter().map(|write| write.0));
            }
            let sum: u128 = writes.iter().map(|w| u128::from(w.0)).sum();
            prop_assert_eq!(times.min_ns(), writes.iter().map(|w| w.0).min());
            prop_assert_eq!(times.max_ns(), writes.iter().map(|w| w.0).max());
            prop_assert_eq!(times.mean_ns(), Some((sum / writes.len() as u128) as u64));
            prop_assert_eq!(times.bytes(), writes.iter().map(|w| w.1).sum::<u64>());
        }
    }

    #[test]
    fn nothing_measured_has_no_figures() {
        let times = WriteTimes::<{ buckets_below(40) }>::default();
        assert_eq!(
            (times.min_ns(), times.max_ns(), times.mean_ns()),
            (None, None, None)
        );
        assert_eq!(times.percentile_ns(999_900), None);
    }
}
