//! Assignment of every sample to a point of a grid whose period is fitted as samples arrive.

use super::pattern::{Distances, Regularity};
use super::scan::{self, Fit};
use super::{LateStep, Missing, round};
use alloc::vec::Vec;

/// Number of samples from which the phase is found after a long gap.
const ACQUIRED: usize = 128;

/// Number of samples after which the period is updated.
const UPDATE_SAMPLES: u64 = 16;

/// Number of samples after which a grid that wanders forgets.
pub(super) const MEMORY: f64 = 256.0;

/// Distance of a gap from whole periods, in periods, from which its number of missing samples is uncertain.
const UNCERTAIN: f64 = 0.3;

/// Result of a pass over all samples.
pub(super) struct Tracked {
    pub period_ns: f64,
    pub missing: Missing,
    pub gaps: Vec<LateStep>,
    /// Number of periods from the first sample to the last.
    pub periods: u64,
    /// Tick and jitter together.
    pub width_ns: f64,
}

/// A gap after which the phase is searched again.
struct Break {
    /// Index in `gaps`.
    gap: usize,
    /// Distance of the points of the grid before and after the gap.
    ns: f64,
    /// Uncertainty of this distance.
    slack_ns: f64,
}

/// Sums for the straight line through times over indices, within one phase.
#[derive(Clone, Default)]
struct Line {
    weight: f64,
    mean_k: f64,
    mean_ns: f64,
    lo_ns: f64,
    hi_ns: f64,
}

pub(super) struct Tracker {
    fit: Fit,
    tick_ns: f64,
    /// Number of samples that count; infinite for a constant period.
    memory: f64,
    line: Line,
    /// Sum of squares of the indices, and of their products with the distances from the first period's grid.
    squares: f64,
    products: f64,
    /// Period minus the first one, and the reciprocal of the period.
    slope_ns: f64,
    per_ns: f64,
    k: f64,
    /// Time minus `k` first periods.
    rest_ns: f64,
    /// Longest time with one phase.
    span_ns: f64,
    samples: u64,
    at_ns: u64,
    at_bytes: u64,
    gaps: Vec<LateStep>,
    breaks: Vec<Break>,
    waiting: Vec<(u64, u64)>,
    distances: Distances,
    missing: u64,
    /// Samples on a point of the grid that another one has.
    extra: u64,
    /// Samples that were late by more than half a period, before one on time.
    late: u64,
    regularity: Regularity,
    last_m: u64,
    periods: u64,
}

impl Tracker {
    /// Starts with the period of a stretch of `stretch_ns`. `memory` is the number of samples after which the fit
    /// forgets.
    pub(super) fn new(fit: Fit, tick_ns: f64, stretch_ns: u64, memory: f64) -> Tracker {
        let periods = (stretch_ns as f64 / fit.period_ns).min(memory).max(2.0);
        Tracker {
            fit,
            tick_ns,
            memory,
            line: Line::default(),
            squares: periods * periods * periods / 12.0,
            products: 0.0,
            slope_ns: 0.0,
            per_ns: 1.0 / fit.period_ns,
            k: 0.0,
            rest_ns: 0.0,
            span_ns: periods * fit.period_ns,
            samples: 0,
            at_ns: 0,
            at_bytes: 0,
            gaps: Vec::new(),
            breaks: Vec::new(),
            waiting: Vec::with_capacity(ACQUIRED),
            distances: Distances::default(),
            missing: 0,
            extra: 0,
            late: 0,
            regularity: Regularity::default(),
            last_m: 1,
            periods: 0,
        }
    }

    fn period_ns(&self) -> f64 {
        self.fit.period_ns + self.slope_ns
    }

    /// Takes the period from the sums.
    fn update_period(&mut self) {
        self.slope_ns = self.products / self.squares;
        self.per_ns = 1.0 / self.period_ns();
    }

    fn width_ns(&self) -> f64 {
        self.fit.width_ns.max(self.tick_ns)
    }

    /// Returns the distance of the present sample from its point of the grid.
    fn distance_ns(&self) -> f64 {
        self.rest_ns - (self.line.mean_ns + self.slope_ns * (self.k - self.line.mean_k))
    }

    /// Takes the step to the next sample. A sample with the time of the one before is a duplicate.
    pub(super) fn push(&mut self, step_ns: u64, bytes: u64) {
        if self.samples > 0 && self.waiting.is_empty() && step_ns == 0 {
            self.at_bytes += bytes;
            self.samples += 1;
            return;
        }
        if !self.waiting.is_empty() || self.samples == 0 {
            if self.samples > 0 && self.is_long(step_ns) {
                self.acquire();
            } else {
                self.waiting.push((step_ns, bytes));
                if self.waiting.len() == ACQUIRED {
                    self.acquire();
                }
                self.samples = self.samples.max(1);
                return;
            }
        }
        self.step(step_ns, bytes);
    }

    /// Returns true if the period is not known well enough to count the periods of a step.
    fn is_long(&self, step_ns: u64) -> bool {
        let free = 1.0 - (self.width_ns() / self.fit.period_ns).min(0.95);
        let span_ns = self.span_ns.min(self.memory * self.fit.period_ns);
        step_ns as f64 * self.width_ns() > free / 4.0 * self.fit.period_ns * span_ns
    }

    fn step(&mut self, step_ns: u64, bytes: u64) {
        let period_ns = self.period_ns();
        let due = (self.distance_ns() + step_ns as f64) * self.per_ns;
        let m = round(due).max(0) as u64;
        let off = (due - m as f64).abs() * period_ns;
        let far_ns = (self.fit.width_ns * 0.6 + 0.05 * period_ns).max(self.tick_ns);
        // Wide jitter hides a change of the phase in a single sample.
        let is_hidden = self.fit.width_ns > 0.5 * period_ns && m >= 4;
        if m >= 2 && (self.is_long(step_ns) || off > far_ns || is_hidden) {
            return self.break_at(step_ns, bytes);
        }
        self.note(step_ns, bytes, m);
        self.advance(step_ns, m);
    }

    /// Counts a step of `m` periods.
    fn note(&mut self, step_ns: u64, bytes: u64, m: u64) {
        let late_ns = 1.5 * self.fit.period_ns + self.width_ns();
        if m == 0 {
            // A sample that was late by more than half a period took the place of the next one.
            match self.gaps.last_mut() {
                Some(gap) if self.last_m >= 2 => {
                    self.missing -= 1;
                    self.late += 1;
                    gap.missing = Missing::Exactly(self.last_m - 2);
                }
                _ => self.extra += 1,
            }
        } else if m >= 2 || step_ns as f64 > late_ns {
            self.missing += m - 1;
            self.push_gap(step_ns, Missing::Exactly(m - 1));
        }
        self.regularity.push(m);
        self.last_m = m;
        self.periods += m;
        self.at_ns += step_ns;
        self.at_bytes += bytes;
        self.samples += 1;
    }

    fn push_gap(&mut self, step_ns: u64, missing: Missing) {
        self.gaps.push(LateStep {
            after_sample: self.samples - 1,
            at_ns: self.at_ns,
            at_bytes: self.at_bytes,
            step_ns,
            missing,
        });
    }

    /// Adds a sample to the sums.
    fn advance(&mut self, step_ns: u64, m: u64) {
        self.k += m as f64;
        self.rest_ns += step_ns as f64 - m as f64 * self.fit.period_ns;
        let off_ns = self.distance_ns();
        let period_ns = self.period_ns();
        self.distances.push(off_ns * self.per_ns);
        self.line.lo_ns = self.line.lo_ns.min(off_ns);
        self.line.hi_ns = self.line.hi_ns.max(off_ns);
        if off_ns.abs() > self.width_ns() * 0.75 + 0.1 * period_ns {
            return;
        }
        let line = &mut self.line;
        let before = line.weight;
        line.weight = (before + 1.0).min(self.memory);
        let share = 1.0 / line.weight;
        let (dk, dns) = (self.k - line.mean_k, self.rest_ns - line.mean_ns);
        if before >= self.memory {
            self.squares *= 1.0 - share;
            self.products *= 1.0 - share;
        }
        line.mean_k += dk * share;
        line.mean_ns += dns * share;
        self.squares += dk * dk * (1.0 - share);
        self.products += dk * dns * (1.0 - share);
        let span_ns = self.k * period_ns;
        self.span_ns = self.span_ns.max(span_ns);
        // Divisions are slow, and the period hardly changes from sample to sample.
        if self.samples.is_multiple_of(UPDATE_SAMPLES) {
            self.update_period();
        }
    }

    /// Ends the present phase with a step whose number of periods is counted at the end.
    fn break_at(&mut self, step_ns: u64, bytes: u64) {
        let slack_ns = (self.width_ns() - (self.line.hi_ns - self.line.lo_ns)).max(0.0) / 2.0;
        self.breaks.push(Break {
            gap: self.gaps.len(),
            ns: step_ns as f64 + self.distance_ns(),
            slack_ns,
        });
        self.push_gap(step_ns, Missing::Exactly(0));
        self.at_ns += step_ns;
        self.at_bytes += bytes;
        self.samples += 1;
        self.last_m = 1;
        self.waiting.push((0, 0));
    }

    /// Finds the phase of the samples that wait, and takes them.
    fn acquire(&mut self) {
        self.update_period();
        let period_ns = self.period_ns();
        let waiting = core::mem::take(&mut self.waiting);
        let mut phases = Vec::with_capacity(waiting.len() + 1);
        let mut turns = 0.0;
        // The first entry after a gap is the sample itself.
        let is_start = self.samples <= 1 && self.breaks.is_empty();
        if is_start {
            phases.push(0.0);
        }
        for &(step_ns, _) in &waiting {
            turns += step_ns as f64 / period_ns;
            phases.push(turns - turns as u64 as f64);
        }
        phases.sort_unstable_by(f64::total_cmp);
        let outliers = if phases.len() >= 64 {
            phases.len() / 64
        } else {
            0
        };
        let (width, centre) = scan::arc(&phases, outliers);
        // The first sample is at phase 0.
        let off_ns = -(centre - round(centre) as f64) * period_ns;
        let slack_ns = (self.width_ns() - width * period_ns).max(0.0) / 2.0;
        if let (Some(last), false) = (self.breaks.last_mut(), is_start) {
            last.ns -= off_ns;
            last.slack_ns += slack_ns;
        }
        (self.k, self.rest_ns) = (0.0, off_ns);
        self.line = Line {
            // As if so many samples had been at the centre.
            weight: phases.len() as f64,
            ..Line::default()
        };
        self.samples = self.samples.max(1);
        for (step_ns, bytes) in waiting {
            if step_ns > 0 {
                self.push(step_ns, bytes);
            }
        }
    }

    /// Returns the result, or `None` if too many samples are off the grid.
    pub(super) fn finish(mut self) -> Option<Tracked> {
        while !self.waiting.is_empty() {
            self.acquire();
        }
        if !self.is_on_grid() {
            return None;
        }
        self.update_period();
        let period_ns = self.period_ns();
        let span_ns = self.span_ns.min(self.memory * self.fit.period_ns);
        let relative = self.width_ns() / span_ns;
        let (mut low, mut high) = (self.missing, self.missing);
        for gap in &self.breaks {
            let count = gap.ns / period_ns;
            let doubt = (gap.ns * relative + gap.slack_ns) / period_ns;
            let (least, most) = whole_counts(count, doubt);
            let (least, most) = (least.saturating_sub(1), most.saturating_sub(1));
            low += least;
            high += most;
            self.gaps[gap.gap].missing = Missing::between(least, most);
            self.periods += round(count).max(0) as u64;
        }
        Some(Tracked {
            period_ns,
            missing: Missing::between(low, high),
            width_ns: self.width_ns(),
            gaps: self.gaps,
            periods: self.periods,
        })
    }

    fn is_on_grid(&self) -> bool {
        let samples = self.distances.samples();
        let strays = self.extra + self.late;
        strays * 100 <= samples + 100
            && !self.regularity.is_regular(samples)
            && self.distances.fit_in(self.width_ns() / self.fit.period_ns)
    }
}

/// Returns the least and the greatest whole number of periods in a gap that is `count` periods long.
fn whole_counts(count: f64, doubt: f64) -> (u64, u64) {
    let nearest = round(count);
    if (count - nearest as f64).abs() + doubt < 0.5 - UNCERTAIN / 2.0 {
        return (nearest.max(0) as u64, nearest.max(0) as u64);
    }
    let low = (count - doubt - UNCERTAIN / 2.0).max(0.0) as u64;
    (low, (count + doubt + UNCERTAIN / 2.0) as u64 + 1)
}
