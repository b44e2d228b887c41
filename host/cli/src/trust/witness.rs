//! A thread that only sleeps, and thereby notices when the computer does not run its threads in time.

use cardiograph_report::{Delay, Witnessed};
use cardiograph_store::HostClock;
use cardiograph_workload::Clock;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two wake-ups.
const STEP: Duration = Duration::from_millis(1);
/// Lateness from which on a wake-up is a delay.
const LATE_NS: u64 = STEP.as_nanos() as u64;
/// Wake-ups between two readings of the CPU steal, which grows in steps of 10 ms.
const WAKE_UPS_PER_READING: u64 = 50;
/// Maximum number of delays that are kept.
const DELAYS_MAX: usize = 1 << 16;

/// The running thread.
pub struct Witness {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Witnessed>,
}

impl Witness {
    /// Starts the thread, on the clock of the operations. Returns `None` if the system permits no further thread.
    pub fn start(clock: HostClock) -> Option<Witness> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let builder = std::thread::Builder::new().name("witness".to_string());
        let thread = builder.spawn(move || watch(clock, &flag)).ok()?;
        Some(Witness { is_over, thread })
    }

    /// Ends the thread, and returns what it recorded.
    pub fn end(self) -> Option<Witnessed> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}

fn watch(mut clock: HostClock, is_over: &AtomicBool) -> Witnessed {
    let mut record = Record::new(clock.now_ns(), cardiograph_system::steal_ns());
    let mut asleep_ns = clock.now_ns();
    loop {
        std::thread::sleep(STEP);
        record.woke(asleep_ns, clock.now_ns());
        let is_last = is_over.load(Ordering::Relaxed);
        if is_last
            || record
                .witnessed
                .wake_ups
                .is_multiple_of(WAKE_UPS_PER_READING)
        {
            let steal_ns = cardiograph_system::steal_ns();
            record.read_steal(clock.now_ns(), steal_ns);
        }
        if is_last {
            return record.witnessed;
        }
        asleep_ns = clock.now_ns();
    }
}

/// Delays noticed so far.
struct Record {
    witnessed: Witnessed,
    /// Shorter delays are discarded.
    kept_from_ns: u64,
    /// Time of the last reading of the steal.
    read_ns: u64,
    /// Steal at the last reading.
    steal_ns: Option<u64>,
}

impl Record {
    fn new(now_ns: u64, steal_ns: Option<u64>) -> Record {
        Record {
            witnessed: Witnessed {
                step_ns: STEP.as_nanos() as u64,
                steal_ns: steal_ns.map(|_| 0),
                ..Witnessed::default()
            },
            kept_from_ns: LATE_NS,
            read_ns: now_ns,
            steal_ns,
        }
    }

    /// Records a wake-up.
    fn woke(&mut self, asleep_ns: u64, awake_ns: u64) {
        let slept_ns = awake_ns.saturating_sub(asleep_ns);
        let late_ns = slept_ns.saturating_sub(self.witnessed.step_ns);
        self.witnessed.wake_ups += 1;
        self.witnessed.worst_lateness_ns = self.witnessed.worst_lateness_ns.max(late_ns);
        if late_ns < LATE_NS {
            return;
        }
        self.witnessed.late_wake_ups += 1;
        let kept_from_ns = self.kept_from_ns;
        let delays = &mut self.witnessed.delays.witness;
        if late_ns >= kept_from_ns {
            delays.push(Delay {
                start_ns: asleep_ns,
                end_ns: awake_ns,
                lost_ns: late_ns,
            });
        }
        if delays.len() > DELAYS_MAX {
            // A run of days on a busy computer must not fill the memory.
            self.kept_from_ns *= 2;
            delays.retain(|delay| delay.lost_ns >= 2 * kept_from_ns);
        }
    }

    /// Records a reading of the steal.
    fn read_steal(&mut self, now_ns: u64, steal_ns: Option<u64>) {
        let before = (self.read_ns, self.steal_ns);
        (self.read_ns, self.steal_ns) = (now_ns, steal_ns);
        let (Some(before_ns), Some(steal_ns)) = (before.1, steal_ns) else {
            return;
        };
        let stolen_ns = steal_ns.saturating_sub(before_ns);
        if let Some(total_ns) = &mut self.witnessed.steal_ns {
            *total_ns += stolen_ns;
        }
        let delays = &mut self.witnessed.delays.steal;
        if stolen_ns > 0 && delays.len() < DELAYS_MAX {
            delays.push(Delay {
                start_ns: before.0,
                end_ns: now_ns,
                lost_ns: stolen_ns,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn a_wake_up_that_is_late_by_a_step_is_a_delay() {
        let mut record = Record::new(0, None);
        record.woke(0, 2 * MS - 1);
        record.woke(2 * MS, 4 * MS);
        record.woke(5 * MS, 306 * MS);
        let witnessed = record.witnessed;
        let delay = |start_ns, end_ns, lost_ns| Delay {
            start_ns,
            end_ns,
            lost_ns,
        };
        let expected = [delay(2 * MS, 4 * MS, MS), delay(5 * MS, 306 * MS, 300 * MS)];
        assert_eq!(witnessed.delays.witness, expected);
        assert_eq!((witnessed.wake_ups, witnessed.late_wake_ups), (3, 2));
        assert_eq!(witnessed.worst_lateness_ns, 300 * MS);
        assert_eq!(witnessed.steal_ns, None);
    }

    #[test]
    fn steal_lies_between_two_readings() {
        let mut record = Record::new(7, Some(500 * MS));
        record.read_steal(50 * MS, Some(500 * MS));
        record.read_steal(100 * MS, Some(520 * MS));
        // Some kernels let the count decrease a little.
        record.read_steal(150 * MS, Some(510 * MS));
        record.read_steal(200 * MS, None);
        record.read_steal(250 * MS, Some(540 * MS));
        let stolen = Delay {
            start_ns: 50 * MS,
            end_ns: 100 * MS,
            lost_ns: 20 * MS,
        };
        assert_eq!(record.witnessed.delays.steal, [stolen]);
        assert_eq!(record.witnessed.steal_ns, Some(20 * MS));
    }

    #[test]
    fn the_longest_delays_are_kept() {
        let mut record = Record::new(0, None);
        let count = 3 * DELAYS_MAX as u64;
        for index in 0..count {
            // 1 to 4 ms late, and once an hour.
            let late_ns = match index {
                100 => 3_600_000 * MS,
                _ => (1 + index % 4) * MS,
            };
            record.woke(0, MS + late_ns);
        }
        let kept = record.witnessed.delays.witness;
        assert!(kept.len() <= DELAYS_MAX, "{}", kept.len());
        assert!(kept.iter().any(|delay| delay.lost_ns == 3_600_000 * MS));
        let fours = kept.iter().filter(|delay| delay.lost_ns == 4 * MS);
        assert_eq!(fours.count() as u64, count / 4);
        assert_eq!(record.witnessed.late_wake_ups, count);
    }

    #[test]
    fn the_thread_wakes_and_ends() {
        let witness = Witness::start(HostClock::default()).unwrap();
        std::thread::sleep(Duration::from_millis(20));
        let witnessed = witness.end().unwrap();
        assert!(witnessed.wake_ups > 0);
        assert_eq!(witnessed.step_ns, MS);
    }
}
