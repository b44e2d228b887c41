//! Minimum, maximum, mean and percentiles of latencies.

use crate::Histogram;

/// Latency statistics in one pass and fixed memory: minimum, maximum and mean are exact, percentiles are
/// within 1 %.
///
/// `BUCKETS` is [`buckets_below`](crate::buckets_below) of the number of bits that the worst-case latency in
/// ns needs; longer latencies affect only the accuracy of the percentiles that fall on them.
#[derive(Clone, Debug)]
pub struct Latencies<const BUCKETS: usize> {
    histogram: Histogram<BUCKETS>,
    count: u64,
    sum_ns: u128,
    bytes: u64,
    min_ns: u64,
    max_ns: u64,
}

impl<const BUCKETS: usize> Default for Latencies<BUCKETS> {
    fn default() -> Self {
        Latencies {
            histogram: Histogram::default(),
            count: 0,
            sum_ns: 0,
            bytes: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }
}

impl<const BUCKETS: usize> Latencies<BUCKETS> {
    /// Adds a write of `bytes` with a latency of `ns`.
    pub fn push(&mut self, ns: u64, bytes: u64) {
        self.push_run(bytes, core::iter::once(ns));
    }

    /// Adds a run of consecutive writes of `bytes` each, given as latencies in ns.
    pub fn push_run(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
        // Locals stay in registers; fields would be stored at every write.
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

    /// Total payload of all writes, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sum of all latencies in ns, without the pauses between writes.
    pub fn sum_ns(&self) -> u128 {
        self.sum_ns
    }

    /// Minimum latency in ns, or `None` if there was no write.
    pub fn min_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.min_ns)
    }

    /// Worst-case latency in ns, or `None` if there was no write.
    pub fn max_ns(&self) -> Option<u64> {
        (self.count() > 0).then_some(self.max_ns)
    }

    /// Mean latency in ns, rounded down, or `None` if there was no write.
    pub fn mean_ns(&self) -> Option<u64> {
        self.sum_ns
            .checked_div(u128::from(self.count()))
            .map(|mean| mean as u64)
    }

    /// Latency in ns that `ppm` millionths of the writes do not exceed, within 1 %.
    pub fn percentile_ns(&self, ppm: u32) -> Option<u64> {
        let near = self.histogram.percentile(ppm)?;
        Some(near.clamp(self.min_ns, self.max_ns))
    }

    /// Histogram of the latencies in ns.
    pub fn histogram(&self) -> &Histogram<BUCKETS> {
        &self.histogram
    }
}

#[cfg(any(feature = "alloc", test))]
impl<const BUCKETS: usize> crate::Pass for Latencies<BUCKETS> {
    fn take_run(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
        self.push_run(bytes, durations_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buckets_below;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn minimum_maximum_and_mean_are_exact(
            writes in prop::collection::vec((any::<u64>(), 0..4096u64), 1..200),
        ) {
            let mut times = Latencies::<{ buckets_below(40) }>::default();
            let (one_by_one, together) = writes.split_at(writes.len() / 2);
            one_by_one.iter().for_each(|&(ns, bytes)| times.push(ns, bytes));
            for alike in together.chunk_by(|a, b| a.1 == b.1) {
                times.push_run(alike[0].1, alike.iter().map(|write| write.0));
            }
            let sum: u128 = writes.iter().map(|w| u128::from(w.0)).sum();
            prop_assert_eq!(times.min_ns(), writes.iter().map(|w| w.0).min());
            prop_assert_eq!(times.max_ns(), writes.iter().map(|w| w.0).max());
            prop_assert_eq!(times.mean_ns(), Some((sum / writes.len() as u128) as u64));
            prop_assert_eq!(times.bytes(), writes.iter().map(|w| w.1).sum::<u64>());
        }
    }

    #[test]
    fn an_empty_trace_has_no_statistics() {
        let times = Latencies::<{ buckets_below(40) }>::default();
        assert_eq!(
            (times.min_ns(), times.max_ns(), times.mean_ns()),
            (None, None, None)
        );
        assert_eq!(times.percentile_ns(999_900), None);
    }
}
