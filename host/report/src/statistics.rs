//! Statistics at full resolution, for hosts, where memory is not scarce.

use cardiograph_timing::{Latencies, Stalls, buckets_below};

/// Buckets for every latency in ns and every spacing in bytes.
const BUCKETS: usize = buckets_below(64);

pub(crate) type LatencyStatistics = Latencies<BUCKETS>;
pub(crate) type StallDetector = Stalls<BUCKETS>;
