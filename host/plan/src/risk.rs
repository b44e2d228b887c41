//! Risk that a run longer than the measured one exceeds a buffer size.

use crate::pareto::{CAUTIOUS_SHAPE_MIN, Excesses, Fit, SHAPE_MIN};
use cardiograph_timing::tail::BusyPeriods;

/// Numbers of peak backlogs to try for a fit, each about sqrt(2) times the previous one. Fewer peak backlogs
/// are not conclusive; more of them reach into the bulk of the distribution without the goodness-of-fit test
/// noticing: with 512 peak backlogs, the interval missed the true value for a third of the seeds under a
/// Weibull distribution (`tests/coverage.rs`).
const COUNTS: [usize; 4] = [32, 45, 64, 91];
/// Number of greatest peak backlogs needed: the largest count, and one more as the threshold.
pub const PEAKS_MAX: usize = COUNTS[COUNTS.len() - 1] + 1;
/// Minimum number of peak backlogs for a fit.
pub(crate) const PEAKS_MIN: usize = COUNTS[0] + 1;

/// 95 % quantile of the deviance. For many peak backlogs it is 3.84 (chi-squared, one degree of freedom);
/// for 32 it is the square of 2.04 (Student's t).
const DEVIANCE: f64 = 4.2;
/// 97.5 % quantile of the normal distribution.
const NORMAL: f64 = 1.96;
/// Upper limit of an expected number if nothing was observed: with 95 % confidence fewer than three are
/// expected, as e^-3 is 5 %.
const RULE_OF_THREE: f64 = 3.0;

/// An expected number, or a probability, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Most likely value; `None` if there is only a bound.
    pub likely: Option<f64>,
    /// Lower limit of the confidence interval.
    pub low: f64,
    /// Upper limit of the confidence interval.
    pub high: f64,
}

/// Tail of the peak backlogs of one run.
#[derive(Debug)]
pub struct Tail(Option<Fitted>);

/// Fitted distribution of the peak backlogs above a threshold.
#[derive(Debug)]
struct Fitted {
    threshold_bytes: f64,
    excesses: Excesses,
    fit: Fit,
    /// Fit for upper bounds, with a cautious minimum shape.
    cautious: Fit,
}

impl Tail {
    /// Fits the tail to as many of the greatest peak backlogs as one distribution describes: the first of 91, 64,
    /// 45 and 32 at which the Anderson-Darling test does not reject the fit at the 10 % level.
    pub fn of(periods: &BusyPeriods) -> Tail {
        Tail::of_greatest(&periods.peaks_bytes)
    }

    /// Fits the tail like [`Tail::of`] to any values, given in descending order.
    pub(crate) fn of_greatest(peaks: &[f64]) -> Tail {
        let counts = COUNTS.into_iter().filter(|&count| count < peaks.len());
        Tail(counts.rev().find_map(|count| Fitted::above(peaks, count)))
    }

    /// Returns true if a distribution was fitted, so that values beyond the measured ones can be predicted.
    pub fn is_fitted(&self) -> bool {
        self.0.is_some()
    }

    /// Figures of the fit: threshold in bytes, number of peak backlogs above it, shape, and scale in bytes.
    pub fn figures(&self) -> Option<(f64, usize, f64, f64)> {
        let law = self.0.as_ref()?;
        Some((
            law.threshold_bytes,
            law.excesses.count(),
            law.fit.shape,
            law.fit.scale,
        ))
    }

    /// Returns the value that is exceeded `expected` times, less often than the threshold, in a run as long as the
    /// measured one: the most likely value, without an interval.
    pub(crate) fn exceeded(&self, expected: f64) -> Option<f64> {
        let (threshold, count, shape, scale) = self.figures()?;
        let ratio = count as f64 / expected;
        let excess = match shape.abs() < 1e-9 {
            true => scale * libm::log(ratio),
            false => scale / shape * (libm::pow(ratio, shape) - 1.0),
        };
        Some(threshold + excess)
    }

    /// Returns the expected number of busy periods that exceed `buffer_bytes` in a run as long as the
    /// measured one: above the threshold of the fit, computed from the fit; otherwise, estimated from the
    /// measured count `exceeding`.
    pub fn expected_above(&self, buffer_bytes: u64, exceeding: u64) -> Interval {
        let buffer_bytes = buffer_bytes as f64;
        match &self.0 {
            Some(fitted) if buffer_bytes >= fitted.threshold_bytes => {
                fitted.expected_above(buffer_bytes)
            }
            _ => counted(exceeding),
        }
    }
}

impl Fitted {
    /// Fits the `count` greatest peak backlogs, with the next smaller one as the threshold; returns `None`
    /// if the fit is rejected.
    fn above(peaks: &[f64], count: usize) -> Option<Fitted> {
        let threshold_bytes = peaks[count];
        let greatest = peaks[..count].iter();
        let excesses = Excesses::new(greatest.map(|peak| peak - threshold_bytes).collect())?;
        let fit = excesses.fit(SHAPE_MIN);
        (excesses.distance(&fit) < distance_max(fit.shape)).then(|| Fitted {
            threshold_bytes,
            fit,
            cautious: excesses.fit(CAUTIOUS_SHAPE_MIN),
            excesses,
        })
    }

    fn expected_above(&self, buffer_bytes: f64) -> Interval {
        let over_bytes = buffer_bytes - self.threshold_bytes;
        let bound = |fit, sign| {
            self.excesses
                .expected_above(fit, over_bytes, DEVIANCE, sign)
        };
        let likely = self.excesses.count() as f64 * self.fit.share_above(over_bytes);
        Interval {
            likely: Some(likely),
            low: bound(&self.fit, -1.0).min(likely),
            high: bound(&self.cautious, 1.0).max(likely),
        }
    }
}

/// 95 % interval of the mean of a Poisson variable observed as `count` (Byar's approximation; Breslow and Day
/// 1987).
fn counted(count: u64) -> Interval {
    if count == 0 {
        return Interval {
            likely: None,
            low: 0.0,
            high: RULE_OF_THREE,
        };
    }
    let end = |n: f64, sign: f64| {
        let root = 1.0 - 1.0 / (9.0 * n) + sign * NORMAL / (3.0 * n.sqrt());
        n * (root * root * root)
    };
    let count = count as f64;
    Interval {
        likely: Some(count),
        low: end(count, -1.0).max(0.0),
        high: end(count + 1.0, 1.0),
    }
}

impl Interval {
    /// Returns the probability of at least one occurrence in a run `times_as_long` times as long.
    pub fn at_least_one(&self, times_as_long: f64) -> Interval {
        let probability = |mean: f64| -libm::expm1(-mean * times_as_long);
        Interval {
            likely: self.likely.map(probability),
            low: probability(self.low),
            high: probability(self.high),
        }
    }
}

/// 90 % quantile of the Anderson-Darling distance between a sample and the distribution fitted to it. Obtained by
/// simulation, because the published table (Choulakian and Stephens 2001) is for fits without a minimum shape.
fn distance_max(shape: f64) -> f64 {
    const POINTS: [(f64, f64); 6] = [
        (-1.0, 1.7),
        (-0.7, 1.1),
        (-0.3, 0.88),
        (0.0, 0.78),
        (0.5, 0.67),
        (1.0, 0.63),
    ];
    let after = POINTS.iter().position(|point| point.0 > shape);
    match after {
        Some(0) => POINTS[0].1,
        Some(after) => {
            let ((left, low), (right, high)) = (POINTS[after - 1], POINTS[after]);
            low + (high - low) * (shape - left) / (right - left)
        }
        None => POINTS[POINTS.len() - 1].1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::Seed;

    /// Draws from a generalised Pareto distribution of scale 1; returns the values in descending order.
    fn sample(shape: f64, count: usize, seed: u64) -> Vec<f64> {
        let mut random = Seed::new(seed).stream("sample");
        let mut draw = || {
            let above = ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
            excess_exceeded_by(above, shape)
        };
        let mut sample: Vec<f64> = (0..count).map(|_| draw()).collect();
        sample.sort_unstable_by(|a, b| b.total_cmp(a));
        sample
    }

    fn excess_exceeded_by(share: f64, shape: f64) -> f64 {
        match shape {
            0.0 => -share.ln(),
            shape => (share.powf(-shape) - 1.0) / shape,
        }
    }

    #[test]
    fn one_sample_in_ten_exceeds_the_distance_of_the_table() {
        for shape in [-0.7, -0.3, 0.0, 0.5, 1.0] {
            let is_rejected = |seed| {
                let excesses = Excesses::new(sample(shape, 128, seed)).unwrap();
                let fit = excesses.fit(SHAPE_MIN);
                excesses.distance(&fit) >= distance_max(fit.shape)
            };
            let rejected = (0..1000).filter(|&seed| is_rejected(seed)).count();
            println!("shape {shape}: {rejected} of 1000 rejected");
            assert!((60..=140).contains(&rejected), "shape {shape}: {rejected}");
        }
    }

    #[test]
    fn a_fit_recovers_the_shape_of_its_sample() {
        for shape in [-0.7, -0.3, 0.0, 0.5, 1.0] {
            let fits = (0..200).map(|seed| {
                let excesses = Excesses::new(sample(shape, 512, seed)).unwrap();
                excesses.fit(SHAPE_MIN)
            });
            let (mut shapes, mut scales) = (0.0, 0.0);
            fits.for_each(|fit| {
                shapes += fit.shape / 200.0;
                scales += fit.scale / 200.0;
            });
            assert!((shapes - shape).abs() < 0.03, "{shapes} for {shape}");
            assert!((scales - 1.0).abs() < 0.03, "scale {scales} at {shape}");
        }
    }

    /// Compares the bounds with a search over all distributions on a fine grid.
    #[test]
    fn the_bounds_are_those_of_all_likely_distributions() {
        for (seed, shape) in [(1, -0.3), (2, 0.0), (3, 0.4)] {
            let sample = sample(shape, 64, seed);
            let log_likelihood = |shape: f64, scale: f64| -> f64 {
                let log_density =
                    |y: &f64| -(1.0 + 1.0 / shape) * (1.0 + shape * y / scale).ln() - scale.ln();
                match 1.0 + shape * sample[0] / scale > 0.0 {
                    true => sample.iter().map(log_density).sum(),
                    false => f64::NEG_INFINITY,
                }
            };
            let laws: Vec<(f64, f64)> = (-500..1000)
                .flat_map(|i| {
                    (0..200).map(move |j| (f64::from(i) * 0.001 + 1e-7, 0.4 + f64::from(j) * 0.01))
                })
                .collect();
            let likelihoods: Vec<f64> = laws
                .iter()
                .map(|law| log_likelihood(law.0, law.1))
                .collect();
            let greatest = likelihoods
                .iter()
                .copied()
                .fold(f64::NEG_INFINITY, f64::max);
            let y = excess_exceeded_by(1e-3, shape);
            let mut bounds = [f64::INFINITY, 0.0];
            for (law, likelihood) in laws.iter().zip(&likelihoods) {
                let spare = DEVIANCE - 2.0 * (greatest - likelihood);
                if spare < 0.0 {
                    continue;
                }
                let share = (1.0 + law.0 * y / law.1).max(0.0).powf(-1.0 / law.0);
                // Try every mean whose Poisson deviance is within the remaining deviance.
                for mean in (200..1200).map(|tenth| f64::from(tenth) / 10.0) {
                    if 2.0 * (mean - 64.0 - 64.0 * (mean / 64.0).ln()) <= spare {
                        bounds = [bounds[0].min(mean * share), bounds[1].max(mean * share)];
                    }
                }
            }
            let excesses = Excesses::new(sample.clone()).unwrap();
            let fit = excesses.fit(-0.5);
            for (sign, expected) in [(-1.0, bounds[0]), (1.0, bounds[1])] {
                let found = excesses.expected_above(&fit, y, DEVIANCE, sign);
                let is_close = (found - expected).abs() < 0.03 * expected + 1e-6;
                assert!(
                    is_close,
                    "seed {seed}, shape {shape}: {found} for {expected}"
                );
            }
        }
    }

    #[test]
    fn the_value_exceeded_once_in_ten_runs_is_that_of_the_distribution() {
        const COUNT: usize = 364;
        for shape in [-0.2, 0.0, 0.3] {
            let found = (0..100)
                .filter_map(|seed| Tail::of_greatest(&sample(shape, COUNT, seed)).exceeded(0.1));
            let mut found: Vec<f64> = found.collect();
            found.sort_unstable_by(f64::total_cmp);
            let expected = excess_exceeded_by(0.1 / COUNT as f64, shape);
            // A fit to few values of a heavy tail is more often too low than too high.
            let median = found[found.len() / 2];
            assert!(
                (median / expected - 1.0).abs() < 0.2,
                "{median} for {expected}"
            );
        }
    }

    #[test]
    fn peak_backlogs_without_spread_are_counted() {
        let periods = |peaks_bytes: Vec<f64>| BusyPeriods {
            count: peaks_bytes.len() as u64,
            peaks_bytes,
            exceeding: Vec::new(),
        };
        for peaks in [vec![], vec![600.0], vec![4000.0; 500]] {
            let tail = Tail::of(&periods(peaks));
            assert!(!tail.is_fitted());
            let none = tail.expected_above(8192, 0);
            assert_eq!((none.likely, none.low, none.high), (None, 0.0, 3.0));
        }
    }

    /// Exact limits of a Poisson mean, from tables (Garwood 1936).
    #[test]
    fn counts_have_the_published_limits() {
        for (count, low, high) in [(1, 0.0253, 5.572), (5, 1.623, 11.668), (20, 12.217, 30.888)] {
            let found = counted(count);
            assert!((found.low - low).abs() < 0.02, "{found:?}");
            assert!((found.high - high).abs() < 0.02, "{found:?}");
        }
    }
}
