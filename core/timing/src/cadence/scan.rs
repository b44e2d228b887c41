//! Search for the periods that fit a stretch of samples.

use super::round;
use alloc::vec::Vec;

/// Maximum number of samples in a stretch.
pub(super) const SAMPLES_MAX: usize = 1024;

/// Number of samples of the second attempt, for loops whose error adds up from sample to sample.
pub(super) const SAMPLES_FEW: usize = 64;

/// Number of samples in a part that has one phase.
const PART_SAMPLES: usize = 32;

/// Largest share of outliers: one in this many.
const OUTLIERS_ONE_IN: usize = 64;

/// Arcs wider than this, relative to the period, show nothing.
const ARC_MAX: f64 = 0.95;

/// Largest number of distinct phases of times in whole ticks.
const PHASES_MAX: u32 = 64;

/// Tick, in periods, from which a clock is coarse, and the jitter that it may have, in ticks.
const COARSE: f64 = 0.25;
const COARSE_JITTER: f64 = 0.5;

/// Widest arc, relative to the period, of which some samples are outliers.
const ARC_OF_MOST_MAX: f64 = 0.75;

/// Probability below which an arc is no coincidence, for all periods tried together.
const CHANCE_MAX: f64 = 1e-11;

/// Periods that are shorter than this multiple of the median step are not tried.
const MEDIANS_MIN: f64 = 0.6;

/// The mean step is at most this multiple of the period; this bounds the search.
const MEANS_MAX: f64 = 16.0;

/// A period, and the samples' distances from its grid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fit {
    pub period_ns: f64,
    /// Width of the shortest interval that contains all distances but outliers, in ns.
    pub width_ns: f64,
    /// Centre of that interval, after the first sample of the stretch, in ns; from 0 to the period.
    pub centre_ns: f64,
}

/// Times of consecutive samples without a long gap, in ns after the first.
pub(super) struct Stretch<'a> {
    pub times_ns: &'a [u64],
    /// Tick of the clock.
    pub tick_ns: f64,
    /// Median of the steps.
    pub median_ns: u64,
}

impl Stretch<'_> {
    /// Returns the longest period of all that fit within one tick and the jitter of the period that fits best; `None`
    /// if no period fits better than chance.
    pub(super) fn longest_period(&self, stated_ns: Option<f64>) -> Option<Fit> {
        let fits = self.fits(stated_ns);
        let least = fits.iter().map(|fit| fit.width_ns);
        let least = least.fold(f64::INFINITY, f64::min);
        let tick = self.tick_ns;
        let tolerance = (tick + (least - tick).max(0.0) * 1.25) * 1.001;
        // On a coarse clock a fraction of the period, with regular losses, seems to have less jitter.
        let coarse = tick * (1.0 + COARSE_JITTER);
        let fits = fits.into_iter().filter(|fit| {
            let is_coarse = tick > COARSE * fit.period_ns && fit.width_ns <= coarse;
            fit.width_ns <= tolerance || is_coarse
        });
        let longest = fits.max_by(|a, b| a.period_ns.total_cmp(&b.period_ns));
        longest.map(|fit| self.of_one_phase(fit))
    }

    /// Narrows a fit to the width of short parts, because the phase may change within the stretch.
    fn of_one_phase(&self, fit: Fit) -> Fit {
        let turns = |ns: &u64| *ns as f64 / fit.period_ns;
        let mut widths: Vec<f64> = Vec::new();
        for part in self.times_ns.chunks_exact(PART_SAMPLES) {
            let phases = part.iter().map(|ns| turns(ns) - turns(ns) as u64 as f64);
            let mut phases: Vec<f64> = phases.collect();
            phases.sort_unstable_by(f64::total_cmp);
            widths.push(arc(&phases, 0).0);
        }
        widths.sort_unstable_by(f64::total_cmp);
        let usual_ns = match widths.get(widths.len() / 2) {
            Some(width) => (width * 1.15 * fit.period_ns).max(self.tick_ns),
            None => fit.width_ns,
        };
        Fit {
            width_ns: fit.width_ns.min(usual_ns),
            ..fit
        }
    }

    /// Returns the best fit of every interval of periods that fit.
    fn fits(&self, stated_ns: Option<f64>) -> Vec<Fit> {
        let count = self.times_ns.len();
        let mut fits = Vec::new();
        let (Some(&end_ns), true) = (self.times_ns.last(), count >= 4) else {
            return fits;
        };
        let end = end_ns as f64;
        // Consecutive samples are on different points of the grid.
        let mean_max = end / (count - 2) as f64;
        let (longest, shortest) = match stated_ns {
            Some(ns) => (ns * 1.01, ns / 1.01),
            // Samples of a period below the tick have no times of their own.
            None => {
                let median_ns = self.median_ns as f64;
                let shortest = (median_ns * MEDIANS_MIN).max(mean_max / MEANS_MAX);
                (mean_max, shortest.max(self.tick_ns))
            }
        };
        // A change of the frequency by this turns the last sample's phase by a fiftieth.
        let step_hz = 0.02 / end;
        let trials = ((1.0 / shortest - 1.0 / longest) / step_hz).max(0.0) as u64;
        let mut phases = Vec::new();
        let mut best: Option<Fit> = None;
        for trial in 0..=trials + 1 {
            let period = 1.0 / (1.0 / longest + trial as f64 * step_hz);
            let fit = Some(period)
                .filter(|&period| trial <= trials && self.leaves_room(period))
                .and_then(|period| self.fit(period, &mut phases));
            best = match (fit, best) {
                (Some(fit), Some(best))
                    if best.width_ns / best.period_ns <= fit.width_ns / fit.period_ns =>
                {
                    Some(best)
                }
                (Some(fit), _) => Some(fit),
                (None, Some(best)) => {
                    fits.push(self.refined(best, &mut phases));
                    None
                }
                (None, None) => None,
            };
        }
        fits
    }

    /// Moves a fit to the straight line through the times over their indices.
    fn refined(&self, fit: Fit, phases: &mut Vec<f64>) -> Fit {
        let mut best = fit;
        for _ in 0..2 {
            let index = |ns: u64| round((ns as f64 - best.centre_ns) / best.period_ns) as f64;
            let count = self.times_ns.len() as f64;
            let mean_k = self.times_ns.iter().map(|&ns| index(ns)).sum::<f64>() / count;
            let (mut squares, mut products) = (0.0, 0.0);
            for &ns in self.times_ns {
                let (k, rest_ns) = (index(ns), ns as f64 - index(ns) * best.period_ns);
                squares += (k - mean_k) * (k - mean_k);
                products += (k - mean_k) * rest_ns;
            }
            match self.fit(best.period_ns + products / squares, phases) {
                Some(fit) if squares > 0.0 => best = fit,
                _ => break,
            }
        }
        best
    }

    /// Returns false if the samples are all around the period, which is the usual result and needs no sorting.
    fn leaves_room(&self, period_ns: f64) -> bool {
        let (mut once, mut twice) = (0u64, 0u64);
        let per_ns = 1.0 / period_ns;
        for &ns in self.times_ns {
            let turns = ns as f64 * per_ns;
            let bin = 1u64 << (((turns - turns as u64 as f64) * 64.0) as u32 & 63);
            twice |= once & bin;
            once |= bin;
            if twice == u64::MAX {
                return false;
            }
        }
        true
    }

    fn fit(&self, period_ns: f64, phases: &mut Vec<f64>) -> Option<Fit> {
        phases.clear();
        let turns = self.times_ns.iter().map(|&ns| ns as f64 / period_ns);
        phases.extend(turns.map(|turns| turns - turns as u64 as f64));
        phases.sort_unstable_by(f64::total_cmp);
        let count = phases.len();
        let between = self.between_phases(period_ns, 1.0);
        // Few consecutive samples of a coarse clock do not drift through all phases.
        let unseen = self.between_phases(period_ns, 0.25);
        [0, count / OUTLIERS_ONE_IN]
            .into_iter()
            .find_map(|outliers| {
                let (width, centre) = arc(phases, outliers);
                is_significant(count, (width + unseen).max(1e-4), outliers).then_some(Fit {
                    period_ns,
                    width_ns: (width + between).max(1e-4) * period_ns,
                    centre_ns: centre * period_ns,
                })
            })
    }

    /// Returns the distance between the phases that times in whole ticks can have, relative to the period: they leave
    /// arcs of this width free on any grid. Over a `part` of the stretch, drift fills these arcs.
    fn between_phases(&self, period_ns: f64, part: f64) -> f64 {
        let turns = self.tick_ns / period_ns;
        let end_ns = self.times_ns.last().map_or(0.0, |&ns| ns as f64);
        let ticks = part * end_ns / self.tick_ns;
        let free = (1..=PHASES_MAX).map(|phases| {
            let all = turns * f64::from(phases);
            1.0 / f64::from(phases) - (all - round(all) as f64).abs() * ticks / f64::from(phases)
        });
        free.fold(0.0, f64::max)
    }
}

/// Returns width and centre of the shortest arc that contains all phases but a number of adjacent outliers.
pub(super) fn arc(sorted: &[f64], outliers: usize) -> (f64, f64) {
    let count = sorted.len();
    let mut best = (0.0, 0.0);
    for (index, &from) in sorted.iter().enumerate() {
        let after = index + 1 + outliers;
        let to = sorted[after % count] + (after / count) as f64;
        if to - from > best.0 {
            best = (to - from, to);
        }
    }
    let width = (1.0 - best.0).max(0.0);
    let centre = best.1 + width / 2.0;
    (width, centre - centre as u64 as f64)
}

/// Returns true if random phases would hardly leave an arc free.
pub(super) fn is_significant(count: usize, width: f64, outliers: usize) -> bool {
    if width > ARC_MAX {
        return false;
    }
    if outliers > 0 {
        // Chernoff's bound for the number of samples outside the arc, simplified.
        return width <= ARC_OF_MOST_MAX
            && (1.0 - width) * count as f64 >= 24.0 + 3.0 * outliers as f64;
    }
    let mut chance = count as f64;
    for _ in 1..count {
        chance *= width;
        if chance < CHANCE_MAX {
            return true;
        }
    }
    false
}
