//! Signals and progress of calls that have released the GIL.

use crate::error::error;
use cardiograph_trace::StopFlag;
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Time between two looks at the interpreter.
const INTERVAL: Duration = Duration::from_millis(50);

/// A Python callable that is called with the steps done and their total, or nothing.
pub type Callback = Option<Py<PyAny>>;

/// Looks for signals and reports progress: at the first step, then at most every 50 ms, and at the end of a call that
/// succeeded.
pub struct Watch<'a> {
    callback: &'a Callback,
    total: u64,
    last: Option<Instant>,
    raised: Option<PyErr>,
}

impl<'a> Watch<'a> {
    /// Starts a call of `total` steps.
    pub fn new(callback: &'a Callback, total: u64) -> Watch<'a> {
        Watch {
            callback,
            total,
            last: None,
            raised: None,
        }
    }

    /// Reports the steps done; `Break` after a signal, or if the callable raised an exception.
    pub fn show(&mut self, done: u64) -> ControlFlow<()> {
        if self.raised.is_some() {
            return ControlFlow::Break(());
        }
        if self.last.is_some_and(|last| last.elapsed() < INTERVAL) {
            return ControlFlow::Continue(());
        }
        self.last = Some(Instant::now());
        match self.report(done) {
            Ok(()) => ControlFlow::Continue(()),
            Err(raised) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
        }
    }

    /// Ends the call: returns its result, or the exception that a signal or the callable raised. If the call succeeded,
    /// the last report states that all steps are done.
    pub fn end<T>(self, result: PyResult<T>) -> PyResult<T> {
        match self.raised {
            Some(raised) => Err(raised),
            None => {
                let value = result?;
                self.report(self.total)?;
                Ok(value)
            }
        }
    }

    fn report(&self, done: u64) -> PyResult<()> {
        Python::attach(|py| {
            py.check_signals()?;
            match self.callback {
                Some(callback) => callback.call1(py, (done, self.total)).map(drop),
                None => Ok(()),
            }
        })
    }
}

/// A computation on a thread of its own.
#[derive(Default)]
pub struct Job {
    done: AtomicU64,
    stop: StopFlag,
}

impl Job {
    /// Returns the steps done.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Reports the steps done. If the call was stopped, unwinds the thread.
    pub fn report(&self, done: u64) {
        self.done.store(done, Ordering::Relaxed);
        self.stop.unwind_if_raised();
    }

    /// Returns the flag that is raised when the call is stopped.
    pub fn stop(&self) -> StopFlag {
        self.stop.clone()
    }
}

/// Runs `work` on a thread of its own, while this thread looks for signals and reports progress. A call that is stopped
/// returns at once; its thread ends when it next reports, or at the next part of a trace with the job's flag.
pub fn in_background<T: Send + 'static>(
    mut watch: Watch<'_>,
    work: impl FnOnce(&Job) -> PyResult<T> + Send + 'static,
) -> PyResult<T> {
    let job = Arc::new(Job::default());
    let stopped = || Err(error("the call was stopped; call again"));
    if watch.show(0).is_break() {
        return watch.end(stopped());
    }
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::spawn({
        let job = Arc::clone(&job);
        // A call that was stopped receives nothing.
        move || drop(sender.send(work(&job)))
    });
    loop {
        match receiver.recv_timeout(INTERVAL) {
            Ok(result) => return watch.end(result),
            Err(RecvTimeoutError::Timeout) => (),
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => resume_unwind(panic),
                Ok(()) => return watch.end(stopped()),
            },
        }
        if watch.show(job.done()).is_break() {
            job.stop.raise();
            return watch.end(stopped());
        }
    }
}
