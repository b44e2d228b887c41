//! Finds slow operations that the computer may have delayed, rather than the storage device.

use std::collections::BTreeMap;

/// A time during which the computer did not run a thread that was ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delay {
    /// Earliest possible start, on the clock of the operations.
    pub start_ns: u64,
    /// End, on the clock of the operations.
    pub end_ns: u64,
    /// Time that was lost.
    pub lost_ns: u64,
}

/// Delays of the computer. In each list, they are in order of time and do not overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Delays {
    /// Late wake-ups of a thread that only sleeps: it lost the end of the time from start to end.
    pub witness: Vec<Delay>,
    /// CPU steal: the host of this virtual machine took time from its processors, which counted it between start and
    /// end. A processor that was stopped counts late, so that more time may be lost than lies between them.
    pub steal: Vec<Delay>,
    /// Waits for a processor: the thread of the operations was ready for the time lost, which the kernel counted between
    /// start and end.
    pub queue: Vec<Delay>,
}

/// A slow operation that a delay explains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// Number of the operation in the trace, counted from 0.
    pub operation: u64,
    /// Start of the operation.
    pub start_ns: u64,
    /// Latency of the operation.
    pub latency_ns: u64,
    /// Longest delay of the witness within the operation.
    pub witness_ns: u64,
    /// Most CPU time stolen at once, if the operation is the slowest of its time.
    pub stolen_ns: u64,
    /// Time that the thread of the operations waited for a processor, if the operation is the slowest of its time.
    pub queued_ns: u64,
}

/// Slow operations of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlowOperations {
    /// Number of operations that exceed the median by at least 1 ms.
    pub count: u64,
    /// Those of them that delays explain, in order of time.
    pub suspects: Vec<Suspect>,
}

/// Excess over the median from which on an operation is slow: the step of the witness, which sees no shorter delays.
pub const EXCESS_MIN_NS: u64 = 1_000_000;

/// Finds the slow operations, and the suspects among them.
///
/// An operation is suspect if a delay during it is at least half as long as its excess over the median:
///
/// - the longest lateness of the witness, as far as it lies within the operation. The sum of many short ones explains
///   nothing: on a busy computer, every wake-up is late, but a thread that waits for a device is late only once;
/// - the most time stolen at once;
/// - the sum of the times that the thread of the operations itself waited for a processor.
///
/// When time was stolen or waited is known less precisely. It can explain only one of the operations that overlap the
/// delay, the slowest.
///
/// The operations are in order of time and do not overlap.
pub fn slow_operations(
    starts_and_ends_ns: impl Iterator<Item = (u64, u64)>,
    median_ns: u64,
    delays: &Delays,
) -> SlowOperations {
    let mut count = 0;
    // Only operations that a delay may explain: there may be many slow ones.
    let mut suspects = BTreeMap::new();
    let mut slowest_of_steal: Vec<Option<Suspect>> = vec![None; delays.steal.len()];
    let mut slowest_of_queue: Vec<Option<Suspect>> = vec![None; delays.queue.len()];
    for (operation, (start_ns, end_ns)) in (0..).zip(starts_and_ends_ns) {
        let latency_ns = end_ns - start_ns;
        let excess_ns = latency_ns.saturating_sub(median_ns);
        if excess_ns < EXCESS_MIN_NS {
            continue;
        }
        count += 1;
        let late = during(&delays.witness, start_ns, end_ns).map(|(_, delay)| {
            let shared_ns = delay.end_ns.min(end_ns) - delay.start_ns.max(start_ns);
            shared_ns.min(delay.lost_ns)
        });
        let suspect = Suspect {
            operation,
            start_ns,
            latency_ns,
            witness_ns: late.max().unwrap_or(0),
            stolen_ns: 0,
            queued_ns: 0,
        };
        if suspect.is_explained(median_ns) {
            suspects.insert(operation, suspect);
        }
        for (list, slowest) in [
            (&delays.steal, &mut slowest_of_steal),
            (&delays.queue, &mut slowest_of_queue),
        ] {
            for (index, _) in during(list, start_ns, end_ns) {
                if slowest[index].is_none_or(|slowest| slowest.latency_ns < latency_ns) {
                    slowest[index] = Some(suspect);
                }
            }
        }
    }
    for (slowest, delay) in slowest_of_steal.iter().zip(&delays.steal) {
        if let Some(slowest) = slowest {
            let suspect = suspects.entry(slowest.operation).or_insert(*slowest);
            suspect.stolen_ns = suspect.stolen_ns.max(delay.lost_ns);
        }
    }
    for (slowest, delay) in slowest_of_queue.iter().zip(&delays.queue) {
        if let Some(slowest) = slowest {
            let suspect = suspects.entry(slowest.operation).or_insert(*slowest);
            suspect.queued_ns += delay.lost_ns;
        }
    }
    let suspects = suspects.into_values();
    let explained = suspects.filter(|suspect| suspect.is_explained(median_ns));
    SlowOperations {
        count,
        suspects: explained.collect(),
    }
}

impl Suspect {
    /// Returns true if a delay is at least half as long as the excess over the median.
    fn is_explained(&self, median_ns: u64) -> bool {
        let delay_ns = self.witness_ns.max(self.stolen_ns).max(self.queued_ns);
        delay_ns >= (self.latency_ns - median_ns).div_ceil(2)
    }
}

/// Returns number and values of the delays that overlap a time.
fn during(delays: &[Delay], start_ns: u64, end_ns: u64) -> impl Iterator<Item = (usize, &Delay)> {
    let first = delays.partition_point(|delay| delay.end_ns <= start_ns);
    let rest = delays.iter().enumerate().skip(first);
    rest.take_while(move |(_, delay)| delay.start_ns < end_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numerical Recipes' linear congruential generator; its high bits are the random ones.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
            self.0 = next.wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 20) % limit
        }

        /// Intervals in order of time, some of which touch.
        fn intervals(&mut self, count: u64, length_max: u64) -> Vec<(u64, u64)> {
            let mut now = 0;
            let mut next = |step| {
                now += step;
                now
            };
            (0..count)
                .map(|_| {
                    let gap = self.below(3) * self.below(4);
                    (next(gap), next(1 + self.below(length_max)))
                })
                .collect()
        }
    }

    const MS: u64 = 1_000_000;

    /// Follows the definition millisecond by millisecond.
    fn by_brute_force(operations: &[(u64, u64)], median: u64, delays: &Delays) -> Vec<u64> {
        let is_in = |(start, end): (u64, u64), ms: u64| start <= ms && ms < end;
        let is_suspect = |&operation: &(u64, u64)| {
            let latency = operation.1 - operation.0;
            if latency < median + 1 {
                return false;
            }
            let shared = |delay: &Delay| {
                let interval = (delay.start_ns / MS, delay.end_ns / MS);
                let all = operation.0..operation.1;
                all.filter(|&ms| is_in(interval, ms)).count() as u64
            };
            let witness = delays.witness.iter();
            let witness = witness.map(|delay| shared(delay).min(delay.lost_ns / MS));
            // The first of the slowest operations that share a millisecond with the delay.
            let is_slowest = |delay: &Delay| {
                let overlap =
                    |one: &(u64, u64)| one.0 * MS < delay.end_ns && delay.start_ns < one.1 * MS;
                let all = operations.iter().filter(|one| overlap(one));
                let longest = all.clone().map(|one| one.1 - one.0).max();
                all.clone().find(|one| Some(one.1 - one.0) == longest) == Some(&operation)
            };
            let steal = delays.steal.iter().filter(|delay| is_slowest(delay));
            let steal = steal.map(|delay| delay.lost_ns / MS);
            let queue = delays.queue.iter().filter(|delay| is_slowest(delay));
            let queued: u64 = queue.map(|delay| delay.lost_ns / MS).sum();
            witness
                .chain(steal)
                .chain([queued])
                .any(|delay| 2 * delay >= latency - median)
        };
        let numbered = (0..).zip(operations);
        let suspects = numbered.filter(|(_, operation)| is_suspect(operation));
        suspects.map(|(number, _)| number).collect()
    }

    #[test]
    fn suspects_are_those_of_the_definition() {
        let seed = 11;
        println!("seed {seed}");
        let mut random = Random(seed);
        let (mut slow_count, mut suspect_count) = (0, 0);
        for _ in 0..500 {
            let operations = random.intervals(20, 12);
            let mut delays = |length_max| -> Vec<Delay> {
                let count = random.below(12);
                let intervals = random.intervals(count, length_max);
                let delay = |(start, end)| Delay {
                    start_ns: start * MS,
                    end_ns: end * MS,
                    lost_ns: random.below(2 * length_max) * MS,
                };
                intervals.into_iter().map(delay).collect()
            };
            let delays = Delays {
                witness: delays(10),
                steal: delays(4),
                queue: delays(2),
            };
            let median = random.below(6);
            let in_ns = operations
                .iter()
                .map(|&(start, end)| (start * MS, end * MS));
            let slow = slow_operations(in_ns, median * MS, &delays);
            let suspects: Vec<u64> = slow.suspects.iter().map(|one| one.operation).collect();
            assert_eq!(suspects, by_brute_force(&operations, median, &delays));
            let is_slow = |&&(start, end): &&(u64, u64)| end - start > median;
            assert_eq!(slow.count, operations.iter().filter(is_slow).count() as u64);
            slow_count += slow.count;
            suspect_count += slow.suspects.len() as u64;
        }
        // Both answers occur often enough to compare them.
        assert!(
            suspect_count > 500 && slow_count > 2 * suspect_count,
            "{suspect_count} of {slow_count}"
        );
    }

    /// On a busy computer, the witness is late at every step.
    #[test]
    fn many_short_delays_explain_no_long_stall() {
        let late = |ms: u64| Delay {
            start_ns: ms * MS,
            end_ns: (ms + 10) * MS,
            lost_ns: 9 * MS,
        };
        let delays = Delays {
            witness: (0..100).map(|index| late(10 * index)).collect(),
            ..Delays::default()
        };
        let operations = [(100 * MS, 400 * MS), (400 * MS, 415 * MS)];
        let slow = slow_operations(operations.into_iter(), MS, &delays);
        assert_eq!(slow.count, 2);
        let suspects: Vec<u64> = slow.suspects.iter().map(|one| one.operation).collect();
        assert_eq!(suspects, [1]);
    }
}
