//! Signals and progress of calls that have released the GIL.

use pyo3::prelude::*;
use std::ops::ControlFlow;
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
