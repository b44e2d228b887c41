//! Conditions and precision of the figures of a real storage device.

use crate::delays::{Delays, SlowOperations, Suspect, slow_operations};
use crate::report::Report;
use crate::stability::WorstCases;
use crate::summary::{thousandths, us};
use crate::units;
use serde::Serialize;

/// Maximum number of suspect operations in the JSON.
const SUSPECTS_MAX: usize = 100;
/// Number of suspect operations in the table.
const SHOWN_MAX: usize = 3;

/// Conditions of the run, precision of the times, and delays of the computer.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Trust {
    /// Smallest step between two readings of the clock: an upper bound of its resolution.
    pub clock_resolution_us: f64,
    /// Median latency of an operation that does nothing: Cardiograph's own part of every latency.
    pub overhead_us: f64,
    /// Median time from the end of such an operation to the start of the next.
    pub between_operations_us: f64,
    /// Payload written before the measurement (`--precondition`).
    pub preconditioned_bytes: u64,
    /// Number of operations before the measurement (`--warm-up`).
    pub warm_up_operations: u64,
    /// Repetition of the workload, with `--until-stable`.
    pub until_stable: Option<UntilStable>,
    /// Delays of the computer; null if it could not be watched.
    pub computer: Option<Computer>,
}

/// Repetition of a workload until its worst case is stable.
#[derive(Clone, Debug, Serialize)]
pub struct UntilStable {
    /// Number of times that the workload was begun.
    pub repeats: u64,
    /// `stable`, `time` (the end of `--for`), `signal` (Ctrl-C) or `failure`.
    pub ended_by: EndedBy,
    /// True if the workload was completed at least once, and the last half of all writes raised the worst case by less than
    /// 10 %.
    pub is_stable: bool,
    /// Longest latency of the first half of all writes.
    pub first_half_worst_case_us: Option<f64>,
    /// Ratio by which the last half of all writes raised the worst case; null if the first half took no time.
    pub increase_ratio: Option<f64>,
}

/// Reason why a workload was not repeated again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    /// The worst case was stable.
    Stable,
    /// The time limit passed.
    Time,
    /// A signal ended the run.
    Signal,
    /// The run failed.
    Failure,
}

/// Delays of the computer during the run, as a thread noticed them that only sleeps.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Computer {
    /// Number of times that the thread woke.
    pub wake_ups: u64,
    /// Time that the thread slept between them.
    pub step_us: f64,
    /// Number of wake-ups that were late by at least one step.
    pub late_wake_ups: u64,
    /// Longest lateness.
    pub worst_lateness_us: f64,
    /// Time that the host of this virtual machine took from its processors; null if the system does not count it.
    pub steal_us: Option<f64>,
    /// Time that the thread of the operations was ready and waited for a processor; null if the system does not count it.
    pub queue_us: Option<f64>,
    /// Number of operations that took at least 1 ms longer than the median.
    pub slow_operations: u64,
    /// Number of slow operations that a delay of the computer explains. The figures include them.
    pub suspect_operations: u64,
    /// True if the longest operation is one of them.
    pub worst_case_is_suspect: bool,
    /// The longest 100 of them, longest first.
    pub suspects: Vec<SuspectSummary>,
}

/// A slow operation that a delay of the computer explains.
#[derive(Clone, Debug, Serialize)]
pub struct SuspectSummary {
    /// Number of the operation in the trace, counted from 0.
    pub operation: u64,
    /// Start, counted from the start of the first operation.
    pub start_us: f64,
    /// Latency of the operation.
    pub latency_us: f64,
    /// Longest lateness of the watching thread during the operation.
    pub lateness_us: f64,
    /// Most CPU time stolen at once, if the operation is the slowest of its time.
    pub steal_us: f64,
    /// Time that the thread of the operations waited for a processor, if the operation is the slowest of its time.
    pub queue_us: f64,
}

/// Recorded by the watching thread.
#[derive(Clone, Debug, Default)]
pub struct Witnessed {
    /// Number of times that it woke.
    pub wake_ups: u64,
    /// Time that it slept between them.
    pub step_ns: u64,
    /// Number of wake-ups that were late by at least one step.
    pub late_wake_ups: u64,
    /// Longest lateness.
    pub worst_lateness_ns: u64,
    /// Total CPU steal, if the system counts it.
    pub steal_ns: Option<u64>,
    /// Time that the thread of the operations waited for a processor, if the system counts it.
    pub queue_ns: Option<u64>,
    /// The delays.
    pub delays: Delays,
}

impl UntilStable {
    /// Summarises a run of the given number of repeats.
    pub fn new(repeats: u64, ended_by: EndedBy, worst_cases: Option<WorstCases>) -> UntilStable {
        let increase = worst_cases.map(|cases| cases.increase());
        let is_level = worst_cases.is_some_and(|cases| cases.is_stable());
        UntilStable {
            repeats,
            ended_by,
            is_stable: is_level && is_complete(repeats, ended_by),
            first_half_worst_case_us: worst_cases.map(|cases| us(cases.first_half_ns)),
            increase_ratio: increase.filter(|ratio| ratio.is_finite()).map(thousandths),
        }
    }

    /// Describes the increase of the worst case.
    pub fn increase(&self) -> String {
        if !is_complete(self.repeats, self.ended_by) {
            return "the workload had not been completed once".to_string();
        }
        match self.increase_ratio {
            Some(ratio) => format!(
                "the last half of all writes raised the worst case by {:.1} %",
                ratio * 100.0
            ),
            None => "there were too few writes to compare the halves".to_string(),
        }
    }
}

/// Returns true if the workload was completed at least once.
fn is_complete(repeats: u64, ended_by: EndedBy) -> bool {
    repeats > 1 || ended_by == EndedBy::Stable
}

impl Report {
    /// Adds the conditions of the run, and matches the delays of the computer to the operations.
    pub fn add_trust(&mut self, mut trust: Trust, witnessed: Option<&Witnessed>) {
        trust.computer = witnessed.and_then(|witnessed| self.computer(witnessed));
        let suspect = trust.computer.as_ref();
        if let Some(suspect) = suspect.and_then(|computer| {
            let is_worst = computer.worst_case_is_suspect;
            computer.suspects.first().filter(|_| is_worst)
        }) {
            self.warnings.push(format!(
                "the computer may have caused the worst case of {} ({}); the figures include it, so measure again on an \
                 idle computer",
                units::time(suspect.latency_us),
                cause(suspect)
            ));
        }
        self.summary.trust = Some(trust);
    }

    fn computer(&self, witnessed: &Witnessed) -> Option<Computer> {
        let trace = self.trace()?;
        let median_ns = (self.summary.latency_us.median? * 1e3) as u64;
        let times_ns = trace.operations().map(|one| (one.start_ns, one.end_ns));
        let slow = slow_operations(times_ns, median_ns, &witnessed.delays);
        let worst_ns = self.summary.latency_us.worst_case.map(|us| us * 1e3);
        let SlowOperations {
            count,
            mut suspects,
        } = slow;
        suspects.sort_by_key(|suspect| std::cmp::Reverse(suspect.latency_ns));
        let longest = suspects.first();
        let worst_case_is_suspect = longest.is_some_and(|suspect| {
            worst_ns.is_some_and(|ns| suspect.latency_ns as f64 >= ns.round())
        });
        let summary = |suspect: &Suspect| SuspectSummary {
            operation: suspect.operation,
            start_us: us(suspect.start_ns - trace.first_start_ns()),
            latency_us: us(suspect.latency_ns),
            lateness_us: us(suspect.witness_ns),
            steal_us: us(suspect.stolen_ns),
            queue_us: us(suspect.queued_ns),
        };
        Some(Computer {
            wake_ups: witnessed.wake_ups,
            step_us: us(witnessed.step_ns),
            late_wake_ups: witnessed.late_wake_ups,
            worst_lateness_us: us(witnessed.worst_lateness_ns),
            steal_us: witnessed.steal_ns.map(us),
            queue_us: witnessed.queue_ns.map(us),
            slow_operations: count,
            suspect_operations: suspects.len() as u64,
            worst_case_is_suspect,
            suspects: suspects.iter().take(SUSPECTS_MAX).map(summary).collect(),
        })
    }
}

/// Describes the longest delay during an operation.
fn cause(suspect: &SuspectSummary) -> String {
    let (late_us, steal_us, queue_us) = (suspect.lateness_us, suspect.steal_us, suspect.queue_us);
    if queue_us >= late_us.max(steal_us) {
        format!("waited {} for a processor", units::time(queue_us))
    } else if late_us >= steal_us {
        format!("another thread woke {} late", units::time(late_us))
    } else {
        format!("CPU steal {}", units::time(steal_us))
    }
}

/// Returns name and value of each row in tables.
pub(crate) fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let Some(trust) = &report.summary.trust else {
        return Vec::new();
    };
    let mut rows = Vec::new();
    if trust.preconditioned_bytes > 0 {
        let bytes = units::bytes(trust.preconditioned_bytes as f64);
        rows.push(("preconditioned", format!("{bytes} written before")));
    }
    if trust.warm_up_operations > 0 {
        let count = units::count(trust.warm_up_operations);
        rows.push(("warm-up", format!("{count} operations, not in the figures")));
    }
    if let Some(until_stable) = &trust.until_stable {
        rows.push(("repeats", units::count(until_stable.repeats)));
        let answer = if until_stable.is_stable { "yes" } else { "no" };
        rows.push((
            "stable worst case",
            format!("{answer}: {}", until_stable.increase()),
        ));
    }
    if let Some(computer) = &trust.computer {
        rows.extend(computer_rows(computer));
    }
    rows
}

fn computer_rows(computer: &Computer) -> Vec<(&'static str, String)> {
    let mut rows = vec![(
        "late wake-ups",
        format!(
            "{} of {}, the longest {}",
            units::count(computer.late_wake_ups),
            units::count(computer.wake_ups),
            units::time(computer.worst_lateness_us)
        ),
    )];
    if let Some(steal_us) = computer.steal_us {
        rows.push(("CPU steal", units::time(steal_us)));
    }
    if let Some(queue_us) = computer.queue_us {
        rows.push(("waits for a processor", units::time(queue_us)));
    }
    rows.push((
        "suspect operations",
        format!(
            "{} of {} slow ones may have been delayed by the computer",
            units::count(computer.suspect_operations),
            units::count(computer.slow_operations)
        ),
    ));
    let shown = computer.suspects.iter().take(SHOWN_MAX).map(|suspect| {
        let (latency, start) = (
            units::time(suspect.latency_us),
            units::time(suspect.start_us),
        );
        format!("{latency} at {start} ({})", cause(suspect))
    });
    let shown: Vec<String> = shown.collect();
    if !shown.is_empty() {
        rows.push(("longest of them", shown.join("; ")));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The phases of a workload differ: the writes of a part of it say nothing about the others.
    #[test]
    fn a_part_of_the_workload_is_never_stable() {
        let level = Some(WorstCases {
            first_half_ns: 1000,
            all_ns: 1000,
        });
        let rising = Some(WorstCases {
            first_half_ns: 1000,
            all_ns: 1100,
        });
        for (repeats, ended_by, worst_cases, is_stable) in [
            (1, EndedBy::Stable, level, true),
            (1, EndedBy::Time, level, false),
            (1, EndedBy::Signal, level, false),
            (1, EndedBy::Failure, level, false),
            (2, EndedBy::Time, level, true),
            (2, EndedBy::Signal, level, true),
            (2, EndedBy::Time, rising, false),
            (2, EndedBy::Time, None, false),
        ] {
            let found = UntilStable::new(repeats, ended_by, worst_cases);
            assert_eq!(found.is_stable, is_stable, "{found:?}");
            let is_incomplete = found.increase().contains("had not been completed once");
            assert_eq!(is_incomplete, repeats == 1 && ended_by != EndedBy::Stable);
        }
    }
}
