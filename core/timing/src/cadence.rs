//! Sampling audit of a recording: late and missing samples.

use crate::Replay;
use alloc::vec::Vec;

/// Sampling statistics derived from the time column of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Cadence {
    /// Number of samples.
    pub samples: u64,
    /// Median of the steps between consecutive samples, in ns; the lower of the two middle steps if their
    /// number is even.
    pub median_step_ns: u64,
    /// Mean step in ns.
    pub mean_step_ns: f64,
    /// The longest step in ns.
    pub longest_gap_ns: u64,
    /// Number of steps that differ from the median by at most a quarter of it.
    pub regular_steps: u64,
    /// Number of missing samples: the sum of `round(step / median) - 1` over the late steps.
    pub missing_samples: u64,
    /// Actual time of the last sample minus its expected time, in ns. The expected time assumes that every
    /// step, including those of missing samples, has the median length. Negative if the last sample was
    /// early.
    pub drift_ns: i128,
    /// Steps longer than 1.5 medians, in order of time.
    pub gaps: Vec<LateStep>,
}

/// A step of more than 1.5 medians.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateStep {
    /// Number of the sample before the step, from 0.
    pub after_sample: u64,
    /// Time of the sample before the step, in ns since the first sample.
    pub at_ns: u64,
    /// Payload recorded since the first sample, in bytes.
    pub at_bytes: u64,
    /// Length of the step in ns.
    pub step_ns: u64,
    /// Number of samples missing within the step.
    pub missing_samples: u64,
}

/// Audits a recording given as steps: the time in ns from one sample to the next, and the bytes of the later
/// sample. Returns `None` if there is no step.
pub fn audit(steps: &(impl Replay + ?Sized)) -> Option<Cadence> {
    let mut sorted = Vec::new();
    steps.replay(|ns, _| sorted.push(ns));
    sorted.sort_unstable();
    let (count, &longest_gap_ns) = (sorted.len() as u64, sorted.last()?);
    let median_step_ns = sorted[(sorted.len() - 1) / 2];
    let quarter_ns = median_step_ns / 4;
    let is_regular = |step_ns: &&u64| step_ns.abs_diff(median_step_ns) <= quarter_ns;
    let regular_steps = sorted.iter().filter(is_regular).count() as u64;
    drop(sorted);

    let gaps = late_steps(steps, median_step_ns);
    let missing_samples = gaps.iter().map(|gap| gap.missing_samples).sum();
    let mut elapsed_ns = 0u128;
    steps.replay(|ns, _| elapsed_ns += u128::from(ns));
    let regular_ns = u128::from(median_step_ns) * (u128::from(count) + u128::from(missing_samples));
    Some(Cadence {
        samples: count + 1,
        median_step_ns,
        mean_step_ns: elapsed_ns as f64 / count as f64,
        longest_gap_ns,
        regular_steps,
        missing_samples,
        drift_ns: elapsed_ns as i128 - regular_ns as i128,
        gaps,
    })
}

fn late_steps(steps: &(impl Replay + ?Sized), median_ns: u64) -> Vec<LateStep> {
    let mut late = Vec::new();
    let (mut after_sample, mut at_ns, mut at_bytes) = (0, 0u64, 0u64);
    steps.replay(|step_ns, bytes| {
        if u128::from(step_ns) * 2 > u128::from(median_ns) * 3 {
            late.push(LateStep {
                after_sample,
                at_ns,
                at_bytes,
                step_ns,
                missing_samples: rounded_ratio(step_ns, median_ns).saturating_sub(1),
            });
        }
        after_sample += 1;
        at_ns = at_ns.saturating_add(step_ns);
        at_bytes = at_bytes.saturating_add(bytes);
    });
    late
}

/// Returns `a / b` rounded to the nearest integer, halves up, or 0 if `b` is 0.
fn rounded_ratio(a: u64, b: u64) -> u64 {
    (u128::from(a) * 2 + u128::from(b))
        .checked_div(u128::from(b) * 2)
        .unwrap_or(0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_samples_are_distinguished_from_missing_ones() {
        // A step that is 60 % too long (1.6 rounds to 2: one sample missing) and one of four medians.
        let steps = [
            (100, 10),
            (100, 10),
            (160, 10),
            (100, 10),
            (400, 10),
            (100, 10),
        ];
        let cadence = audit(&steps[..]).unwrap();
        assert_eq!(cadence.samples, 7);
        assert_eq!(cadence.median_step_ns, 100);
        assert_eq!(cadence.mean_step_ns, 160.0);
        assert_eq!(cadence.longest_gap_ns, 400);
        assert_eq!(cadence.missing_samples, 1 + 3);
        assert_eq!(cadence.gaps.len(), 2);
        assert_eq!(cadence.drift_ns, 960 - 1000);
        let last = cadence.gaps[1];
        assert_eq!((last.after_sample, last.at_ns, last.at_bytes), (4, 460, 40));
    }

    #[test]
    fn exactly_one_and_a_half_medians_is_not_late() {
        let cadence = audit(&[(100, 1), (100, 1), (150, 1)][..]).unwrap();
        assert_eq!((cadence.gaps.len(), cadence.missing_samples), (0, 0));
    }

    #[test]
    fn a_stopped_clock_does_not_panic() {
        let cadence = audit(&[(0, 1), (0, 1), (7, 1)][..]).unwrap();
        assert_eq!((cadence.median_step_ns, cadence.missing_samples), (0, 0));
        assert_eq!(audit(&[][..]), None);
    }
}
