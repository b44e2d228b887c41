//! Writes issued at their due times, as by a data logger whose samples do not wait.
//!
//! A benchmark that issues the next write when the last one has returned (closed loop) does not notice how many
//! samples would have had to wait behind a stall. In an open loop, write `i` is due at `origin + i / rate`, whether or
//! not the writes before it have returned, and its latency counts from there. Its payload was produced in the interval
//! before, so that the backlog at the end of write `i` is `rate * b * (end - origin) + b - i * b`.

use crate::report::{Report, latencies_of};
use crate::statistics::LatencyStatistics;
use crate::summary::Latency;
use crate::writes::Writes;
use cardiograph_timing::Replay;
use cardiograph_timing::sustained::sustained_rates_bytes_per_s;
use serde::Serialize;

/// Deviation of the sustained rate from the rate of the open loop within which the two runs agree.
const TOLERANCE: f64 = 0.1;

/// Lateness up to which a write counts as begun in time, in ns: how late a computer may wake a thread.
const LATE_NS: u64 = 1_000_000;

/// Figures of writes issued at their due times.
#[derive(Clone, Debug, Serialize)]
pub struct OpenLoop {
    /// Writes per second.
    pub rate_hz: f64,
    /// Payload per second.
    pub rate_bytes_per_s: f64,
    /// Latencies from the due time to the end of the write.
    pub response_us: Latency,
    /// Number of writes that began more than 1 ms after their due time.
    pub late_writes: u64,
    /// Largest payload that was produced and not yet written.
    pub backlog_bytes_max: f64,
    /// The same workload without due times, measured before.
    pub closed_loop: ClosedLoop,
    /// True if the closed loop's sustained rate with a buffer as large as the largest backlog differs from the rate by
    /// less than 10 %.
    pub agrees: bool,
}

/// Figures of the same workload without due times.
#[derive(Clone, Debug, Serialize)]
pub struct ClosedLoop {
    /// Latencies of the writes.
    pub latency_us: Latency,
    /// Largest backlog that these latencies cause at the rate of the open loop.
    pub backlog_bytes_max: f64,
    /// Rate that these latencies sustain with a buffer as large as the largest backlog of the open loop.
    pub sustained_bytes_per_s: f64,
}

/// Computes the figures of an open loop whose first write was due at `origin_ns`, and compares it with a closed loop.
/// All writes have the same payload. Returns `None` without writes.
pub fn open_loop(open: &Report, closed: &Report, rate_hz: f64, origin_ns: u64) -> Option<OpenLoop> {
    let (trace, closed_trace) = (open.trace()?, closed.trace()?);
    let payload_bytes = Writes::of(trace).uniform_bytes()? as f64;
    let rate_bytes_per_s = rate_hz * payload_bytes;
    let mut response = Box::<LatencyStatistics>::default();
    let (mut backlog_bytes_max, mut late_writes) = (0.0f64, 0);
    for (index, operation) in trace.operations().enumerate() {
        let due_ns = origin_ns + (index as f64 * 1e9 / rate_hz) as u64;
        response.push(
            operation.end_ns.saturating_sub(due_ns),
            operation.length_bytes,
        );
        late_writes += u64::from(operation.start_ns > due_ns + LATE_NS);
        let elapsed_s = operation.end_ns.saturating_sub(origin_ns) as f64 / 1e9;
        // A write that ends before the next one is due leaves less than its own payload.
        let produced_bytes = rate_bytes_per_s * elapsed_s + payload_bytes;
        backlog_bytes_max = backlog_bytes_max.max(produced_bytes - index as f64 * payload_bytes);
    }
    let writes = Writes::of(closed_trace);
    let latencies = latencies_of(&writes);
    let buffer_bytes = backlog_bytes_max.ceil() as u64;
    let sustained = sustained_rates_bytes_per_s(&writes, &latencies, &[buffer_bytes]);
    let sustained_bytes_per_s = sustained.first().copied().unwrap_or(0.0);
    let closed_loop = ClosedLoop {
        latency_us: closed.summary.latency_us.clone(),
        backlog_bytes_max: rounded(backlog_bytes(&writes, rate_bytes_per_s)),
        sustained_bytes_per_s: rounded(sustained_bytes_per_s),
    };
    Some(OpenLoop {
        rate_hz,
        rate_bytes_per_s,
        response_us: latency(&response),
        late_writes,
        backlog_bytes_max: rounded(backlog_bytes_max),
        agrees: (sustained_bytes_per_s / rate_bytes_per_s - 1.0).abs() < TOLERANCE,
        closed_loop,
    })
}

/// Returns the largest backlog when writes with these latencies follow a producer, as in `cardiograph_timing`.
fn backlog_bytes(writes: &Writes, rate_bytes_per_s: f64) -> f64 {
    let rate = rate_bytes_per_s / 1e9;
    let (mut end_ns, mut made_bytes, mut largest_bytes) = (0.0f64, 0.0f64, 0.0f64);
    writes.replay(|ns, bytes| {
        let before_bytes = made_bytes;
        made_bytes += bytes as f64;
        end_ns = end_ns.max(made_bytes / rate) + ns as f64;
        largest_bytes = largest_bytes.max(rate * end_ns - before_bytes);
    });
    largest_bytes
}

fn latency(latencies: &LatencyStatistics) -> Latency {
    let us = |ns: u64| ns as f64 / 1e3;
    let percentile = |ppm: u32| {
        let is_exceeded = latencies.count() * u64::from(1_000_000 - ppm) >= 1_000_000;
        latencies.percentile_ns(ppm).filter(|_| is_exceeded).map(us)
    };
    let mean_ns = latencies.mean_ns();
    Latency {
        min: latencies.min_ns().map(us),
        mean: mean_ns.map(us),
        median: latencies.percentile_ns(500_000).map(us),
        p90: percentile(900_000),
        p99: percentile(990_000),
        p99_9: percentile(999_000),
        p99_99: percentile(999_900),
        worst_case: latencies.max_ns().map(us),
    }
}

fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures_of;
    use cardiograph_trace::{About, Loaded, Operation, OperationKind, Trace};

    /// Runs writes with the given latencies on a clock, paced or not.
    fn report(latencies_us: &[u64], interval_us: Option<u64>) -> Report {
        let mut trace = Trace::new(About::default());
        let mut now_ns = 5_000;
        for (index, latency_us) in (0..).zip(latencies_us) {
            let due_ns = interval_us.map_or(0, |us| 5_000 + index * us * 1000);
            let start_ns = due_ns.max(now_ns);
            now_ns = start_ns + latency_us * 1000;
            let operation = Operation {
                kind: OperationKind::Write,
                file: 0,
                offset_bytes: index * 100,
                length_bytes: 100,
                start_ns,
                end_ns: now_ns,
            };
            trace.push(&operation).unwrap();
        }
        figures_of(Loaded::Trace(trace), None)
    }

    /// One stall of 100 ms among writes of 1 ms, one due every 10 ms: the writes behind it are late by 90, 81, 72 ms
    /// and so on, until the backlog is written.
    #[test]
    fn writes_behind_a_stall_are_late_from_their_due_times() {
        let mut latencies_us = vec![1_000; 200];
        latencies_us[50] = 100_000;
        let open = report(&latencies_us, Some(10_000));
        let closed = report(&latencies_us, None);
        let figures = open_loop(&open, &closed, 100.0, 5_000).unwrap();
        assert_eq!(figures.rate_bytes_per_s, 10_000.0);
        assert_eq!(figures.response_us.worst_case, Some(100_000.0));
        // By hand: the writes due 10, 20, ... ms after the stalled one begin 90, 81, ..., 9 ms late.
        assert_eq!(figures.late_writes, 10);
        // 100 ms at 10 kB/s, and the payload of the stalled write itself.
        assert!(
            (figures.backlog_bytes_max - 1_100.0).abs() < 0.01,
            "{figures:?}"
        );
        assert!((figures.closed_loop.backlog_bytes_max - 1_100.0).abs() < 0.01);
        assert!((figures.closed_loop.sustained_bytes_per_s - 10_000.0).abs() < 20.0);
        assert!(figures.agrees);
        // The closed loop sees one slow write; the open loop eleven: 100, 91, 82 ms and so on.
        assert!(figures.closed_loop.latency_us.p99 < Some(2_000.0));
        assert!(figures.response_us.p99 > Some(80_000.0));
    }

    #[test]
    fn a_stall_that_only_one_run_had_does_not_agree() {
        let calm = vec![1_000; 200];
        let mut stalled = calm.clone();
        stalled[50] = 100_000;
        let open = report(&stalled, Some(10_000));
        let closed = report(&calm, None);
        let figures = open_loop(&open, &closed, 100.0, 5_000).unwrap();
        assert!(!figures.agrees, "{figures:?}");
    }
}
