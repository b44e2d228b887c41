//! The clocks of the two kinds of store.

use cardiograph_workload::Clock;
use std::time::{Duration, Instant};

/// The computer's monotonic clock.
#[derive(Clone, Debug)]
pub struct HostClock {
    origin: Instant,
}

impl Default for HostClock {
    /// A clock that starts now.
    fn default() -> HostClock {
        HostClock {
            origin: Instant::now(),
        }
    }
}

/// Clock readings taken to learn what a reading costs.
const READINGS: u32 = 10_000;

impl HostClock {
    /// A step that the clock resolves, and mean time between two readings in a row, both in ns. The
    /// clock may be finer than the first: it steps by no less than it takes to read.
    ///
    /// The second is what measuring adds to every write time.
    pub fn resolution_and_overhead_ns(&mut self) -> (u64, u64) {
        let begin_ns = self.now_ns();
        let (mut last_ns, mut smallest_ns) = (begin_ns, u64::MAX);
        for _ in 0..READINGS {
            let now_ns = self.now_ns();
            if now_ns > last_ns {
                smallest_ns = smallest_ns.min(now_ns - last_ns);
            }
            last_ns = now_ns;
        }
        let mean_ns = (last_ns - begin_ns) / u64::from(READINGS);
        // A clock finer than its own reading steps by about one reading.
        (smallest_ns.min(mean_ns.max(1)), mean_ns)
    }
}

impl Clock for HostClock {
    #[inline]
    fn now_ns(&mut self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn pause_ns(&mut self, ns: u64) {
        std::thread::sleep(Duration::from_nanos(ns));
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
