//! The power supply that all devices of the demo share.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Interval between checks for power.
const POLL: Duration = Duration::from_millis(20);
/// Value that ends all devices.
const ENDED: u32 = u32::MAX;

/// Even: on. Odd: off. It counts up, so that a short cut is not missed.
#[derive(Default)]
pub(super) struct Supply(AtomicU32);

/// A period with power.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Period(u32);

impl Supply {
    /// Cuts the power.
    pub(super) fn cut(&self) {
        self.0.fetch_or(1, Ordering::SeqCst);
    }

    /// Restores the power after a cut.
    pub(super) fn restore(&self) {
        let now = self.0.load(Ordering::SeqCst);
        if now % 2 == 1 && now != ENDED {
            self.0.store(now + 1, Ordering::SeqCst);
        }
    }

    /// Ends all devices.
    pub(super) fn end(&self) {
        self.0.store(ENDED, Ordering::SeqCst);
    }

    /// Returns true during a period.
    pub(super) fn is_on(&self, period: Period) -> bool {
        self.0.load(Ordering::SeqCst) == period.0
    }

    /// Waits for power. Returns `None` at the end.
    pub(super) fn wait(&self) -> Option<Period> {
        loop {
            match self.0.load(Ordering::SeqCst) {
                ENDED => return None,
                now if now % 2 == 0 => return Some(Period(now)),
                _ => std::thread::sleep(POLL),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_ends_with_its_cut() {
        let supply = Supply::default();
        let first = supply.wait().unwrap();
        assert!(supply.is_on(first));
        supply.cut();
        supply.cut();
        assert!(!supply.is_on(first));
        supply.restore();
        supply.restore();
        let second = supply.wait().unwrap();
        assert!(supply.is_on(second) && !supply.is_on(first));
        supply.end();
        supply.restore();
        assert!(supply.wait().is_none());
    }
}
