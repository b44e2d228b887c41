//! Time that a measurement itself takes for each operation.

use crate::HostClock;
use cardiograph_workload::{
    Activity, Fill, Flush, Observer, Operation, Phase, Store, Workload, run,
};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Number of operations that are timed.
const OPERATIONS: u32 = 10_001;

/// Time that a measurement itself takes for each operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OwnOverhead {
    /// Median latency of an operation that does nothing.
    pub latency_ns: u64,
    /// Median time from the end of such an operation to the start of the next.
    pub between_ns: u64,
}

/// Measures the overhead: runs a workload on a store that does nothing.
pub fn own_overhead(clock: &mut HostClock) -> OwnOverhead {
    let phase = Phase {
        calls_per_file: OPERATIONS,
        fill: Fill::Zeros,
        ..Phase::WRITE
    };
    let workload = Workload {
        name: "",
        study: "",
        about: "",
        phases: &[phase],
    };
    let mut times = Times(Vec::with_capacity(OPERATIONS as usize));
    let mut buffer = vec![0; workload.buffer_bytes()];
    // Neither the store nor the observer can fail.
    let _ = run(&workload, &mut Nothing(0), clock, &mut times, &mut buffer);
    times.overhead()
}

/// Start and end of each operation.
struct Times(Vec<(u64, u64)>);

impl Times {
    fn overhead(&self) -> OwnOverhead {
        let latencies = self.0.iter().map(|(start_ns, end_ns)| end_ns - start_ns);
        let gaps = self.0.windows(2).map(|pair| pair[1].0 - pair[0].1);
        OwnOverhead {
            latency_ns: median(latencies.collect()),
            between_ns: median(gaps.collect()),
        }
    }
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

impl Observer for Times {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push((operation.start_ns, operation.end_ns));
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// A store that does nothing; its only file has the given length and contains zeros.
struct Nothing(u64);

impl Store for Nothing {
    type File = ();
    type Error = Infallible;

    fn has_long_names(&self) -> bool {
        true
    }

    fn mkdir(&mut self, _: &str) -> Result<bool, Infallible> {
        Ok(true)
    }

    fn create(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }

    fn append(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }

    fn open(&mut self, _: &str, _: bool) -> Result<(), Infallible> {
        Ok(())
    }

    #[inline]
    fn write(&mut self, (): &mut (), offset_bytes: u64, data: &[u8]) -> Result<(), Infallible> {
        self.0 = offset_bytes + data.len() as u64;
        Ok(())
    }

    fn read(&mut self, (): &mut (), at: u64, buffer: &mut [u8]) -> Result<usize, Infallible> {
        let length = self.0.saturating_sub(at).min(buffer.len() as u64) as usize;
        buffer[..length].fill(0);
        Ok(length)
    }

    fn flush(&mut self, (): &mut (), _: Flush) -> Result<(), Infallible> {
        Ok(())
    }

    fn close(&mut self, (): ()) -> Result<(), Infallible> {
        Ok(())
    }

    fn remove(&mut self, _: &str) -> Result<(), Infallible> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_ignores_a_pause_of_the_computer() {
        let times = Times(vec![
            (0, 30),
            (40, 80),
            (90, 9_000),
            (9_010, 9_040),
            (9_050, 9_070),
        ]);
        let expected = OwnOverhead {
            latency_ns: 30,
            between_ns: 10,
        };
        assert_eq!(times.overhead(), expected);
        let none = Times(Vec::new()).overhead();
        assert_eq!((none.latency_ns, none.between_ns), (0, 0));
    }

    #[test]
    fn every_operation_that_does_nothing_is_timed() {
        let overhead = own_overhead(&mut HostClock::default());
        // The median of many readings takes far less, even if the computer is busy.
        assert!(overhead.latency_ns < 100_000, "{overhead:?}");
        assert!(overhead.between_ns < 100_000, "{overhead:?}");
    }
}
