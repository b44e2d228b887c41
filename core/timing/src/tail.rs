//! How high the backlog rises: one height for each time that it builds up.
//!
//! At a constant data rate the backlog comes and goes: it rises in a stall and is gone some writes
//! later. From one time that a write finds nothing but its own payload waiting to the next is a busy
//! period. Heights within one depend on each other; the highest of each period next to nothing on the
//! others', which is what statistics of extremes ask for (declustering, Leadbetter 1991). What is made
//! of them needs logarithms and stays on a computer.

use crate::Replay;
use alloc::vec::Vec;

/// The busy periods of a trace at one data rate.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyPeriods {
    /// How many there are.
    pub count: u64,
    /// The greatest heights in bytes, falling.
    pub heights_bytes: Vec<f64>,
    /// How many are higher than each of the sizes asked for.
    pub higher: Vec<u64>,
}

/// Heights of the busy periods at `rate_Bps`: the `heights_max` greatest, and how many are higher than
/// each of `sizes_bytes`.
///
/// The period that the last write ends in counts as it stands.
#[allow(non_snake_case, reason = "B is bytes, b would be bits")]
pub fn busy_periods(
    writes: &(impl Replay + ?Sized),
    rate_Bps: f64,
    heights_max: usize,
    sizes_bytes: &[u64],
) -> BusyPeriods {
    let rate = rate_Bps / 1e9;
    let mut periods = Periods {
        heights_max,
        sizes_bytes,
        least_size_bytes: sizes_bytes
            .iter()
            .min()
            .map_or(f64::MAX, |&size| size as f64),
        floor_bytes: 0.0,
        found: BusyPeriods {
            count: 0,
            heights_bytes: Vec::new(),
            higher: alloc::vec![0; sizes_bytes.len()],
        },
    };
    let (mut left_bytes, mut height_bytes) = (0.0f64, 0.0f64);
    writes.replay(|ns, bytes| {
        let needed_bytes = bytes as f64;
        if left_bytes <= needed_bytes && height_bytes > 0.0 {
            periods.end(height_bytes);
            height_bytes = 0.0;
        }
        let waiting_bytes = left_bytes.max(needed_bytes) + rate * ns as f64;
        height_bytes = height_bytes.max(waiting_bytes);
        left_bytes = waiting_bytes - needed_bytes;
    });
    if height_bytes > 0.0 {
        periods.end(height_bytes);
    }
    periods.keep_greatest();
    periods.found
}

struct Periods<'a> {
    heights_max: usize,
    sizes_bytes: &'a [u64],
    /// Most periods are lower than any size.
    least_size_bytes: f64,
    /// What is no higher is not among the greatest.
    floor_bytes: f64,
    found: BusyPeriods,
}

impl Periods<'_> {
    fn end(&mut self, height_bytes: f64) {
        self.found.count += 1;
        if height_bytes > self.least_size_bytes {
            let sizes = self.sizes_bytes.iter().zip(&mut self.found.higher);
            for (&size, higher) in sizes {
                *higher += u64::from(height_bytes > size as f64);
            }
        }
        if height_bytes > self.floor_bytes {
            self.found.heights_bytes.push(height_bytes);
            if self.found.heights_bytes.len() > 2 * self.heights_max {
                self.keep_greatest();
                self.floor_bytes = self.found.heights_bytes.last().copied().unwrap_or(0.0);
            }
        }
    }

    fn keep_greatest(&mut self) {
        let heights = &mut self.found.heights_bytes;
        heights.sort_unstable_by(|a, b| b.total_cmp(a));
        heights.truncate(self.heights_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// The same by the clock: a period begins where a write waits for its own payload.
    fn by_the_clock(writes: &[(u64, u64)], rate_bps: f64) -> Vec<f64> {
        let rate = rate_bps / 1e9;
        let (mut end_ns, mut made) = (0.0f64, 0.0f64);
        let mut heights: Vec<f64> = Vec::new();
        for &(ns, bytes) in writes {
            let before = made;
            made += bytes as f64;
            let is_first = made / rate >= end_ns;
            end_ns = end_ns.max(made / rate) + ns as f64;
            let height = rate * end_ns - before;
            match heights.last_mut() {
                Some(last) if !is_first => *last = last.max(height),
                _ => heights.push(height),
            }
        }
        heights
    }

    proptest! {
        #[test]
        fn heights_are_those_by_the_clock(
            times in prop::collection::vec(prop_oneof![4 => 100_000..900_000u64, 1 => 900_000..90_000_000u64], 1..300),
            heights_max in 1..40usize,
        ) {
            let writes: Vec<_> = times.into_iter().map(|ns| (ns, 512)).collect();
            let mut expected = by_the_clock(&writes, 300_000.0);
            let sizes = [600, 2000, 20_000];
            let found = busy_periods(&writes[..], 300_000.0, heights_max, &sizes);
            prop_assert_eq!(found.count, expected.len() as u64);
            for (size, &higher) in sizes.iter().zip(&found.higher) {
                let due = expected.iter().filter(|&&height| height > *size as f64).count();
                prop_assert_eq!(higher, due as u64);
            }
            expected.sort_by(|a, b| b.total_cmp(a));
            prop_assert_eq!(found.heights_bytes.len(), heights_max.min(expected.len()));
            for (height, due) in found.heights_bytes.iter().zip(&expected) {
                prop_assert!((height - due).abs() < 1e-3, "{height} for {due}");
            }
        }
    }

    #[test]
    fn stalls_close_to_each_other_are_one_period() {
        // 100 kB/s: 1000 B come in a stall of 10 ms, and a quick write takes 499 B of them away. The second
        // stall finds 501 B, and two quick writes after it belong to it still.
        let quick = (10_000, 500);
        let stall = (10_000_000, 500);
        let close = [vec![quick; 3], vec![stall, quick, stall], vec![quick; 9]].concat();
        let found = busy_periods(&close[..], 100_000.0, 1, &[1499, 1502]);
        assert_eq!((found.count, found.higher), (3 + 1 + 7, vec![1, 0]));
        assert!((found.heights_bytes[0] - 1501.0).abs() < 1e-3);
    }

    #[test]
    fn nothing_written_has_no_periods() {
        let found = busy_periods(&[][..], 1000.0, 8, &[512]);
        assert_eq!((found.count, found.higher), (0, vec![0]));
        assert!(found.heights_bytes.is_empty());
    }
}
