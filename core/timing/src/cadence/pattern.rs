//! Patterns of samples on a grid that show that it is the wrong one.

use super::round;

/// Number of bins of the distances from the grid, per period.
const BINS: usize = 64;

/// Distances of the samples from the grid.
pub(super) struct Distances {
    bins: [u64; BINS],
}

impl Default for Distances {
    fn default() -> Distances {
        Distances { bins: [0; BINS] }
    }
}

impl Distances {
    /// Counts a distance in periods, from -0.5 to 0.5.
    pub(super) fn push(&mut self, periods: f64) {
        let bin = round(periods * BINS as f64) + BINS as i64 / 2;
        self.bins[bin.clamp(0, BINS as i64 - 1) as usize] += 1;
    }

    pub(super) fn samples(&self) -> u64 {
        self.bins.iter().sum()
    }

    /// Returns true if all distances but outliers are in an interval of about this width, in periods.
    pub(super) fn fit_in(&self, width: f64) -> bool {
        let mut left = self.samples() / 64;
        let (mut from, mut to) = (0, BINS);
        while from < to {
            let (first, last) = (self.bins[from], self.bins[to - 1]);
            let least = first.min(last);
            if least > left {
                break;
            }
            left -= least;
            if first <= last { from += 1 } else { to -= 1 }
        }
        (to - from) as f64 / BINS as f64 <= (width + 0.1).clamp(0.3, 0.97)
    }
}

/// Number of consecutive samples between losses: a fraction of the period seems to lose samples regularly.
#[derive(Clone, Default)]
pub(super) struct Regularity {
    /// Number of single periods since the last loss.
    since: usize,
    /// Numbers of losses by the number of single periods before them.
    counts: [u64; 16],
}

impl Regularity {
    pub(super) fn push(&mut self, m: u64) {
        if m == 1 {
            self.since += 1;
        } else if m >= 2 {
            self.counts[self.since.min(15)] += 1;
            self.since = 0;
        }
    }

    /// Returns true if many of `samples` samples follow a loss, and two thirds of the losses are evenly spaced.
    pub(super) fn is_regular(&self, samples: u64) -> bool {
        let losses: u64 = self.counts.iter().sum();
        let even = self.counts.windows(2).map(|pair| pair[0] + pair[1]);
        losses >= 6 && losses * 8 > samples && even.max() > Some(losses * 2 / 3)
    }
}
