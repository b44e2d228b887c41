//! The size at which boundaries begin to matter.
//!
//! If something ends at each multiple of a size S, then it ends at the odd multiples of S, 2 S, 4 S ..., but not at the
//! odd multiples of S / 2, S / 4 ... So the latencies at the odd multiples of each power of two step up once, at S.

use crate::statistics::{median, p_higher};

/// Latencies at the odd multiples of a size.
pub(crate) struct Level {
    pub(crate) bytes: u64,
    pub(crate) values: Vec<f64>,
}

/// A step between levels.
#[derive(Debug, PartialEq)]
pub(crate) struct Step {
    /// Size of the first level above the step.
    pub(crate) bytes: u64,
    /// Height of the step.
    pub(crate) height: f64,
    pub(crate) confidence: f64,
}

/// Fewest values with which a level counts.
pub(crate) const VALUES_MIN: usize = 5;
/// Fewest levels below and above a step: a step at the edge might belong to a size outside.
const LEVELS_MIN: usize = 2;
/// Largest deviation of the median of a level from the median of its side, as a share of the height.
const DEVIATION_MAX: f64 = 0.45;
/// Largest probability of a level being on its side of the step by chance, at two degrees of confidence.
const P_SURE: f64 = 0.001;
const P_LIKELY: f64 = 0.01;

/// Finds the only step between levels, in ascending order of size.
///
/// # Errors
/// The reason why there is none, or why it is in doubt.
pub(crate) fn step(levels: &[Level]) -> Result<Step, String> {
    let levels: Vec<&Level> = levels
        .iter()
        .filter(|level| level.values.len() >= VALUES_MIN)
        .collect();
    if levels.len() < 2 * LEVELS_MIN {
        return Err("too few sizes could be compared".to_string());
    }
    let at = best_split(&levels);
    let (low, high) = levels.split_at(at);
    let pool = |side: &[&Level]| median_of_medians(side);
    let (below, above) = (pool(low), pool(high));
    let height = above - below;
    if height <= 0.0 {
        return Err("no size makes a difference".to_string());
    }
    let strays = |side: &[&Level], middle: f64| {
        let mut medians = side.iter().map(|level| median(&level.values));
        medians.any(|value| (value - middle).abs() > DEVIATION_MAX * height)
    };
    if strays(low, below) || strays(high, above) {
        return Err("the latencies do not step up once".to_string());
    }
    if differ(high) {
        return Err("the latencies above the step differ from size to size".to_string());
    }
    let all_low: Vec<f64> = low.iter().flat_map(|level| level.values.clone()).collect();
    let mut worst_p: f64 = 0.0;
    for level in high {
        worst_p = worst_p.max(p_higher(&level.values, &all_low));
    }
    // The step may not belong below any of the lower levels either.
    let all_high: Vec<f64> = high.iter().flat_map(|level| level.values.clone()).collect();
    for level in low {
        worst_p = worst_p.max(p_higher(&all_high, &level.values));
    }
    let confidence = match worst_p {
        p if p <= P_SURE => 0.99,
        p if p <= P_LIKELY => 0.95,
        _ => return Err("no size makes a difference that noise could not make".to_string()),
    };
    Ok(Step {
        bytes: high[0].bytes,
        height,
        confidence,
    })
}

/// Returns true if a level differs from the other levels of its side by more than chance. The same ends at every boundary
/// above the step, so that none does; in three pages that share cells, for example, each is programmed in another time.
fn differ(side: &[&Level]) -> bool {
    (0..side.len()).any(|at| {
        let others = side[..at].iter().chain(&side[at + 1..]);
        let others: Vec<f64> = others.flat_map(|level| level.values.clone()).collect();
        let values = &side[at].values;
        p_higher(values, &others).min(p_higher(&others, values)) <= P_SURE
    })
}

/// Returns the number of levels below the split at which the mean deviation from the median of each side is smallest.
fn best_split(levels: &[&Level]) -> usize {
    let cost = |side: &[&Level]| {
        let middle = median_of_medians(side);
        let of_level = |level: &&Level| {
            let deviations: f64 = level
                .values
                .iter()
                .map(|value| (value - middle).abs())
                .sum();
            deviations / level.values.len() as f64
        };
        side.iter().map(of_level).sum::<f64>()
    };
    let splits = LEVELS_MIN..=levels.len() - LEVELS_MIN;
    let costs = splits.map(|at| (at, cost(&levels[..at]) + cost(&levels[at..])));
    costs
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(LEVELS_MIN, |(at, _)| at)
}

fn median_of_medians(side: &[&Level]) -> f64 {
    let medians: Vec<f64> = side.iter().map(|level| median(&level.values)).collect();
    median(&medians)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(of: impl Fn(u32, u32) -> f64) -> Vec<Level> {
        let level = |size: u32| Level {
            bytes: 512 << size,
            values: (0..20).map(|n| of(size, n)).collect(),
        };
        (0..10).map(level).collect()
    }

    /// A wave without pattern between 0 and 1.
    fn noise(size: u32, n: u32) -> f64 {
        f64::from((size * 7919 + n * 104_729).wrapping_mul(2_654_435_761) >> 8) / f64::from(1 << 24)
    }

    #[test]
    fn a_step_is_found_in_noise_with_outliers() {
        let step = step(&levels(|size, n| {
            let outlier = if n % 7 == 3 { 100.0 } else { 0.0 };
            let height = if size >= 4 { 2.0 } else { 0.0 };
            10.0 + height + noise(size, n) + outlier
        }));
        let step = step.unwrap();
        assert_eq!((step.bytes, step.confidence), (512 << 4, 0.99));
        assert!((1.5..2.5).contains(&step.height), "{}", step.height);
    }

    #[test]
    fn a_level_that_only_looks_like_those_above_the_step_is_in_doubt() {
        let levels = levels(|size, n| {
            let height = match size {
                4 => 2.5,
                5.. => 4.0,
                _ => 0.0,
            };
            10.0 + height + noise(size, n)
        });
        assert!(step(&levels).is_err());
    }

    #[test]
    fn noise_two_steps_a_bump_and_a_fall_are_in_doubt() {
        let doubtful: [&dyn Fn(u32) -> f64; 5] = [
            &|_| 0.0,
            &|size| f64::from(size / 4) * 5.0,
            &|size| if size == 4 { 5.0 } else { 0.0 },
            &|size| if size >= 4 { 0.0 } else { 5.0 },
            &|size| if size >= 9 { 5.0 } else { 0.0 },
        ];
        for (at, shape) in doubtful.iter().enumerate() {
            let found = step(&levels(|size, n| 10.0 + shape(size) + noise(size, n)));
            assert!(found.is_err(), "{at}: {found:?}");
        }
    }
}
