//! 32-bit counters, which wrap to 0: micros() after 71.6 min, millis() after 49.7 days.

use super::calendar::DAY_NS;
use super::columns::{MICROSECOND, MILLISECOND, Unit};

/// Continues the times of a counter across its wraps.
pub(super) struct Unwrapped {
    /// Time in ns after which the counter wraps; `None` if it does not.
    period_ns: Option<u64>,
    last_ns: u64,
    lost_ns: u64,
    /// Number of wraps.
    pub wraps: u64,
}

impl Unwrapped {
    /// A 32-bit counter in this unit; other units than us and ms do not wrap.
    pub(super) fn counter(unit: Unit) -> Unwrapped {
        let is_counted = unit == MICROSECOND || unit == MILLISECOND;
        Unwrapped::after(is_counted.then(|| 10_u64.pow(unit.power.unsigned_abs()) << 32))
    }

    /// A time of day without a date, which wraps at midnight.
    pub(super) fn day() -> Unwrapped {
        Unwrapped::after(Some(DAY_NS))
    }

    /// A clock that does not wrap.
    pub(super) fn endless() -> Unwrapped {
        Unwrapped::after(None)
    }

    fn after(period_ns: Option<u64>) -> Unwrapped {
        Unwrapped {
            period_ns,
            last_ns: 0,
            lost_ns: 0,
            wraps: 0,
        }
    }

    /// Returns the time since the counter was first 0. A small step back does not count as a wrap and is returned as it
    /// is.
    pub(super) fn time_ns(&mut self, counted_ns: u64) -> u64 {
        if let Some(period_ns) = self.period_ns {
            let back_ns = self.last_ns.saturating_sub(counted_ns);
            // A counter that restarts loses most of its range.
            let step_max_ns = match period_ns {
                DAY_NS => period_ns / 2,
                _ => period_ns / 64,
            };
            let step_ns = period_ns.saturating_sub(back_ns);
            if step_ns < step_max_ns && self.last_ns <= period_ns {
                self.wraps += 1;
                self.lost_ns = self.lost_ns.saturating_add(period_ns);
            }
        }
        self.last_ns = counted_ns;
        self.lost_ns.saturating_add(counted_ns)
    }

    /// Returns a note if the counter wrapped.
    pub(super) fn note(&self) -> Option<String> {
        let times = match self.wraps {
            1 => "once".to_owned(),
            wraps => format!("{wraps} times"),
        };
        (self.wraps > 0).then(|| {
            format!(
                "The clock of the file began again at 0 {times}; the times after that were continued."
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_continues_after_its_end() {
        let mut micros = Unwrapped::counter(MICROSECOND);
        let wrap = 1 << 32;
        for (counted_us, time_us) in [
            (wrap - 1000, wrap - 1000),
            (500, wrap + 500),
            (400, wrap + 400),
            (wrap - 1, 2 * wrap - 1),
            (7, 2 * wrap + 7),
        ] {
            assert_eq!(micros.time_ns(counted_us * 1000), time_us * 1000);
        }
        assert_eq!(micros.wraps, 2);
    }
}
