//! Peak backlogs: one for each busy period.
//!
//! At a constant data rate the backlog rises during a stall and drains over the writes that follow. A busy
//! period lasts from one write that finds only its own payload waiting to the next such write. Backlogs
//! within a busy period depend on each other, but the peak backlogs of different periods are almost
//! independent, as extreme-value statistics require (declustering, Leadbetter 1991). The statistics themselves
//! need logarithms and run on the host.

use crate::{Pass, Replay};
use alloc::vec::Vec;

/// The busy periods of a trace at one data rate.
#[derive(Clone, Debug, PartialEq)]
pub struct BusyPeriods {
    /// Number of busy periods.
    pub count: u64,
    /// The greatest peak backlogs in bytes, in descending order.
    pub peaks_bytes: Vec<f64>,
    /// Number of busy periods whose peak backlog exceeds each of the given sizes.
    pub exceeding: Vec<u64>,
}

/// Returns the busy periods at `rate_bytes_per_s`: the `peaks_max` greatest peak backlogs, and the number of
/// periods that exceed each of `sizes_bytes`.
///
/// A period that is still open at the last write counts with its backlog so far.
pub fn busy_periods(
    writes: &(impl Replay + ?Sized),
    rate_bytes_per_s: f64,
    peaks_max: usize,
    sizes_bytes: &[u64],
) -> BusyPeriods {
    let mut periods = Periods {
        rate_bytes_per_ns: rate_bytes_per_s / 1e9,
        left_bytes: 0.0,
        peak_bytes: 0.0,
        peaks_max,
        sizes_bytes,
        least_size_bytes: sizes_bytes
            .iter()
            .min()
            .map_or(f64::MAX, |&size| size as f64),
        floor_bytes: 0.0,
        found: BusyPeriods {
            count: 0,
            peaks_bytes: Vec::new(),
            exceeding: alloc::vec![0; sizes_bytes.len()],
        },
    };
    writes.replay_run(&mut periods);
    if periods.peak_bytes > 0.0 {
        periods.end(periods.peak_bytes, 1);
    }
    periods.keep_greatest();
    periods.found
}

struct Periods<'a> {
    rate_bytes_per_ns: f64,
    /// Bytes waiting after the last write.
    left_bytes: f64,
    /// Peak backlog of the open period.
    peak_bytes: f64,
    peaks_max: usize,
    sizes_bytes: &'a [u64],
    /// Smallest of the sizes to be counted; most periods do not exceed it.
    least_size_bytes: f64,
    /// Peak backlogs up to this size, in bytes, cannot be among the `peaks_max` greatest.
    floor_bytes: f64,
    found: BusyPeriods,
}

impl Pass for Periods<'_> {
    fn take_run(&mut self, bytes: u64, durations_ns: impl Iterator<Item = u64>) {
        durations_ns.for_each(|ns| self.take(bytes, ns));
    }

    fn take_equal(&mut self, bytes: u64, ns: u64, count: u64) {
        let needed_bytes = bytes as f64;
        let alone_bytes = needed_bytes + self.rate_bytes_per_ns * ns as f64;
        let left_bytes = alone_bytes - needed_bytes;
        // Then a write without a backlog leaves none to the next one, which is a period of its own.
        let is_apart = left_bytes <= needed_bytes && alone_bytes > 0.0;
        let mut remaining = count;
        while remaining > 0 {
            if is_apart && self.left_bytes <= needed_bytes && self.peak_bytes == alone_bytes {
                self.end(alone_bytes, remaining);
                self.left_bytes = left_bytes;
                return;
            }
            self.take(bytes, ns);
            remaining -= 1;
        }
    }
}

impl Periods<'_> {
    fn take(&mut self, bytes: u64, ns: u64) {
        let needed_bytes = bytes as f64;
        if self.left_bytes <= needed_bytes && self.peak_bytes > 0.0 {
            self.end(self.peak_bytes, 1);
            self.peak_bytes = 0.0;
        }
        let waiting_bytes = self.left_bytes.max(needed_bytes) + self.rate_bytes_per_ns * ns as f64;
        self.peak_bytes = self.peak_bytes.max(waiting_bytes);
        self.left_bytes = waiting_bytes - needed_bytes;
    }

    /// Counts `count` periods with the same peak backlog.
    fn end(&mut self, peak_bytes: f64, count: u64) {
        self.found.count += count;
        if peak_bytes > self.least_size_bytes {
            let sizes = self.sizes_bytes.iter().zip(&mut self.found.exceeding);
            for (&size, exceeding) in sizes {
                *exceeding += count * u64::from(peak_bytes > size as f64);
            }
        }
        for _ in 0..count.min(self.peaks_max as u64) {
            self.keep(peak_bytes);
        }
    }

    fn keep(&mut self, peak_bytes: f64) {
        if peak_bytes > self.floor_bytes {
            self.found.peaks_bytes.push(peak_bytes);
            if self.found.peaks_bytes.len() > 2 * self.peaks_max {
                self.keep_greatest();
                self.floor_bytes = self.found.peaks_bytes.last().copied().unwrap_or(0.0);
            }
        }
    }

    fn keep_greatest(&mut self) {
        let peaks = &mut self.found.peaks_bytes;
        peaks.sort_unstable_by(|a, b| b.total_cmp(a));
        peaks.truncate(self.peaks_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    /// Reference by timestamps: a period begins where a write waits for its own payload.
    fn by_timestamps(writes: &[(u64, u64)], rate_bytes_per_s: f64) -> Vec<f64> {
        let rate = rate_bytes_per_s / 1e9;
        let (mut end_ns, mut made) = (0.0f64, 0.0f64);
        let mut peaks: Vec<f64> = Vec::new();
        for &(ns, bytes) in writes {
            let before = made;
            made += bytes as f64;
            let is_first = made / rate >= end_ns;
            end_ns = end_ns.max(made / rate) + ns as f64;
            let peak = rate * end_ns - before;
            match peaks.last_mut() {
                Some(last) if !is_first => *last = last.max(peak),
                _ => peaks.push(peak),
            }
        }
        peaks
    }

    proptest! {
        #[test]
        fn peak_backlogs_match_the_timestamp_reference(
            times in prop::collection::vec(prop_oneof![4 => 100_000..900_000u64, 1 => 900_000..90_000_000u64], 1..300),
            peaks_max in 1..40usize,
        ) {
            let writes: Vec<_> = times.into_iter().map(|ns| (ns, 512)).collect();
            let mut expected = by_timestamps(&writes, 300_000.0);
            let sizes = [600, 2000, 20_000];
            let found = busy_periods(&writes[..], 300_000.0, peaks_max, &sizes);
            prop_assert_eq!(found.count, expected.len() as u64);
            for (size, &exceeding) in sizes.iter().zip(&found.exceeding) {
                let expected_count = expected.iter().filter(|&&peak| peak > *size as f64).count();
                prop_assert_eq!(exceeding, expected_count as u64);
            }
            expected.sort_by(|a, b| b.total_cmp(a));
            prop_assert_eq!(found.peaks_bytes.len(), peaks_max.min(expected.len()));
            for (peak, expected_peak) in found.peaks_bytes.iter().zip(&expected) {
                prop_assert!((peak - expected_peak).abs() < 1e-3, "{peak} for {expected_peak}");
            }
        }
    }

    /// A trace given as runs of equal writes.
    struct Equal<'a>(&'a [(u64, u64, u64)]);

    impl Replay for Equal<'_> {
        fn replay_run(&self, pass: &mut impl Pass) {
            for &(ns, bytes, count) in self.0 {
                pass.take_equal(bytes, ns, count);
            }
        }
    }

    proptest! {
        #[test]
        fn equal_writes_in_one_step_give_the_same_periods(
            runs in prop::collection::vec(
                (prop::sample::select(vec![0, 1000, 50_000, 512_000, 2_000_000, 90_000_000]),
                 prop::sample::select(vec![0, 256, 512, 1024]), 0..60u64),
                1..30,
            ),
            peaks_max in 1..40usize,
        ) {
            let writes: Vec<_> = runs
                .iter()
                .flat_map(|&(ns, bytes, count)| core::iter::repeat_n((ns, bytes), count as usize))
                .collect();
            let sizes = [600, 2000, 20_000];
            let found = busy_periods(&Equal(&runs), 500_000.0, peaks_max, &sizes);
            prop_assert_eq!(found, busy_periods(&writes[..], 500_000.0, peaks_max, &sizes));
        }
    }

    #[test]
    fn stalls_in_quick_succession_form_one_period() {
        // 100 kB/s: a stall of 10 ms leaves 1000 B, and a fast write drains 499 B of this backlog. The
        // second stall starts at 501 B; the two fast writes after the stall are still in the same period.
        let quick = (10_000, 500);
        let stall = (10_000_000, 500);
        let close = [vec![quick; 3], vec![stall, quick, stall], vec![quick; 9]].concat();
        let found = busy_periods(&close[..], 100_000.0, 1, &[1499, 1502]);
        assert_eq!((found.count, found.exceeding), (3 + 1 + 7, vec![1, 0]));
        assert!((found.peaks_bytes[0] - 1501.0).abs() < 1e-3);
    }

    #[test]
    fn an_empty_trace_has_no_periods() {
        let found = busy_periods(&[][..], 1000.0, 8, &[512]);
        assert_eq!((found.count, found.exceeding), (0, vec![0]));
        assert!(found.peaks_bytes.is_empty());
    }
}
