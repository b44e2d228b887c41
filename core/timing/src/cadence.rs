//! Sampling audit of a recording: its period, late and missing samples.
//!
//! A period fits if all samples are within one tick of the clock, and the jitter that the recording itself shows, of
//! a grid with this period, each at a point of its own. The longest period that fits is the recording's. The number
//! of missing samples is stated if it is the same for all periods near it; otherwise it is a range. If no period fits,
//! the samples are uneven by nature, and late steps have room for samples that may never have been taken.

mod exact;
mod median;
mod pattern;
mod scan;
#[cfg(test)]
mod tests;
mod tick;
mod totals;
mod track;

use crate::Replay;
use alloc::vec::Vec;
use scan::{Fit, SAMPLES_FEW, SAMPLES_MAX, Stretch};
use totals::{Totals, stretch};
use track::{MEMORY, Tracked, Tracker};

/// Facts about a recording that its times do not show.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// Period that the user states, in ns.
    pub period_ns: Option<f64>,
    /// Resolution with which the times are written, in ns, if it is known.
    pub written_ns: Option<u64>,
}

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
    /// Number of samples with the time of the sample before.
    pub duplicate_samples: u64,
    /// Greatest common divisor of the steps, in ns.
    pub tick_ns: u64,
    /// The period in ns, or `None` if no period fits.
    pub period_ns: Option<f64>,
    /// Number of missing samples.
    pub missing: Missing,
    /// Actual time of the last sample minus its expected time, in ns, if every sample, including missing ones but
    /// not duplicates, takes one period. Negative if the last sample was early. `None` if no period fits, or if the
    /// number of missing samples is uncertain.
    pub drift_ns: Option<f64>,
    /// Late steps, in order of time: those with missing samples, and those longer than 1.5 periods by more than tick
    /// and jitter. If no period fits, those longer than 1.5 medians.
    pub gaps: Vec<LateStep>,
}

/// Number of missing samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The number is the same for every period that fits.
    Exactly(u64),
    /// The number depends on the period; least and greatest number.
    Between(u64, u64),
    /// No period fits; late steps have room for this number of samples at the median step.
    RoomFor(u64),
}

impl Missing {
    fn between(least: u64, most: u64) -> Missing {
        match least == most {
            true => Missing::Exactly(least),
            false => Missing::Between(least, most),
        }
    }
}

/// A late step.
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
    pub missing: Missing,
}

/// Audits a recording given as steps: the time in ns from one sample to the next, and the bytes of the later
/// sample. Returns `None` if there is no step.
pub fn audit(steps: &(impl Replay + ?Sized), known: &Known) -> Option<Cadence> {
    let totals = Totals::of(steps)?;
    let median_step_ns = median::nth_step_ns(steps, totals.count.div_ceil(2), totals.longest_ns);
    let (quarter_ns, mut regular_steps) = (median_step_ns / 4, 0);
    steps.replay(|ns, _| regular_steps += u64::from(ns.abs_diff(median_step_ns) <= quarter_ns));
    let found = fitted(steps, &totals, known);
    let found = found.unwrap_or_else(|| uneven(steps, median_step_ns, known));
    let period_ns = Some(found.period_ns).filter(|_| !matches!(found.missing, Missing::RoomFor(_)));
    let drift_ns = match (found.missing, period_ns) {
        (Missing::Exactly(_), Some(ns)) => {
            let period_ns = known.period_ns.unwrap_or(ns);
            let drift_ns = totals.elapsed_ns as f64 - period_ns * found.periods as f64;
            // Times within a tick and the jitter are on time.
            Some(if drift_ns.abs() <= found.width_ns {
                0.0
            } else {
                drift_ns
            })
        }
        _ => None,
    };
    Some(Cadence {
        samples: totals.count + 1,
        median_step_ns,
        mean_step_ns: totals.elapsed_ns as f64 / totals.count as f64,
        longest_gap_ns: totals.longest_ns,
        regular_steps,
        duplicate_samples: totals.equal,
        tick_ns: totals.tick_ns,
        period_ns,
        missing: found.missing,
        drift_ns,
        gaps: found.gaps,
    })
}

/// Returns the longest period that fits, and what it makes of the recording.
fn fitted(steps: &(impl Replay + ?Sized), totals: &Totals, known: &Known) -> Option<Tracked> {
    let times_ns = stretch(steps);
    let mut sorted: Vec<u64> = times_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
    sorted.sort_unstable();
    if totals.tick_ns == 0 || sorted.is_empty() {
        return None;
    }
    let tick_ns = tick::tick_ns(&sorted, totals.tick_ns);
    let exact = exact::in_whole_ticks(steps, totals, tick_ns, known);
    let tracked = on_grid(steps, tick_ns, known, &times_ns);
    match (tracked, exact) {
        (Some(mut tracked), Some(exact))
            if !exact::is_written(tick_ns, known) && known.period_ns.is_none() =>
        {
            // The clock may be much finer than the steps: then every double step is a missing sample.
            tracked.missing = match (tracked.missing, exact.missing) {
                (Missing::Exactly(a), Missing::Exactly(b)) => Missing::between(a.min(b), a.max(b)),
                (missing, _) => missing,
            };
            Some(tracked)
        }
        (tracked, exact) => tracked.or(exact),
    }
}

/// Finds a period in a stretch and follows it through the recording: first as one grid, then as a grid that wanders.
fn on_grid(
    steps: &(impl Replay + ?Sized),
    tick_ns: f64,
    known: &Known,
    times_ns: &[u64],
) -> Option<Tracked> {
    let stretch = |most: usize| {
        let times_ns = &times_ns[..times_ns.len().min(most)];
        let mut sorted: Vec<u64> = times_ns.windows(2).map(|pair| pair[1] - pair[0]).collect();
        sorted.sort_unstable();
        let median_ns = *sorted.get(sorted.len().saturating_sub(1) / 2)?;
        let fit = Stretch {
            times_ns,
            tick_ns,
            median_ns,
        }
        .longest_period(known.period_ns)?;
        Some((fit, *times_ns.last()?))
    };
    // A grid that wanders shows on a fine clock only.
    let may_wander = |fit: &Fit| fit.width_ns.max(2.0 * tick_ns) <= 0.5 * fit.period_ns;
    if let Some((fit, stretch_ns)) = stretch(SAMPLES_MAX) {
        let track = |memory| tracked(steps, tick_ns, fit, stretch_ns, memory);
        return track(f64::INFINITY).or_else(|| may_wander(&fit).then(|| track(MEMORY))?);
    }
    let (fit, stretch_ns) = stretch(SAMPLES_FEW).filter(|(fit, _)| may_wander(fit))?;
    tracked(steps, tick_ns, fit, stretch_ns, MEMORY)
}

fn tracked(
    steps: &(impl Replay + ?Sized),
    tick_ns: f64,
    fit: Fit,
    stretch_ns: u64,
    memory: f64,
) -> Option<Tracked> {
    let mut tracker = Tracker::new(fit, tick_ns, stretch_ns, memory);
    steps.replay(|ns, bytes| tracker.push(ns, bytes));
    tracker.finish()
}

/// Lists the steps of more than 1.5 medians, or stated periods.
fn uneven(steps: &(impl Replay + ?Sized), median_ns: u64, known: &Known) -> Tracked {
    let usual_ns = known
        .period_ns
        .map_or(median_ns, |ns| round(ns).max(1) as u64);
    let mut gaps = Vec::new();
    let mut room = 0;
    each_at(steps, |mut gap| {
        if u128::from(gap.step_ns) * 2 > u128::from(usual_ns) * 3 {
            let fits = rounded_ratio(gap.step_ns, usual_ns).saturating_sub(1);
            gap.missing = Missing::RoomFor(fits);
            room += fits;
            gaps.push(gap);
        }
    });
    Tracked {
        period_ns: usual_ns as f64,
        missing: Missing::RoomFor(room),
        gaps,
        periods: 0,
        width_ns: 0.0,
    }
}

/// Calls `each` with every step and its place.
fn each_at(steps: &(impl Replay + ?Sized), mut each: impl FnMut(LateStep)) {
    let mut step = LateStep {
        after_sample: 0,
        at_ns: 0,
        at_bytes: 0,
        step_ns: 0,
        missing: Missing::Exactly(0),
    };
    steps.replay(|step_ns, bytes| {
        step.step_ns = step_ns;
        each(step);
        step.after_sample += 1;
        step.at_ns = step.at_ns.saturating_add(step_ns);
        step.at_bytes = step.at_bytes.saturating_add(bytes);
    });
}

/// Returns `a / b` rounded to the nearest integer, halves up, or 0 if `b` is 0.
fn rounded_ratio(a: u64, b: u64) -> u64 {
    (u128::from(a) * 2 + u128::from(b))
        .checked_div(u128::from(b) * 2)
        .unwrap_or(0) as u64
}

/// Returns the nearest integer.
fn round(value: f64) -> i64 {
    (value + if value < 0.0 { -0.5 } else { 0.5 }) as i64
}
