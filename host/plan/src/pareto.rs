//! The generalised Pareto distribution: maximum-likelihood fit and confidence bounds.
//!
//! Excesses over a high threshold follow this distribution for almost any distribution of the values
//! (Balkema and de Haan 1974; Pickands 1975): `P(Y > y) = (1 + xi y / sigma)^(-1/xi)`. The shape `xi` is
//! negative if there is a greatest value, 0 for an exponential tail, and positive for a heavy one.
//!
//! With `theta = xi / sigma` and `S = sum ln(1 + theta y)` the log-likelihood is
//! `-k ln(xi / theta) - (1 + 1/xi) S`, which is greatest over `xi` at `S / k`, so one unknown remains (Grimshaw
//! 1993). The search is over `t = ln(1 + theta y_max)`, which may be any number.

/// Minimum shape: below it the likelihood is unbounded.
pub(crate) const SHAPE_MIN: f64 = -1.0;
/// Minimum shape of the distributions that upper bounds are computed from. Below -0.5 the asymptotic theory
/// of the likelihood does not hold (Smith 1985), and a stall is a sum of many times, so its tail resembles
/// that of a normal distribution: it only appears to have an end.
pub(crate) const CAUTIOUS_SHAPE_MIN: f64 = -0.2;
/// Maximum shape. A heavier tail indicates a mixture of two kinds of stalls, the longer kind being rare.
const SHAPE_MAX: f64 = 2.0;
/// Differences up to this value are rounding errors of sums.
const EQUAL_BYTES: f64 = 1e-6;
/// Range and number of steps of the search for `t`.
const T_MIN: f64 = -14.0;
const T_MAX: f64 = 30.0;
const STEPS: usize = 44;
/// Steps of the search for a bound within the confidence range of `t`.
const BOUND_STEPS: usize = 24;
/// Number of bisections or golden-section steps, which narrow an interval to less than a thousandth.
const HALVINGS: usize = 16;
/// Number of Newton steps; each doubles the number of correct digits.
const POISSON_STEPS: usize = 4;

/// Excesses over a threshold, with their cached maximum.
#[derive(Debug)]
pub(crate) struct Excesses {
    /// The excesses in descending order.
    excesses: Vec<f64>,
    greatest: f64,
}

/// The most likely distribution with a given minimum shape.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fit {
    pub(crate) shape: f64,
    pub(crate) scale: f64,
    shape_min: f64,
    log_likelihood: f64,
    t: f64,
}

impl Fit {
    /// Returns the fraction of excesses above `y`.
    pub(crate) fn share_above(&self, y: f64) -> f64 {
        let inner = (self.shape * y / self.scale).max(-1.0);
        libm::exp(-libm::log1p(inner) / self.shape)
    }
}

/// Quantities that depend on `theta` only.
#[derive(Clone, Copy)]
struct Line {
    count: f64,
    theta: f64,
    /// The sum `S` of the module docs.
    sum: f64,
    shape_min: f64,
}

impl Line {
    /// Returns the log-likelihood of a shape, which must have the sign of `theta`.
    fn log_likelihood(&self, shape: f64) -> f64 {
        -self.count * libm::log(shape / self.theta) - (1.0 + 1.0 / shape) * self.sum
    }

    /// Returns the most likely shape.
    fn shape(&self) -> f64 {
        (self.sum / self.count).clamp(self.shape_min, SHAPE_MAX)
    }

    /// Returns the logarithm of the fraction of excesses above `y`.
    fn log_share_above(&self, shape: f64, y: f64) -> f64 {
        let inner = self.theta * y;
        match inner > -1.0 {
            true => -libm::log1p(inner) / shape,
            false => f64::NEG_INFINITY,
        }
    }

    /// Returns the extreme shapes, on both sides of the most likely one, whose log-likelihood is at least `least`.
    fn shapes_within(&self, least: f64) -> [f64; 2] {
        let inside = self.shape();
        let bounds = match self.theta > 0.0 {
            true => [1e-9, SHAPE_MAX],
            false => [self.shape_min, -1e-9],
        };
        bounds.map(|bound| bisect(inside, bound, |shape| self.log_likelihood(shape) >= least))
    }
}

/// Returns the last point from `inside` towards `bound` at which `holds` is true.
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

/// Returns the maximum of a unimodal function between two points, as its position and value.
fn maximum(mut left: f64, mut right: f64, value: impl Fn(f64) -> f64) -> (f64, f64) {
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
    /// Takes excesses in descending order, none negative. Returns `None` if all are equal: they have no spread to
    /// fit.
    pub(crate) fn new(excesses: Vec<f64>) -> Option<Excesses> {
        let (greatest, least) = (*excesses.first()?, *excesses.last()?);
        (greatest > least + EQUAL_BYTES).then_some(Excesses { excesses, greatest })
    }

    /// Number of excesses.
    pub(crate) fn count(&self) -> usize {
        self.excesses.len()
    }

    fn line(&self, t: f64, shape_min: f64) -> Line {
        // At `t` = 0 the shape would also be 0, where the formulas are undefined.
        let t = if t.abs() < 1e-5 { 1e-5 } else { t };
        let theta = libm::expm1(t) / self.greatest;
        let logarithms = self.excesses.iter().map(|y| libm::log1p(theta * y));
        Line {
            count: self.count() as f64,
            theta,
            sum: logarithms.sum(),
            shape_min,
        }
    }

    /// Returns the most likely distribution with at least the given shape.
    pub(crate) fn fit(&self, shape_min: f64) -> Fit {
        let likelihood = |t: f64| {
            let line = self.line(t, shape_min);
            line.log_likelihood(line.shape())
        };
        let step = (T_MAX - T_MIN) / STEPS as f64;
        let (best, _) = greatest_of((0..=STEPS).map(|i| T_MIN + i as f64 * step), likelihood);
        let (t, log_likelihood) = maximum(best - step, best + step, likelihood);
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

    /// Anderson-Darling distance between the excesses and a fit.
    pub(crate) fn distance(&self, fit: &Fit) -> f64 {
        let count = self.count();
        let above = |y| fit.share_above(y).clamp(1e-12, 1.0 - 1e-12);
        let sum: f64 = (0..count)
            .map(|i| {
                let (rising, falling) = (self.excesses[count - 1 - i], self.excesses[i]);
                (2 * i + 1) as f64 * (libm::log1p(-above(rising)) + libm::log(above(falling)))
            })
            .sum();
        -(count as f64) - sum / count as f64
    }

    /// Returns the greatest (`sign` 1) or least (-1) expected number of excesses above `y` in a run as long
    /// as the measured one, over all distributions whose deviance from the fit is at most `deviance`
    /// (profile likelihood; Coles 2001, 2.6). The total number of excesses is a Poisson variable, as
    /// uncertain as their distribution.
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
            maximum(low, high, value).1.max(value(low)).max(value(high))
        };
        let step = (last - first) / BOUND_STEPS as f64;
        let (t, value) = greatest_of((0..=BOUND_STEPS).map(|i| first + i as f64 * step), extreme);
        // A possible distribution ends below `y`, so the least expected number is 0.
        if value == f64::INFINITY {
            return 0.0;
        }
        let finer = maximum((t - step).max(first), (t + step).min(last), extreme).1;
        libm::exp(sign * value.max(finer))
    }
}

/// Returns the point at which `value` is greatest, and this greatest value.
fn greatest_of(points: impl Iterator<Item = f64>, value: impl Fn(f64) -> f64) -> (f64, f64) {
    let values = points.map(|point| (point, value(point)));
    let greatest = values.max_by(|a, b| a.1.total_cmp(&b.1));
    greatest.unwrap_or((0.0, f64::NEG_INFINITY))
}

/// Returns the logarithm of the greatest (`sign` 1) or least (-1) mean of a Poisson variable, observed as `count`,
/// whose deviance is at most `spare`.
fn log_count_within(count: f64, spare: f64, sign: f64) -> f64 {
    if spare <= 0.0 {
        return libm::log(count);
    }
    // In z = ln(mean / count) the deviance is 2 count (e^z - 1 - z), which is convex: Newton's method, started
    // where the parabola at its minimum reaches `spare`.
    let mut z = sign * (spare / count).sqrt();
    for _ in 0..POISSON_STEPS {
        let rise = libm::expm1(z);
        z -= (rise - z - spare / (2.0 * count)) / rise;
    }
    libm::log(count) + z
}
