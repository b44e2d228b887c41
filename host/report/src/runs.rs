//! Recordings of several runs or sources: each has figures of its own.

use crate::summary::{RunSummary, us};
use crate::units;
use crate::writes::Writes;
use cardiograph_timing::cadence::{self, Cadence, Known, Missing};
use cardiograph_trace::{Recording, RecordingRun};

/// The audit of a run with at least two samples.
pub(crate) struct RunAudit {
    pub(crate) label: String,
    pub(crate) audit: Cadence,
}

/// Audits each run of a recording; empty if it has only one.
pub(crate) fn audits(recording: &Recording, known: &Known) -> Vec<RunAudit> {
    let runs: &[RecordingRun] = match &recording.runs[..] {
        [] | [_] => &[],
        several => several,
    };
    let audited = (0..).zip(runs).filter_map(|(file, run)| {
        let steps = Writes::of_file(&recording.trace, file);
        Some(RunAudit {
            label: run.label.clone(),
            audit: cadence::audit(&steps, known)?,
        })
    });
    audited.collect()
}

/// Adds the figures of all runs to those of their steps together: late and missing samples are those of each run alone.
pub(crate) fn combined(whole: Cadence, recording: &Recording, runs: &[RunAudit]) -> Cadence {
    let (mut at_ns, mut samples) = (0u64, 0);
    let mut gaps = Vec::new();
    for run in runs {
        let of_run = run.audit.gaps.iter();
        gaps.extend(of_run.map(|gap| cadence::LateStep {
            after_sample: gap.after_sample + samples,
            at_ns: gap.at_ns.saturating_add(at_ns),
            ..*gap
        }));
        let steps = run.audit.samples - 1;
        at_ns = at_ns.saturating_add((run.audit.mean_step_ns * steps as f64) as u64);
        samples += run.audit.samples;
    }
    let sum = |figure: fn(&Cadence) -> u64| runs.iter().map(|run| figure(&run.audit)).sum();
    Cadence {
        samples: recording.samples,
        regular_steps: sum(|audit| audit.regular_steps),
        duplicate_samples: sum(|audit| audit.duplicate_samples),
        period_ns: common_period_ns(runs),
        missing: runs
            .iter()
            .map(|run| run.audit.missing)
            .fold(Missing::Exactly(0), both),
        drift_ns: runs.iter().map(|run| run.audit.drift_ns).sum(),
        gaps,
        ..whole
    }
}

/// Returns the period of the first run, if those of all runs differ from it by at most a thousandth.
fn common_period_ns(runs: &[RunAudit]) -> Option<f64> {
    let first_ns = runs.first()?.audit.period_ns?;
    let is_near = |ns: f64| (ns - first_ns).abs() <= first_ns / 1e3;
    let mut periods = runs.iter().map(|run| run.audit.period_ns);
    periods
        .all(|ns| ns.is_some_and(is_near))
        .then_some(first_ns)
}

/// Returns the number of samples missing in two runs together. It is as uncertain as that of the more uncertain one.
fn both(a: Missing, b: Missing) -> Missing {
    let (least, most) = (range(a).0 + range(b).0, range(a).1 + range(b).1);
    match (a, b) {
        (Missing::Exactly(_), Missing::Exactly(_)) => Missing::Exactly(most),
        (Missing::RoomFor(_), _) | (_, Missing::RoomFor(_)) => Missing::RoomFor(most),
        _ => Missing::Between(least, most),
    }
}

fn range(missing: Missing) -> (u64, u64) {
    match missing {
        Missing::Exactly(count) => (count, count),
        Missing::Between(least, most) => (least, most),
        Missing::RoomFor(most) => (0, most),
    }
}

pub(crate) fn summary(run: &RunAudit) -> RunSummary {
    RunSummary {
        label: run.label.clone(),
        samples: run.audit.samples,
        median_interval_us: us(run.audit.median_step_ns),
        late_samples: run.audit.gaps.len() as u64,
        missing_samples_min: range(run.audit.missing).0,
        missing_samples_max: range(run.audit.missing).1,
        longest_gap_us: us(run.audit.longest_gap_ns),
    }
}

/// Returns the figures of a run in a few words.
pub(crate) fn in_words(run: &RunSummary) -> String {
    let missing = match (run.missing_samples_min, run.missing_samples_max) {
        (least, most) if least == most => units::count(most),
        (least, most) => format!("{} to {}", units::count(least), units::count(most)),
    };
    let late = match run.late_samples {
        0 => "none late".to_owned(),
        late => format!("{} late, {missing} missing", units::count(late)),
    };
    format!(
        "{} samples, every {}, {late}",
        units::count(run.samples),
        units::time(run.median_interval_us)
    )
}
