//! A fixed-size histogram with a relative error of at most 0.8 %.

/// Buckets in every octave (factor of two).
const BUCKETS_PER_OCTAVE: usize = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 6;

/// Number of buckets that a [`Histogram`] needs to resolve all values below `2^bits`.
pub const fn buckets_below(bits: u32) -> usize {
    assert!(bits >= OCTAVE_BITS && bits <= 64);
    (bits - OCTAVE_BITS + 1) as usize * BUCKETS_PER_OCTAVE
}

/// Counts of values in buckets 1/64 octave wide, 4 bytes per bucket.
///
/// Below 64 every value has a bucket of its own. A value is reported as the middle of its bucket, at most 1/128
/// off. Values past the last bucket are counted in the last one; counts saturate at `u32::MAX`.
#[derive(Clone, Debug)]
pub struct Histogram<const BUCKETS: usize> {
    counts: [u32; BUCKETS],
}

/// A bin of a histogram with bins of equal width; see [`Histogram::linear_bins`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinearBin {
    /// The bin holds values from `index * width` to below `(index + 1) * width`.
    pub index: u64,
    /// Values in the bin; never 0.
    pub count: u64,
}

impl<const BUCKETS: usize> Default for Histogram<BUCKETS> {
    fn default() -> Self {
        Histogram {
            counts: [0; BUCKETS],
        }
    }
}

impl<const BUCKETS: usize> Histogram<BUCKETS> {
    /// Counts a value.
    #[inline]
    pub fn push(&mut self, value: u64) {
        let bucket = bucket_of(value).min(BUCKETS - 1);
        self.counts[bucket] = self.counts[bucket].saturating_add(1);
    }

    /// Number of values counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&n| u64::from(n)).sum()
    }

    /// Value that `ppm` millionths of all counted values do not exceed (nearest rank), at most 1/128 off, or
    /// `None` if nothing was counted.
    pub fn percentile(&self, ppm: u32) -> Option<u64> {
        let rank = (u128::from(self.total()) * u128::from(ppm)).div_ceil(1_000_000) as u64;
        let mut seen = 0;
        self.bars()
            .find(|&(_, count)| {
                seen += count;
                seen >= rank
            })
            .map(|(value, _)| value)
    }

    /// The smallest bucket limit that at most `count` values exceed.
    pub fn value_exceeded_by(&self, count: u64) -> u64 {
        let mut above = 0;
        for (bucket, &n) in self.counts.iter().enumerate().rev() {
            above += u64::from(n);
            if above > count {
                return greatest_of(bucket);
            }
        }
        0
    }

    /// The middle and the count of every non-empty bucket, in ascending order.
    pub fn bars(&self) -> impl Iterator<Item = (u64, u64)> + Clone + '_ {
        let filled = self.counts.iter().enumerate().filter(|&(_, &n)| n > 0);
        filled.map(|(bucket, &count)| (middle_of(bucket), u64::from(count)))
    }

    /// The counts of the histogram in bins of equal `width` (not 0), in ascending order, without empty bins.
    pub fn linear_bins(&self, width: u64) -> impl Iterator<Item = LinearBin> + '_ {
        let mut bars = self.bars().peekable();
        core::iter::from_fn(move || {
            let (value, mut count) = bars.next()?;
            let index = value / width;
            while let Some((_, more)) = bars.next_if(|&(value, _)| value / width == index) {
                count += more;
            }
            Some(LinearBin { index, count })
        })
    }

    /// Centre of the fullest bin of the given `width` (the lowest bin if several are equally full); `None`
    /// if nothing was counted.
    pub fn mode(&self, width: u64) -> Option<u64> {
        let fullest = self
            .linear_bins(width)
            .reduce(|best, bin| if bin.count > best.count { bin } else { best })?;
        Some(fullest.index * width + width / 2)
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    if value < BUCKETS_PER_OCTAVE as u64 {
        return value as usize;
    }
    let octave = value.ilog2() - OCTAVE_BITS;
    let within = (value >> octave) as usize & (BUCKETS_PER_OCTAVE - 1);
    (octave as usize + 1) * BUCKETS_PER_OCTAVE + within
}

/// The lowest value of a bucket and the number of values that the bucket covers.
fn range_of(bucket: usize) -> (u64, u64) {
    if bucket < BUCKETS_PER_OCTAVE {
        return (bucket as u64, 1);
    }
    let octave = (bucket / BUCKETS_PER_OCTAVE - 1) as u32;
    let least = ((BUCKETS_PER_OCTAVE + bucket % BUCKETS_PER_OCTAVE) as u64) << octave;
    (least, 1 << octave)
}

fn middle_of(bucket: usize) -> u64 {
    let (least, width) = range_of(bucket);
    least + width / 2
}

fn greatest_of(bucket: usize) -> u64 {
    let (least, width) = range_of(bucket);
    least + (width - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const ALL: usize = buckets_below(64);

    proptest! {
        #[test]
        fn percentiles_are_within_one_percent_of_sorting(
            values in prop::collection::vec(prop_oneof![0..200u64, 0..5_000_000_000u64, any::<u64>()], 1..400),
            ppm in 0..=1_000_000u32,
        ) {
            let mut histogram = Histogram::<ALL>::default();
            values.iter().for_each(|&v| histogram.push(v));
            let mut sorted: Vec<u64> = values;
            sorted.sort_unstable();
            let rank = (sorted.len() as u64 * u64::from(ppm)).div_ceil(1_000_000).max(1);
            let exact = sorted[rank as usize - 1];
            let near = histogram.percentile(ppm).unwrap();
            prop_assert!(near.abs_diff(exact) as f64 <= exact as f64 / 128.0, "{near} for {exact}");
        }

        #[test]
        fn buckets_rise_with_values(a: u64, b: u64) {
            prop_assert_eq!(bucket_of(a.min(b)) <= bucket_of(a.max(b)), true);
            prop_assert!(bucket_of(a) < ALL);
            prop_assert_eq!(bucket_of(middle_of(bucket_of(a))), bucket_of(a));
        }
    }

    #[test]
    fn values_past_the_end_are_counted_in_the_last_bucket() {
        let mut histogram = Histogram::<{ buckets_below(10) }>::default();
        histogram.push(1_000_000);
        assert_eq!(histogram.total(), 1);
        assert_eq!(histogram.percentile(500_000), Some(1020));
    }

    #[test]
    fn mode_is_the_centre_of_the_fullest_bin() {
        let mut histogram = Histogram::<ALL>::default();
        for value in [10, 11, 52, 53, 54, 90] {
            histogram.push(value);
        }
        assert_eq!(histogram.mode(10), Some(55));
        assert_eq!(Histogram::<ALL>::default().mode(10), None);
    }
}
