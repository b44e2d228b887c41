//! Histograms of latencies: how many writes took how long, without their order.

use crate::trace::About;

/// Latencies of writes without their order. Percentiles are therefore known, but stalls and sustained rates are not.
pub struct Histogram {
    /// Description of the run that the figures come from.
    pub about: About,
    /// Latency in ns and number of writes of each bin, by ascending latency.
    pub bins: Vec<(u64, u64)>,
    /// Minimum latency in ns, if the file states it exactly.
    pub min_ns: Option<u64>,
    /// Worst-case latency in ns, if the file states it exactly.
    pub max_ns: Option<u64>,
    /// Mean latency in ns, if the file states it.
    pub mean_ns: Option<f64>,
    /// Total payload in bytes.
    pub payload_bytes: u64,
}

impl Histogram {
    /// Number of writes.
    pub fn writes(&self) -> u64 {
        self.bins.iter().map(|(_, count)| count).sum()
    }

    /// Returns the lowest latency in ns that a share of the writes, in millionths, does not exceed; `None` if there
    /// are no writes.
    pub fn percentile_ns(&self, ppm: u32) -> Option<u64> {
        let rank = (u128::from(self.writes()) * u128::from(ppm))
            .div_ceil(1_000_000)
            .max(1);
        let mut below = 0_u128;
        let bin = self.bins.iter().find(|(_, count)| {
            below += u128::from(*count);
            below >= rank
        });
        bin.map(|(latency_ns, _)| *latency_ns)
    }
}
