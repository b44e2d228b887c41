//! Options of `bench` that make the figures of real storage devices trustworthy, and what they found.

mod precondition;
mod witness;

pub use precondition::{of_directory, of_disk};
pub use witness::Witness;

use crate::failure::Failure;
use crate::watch::Watch;
use cardiograph_report::values::duration;
use cardiograph_report::{EndedBy, Report, Trust, UntilStable, Witnessed, units};
use cardiograph_store::{HostClock, own_overhead};
use cardiograph_workload::{OperationKind, Phase, Span, Workload};
use std::time::Duration;

/// Options of `bench`.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct TrustArgs {
    /// Write the workload's files once before the measurement, so that the storage device is in a used state
    #[arg(long)]
    pub precondition: bool,

    /// Run this many operations, or operations for this time, before the measurement; they are neither in the figures nor in the trace [default: none]
    #[arg(long, value_name = "N|TIME", value_parser = warm_up)]
    pub warm_up: Option<WarmUp>,

    /// Repeat the workload until the last half of all writes raised the worst case by less than 10 %, or until --for ends
    #[arg(long)]
    pub until_stable: bool,
}

/// Length of a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WarmUp {
    /// Number of operations.
    Operations(u64),
    /// Time from the start of the first operation.
    Time(Duration),
}

fn warm_up(text: &str) -> Result<WarmUp, String> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let warm_up = match is_number {
        true => text.parse().map(WarmUp::Operations).map_err(drop),
        false => duration(text).map(WarmUp::Time).map_err(drop),
    };
    match warm_up {
        Ok(WarmUp::Operations(0) | WarmUp::Time(Duration::ZERO)) | Err(()) => {
            Err("use a number of operations, such as 1000, or a time, such as 10s".to_string())
        }
        Ok(warm_up) => Ok(warm_up),
    }
}

/// Kind of a target, which determines the options that apply.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Simulated,
    Directory,
    /// A disk that may be overwritten.
    Overwritten,
    /// A disk that is only read.
    ReadOnly,
}

/// Refuses options that do not apply to the target or the workload.
pub fn check(
    args: &TrustArgs,
    workload: &Workload,
    target: &str,
    kind: Kind,
    is_paced: bool,
) -> Result<(), Failure> {
    let refused = match kind {
        Kind::Simulated if args.precondition => Some(
            "--precondition does not apply to simulated cards, which begin in the state that their profile describes; \
             remove it"
                .to_string(),
        ),
        Kind::Simulated if args.until_stable => Some(
            "--until-stable does not apply to simulated cards, which are new in each run; remove it, and choose a \
             workload that writes more"
                .to_string(),
        ),
        Kind::ReadOnly if args.precondition => Some(format!(
            "{target}: --precondition writes; add --destroy {target} to overwrite the disk, or remove --precondition"
        )),
        Kind::ReadOnly if args.until_stable => Some(format!(
            "{target}: --until-stable compares writes; add --destroy {target} to overwrite the disk, or remove \
             --until-stable"
        )),
        _ if args.until_stable && is_paced => {
            Some("--until-stable cannot be combined with --rate; remove one".to_string())
        }
        _ if args.until_stable && !writes(workload) => Some(format!(
            "--until-stable compares writes, and the workload {} only reads; choose one that writes, or remove \
             --until-stable",
            workload.name
        )),
        _ => None,
    };
    if let Some(refused) = refused {
        return Err(Failure::new(refused));
    }
    check_warm_up(args, workload, kind)
}

fn writes(workload: &Workload) -> bool {
    let mut phases = workload.phases.iter();
    phases.any(|phase| phase.operation == OperationKind::Write)
}

fn check_warm_up(args: &TrustArgs, workload: &Workload, kind: Kind) -> Result<(), Failure> {
    let Some(WarmUp::Operations(warm_up)) = args.warm_up else {
        return Ok(());
    };
    let operations = workload.phases.iter().map(|phase| operations(phase, kind));
    let total = operations.fold(0, u64::saturating_add);
    match warm_up < total {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "--warm-up {warm_up} leaves nothing to measure, because the workload {} has {total} operations; choose a \
             smaller number, or a longer workload",
            workload.name
        ))),
    }
}

fn operations(phase: &Phase, kind: Kind) -> u64 {
    let files = u64::from(phase.files) * u64::from(phase.passes);
    match phase.span {
        Span::File if kind != Kind::ReadOnly => files,
        _ => files.saturating_mul(u64::from(phase.calls_per_file)),
    }
}

/// Conditions of a run on a real storage device.
pub struct Conditions {
    pub trust: Trust,
    witnessed: Option<Witnessed>,
}

impl Conditions {
    /// Measures the overhead.
    pub fn of(clock: &mut HostClock) -> Conditions {
        let (resolution_ns, _) = clock.resolution_and_overhead_ns();
        let overhead = own_overhead(clock);
        let us = |ns: u64| ns as f64 / 1e3;
        Conditions {
            trust: Trust {
                clock_resolution_us: us(resolution_ns),
                overhead_us: us(overhead.latency_ns),
                between_operations_us: us(overhead.between_ns),
                ..Trust::default()
            },
            witnessed: None,
        }
    }

    /// Returns resolution and overhead in ns.
    pub fn clock_ns(&self) -> (u64, u64) {
        let ns = |us: f64| (us * 1e3).round() as u64;
        (
            ns(self.trust.clock_resolution_us),
            ns(self.trust.overhead_us),
        )
    }

    /// Adds what was noticed while the run went on.
    pub fn finish(&mut self, witness: Option<Witness>, watch: &Watch, repeats: Repeats) {
        self.witnessed = witness.and_then(Witness::end);
        self.trust.warm_up_operations = watch.warm_up_operations();
        self.trust.until_stable = watch.stability().map(|stability| {
            UntilStable::new(repeats.count, repeats.ended_by, stability.worst_cases())
        });
    }

    /// Adds the conditions to the report.
    pub fn add_to(self, report: &mut Report) {
        let until_stable = self.trust.until_stable.as_ref();
        let is_unstable = |run: &&UntilStable| run.ended_by == EndedBy::Time && !run.is_stable;
        let unstable = until_stable.filter(is_unstable);
        let unstable = unstable.map(|until_stable| {
            format!(
                "the worst case is not stable: when --for ended the run, {}; allow more time with --for",
                until_stable.increase()
            )
        });
        report.warnings.extend(unstable);
        report.add_trust(self.trust, self.witnessed.as_ref());
    }
}

/// Number of times that a workload was begun.
#[derive(Clone, Copy)]
pub struct Repeats {
    pub count: u64,
    pub ended_by: EndedBy,
}

/// Returns a note on what was done before the measurement, for readers of the trace.
pub fn note(trust: &Trust) -> Option<String> {
    let preconditioned = (trust.preconditioned_bytes > 0).then(|| {
        let bytes = units::bytes(trust.preconditioned_bytes as f64);
        format!("{bytes} were written to bring the storage device into a used state")
    });
    let warm_up = (trust.warm_up_operations > 0).then(|| {
        let count = units::count(trust.warm_up_operations);
        format!("{count} operations of the workload were run as a warm-up")
    });
    let done: Vec<String> = preconditioned.into_iter().chain(warm_up).collect();
    (!done.is_empty()).then(|| format!("Before the measurement, {}.", done.join(", and ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_a_number_or_a_time() {
        assert_eq!(warm_up("1000"), Ok(WarmUp::Operations(1000)));
        assert_eq!(warm_up("10s"), Ok(WarmUp::Time(Duration::from_secs(10))));
        for text in ["", "0", "0s", "-1", "1.5", "s", "99999999999999999999"] {
            assert!(warm_up(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_was_done_before_is_one_sentence() {
        let mut trust = Trust::default();
        assert_eq!(note(&trust), None);
        trust.warm_up_operations = 20;
        let text = "Before the measurement, 20 operations of the workload were run as a warm-up.";
        assert_eq!(note(&trust).as_deref(), Some(text));
        trust.preconditioned_bytes = 8_000_000;
        assert!(
            note(&trust)
                .unwrap()
                .contains(" used state, and 20 operations")
        );
    }
}
