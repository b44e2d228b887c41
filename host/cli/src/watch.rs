//! Watches a run: keeps the trace, shows progress, says when to stop.

use crate::interrupt::Interrupt;
use crate::progress::Progress;
use cardiograph_trace::{About, Trace};
use cardiograph_workload::{Doing, Observer, Operation};
use std::ops::ControlFlow;
use std::time::Duration;

/// Time of the run from one look at the rest of the world to the next.
const LOOK_NS: u64 = 50_000_000;

/// The observer of a measurement.
pub struct Watch {
    /// Every operation so far.
    pub trace: Trace,
    /// The time allowed was up.
    pub timed_out: bool,
    stop_after_ns: Option<u64>,
    /// The clock of the run when the next look is due.
    next_look_ns: u64,
    first_start_ns: Option<u64>,
    interrupt: Interrupt,
    bytes: u64,
    progress: Progress,
}

impl Watch {
    /// Watches a run of so many payload bytes.
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
            next_look_ns: 0,
            first_start_ns: None,
            interrupt,
            bytes: 0,
            progress: Progress::over(bytes_total),
        }
    }

    /// The trace, once the run is over.
    pub fn into_trace(self) -> Trace {
        self.progress.clear();
        self.trace
    }

    #[cold]
    fn look(&mut self, start_ns: u64, now_ns: u64) -> ControlFlow<()> {
        let first_ns = *self.first_start_ns.get_or_insert(start_ns);
        self.next_look_ns = now_ns + LOOK_NS;
        if let Some(stop_after_ns) = self.stop_after_ns {
            let end_ns = first_ns.saturating_add(stop_after_ns);
            self.timed_out = now_ns >= end_ns;
            self.next_look_ns = self.next_look_ns.min(end_ns);
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
        // The clock of a run never goes back, so every operation follows the last.
        let pushed = self.trace.push(operation);
        debug_assert!(pushed.is_ok(), "the clock went back");
        self.bytes += operation.length_bytes;
        if operation.end_ns >= self.next_look_ns {
            return self.look(operation.start_ns, operation.end_ns);
        }
        ControlFlow::Continue(())
    }

    fn wait(&mut self, doing: Doing, now_ns: u64) -> ControlFlow<()> {
        if doing == Doing::Measuring {
            return self.look(now_ns, now_ns);
        }
        // The time allowed is for measuring.
        self.progress.show(self.bytes);
        if self.interrupt.is_raised() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
