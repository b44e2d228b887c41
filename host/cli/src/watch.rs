//! Observes a run: collects the trace, shows progress and requests the end of the run.

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use cardiograph_trace::{About, Spill, Trace};
use cardiograph_workload::{Activity, Observer, Operation};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Interval, on the clock of the run, between checks of time limit and signals.
const CHECK_NS: u64 = 50_000_000;

/// The observer of a measurement.
pub struct Watch {
    /// Operations observed so far.
    pub trace: Trace,
    /// True once the time limit has passed.
    pub timed_out: bool,
    stop_after_ns: Option<u64>,
    /// Time of the next check on the clock of the run.
    next_check_ns: u64,
    first_start_ns: Option<u64>,
    interrupt: Interrupt,
    bytes: u64,
    progress: Progress,
    pace: Option<Pace>,
}

/// Due times of the operations.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Operations per second.
    pub rate_hz: f64,
    /// Time at which the first operation is due; known when it is about to begin.
    pub origin_ns: Option<u64>,
    issued: u64,
}

impl Pace {
    /// Creates a pace that starts with the first operation.
    pub fn of(rate_hz: f64) -> Pace {
        Pace {
            rate_hz,
            origin_ns: None,
            issued: 0,
        }
    }

    fn next_ns(&mut self, now_ns: u64) -> u64 {
        let origin_ns = *self.origin_ns.get_or_insert(now_ns);
        let due_ns = self.issued as f64 * 1e9 / self.rate_hz;
        self.issued += 1;
        origin_ns.saturating_add(due_ns as u64)
    }
}

impl Watch {
    /// Creates an observer for a run with the given payload.
    pub fn new(
        about: About,
        bytes_total: u64,
        stop_after: Option<Duration>,
        interrupt: Interrupt,
    ) -> Watch {
        Watch {
            trace: Trace::new(about),
            timed_out: false,
            stop_after_ns: stop_after.map(|time| time.as_nanos() as u64),
            next_check_ns: 0,
            first_start_ns: None,
            interrupt,
            bytes: 0,
            progress: Progress::over(bytes_total),
            pace: None,
        }
    }

    /// Issues the operations at their due times.
    pub fn at(mut self, pace: Option<Pace>) -> Watch {
        self.pace = pace;
        self
    }

    /// Keeps the times of the operations in a temporary file next to the trace that will be written, so that a long run
    /// needs no more memory than a short one. Where this is not possible, they stay in memory.
    pub fn with_trace_at(mut self, path: Option<&Path>) -> Watch {
        if let Some(spill) = path.and_then(|path| Spill::beside(path).ok()) {
            self.trace.spill_to(spill);
        }
        self
    }

    /// Returns the due time of the first operation, if the run was paced.
    pub fn origin_ns(&self) -> Option<u64> {
        self.pace.and_then(|pace| pace.origin_ns)
    }

    /// Returns the trace of the finished run.
    pub fn into_trace(self) -> Trace {
        self.progress.clear();
        self.trace
    }

    #[cold]
    fn check(&mut self, start_ns: u64, now_ns: u64) -> ControlFlow<()> {
        let first_ns = *self.first_start_ns.get_or_insert(start_ns);
        self.next_check_ns = now_ns + CHECK_NS;
        if let Some(stop_after_ns) = self.stop_after_ns {
            let end_ns = first_ns.saturating_add(stop_after_ns);
            self.timed_out = now_ns >= end_ns;
            self.next_check_ns = self.next_check_ns.min(end_ns);
        }
        self.progress.show(self.bytes);
        if self.timed_out || self.interrupt.is_raised() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Observer for Watch {
    #[inline]
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        // The clock of a run is monotonic, so no operation starts before the previous one ends.
        let pushed = self.trace.push(operation);
        debug_assert!(pushed.is_ok(), "the clock must not go backward");
        self.bytes += operation.length_bytes;
        if operation.end_ns >= self.next_check_ns {
            return self.check(operation.start_ns, operation.end_ns);
        }
        ControlFlow::Continue(())
    }

    fn due_ns(&mut self, now_ns: u64) -> Option<u64> {
        self.pace.as_mut().map(|pace| pace.next_ns(now_ns))
    }

    fn is_paced(&self) -> bool {
        self.pace.is_some()
    }

    fn poll(&mut self, activity: Activity, now_ns: u64) -> ControlFlow<()> {
        if activity == Activity::Measuring {
            return self.check(now_ns, now_ns);
        }
        // The time limit does not apply while files are prepared or read back.
        self.progress.show(self.bytes);
        if self.interrupt.is_raised() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
