//! Virtual time.

use std::cell::Cell;
use std::rc::Rc;

/// A clock that only moves when it is told to; clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    ns: Rc<Cell<u64>>,
}

impl Clock {
    /// Time since the start of the simulation, in ns.
    pub fn now_ns(&self) -> u64 {
        self.ns.get()
    }

    /// Lets time pass, in ns.
    pub fn advance_ns(&self, ns: u64) {
        self.ns.set(self.ns.get().saturating_add(ns));
    }

    /// Lets time pass until `ns`; a time in the past changes nothing.
    pub fn advance_to_ns(&self, ns: u64) {
        self.ns.set(self.ns.get().max(ns));
    }
}
