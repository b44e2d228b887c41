//! Signals and progress of calls that have released the GIL.

use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Time between two looks at the interpreter.
const INTERVAL: Duration = Duration::from_millis(50);

/// A Python callable that is called with the steps done and their total, or nothing.
pub type Callback = Option<Py<PyAny>>;

/// Looks for signals and reports progress at most every 50 ms.
pub struct Watch<'a> {
    callback: &'a Callback,
    total: u64,
    last: Instant,
    raised: Option<PyErr>,
}

impl<'a> Watch<'a> {
    /// Starts a call of `total` steps.
    pub fn new(callback: &'a Callback, total: u64) -> Watch<'a> {
        Watch {
            callback,
            total,
            last: Instant::now(),
            raised: None,
        }
    }

    /// Reports the steps done; `Break` after a signal, or if the callable raised an exception.
    pub fn show(&mut self, done: u64) -> ControlFlow<()> {
        if self.raised.is_some() {
            return ControlFlow::Break(());
        }
        if self.last.elapsed() < INTERVAL {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        let asked = Python::attach(|py| {
            py.check_signals()?;
            match self.callback {
                Some(callback) => callback.call1(py, (done, self.total)).map(drop),
                None => Ok(()),
            }
        });
        match asked {
            Ok(()) => ControlFlow::Continue(()),
            Err(raised) => {
                self.raised = Some(raised);
                ControlFlow::Break(())
            }
        }
    }

    /// Returns the exception that ended the call, if there is one.
    pub fn finish(self) -> PyResult<()> {
        self.raised.map_or(Ok(()), Err)
    }
}
