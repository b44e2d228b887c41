//! The reason why no recording has started, for the server.

use cardiograph_server::Actions;
use core::cell::RefCell;
use core::fmt;

/// Shared by the recorder's task and the server's tasks, which run on one executor.
pub struct Fault<E>(RefCell<Option<E>>);

impl<E> Fault<E> {
    /// Returns a state without a fault.
    pub const fn new() -> Fault<E> {
        Fault(RefCell::new(None))
    }

    /// Notes why no recording has started.
    pub fn set(&self, error: Option<E>) {
        self.0.replace(error);
    }
}

impl<E> Default for Fault<E> {
    fn default() -> Self {
        Fault::new()
    }
}

impl<E: fmt::Display> Actions for Fault<E> {
    fn write_fault(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        match &*self.0.borrow() {
            Some(error) => write!(text, "{error}"),
            None => Ok(()),
        }
    }
}
