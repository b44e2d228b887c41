//! Latencies of the writes to the storage device.

use cardiograph_timing::{Histogram, buckets_below};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// Number of histogram buckets: resolves latencies below 2^36 ns, about a minute.
const BUCKETS: usize = buckets_below(36);

/// Statistics of the writes of a recording. A write consists of consecutive blocks, and lasts until these
/// blocks are durable.
#[derive(Default)]
pub(crate) struct Writes {
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    latencies_ns: Histogram<BUCKETS>,
    longest_ns: u64,
    bytes: u64,
}

/// Figures of the writes so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WriteFigures {
    /// Number of writes.
    pub writes: u64,
    /// Total number of bytes written.
    pub bytes: u64,
    /// Median latency in ns.
    pub median_ns: u64,
    /// 99th percentile of the latency in ns.
    pub p99_ns: u64,
    /// Longest latency in ns.
    pub longest_ns: u64,
}

impl Writes {
    /// Adds a write.
    pub(crate) fn add(&self, latency: Duration, bytes: u64) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let mut inner = self.lock();
        inner.latencies_ns.push(ns);
        inner.longest_ns = inner.longest_ns.max(ns);
        inner.bytes += bytes;
    }

    pub(super) fn figures(&self) -> WriteFigures {
        let inner = self.lock();
        let percentile = |ppm| inner.latencies_ns.percentile(ppm).unwrap_or(0);
        WriteFigures {
            writes: inner.latencies_ns.total(),
            bytes: inner.bytes,
            median_ns: percentile(500_000),
            p99_ns: percentile(990_000),
            longest_ns: inner.longest_ns,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|held| held.into_inner())
    }
}
