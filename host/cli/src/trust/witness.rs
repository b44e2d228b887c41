//! A thread that only sleeps, and thereby notices when the computer does not run its threads in time.

use cardiograph_report::{Delay, Witnessed};
use cardiograph_store::HostClock;
use cardiograph_system::RunQueue;
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
/// Shortest wait for a processor that is kept. It can explain a tenth of the shortest excess of a slow operation.
const QUEUED_NS: u64 = LATE_NS / 10;
/// Maximum number of delays that are kept.
const DELAYS_MAX: usize = 1 << 16;

/// The running thread.
pub struct Witness {
    is_over: Arc<AtomicBool>,
    thread: JoinHandle<Witnessed>,
}

impl Witness {
    /// Starts the thread, on the clock of the operations, which this thread will run. Returns `None` if the system permits
    /// no further thread.
    pub fn start(clock: HostClock) -> Option<Witness> {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        let queue = RunQueue::of_this_thread();
        let builder = std::thread::Builder::new().name("witness".to_string());
        let thread = builder.spawn(move || watch(clock, queue, &flag)).ok()?;
        Some(Witness { is_over, thread })
    }

    /// Ends the thread, and returns what it recorded.
    pub fn end(self) -> Option<Witnessed> {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}

fn watch(mut clock: HostClock, queue: Option<RunQueue>, is_over: &AtomicBool) -> Witnessed {
    let mut record = Record::new(clock.now_ns(), cardiograph_system::steal_ns());
    let waited_ns = || queue.as_ref().and_then(RunQueue::waited_ns);
    record.queue = Count::new(clock.now_ns(), waited_ns());
    let mut asleep_ns = clock.now_ns();
    loop {
        std::thread::sleep(STEP);
        record.woke(asleep_ns, clock.now_ns());
        let waited_ns = waited_ns();
        record.read_queue(clock.now_ns(), waited_ns);
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

/// A time that the system counts.
#[derive(Default)]
struct Count {
    /// Time of the last reading.
    read_ns: u64,
    /// Value at the last reading, if the system counts it.
    value_ns: Option<u64>,
}

impl Count {
    fn new(read_ns: u64, value_ns: Option<u64>) -> Count {
        Count { read_ns, value_ns }
    }

    /// Takes the next reading; returns the increase, and the time in which it was counted.
    fn next(&mut self, read_ns: u64, value_ns: Option<u64>) -> Option<Delay> {
        let before = std::mem::replace(self, Count::new(read_ns, value_ns));
        Some(Delay {
            start_ns: before.read_ns,
            end_ns: read_ns,
            lost_ns: value_ns?.saturating_sub(before.value_ns?),
        })
    }
}

/// Length of the shortest delay that is kept.
struct Shortest(u64);

impl Shortest {
    /// Adds a delay to a list if it is long enough.
    fn keep(&mut self, delay: Delay, list: &mut Vec<Delay>) {
        if delay.lost_ns >= self.0 {
            list.push(delay);
        }
        // A run of days on a busy computer must not fill the memory.
        while list.len() > DELAYS_MAX {
            self.0 *= 2;
            list.retain(|delay| delay.lost_ns >= self.0);
        }
    }
}

/// Delays noticed so far.
struct Record {
    witnessed: Witnessed,
    late_from: Shortest,
    steal: Count,
    steal_from: Shortest,
    queue: Count,
    queue_from: Shortest,
}

impl Record {
    fn new(now_ns: u64, steal_ns: Option<u64>) -> Record {
        Record {
            witnessed: Witnessed {
                step_ns: STEP.as_nanos() as u64,
                ..Witnessed::default()
            },
            late_from: Shortest(LATE_NS),
            steal: Count::new(now_ns, steal_ns),
            steal_from: Shortest(1),
            queue: Count::default(),
            queue_from: Shortest(QUEUED_NS),
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
        let delay = Delay {
            start_ns: asleep_ns,
            end_ns: awake_ns,
            lost_ns: late_ns,
        };
        self.late_from
            .keep(delay, &mut self.witnessed.delays.witness);
    }

    /// Records a reading of the steal.
    fn read_steal(&mut self, now_ns: u64, steal_ns: Option<u64>) {
        let Some(delay) = self.steal.next(now_ns, steal_ns) else {
            return;
        };
        *self.witnessed.steal_ns.get_or_insert(0) += delay.lost_ns;
        self.steal_from
            .keep(delay, &mut self.witnessed.delays.steal);
    }

    /// Records a reading of the time that the thread of the operations waited for a processor.
    fn read_queue(&mut self, now_ns: u64, waited_ns: Option<u64>) {
        let Some(delay) = self.queue.next(now_ns, waited_ns) else {
            return;
        };
        *self.witnessed.queue_ns.get_or_insert(0) += delay.lost_ns;
        self.queue_from
            .keep(delay, &mut self.witnessed.delays.queue);
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
    fn waits_of_a_tenth_of_a_step_are_kept() {
        let mut record = Record::new(0, None);
        record.queue = Count::new(0, Some(7));
        record.read_queue(MS, Some(7 + MS / 10 - 1));
        record.read_queue(2 * MS, Some(7 + MS / 10 - 1 + MS / 10));
        let waited = Delay {
            start_ns: MS,
            end_ns: 2 * MS,
            lost_ns: MS / 10,
        };
        assert_eq!(record.witnessed.delays.queue, [waited]);
        assert_eq!(record.witnessed.queue_ns, Some(MS / 5 - 1));
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
