//! The RAM that a fixed grid of data rates needs, in one pass on a device.

/// Backlog is kept in 256ths of a byte.
const FRACTION_BITS: u32 = 8;

/// A rate is kept in bytes per ns, times 2^32.
const RATE_BITS: u32 = 32;

/// Longest write time that can be played (68 s); keeps every product within 64 bits.
const LONGEST_NS: u64 = 1 << 36;

/// Fastest rate of any grid, in bytes per second; with [`LONGEST_NS`] it keeps within 64 bits.
const FASTEST_BPS: u64 = 31_000_000;

const _: () = assert!(
    ((FASTEST_BPS as u128) << RATE_BITS).div_ceil(1_000_000_000) * (LONGEST_NS as u128) < 1 << 63
);

/// One data rate that is played against the write times as they come.
#[derive(Clone, Copy, Debug, Default)]
struct Row {
    rate_q32: u64,
    waiting_q8: u64,
    peak_q8: u64,
}

/// `B(r)` (see the [crate docs](crate)) for `RATES` rates a quarter of an octave apart, in one pass,
/// fixed memory and integers. Every rounding is up, so that a rate it calls lossless is.
#[derive(Clone, Debug)]
pub struct RateGrid<const RATES: usize> {
    rows: [Row; RATES],
    last_bytes: u64,
    bytes: u64,
    sum_ns: u64,
}

impl<const RATES: usize> RateGrid<RATES> {
    /// A grid whose slowest rate is `slowest_Bps`, at least 1; each next is 2^(1/4) faster, up to
    /// 31 MB/s.
    #[allow(non_snake_case, reason = "B is bytes, b would be bits")]
    pub fn from_slowest(slowest_Bps: u32) -> Self {
        let mut rows = [Row::default(); RATES];
        let mut rate_millis = u64::from(slowest_Bps.max(1)) * 1000;
        for row in &mut rows {
            let capped_millis = rate_millis.min(FASTEST_BPS * 1000);
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

    /// Takes in a write of `bytes` that took `ns`.
    pub fn push(&mut self, ns: u64, bytes: u64) {
        let held_ns = ns.min(LONGEST_NS);
        let (freed_q8, needed_q8) = (self.last_bytes << FRACTION_BITS, bytes << FRACTION_BITS);
        for row in &mut self.rows {
            let arrived_q8 = ((row.rate_q32 * held_ns) >> (RATE_BITS - FRACTION_BITS)) + 1;
            row.waiting_q8 = row.waiting_q8.saturating_sub(freed_q8).max(needed_q8) + arrived_q8;
            row.peak_q8 = row.peak_q8.max(row.waiting_q8);
            if ns > LONGEST_NS {
                // Not played at its value, so no rate may be called lossless.
                row.peak_q8 = u64::MAX;
            }
        }
        self.last_bytes = bytes;
        self.bytes += bytes;
        self.sum_ns = self.sum_ns.saturating_add(ns);
    }

    /// The fastest rate of the grid, not above the average, that `ram_bytes` carry without loss, in
    /// bytes per second, rounded down. 0 if none does.
    #[allow(non_snake_case, reason = "B is bytes, b would be bits")]
    pub fn lossless_Bps(&self, ram_bytes: u64) -> u64 {
        if self.sum_ns == 0 {
            return 0;
        }
        let average = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.sum_ns);
        let held = self
            .rows
            .iter()
            .take_while(|row| row.peak_q8 <= ram_bytes << FRACTION_BITS);
        let fastest = held.last().map_or(0, |row| {
            // The row was played at a rate rounded up, so this one, rounded down, is carried too.
            (u128::from(row.rate_q32.saturating_sub(1)) * 1_000_000_000) >> RATE_BITS
        });
        fastest.min(average) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{WriteTimes, buckets_below, frontier};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_rate_called_lossless_is_and_is_within_one_step_of_the_exact_one(
            times in prop::collection::vec(prop_oneof![5 => 100_000..3_000_000u64, 1 => 3_000_000..200_000_000u64], 1..200),
            bytes in prop_oneof![Just(100u64), Just(512), Just(4096)],
            ram_blocks in 2..200u64,
        ) {
            let writes: alloc::vec::Vec<_> = times.into_iter().map(|ns| (ns, bytes)).collect();
            let mut grid = RateGrid::<60>::from_slowest(300);
            writes.iter().for_each(|&(ns, bytes)| grid.push(ns, bytes));
            let ram_bytes = ram_blocks * bytes;
            let held = grid.lossless_Bps(ram_bytes) as f64;
            let mut figures = WriteTimes::<{ buckets_below(40) }>::default();
            writes.iter().for_each(|&(ns, bytes)| figures.push(ns, bytes));
            let exact = frontier::lossless_rates_Bps(&writes[..], &figures, &[ram_bytes])[0];
            prop_assert!(held <= exact, "{held} is above the exact {exact}");
            // The grid offers nothing below 300 B/s, and at most 300 * 2^(59/4) B/s.
            let offered = exact.min(8.27e6);
            prop_assert!(held >= offered / 1.2 - 2.0 || exact < 360.0, "{held} for {exact}");
        }
    }

    #[test]
    fn a_stall_too_long_to_play_leaves_no_lossless_rate() {
        let mut grid = RateGrid::<60>::from_slowest(300);
        grid.push(200_000_000_000, 512);
        (0..1000).for_each(|_| grid.push(1_000_000, 512));
        assert_eq!(grid.lossless_Bps(64 << 10), 0);
    }

    #[test]
    fn nothing_measured_promises_nothing() {
        assert_eq!(RateGrid::<8>::from_slowest(1000).lossless_Bps(1 << 20), 0);
    }
}
