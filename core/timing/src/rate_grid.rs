//! Buffer needed at each of a fixed grid of data rates, in one pass on a device.

/// Fractional bits of the backlog, which is stored in units of 1/256 byte.
const FRACTION_BITS: u32 = 8;

/// Fractional bits of rates, which are stored in bytes per ns, times 2^32.
const RATE_BITS: u32 = 32;

/// Longest latency that can be replayed (68 s); keeps every product within 64 bits.
const LONGEST_NS: u64 = 1 << 36;

/// Fastest rate of any grid, in bytes per second; its product with [`LONGEST_NS`] fits in 64 bits.
const FASTEST_BYTES_PER_S: u64 = 31_000_000;

const _: () = assert!(
    ((FASTEST_BYTES_PER_S as u128) << RATE_BITS).div_ceil(1_000_000_000) * (LONGEST_NS as u128)
        < 1 << 63
);

/// One data rate, replayed against the latencies as they arrive.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    rate_q32: u64,
    waiting_q8: u64,
    peak_q8: u64,
}

/// `B(r)` (see the [crate docs](crate)) for `RATES` rates a quarter of an octave apart, in one pass, fixed
/// memory and integers. All rounding is upwards, so every rate reported as sustained really is.
#[derive(Clone, Debug)]
pub struct RateGrid<const RATES: usize> {
    rows: [Row; RATES],
    last_bytes: u64,
    bytes: u64,
    sum_ns: u64,
}

impl<const RATES: usize> RateGrid<RATES> {
    /// Creates a grid whose slowest rate is `slowest_bytes_per_s`, at least 1; each next rate is 2^(1/4) faster,
    /// up to 31 MB/s.
    pub fn from_slowest(slowest_bytes_per_s: u32) -> Self {
        let mut rows = [Row::default(); RATES];
        let mut rate_millis = u64::from(slowest_bytes_per_s.max(1)) * 1000;
        for row in &mut rows {
            let capped_millis = rate_millis.min(FASTEST_BYTES_PER_S * 1000);
            row.rate_q32 =
                (u128::from(capped_millis) << RATE_BITS).div_ceil(1_000_000_000_000) as u64;
            // 2^(1/4) = 1.18921
            rate_millis = capped_millis * 118_921 / 100_000;
        }
        RateGrid {
            rows,
            last_bytes: 0,
            bytes: 0,
            sum_ns: 0,
        }
    }

    /// Adds a write of `bytes` with a latency of `ns`.
    pub fn push(&mut self, ns: u64, bytes: u64) {
        let held_ns = ns.min(LONGEST_NS);
        let (freed_q8, needed_q8) = (self.last_bytes << FRACTION_BITS, bytes << FRACTION_BITS);
        for row in &mut self.rows {
            let arrived_q8 = ((row.rate_q32 * held_ns) >> (RATE_BITS - FRACTION_BITS)) + 1;
            row.waiting_q8 = row.waiting_q8.saturating_sub(freed_q8).max(needed_q8) + arrived_q8;
            row.peak_q8 = row.peak_q8.max(row.waiting_q8);
            if ns > LONGEST_NS {
                // The write took too long to be replayed exactly, so no rate may be reported as sustained.
                row.peak_q8 = u64::MAX;
            }
        }
        self.last_bytes = bytes;
        self.bytes += bytes;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// Returns the fastest rate of the grid, not above the mean throughput, that a buffer of `buffer_bytes`
    /// sustains, in bytes per second, rounded down; 0 if it sustains none.
    pub fn sustained_bytes_per_s(&self, buffer_bytes: u64) -> u64 {
        if self.sum_ns == 0 {
            return 0;
        }
        let average = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.sum_ns);
        let held = self
            .rows
            .iter()
            .take_while(|row| row.peak_q8 <= buffer_bytes << FRACTION_BITS);
        let fastest = held.last().map_or(0, |row| {
            // The row was replayed at a rate rounded up, so this rate, rounded down, is sustained as well.
            (u128::from(row.rate_q32.saturating_sub(1)) * 1_000_000_000) >> RATE_BITS
        });
        fastest.min(average) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Latencies, buckets_below, sustained};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_reported_rate_is_sustained_and_within_one_step_of_the_exact_one(
            times in prop::collection::vec(prop_oneof![5 => 100_000..3_000_000u64, 1 => 3_000_000..200_000_000u64], 1..200),
            bytes in prop_oneof![Just(100u64), Just(512), Just(4096)],
            buffer_blocks in 2..200u64,
        ) {
            let writes: alloc::vec::Vec<_> = times.into_iter().map(|ns| (ns, bytes)).collect();
            let mut grid = RateGrid::<60>::from_slowest(300);
            writes.iter().for_each(|&(ns, bytes)| grid.push(ns, bytes));
            let buffer_bytes = buffer_blocks * bytes;
            let held = grid.sustained_bytes_per_s(buffer_bytes) as f64;
            let mut figures = Latencies::<{ buckets_below(40) }>::default();
            writes.iter().for_each(|&(ns, bytes)| figures.push(ns, bytes));
            let exact = sustained::sustained_rates_bytes_per_s(&writes[..], &figures, &[buffer_bytes])[0];
            prop_assert!(held <= exact, "{held} is above the exact {exact}");
            // The grid offers nothing below 300 B/s, and at most 300 * 2^(59/4) B/s.
            let offered = exact.min(8.27e6);
            prop_assert!(held >= offered / 1.2 - 2.0 || exact < 360.0, "{held} for {exact}");
        }
    }

    #[test]
    fn a_stall_too_long_to_replay_leaves_no_sustained_rate() {
        let mut grid = RateGrid::<60>::from_slowest(300);
        grid.push(200_000_000_000, 512);
        (0..1000).for_each(|_| grid.push(1_000_000, 512));
        assert_eq!(grid.sustained_bytes_per_s(64 << 10), 0);
    }

    #[test]
    fn an_empty_trace_sustains_nothing() {
        assert_eq!(
            RateGrid::<8>::from_slowest(1000).sustained_bytes_per_s(1 << 20),
            0
        );
    }
}
