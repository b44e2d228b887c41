//! Statistics at full resolution, for hosts, which have enough memory.

use cardiograph_timing::{Latencies, Stalls, buckets_below};

/// Number of histogram buckets for any latency in ns and any spacing in bytes.
const BUCKETS: usize = buckets_below(64);

pub(crate) type LatencyStatistics = Latencies<BUCKETS>;
pub(crate) type StallDetector = Stalls<BUCKETS>;
