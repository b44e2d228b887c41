//! Clocks of the two kinds of store.

use cardiograph_workload::Clock;
use std::time::{Duration, Instant};

/// The host's monotonic clock.
#[derive(Clone, Debug)]
pub struct HostClock {
    origin: Instant,
}

impl Default for HostClock {
    /// Creates a clock that starts now.
    fn default() -> HostClock {
        HostClock {
            origin: Instant::now(),
        }
    }
}

/// Minimum number of clock readings used to measure the time of a single reading.
const READINGS_MIN: u64 = 10_000;

/// End of a pause that is spent awake, so that it ends in time.
const AWAKE_NS: u64 = 100_000;

impl HostClock {
    /// Returns the smallest step observed between two readings (an upper bound of the clock's resolution),
    /// and the mean time between two consecutive readings, both in ns.
    ///
    /// Every measured latency includes about one such reading time.
    pub fn resolution_and_overhead_ns(&mut self) -> (u64, u64) {
        resolution_and_overhead_ns(self)
    }
}

fn resolution_and_overhead_ns(clock: &mut impl Clock) -> (u64, u64) {
    let begin_ns = clock.now_ns();
    let (mut last_ns, mut step_ns) = (begin_ns, u64::MAX);
    let mut readings = 0;
    // A coarse clock may need more readings before its value changes.
    while readings < READINGS_MIN || step_ns == u64::MAX {
        let now_ns = clock.now_ns();
        if now_ns > last_ns {
            step_ns = step_ns.min(now_ns - last_ns);
        }
        last_ns = now_ns;
        readings += 1;
    }
    (step_ns, (last_ns - begin_ns) / readings)
}

impl Clock for HostClock {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn pause_ns(&mut self, ns: u64) {
        let end_ns = self.now_ns().saturating_add(ns);
        // The kernel wakes a thread late by its timer slack and more; the rest is spent waiting awake.
        if let Some(asleep_ns) = ns.checked_sub(AWAKE_NS) {
            std::thread::sleep(Duration::from_nanos(asleep_ns));
        }
        while self.now_ns() < end_ns {
            std::hint::spin_loop();
        }
    }
}

/// The virtual clock of a simulated card.
#[derive(Clone, Debug)]
pub struct CardClock(pub cardiograph_sim_card::Clock);

impl Clock for CardClock {
    fn now_ns(&mut self) -> u64 {
        self.0.now_ns()
    }

    fn pause_ns(&mut self, ns: u64) {
        self.0.advance_ns(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A clock that takes `read_ns` to read and counts in steps of `step_ns`.
    struct Coarse {
        ns: u64,
        read_ns: u64,
        step_ns: u64,
    }

    impl Clock for Coarse {
        fn now_ns(&mut self) -> u64 {
            self.ns += self.read_ns;
            self.ns / self.step_ns * self.step_ns
        }

        fn pause_ns(&mut self, ns: u64) {
            self.ns += ns;
        }
    }

    #[test]
    fn resolution_of_a_coarse_clock_is_its_step() {
        for (read_ns, step_ns, expected) in [
            (20, 1000, (1000, 20)),
            (20, 1_000_000, (1_000_000, 20)),
            (30, 1, (30, 30)),
        ] {
            let mut clock = Coarse {
                ns: 0,
                read_ns,
                step_ns,
            };
            let (resolution_ns, overhead_ns) = resolution_and_overhead_ns(&mut clock);
            assert_eq!(resolution_ns, expected.0);
            assert!(overhead_ns.abs_diff(expected.1) <= 1, "{overhead_ns} ns");
        }
    }
}
