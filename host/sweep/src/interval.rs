//! Exact binomial intervals (Clopper and Pearson, 1934).
//!
//! The limits are those probabilities at which the observed number of losses, or a more extreme one, has the probability
//! 2.5 %. They are quantiles of the beta distribution.

use serde::Serialize;

/// Confidence of the intervals.
pub const CONFIDENCE: f64 = 0.95;

/// A probability estimated from independent runs, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Proportion {
    /// Number of runs.
    pub runs: u64,
    /// Number of runs that lost samples.
    pub losses: u64,
    /// Share of the runs that lost samples; null without losses, because the probability is then not known to be 0.
    pub likely: Option<f64>,
    /// Lower limit.
    pub low: f64,
    /// Upper limit.
    pub high: f64,
}

impl Proportion {
    /// Estimates a probability from `losses` among `runs` runs.
    pub fn of(losses: u64, runs: u64) -> Proportion {
        let tail = (1.0 - CONFIDENCE) / 2.0;
        let (k, n) = (losses as f64, runs as f64);
        Proportion {
            runs,
            losses,
            likely: (losses > 0).then(|| k / n),
            low: match losses {
                0 => 0.0,
                _ => beta_quantile(tail, k, n - k + 1.0),
            },
            high: match losses >= runs {
                true => 1.0,
                false => beta_quantile(1.0 - tail, k + 1.0, n - k),
            },
        }
    }
}

/// Returns `x` with `I_x(a, b) = probability`, by bisection.
fn beta_quantile(probability: f64, a: f64, b: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    // 200 halvings also reach values far below 2^-52, close to 0.
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        match incomplete_beta(middle, a, b) < probability {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

/// Regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8).
fn incomplete_beta(x: f64, a: f64, b: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    // The fraction converges fast below the mean; above it, the complement is computed.
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(1.0 - x, b, a);
    }
    let log_front =
        libm::lgamma(a + b) - libm::lgamma(a) - libm::lgamma(b) + a * x.ln() + b * (-x).ln_1p();
    log_front.exp() / a * fraction(x, a, b)
}

/// Evaluates the continued fraction by Lentz's method.
fn fraction(x: f64, a: f64, b: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let away_from_zero = |value: f64| if value.abs() < TINY { TINY } else { value };
    let (mut c, mut d) = (1.0, 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0)));
    let mut result = d;
    for m in 1..10_000 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut change = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            change *= c * d;
        }
        result *= change;
        if (change - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probability of at most `k` losses, as a sum.
    fn at_most(k: u64, n: u64, p: f64) -> f64 {
        let term = |i: u64| {
            let choose: f64 = (0..i).map(|j| ((n - j) as f64 / (i - j) as f64).ln()).sum();
            (choose + i as f64 * p.ln() + (n - i) as f64 * (1.0 - p).ln()).exp()
        };
        (0..=k).map(term).sum()
    }

    #[test]
    fn at_the_limits_the_tails_of_the_binomial_distribution_have_the_probability_0_025() {
        for n in [1, 2, 3, 7, 10, 50, 200, 1000] {
            for k in [0, 1, 2, 3, n / 2, n - 1, n]
                .into_iter()
                .filter(|&k| k <= n)
            {
                let interval = Proportion::of(k, n);
                if k < n {
                    let tail = at_most(k, n, interval.high);
                    assert!((tail - 0.025).abs() < 1e-9, "{k} of {n}: {tail}");
                }
                if k > 0 {
                    let tail = 1.0 - at_most(k - 1, n, interval.low);
                    assert!((tail - 0.025).abs() < 1e-9, "{k} of {n}: {tail}");
                }
            }
        }
    }

    #[test]
    fn no_losses_give_an_upper_bound_and_all_losses_a_lower_one() {
        let none = Proportion::of(0, 100);
        assert_eq!((none.likely, none.low), (None, 0.0));
        let high = 1.0 - 0.025_f64.powf(0.01);
        assert!((none.high - high).abs() < 1e-12, "{}", none.high);
        let all = Proportion::of(100, 100);
        assert_eq!((all.likely, all.high), (Some(1.0), 1.0));
        assert!((all.low - (1.0 - high)).abs() < 1e-12, "{}", all.low);
        assert!(Proportion::of(0, 1_000_000).high > 3.6e-6);
    }
}
