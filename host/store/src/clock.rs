//! The clocks of the two kinds of store.

use cardiograph_workload::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks a run to end, from a signal handler or another thread.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(pub Arc<AtomicBool>);

impl Interrupt {
    /// Whether the run is to end.
    pub fn is_raised(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The computer's monotonic clock.
#[derive(Clone, Debug)]
pub struct HostClock {
    origin: Instant,
    interrupt: Interrupt,
}

/// Clock readings taken to learn what a reading costs.
const READINGS: u32 = 10_000;

impl HostClock {
    /// A clock that starts now. A pause ends early once `interrupt` is raised.
    pub fn new(interrupt: Interrupt) -> HostClock {
        HostClock {
            origin: Instant::now(),
            interrupt,
        }
    }

    /// Smallest step seen, and mean time between two readings in a row, both in ns.
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
        // Short enough that an interrupt is felt at once.
        const SLICE: Duration = Duration::from_millis(20);
        let end = Instant::now() + Duration::from_nanos(ns);
        while !self.interrupt.is_raised() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            std::thread::sleep(left.min(SLICE));
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
