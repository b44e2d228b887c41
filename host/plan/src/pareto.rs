//! The generalized Pareto distribution: fitting it, and how far it may be from the fit.
//!
//! Excesses over a high threshold follow it, whatever the law of the values (Balkema and de Haan 1974;
//! Pickands 1975): `P(Y > y) = (1 + xi y / sigma)^(-1/xi)`. The shape `xi` is below 0 where there is a
//! greatest value, 0 for an exponential tail, above 0 for a heavy one.
//!
//! With `theta = xi / sigma` and `S = sum ln(1 + theta y)` the log-likelihood is
//! `-k ln(xi / theta) - (1 + 1/xi) S`, greatest over `xi` at `S / k`: one unknown is left (Grimshaw
//! 1993). It is searched for as `t = ln(1 + theta y_max)`, which may be any number.

/// Below this shape the likelihood has no greatest value.
pub(crate) const SHAPE_MIN: f64 = -1.0;
/// An upper bound is taken from laws of this shape and above. Below -0.5 the likelihood says less than its
/// theory promises (Smith 1985), and a stall is a sum of many times, whose tail is that of the normal law:
/// it only looks like one with an end.
pub(crate) const CAUTIOUS_SHAPE_MIN: f64 = -0.2;
/// A tail as heavy as this is of two kinds of stalls, of which the higher is rare.
const SHAPE_MAX: f64 = 2.0;
/// Heights no farther apart are alike: sums round.
const ALIKE_BYTES: f64 = 1e-6;
/// Range and step of the search for `t`.
const T_MIN: f64 = -14.0;
const T_MAX: f64 = 30.0;
const STEPS: usize = 44;
/// Steps of the search for a bound, between the likely `t`.
const BOUND_STEPS: usize = 24;
/// Halvings and golden sections: they make a step less than a thousandth.
const HALVINGS: usize = 16;
/// Newton steps; each doubles the digits.
const POISSON_STEPS: usize = 4;

/// Excesses over a threshold, with what is needed of them again and again.
#[derive(Debug)]
pub(crate) struct Excesses {
    /// Falling.
    excesses: Vec<f64>,
    greatest: f64,
}

/// The likeliest law from a shape on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) shape: f64,
    pub(crate) scale: f64,
    shape_min: f64,
    log_likelihood: f64,
    t: f64,
}

impl Fit {
    /// Share of excesses above `y`.
    pub(crate) fn share_above(&self, y: f64) -> f64 {
        let inner = (self.shape * y / self.scale).max(-1.0);
        (-inner.ln_1p() / self.shape).exp()
    }
}

/// What is known at one `theta`.
#[derive(Clone, Copy)]
struct Line {
    count: f64,
    theta: f64,
    /// The sum `S`.
    sum: f64,
    shape_min: f64,
}

impl Line {
    /// The log-likelihood of a shape, which has the sign of `theta`.
    fn log_likelihood(&self, shape: f64) -> f64 {
        -self.count * (shape / self.theta).ln() - (1.0 + 1.0 / shape) * self.sum
    }

    /// The likeliest shape.
    fn shape(&self) -> f64 {
        (self.sum / self.count).clamp(self.shape_min, SHAPE_MAX)
    }

    /// Logarithm of the share of excesses above `y`.
    fn log_share_above(&self, shape: f64, y: f64) -> f64 {
        let inner = self.theta * y;
        match inner > -1.0 {
            true => -inner.ln_1p() / shape,
            false => f64::NEG_INFINITY,
        }
    }

    /// The shapes farthest from the likeliest whose log-likelihood is no less than `least`.
    fn shapes_within(&self, least: f64) -> [f64; 2] {
        let inside = self.shape();
        let bounds = match self.theta > 0.0 {
            true => [1e-9, SHAPE_MAX],
            false => [self.shape_min, -1e-9],
        };
        bounds.map(|bound| bisect(inside, bound, |shape| self.log_likelihood(shape) >= least))
    }
}

/// The last place from `inside` towards `bound` where `holds`.
fn bisect(inside: f64, bound: f64, holds: impl Fn(f64) -> bool) -> f64 {
    if holds(bound) {
        return bound;
    }
    let (mut inside, mut outside) = (inside, bound);
    for _ in 0..HALVINGS {
        let middle = (inside + outside) / 2.0;
        match holds(middle) {
            true => inside = middle,
            false => outside = middle,
        }
    }
    inside
}

/// The greatest value of a function with one summit between two places, and where it is.
fn summit(mut left: f64, mut right: f64, value: impl Fn(f64) -> f64) -> (f64, f64) {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut a, mut b) = (
        right - GOLDEN * (right - left),
        left + GOLDEN * (right - left),
    );
    let (mut at_a, mut at_b) = (value(a), value(b));
    for _ in 0..HALVINGS {
        if at_a >= at_b {
            (right, b, at_b) = (b, a, at_a);
            a = right - GOLDEN * (right - left);
            at_a = value(a);
        } else {
            (left, a, at_a) = (a, b, at_b);
            b = left + GOLDEN * (right - left);
            at_b = value(b);
        }
    }
    match at_a >= at_b {
        true => (a, at_a),
        false => (b, at_b),
    }
}

impl Excesses {
    /// Of these, falling and none below 0. `None` if all are alike: they have no spread to fit.
    pub(crate) fn new(excesses: Vec<f64>) -> Option<Excesses> {
        let (greatest, least) = (*excesses.first()?, *excesses.last()?);
        (greatest > least + ALIKE_BYTES).then_some(Excesses { excesses, greatest })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.excesses.len()
    }

    fn line(&self, t: f64, shape_min: f64) -> Line {
        // At 0 the shape would be 0 as well, and the formulas say nothing.
        let t = if t.abs() < 1e-5 { 1e-5 } else { t };
        let theta = t.exp_m1() / self.greatest;
        let logarithms = self.excesses.iter().map(|y| (theta * y).ln_1p());
        Line {
            count: self.count() as f64,
            theta,
            sum: logarithms.sum(),
            shape_min,
        }
    }

    /// The likeliest law of those from a shape on.
    pub(crate) fn fit(&self, shape_min: f64) -> Fit {
        let likelihood = |t: f64| {
            let line = self.line(t, shape_min);
            line.log_likelihood(line.shape())
        };
        let step = (T_MAX - T_MIN) / STEPS as f64;
        let (best, _) = highest((0..=STEPS).map(|i| T_MIN + i as f64 * step), likelihood);
        let (t, log_likelihood) = summit(best - step, best + step, likelihood);
        let line = self.line(t, shape_min);
        let shape = line.shape();
        Fit {
            shape,
            scale: shape / line.theta,
            shape_min,
            log_likelihood,
            t,
        }
    }

    /// Anderson and Darling's distance between the excesses, falling, and a fit.
    pub(crate) fn distance(&self, fit: &Fit) -> f64 {
        let count = self.count();
        let above = |y| fit.share_above(y).clamp(1e-12, 1.0 - 1e-12);
        let sum: f64 = (0..count)
            .map(|i| {
                let (rising, falling) = (self.excesses[count - 1 - i], self.excesses[i]);
                (2 * i + 1) as f64 * ((-above(rising)).ln_1p() + above(falling).ln())
            })
            .sum();
        -(count as f64) - sum / count as f64
    }

    /// The greatest (`sign` 1) or least (-1) number of excesses above `y` to expect in as long a run as this
    /// one, of all laws that are less likely than the fit by no more than `deviance` (profile likelihood;
    /// Coles 2001, 2.6). How many excesses there are in all is a Poisson variable, and as uncertain as their
    /// law.
    pub(crate) fn expected_above(&self, fit: &Fit, y: f64, deviance: f64, sign: f64) -> f64 {
        let count = self.count() as f64;
        let least = fit.log_likelihood - deviance / 2.0;
        let is_inside = |t: f64| {
            let line = self.line(t, fit.shape_min);
            line.log_likelihood(line.shape()) >= least
        };
        let [first, last] = [T_MIN, T_MAX].map(|end| bisect(fit.t, end, is_inside));
        let extreme = |t: f64| {
            let line = self.line(t, fit.shape_min);
            let [low, high] = line.shapes_within(least);
            let value = |shape: f64| {
                let spare = 2.0 * (line.log_likelihood(shape) - least).max(0.0);
                sign * (line.log_share_above(shape, y) + log_count_within(count, spare, sign))
            };
            summit(low, high, value).1.max(value(low)).max(value(high))
        };
        let step = (last - first) / BOUND_STEPS as f64;
        let (t, value) = highest((0..=BOUND_STEPS).map(|i| first + i as f64 * step), extreme);
        // No share above `y` is among the possible.
        if value == f64::INFINITY {
            return 0.0;
        }
        let finer = summit((t - step).max(first), (t + step).min(last), extreme).1;
        (sign * value.max(finer)).exp()
    }
}

/// The place with the greatest value, and the value.
fn highest(places: impl Iterator<Item = f64>, value: impl Fn(f64) -> f64) -> (f64, f64) {
    let values = places.map(|place| (place, value(place)));
    let highest = values.max_by(|a, b| a.1.total_cmp(&b.1));
    highest.unwrap_or((0.0, f64::NEG_INFINITY))
}

/// Logarithm of the greatest (`sign` 1) or least (-1) mean of a Poisson variable that was seen as `count`
/// whose deviance is no more than `spare`.
fn log_count_within(count: f64, spare: f64, sign: f64) -> f64 {
    if spare <= 0.0 {
        return count.ln();
    }
    // In z = ln(mean / count) the deviance is 2 count (e^z - 1 - z), convex: Newton's method, from where
    // the parabola at its foot reaches it.
    let mut z = sign * (spare / count).sqrt();
    for _ in 0..POISSON_STEPS {
        let rise = z.exp_m1();
        z -= (rise - z - spare / (2.0 * count)) / rise;
    }
    count.ln() + z
}
