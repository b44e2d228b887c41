//! Observes a run: collects the trace, shows progress and requests the end of the run.

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use crate::trust::{TrustArgs, WarmUp};
use cardiograph_report::Stability;
use cardiograph_trace::{About, Trace};
use cardiograph_workload::{Activity, Observer, Operation, OperationKind};
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
    /// The warm-up that has not ended yet.
    warm_up: Option<WarmUp>,
    /// Number of operations of the warm-up.
    warm_up_operations: u64,
    /// Start of the warm-up.
    warm_up_start_ns: Option<u64>,
    stability: Option<Stability>,
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
            warm_up: None,
            warm_up_operations: 0,
            warm_up_start_ns: None,
            stability: None,
        }
    }

    /// Leaves out the operations of the warm-up, and follows the worst case if the workload is repeated until it is
    /// stable.
    pub fn with_trust(mut self, args: &TrustArgs) -> Watch {
        self.warm_up = args.warm_up;
        self.stability = args.until_stable.then(Stability::default);
        self
    }

    /// Issues the operations at their due times.
    pub fn at(mut self, pace: Option<Pace>) -> Watch {
        self.pace = pace;
        self
    }

    /// Keeps times and offsets of the operations in temporary files next to the trace that will be written, so that a long
    /// run needs no more memory than a short one. Where this is not possible, they stay in memory.
    pub fn with_trace_at(mut self, path: Option<&Path>) -> Watch {
        if let Some(path) = path {
            // Without the files, the trace stays in memory.
            let _ = self.trace.spill_beside(path);
        }
        self
    }

    /// Returns the due time of the first operation in the trace, if the run was paced.
    pub fn origin_ns(&self) -> Option<u64> {
        let pace = self.pace?;
        let measured_ns = self.warm_up_operations as f64 * 1e9 / pace.rate_hz;
        Some(pace.origin_ns?.saturating_add(measured_ns as u64))
    }

    /// Returns the number of operations of the warm-up, which are not in the trace.
    pub fn warm_up_operations(&self) -> u64 {
        self.warm_up_operations
    }

    /// Returns the worst cases so far, if the workload is repeated until they are stable.
    pub fn stability(&self) -> Option<&Stability> {
        self.stability.as_ref()
    }

    /// Returns true unless the workload has to be repeated because its worst case is not stable.
    pub fn is_stable(&self) -> bool {
        let worst_cases = self.stability.as_ref().map(Stability::worst_cases);
        worst_cases.is_none_or(|cases| cases.is_some_and(|cases| cases.is_stable()))
    }

    /// Returns the payload of all operations so far, including those of the warm-up.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the length of the warm-up if it is a time that has not ended.
    pub fn unfinished_warm_up(&self) -> Option<Duration> {
        match self.warm_up {
            Some(WarmUp::Time(time)) => Some(time),
            _ => None,
        }
    }

    /// Returns the trace of the finished run.
    pub fn into_trace(self) -> Trace {
        self.progress.clear();
        self.trace
    }

    /// Leaves out an operation of the warm-up, to which the time limit does not apply.
    #[cold]
    fn warm_up(&mut self, warm_up: WarmUp, operation: &Operation) -> ControlFlow<()> {
        let start_ns = *self.warm_up_start_ns.get_or_insert(operation.start_ns);
        self.warm_up_operations += 1;
        let is_over = match warm_up {
            WarmUp::Operations(count) => self.warm_up_operations >= count,
            WarmUp::Time(time) => u128::from(operation.end_ns - start_ns) >= time.as_nanos(),
        };
        if is_over {
            self.warm_up = None;
        }
        self.poll_without_limit()
    }

    fn poll_without_limit(&mut self) -> ControlFlow<()> {
        self.progress.show(self.bytes);
        match self.interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
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
        self.bytes += operation.length_bytes;
        if let Some(warm_up) = self.warm_up {
            return self.warm_up(warm_up, operation);
        }
        // The clock of a run is monotonic, so no operation starts before the previous one ends.
        let pushed = self.trace.push(operation);
        debug_assert!(pushed.is_ok(), "the clock must not go backward");
        if let Some(stability) = &mut self.stability
            && operation.kind == OperationKind::Write
        {
            stability.push(operation.duration_ns());
        }
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
        if activity == Activity::Measuring && self.warm_up.is_none() {
            return self.check(now_ns, now_ns);
        }
        // The time limit does not apply while files are prepared or read back.
        self.poll_without_limit()
    }
}
