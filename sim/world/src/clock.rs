//! Virtual time.

use std::cell::Cell;
use std::rc::Rc;

/// A clock that moves only when it is advanced; clones share the same time.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    ns: Rc<Cell<u64>>,
}

impl Clock {
    /// Returns the time since the start of the simulation, in ns.
    pub fn now_ns(&self) -> u64 {
        self.ns.get()
    }

    /// Advances the clock by `ns`.
    pub fn advance_ns(&self, ns: u64) {
        self.ns.set(self.ns.get().saturating_add(ns));
    }

    /// Advances the clock to `ns`; has no effect if that time has passed.
    pub fn advance_to_ns(&self, ns: u64) {
        self.ns.set(self.ns.get().max(ns));
    }
}
