//! How often a longer run than the measured one needs more RAM than there is.

use crate::pareto::{CAUTIOUS_SHAPE_MIN, Excesses, Fit, SHAPE_MIN};
use cardiograph_timing::tail::BusyPeriods;

/// Heights that are looked at, at most: with more the tail would reach into the bulk.
pub const HEIGHTS_MAX: usize = 513;
/// Heights that are fitted, at least.
pub const EXCESSES_MIN: usize = 32;

/// 95 % of the chi-squared distribution of one degree of freedom.
const DEVIANCE: f64 = 4.2;
/// 97.5 % of the normal distribution.
const NORMAL: f64 = 1.96;
/// None seen: with 95 % confidence fewer than so many are to be expected, as e^-3 is 5 %.
const RULE_OF_THREE: f64 = 3.0;

/// How many to expect, with a 95 % confidence interval; or a probability with one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The likeliest value; `None` if there is only a bound.
    pub likely: Option<f64>,
    /// Least value.
    pub low: f64,
    /// Greatest value.
    pub high: f64,
}

/// The tail of the heights of the busy periods of one run.
#[derive(Debug)]
pub struct Tail {
    excesses: Vec<f64>,
    threshold_bytes: f64,
    fit: Option<Fit>,
}

impl Tail {
    /// The tail that is fitted to as many of the greatest heights as one law describes: of 512, 362, 256,
    /// ... 32 the first number at which Anderson and Darling's test does not reject it at 10 %.
    pub fn of(periods: &BusyPeriods) -> Tail {
        let heights = &periods.heights_bytes;
        let mut count = (HEIGHTS_MAX - 1) as f64;
        while count >= EXCESSES_MIN as f64 - 0.5 {
            let fitted = count.round() as usize;
            if fitted < heights.len()
                && let Some(tail) = Tail::above(heights, fitted)
            {
                return tail;
            }
            count /= std::f64::consts::SQRT_2;
        }
        Tail {
            excesses: Vec::new(),
            threshold_bytes: heights.first().copied().unwrap_or(0.0),
            fit: None,
        }
    }

    /// The `count` greatest heights over the one below them, if a fit describes them.
    fn above(heights: &[f64], count: usize) -> Option<Tail> {
        let threshold_bytes = heights[count];
        let heights = heights[..count].iter();
        let excesses: Vec<f64> = heights.map(|height| height - threshold_bytes).collect();
        let found = Excesses::new(&excesses, SHAPE_MIN)?;
        let fit = found.fit();
        let is_good = found.distance(&fit) < distance_max(fit.shape);
        is_good.then_some(Tail {
            excesses,
            threshold_bytes,
            fit: Some(fit),
        })
    }

    /// Whether there is a law to go by beyond what was seen.
    pub fn is_fitted(&self) -> bool {
        self.fit.is_some()
    }

    /// The fit: threshold in bytes, number of heights above it, shape, and scale in bytes.
    pub fn figures(&self) -> Option<(f64, usize, f64, f64)> {
        let fit = self.fit.as_ref()?;
        Some((self.threshold_bytes, self.excesses.len(), fit.shape, fit.scale))
    }

    /// How many busy periods higher than `ram_bytes` to expect in as long a run as this one, of which
    /// `higher` were: by the fit above its threshold, else by counting.
    pub fn expected_above(&self, ram_bytes: u64, higher: u64) -> Interval {
        let over_bytes = ram_bytes as f64 - self.threshold_bytes;
        let Some(fit) = self.fit.as_ref().filter(|_| over_bytes >= 0.0) else {
            return counted(higher);
        };
        let bound = |shape_min, sign| {
            let excesses = Excesses::new(&self.excesses, shape_min);
            excesses.map_or(0.0, |all| all.expected_above(over_bytes, DEVIANCE, sign))
        };
        let likely = self.excesses.len() as f64 * fit.share_above(over_bytes);
        Interval {
            likely: Some(likely),
            low: bound(SHAPE_MIN, -1.0).min(likely),
            high: bound(CAUTIOUS_SHAPE_MIN, 1.0).max(likely),
        }
    }
}

/// The 95 % interval of the mean of a Poisson variable that was seen as `count` (Byar's approximation;
/// Breslow and Day 1987).
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
        n * root.powi(3)
    };
    let count = count as f64;
    Interval {
        likely: Some(count),
        low: end(count, -1.0).max(0.0),
        high: end(count + 1.0, 1.0),
    }
}

impl Interval {
    /// The probability that at least one occurs in a run so many times as long.
    pub fn at_least_one(&self, times_as_long: f64) -> Interval {
        let probability = |mean: f64| -(-mean * times_as_long).exp_m1();
        Interval {
            likely: self.likely.map(probability),
            low: probability(self.low),
            high: probability(self.high),
        }
    }
}

/// 90 % point of Anderson and Darling's distance between a sample and the law that was fitted to it.
fn distance_max(shape: f64) -> f64 {
    let _ = shape;
    0.8
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::{Random, Seed};

    fn draw(random: &mut Random, shape: f64) -> f64 {
        let above = (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64 + 1e-17;
        match shape == 0.0 {
            true => -above.ln(),
            false => (above.powf(-shape) - 1.0) / shape,
        }
    }

    #[test]
    fn table() {
        for count in [32, 64, 256] {
            for shape in [-1.0, -0.7, -0.5, -0.3, 0.0, 0.3, 0.5, 1.0] {
                let mut ds = Vec::new();
                let (mut shapes, mut covered, mut covered2, mut lowmiss) = (0.0, 0, 0,0);
                let n = 400;
                for seed in 0..n {
                    let mut random = Seed::new(seed).stream("draw");
                    let mut ys: Vec<f64> = (0..count).map(|_| draw(&mut random, shape)).collect();
                    ys.sort_by(|a, b| b.total_cmp(a));
                    let e = Excesses::new(&ys, SHAPE_MIN).unwrap();
                    let fit = e.fit();
                    shapes += fit.shape;
                    ds.push(e.distance(&fit));
                    let q = 1e-3 / count as f64 * 32.0;
                    let y = if shape == 0.0 { -f64::ln(q) } else { (q.powf(-shape) - 1.0) / shape };
                    if seed % 2 == 0 {
                        let l = e.expected_above(y, DEVIANCE, -1.0); let h = Excesses::new(&ys, CAUTIOUS_SHAPE_MIN).unwrap().expected_above(y, DEVIANCE, 1.0);
                        let truth = count as f64 * q;
                        if l <= truth && truth <= h { covered += 1 }
                        if l > truth {lowmiss += 1}
                        if shape < 0.0 {
                            let l = e.expected_above(-1.0 / shape, DEVIANCE, -1.0);
                            if l == 0.0 { covered2 += 1 }
                        }
                    }
                }
                ds.sort_by(f64::total_cmp);
                println!("{count} {shape:5}: mean {:.2} 90% {:.3} 95% {:.3} cover {:.3} lowmiss {:.3} end {:.3}", shapes / n as f64,
                    ds[n as usize * 9 / 10], ds[n as usize * 95 / 100], covered as f64 / (n / 2) as f64, lowmiss as f64 / (n/2) as f64, covered2 as f64 / (n / 2) as f64);
            }
        }
    }
}
