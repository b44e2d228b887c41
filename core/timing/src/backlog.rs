//! Buffer fill level over time when a trace is replayed at a constant data rate.

use crate::Replay;
use alloc::vec::Vec;

/// A vertex of the backlog curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Corner {
    /// Time since the producer started, in ns.
    pub at_ns: f64,
    /// Bytes produced and not yet written.
    pub bytes: f64,
}

/// Returns the backlog at `rate_bytes_per_s` as at most `corners_max` vertices (at least 2), in order of time.
///
/// If there are more writes than vertices, each group of consecutive writes is drawn as its maximum and its
/// last vertex, so every stall remains visible. `count` is the number of writes.
pub fn curve(
    writes: &(impl Replay + ?Sized),
    count: u64,
    rate_bytes_per_s: f64,
    corners_max: u64,
) -> Vec<Corner> {
    let group = count.div_ceil((corners_max / 2).max(1)).max(1);
    let rate = rate_bytes_per_s / 1e9;
    let (mut end_ns, mut made_bytes) = (0.0f64, 0.0f64);
    let mut highest = Corner {
        at_ns: 0.0,
        bytes: 0.0,
    };
    let mut corners = Vec::new();
    let mut index = 0;
    writes.replay(|ns, bytes| {
        let before_bytes = made_bytes;
        made_bytes += bytes as f64;
        end_ns = end_ns.max(made_bytes / rate) + ns as f64;
        let waiting_bytes = rate * end_ns - before_bytes;
        if waiting_bytes > highest.bytes {
            highest = Corner {
                at_ns: end_ns,
                bytes: waiting_bytes,
            };
        }
        index += 1;
        if index % group == 0 || index == count {
            corners.push(highest);
            corners.push(Corner {
                at_ns: end_ns,
                bytes: waiting_bytes - bytes as f64,
            });
            highest = Corner {
                at_ns: end_ns,
                bytes: 0.0,
            };
        }
    });
    corners
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stall_reaches_its_full_backlog() {
        let mut writes = alloc::vec![(1_000_000, 512); 1000];
        writes[500].0 = 50_000_000;
        // 100 kB/s for 50 ms is 5000 B, plus the block that was waiting when the stall began.
        let corners = curve(&writes[..], 1000, 100_000.0, 40);
        assert!(corners.len() <= 40);
        let highest = corners.iter().map(|c| c.bytes).fold(0.0, f64::max);
        assert!((highest - 5512.0).abs() < 1.0, "{highest}");
        assert!(corners.windows(2).all(|c| c[0].at_ns <= c[1].at_ns));
    }

    #[test]
    fn a_device_with_constant_latency_keeps_one_block_waiting() {
        let corners = curve(&[(1_000, 512); 10][..], 10, 1000.0, 100);
        assert_eq!(corners.len(), 20);
        assert!(corners.iter().all(|c| c.bytes < 513.0));
    }
}
