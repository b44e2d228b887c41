//! Order statistics and a rank test, which outliers hardly affect.

/// Returns the median; 0 without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    quantile(values, 0.5)
}

/// Returns the value below which a share of the values lies; 0 without values.
pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = share * sorted.len().saturating_sub(1) as f64;
    let (low, high) = (at.floor() as usize, at.ceil() as usize);
    match (sorted.get(low), sorted.get(high)) {
        (Some(a), Some(b)) => a + (b - a) * (at - at.floor()),
        _ => 0.0,
    }
}

/// Returns the mean of the middle half of the values; 0 without values. Unlike the median, it averages over values that lie
/// in two groups; unlike the mean, outliers hardly affect it.
pub(crate) fn middle_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let middle = &sorted[cut..sorted.len() - cut];
    middle.iter().sum::<f64>() / middle.len().max(1) as f64
}

/// Returns the probability of a rank sum at least as high as that of `high` if both samples came from one distribution:
/// the one-sided test of Mann and Whitney (1947), exact for small samples without ties, otherwise with the normal
/// approximation and its continuity correction.
pub(crate) fn p_higher(high: &[f64], low: &[f64]) -> f64 {
    if high.is_empty() || low.is_empty() {
        return 1.0;
    }
    let mut wins = 0.0;
    for a in high {
        for b in low {
            wins += match a.total_cmp(b) {
                std::cmp::Ordering::Greater => 1.0,
                std::cmp::Ordering::Equal => 0.5,
                std::cmp::Ordering::Less => 0.0,
            };
        }
    }
    let (m, n) = (high.len(), low.len());
    if m + n <= EXACT_MAX {
        return exact(m, n, wins);
    }
    let (m, n) = (m as f64, n as f64);
    let deviation = (m * n * (m + n + 1.0) / 12.0).sqrt();
    upper_tail((wins - m * n / 2.0 - 0.5) / deviation)
}

/// Largest total of two samples whose distribution is counted.
const EXACT_MAX: usize = 20;

/// Returns the share of all orders of `m` and `n` values with at least `wins` pairs in which the first is higher.
fn exact(m: usize, n: usize, wins: f64) -> f64 {
    // counts[i][j][w]: orders of i values of the first sample and j of the second with w wins.
    let mut counts = vec![vec![vec![0.0; m * n + 1]; n + 1]; m + 1];
    counts[0].iter_mut().for_each(|row| row[0] = 1.0);
    for i in 0..=m {
        for j in 0..=n {
            for w in 0..=m * n {
                // The highest value belongs to the first sample, and wins j times, or to the second.
                let first = if i > 0 && w >= j {
                    counts[i - 1][j][w - j]
                } else {
                    0.0
                };
                let second = if j > 0 { counts[i][j - 1][w] } else { 0.0 };
                if i > 0 || j > 0 {
                    counts[i][j][w] = first + second;
                }
            }
        }
    }
    let all: f64 = counts[m][n].iter().sum();
    let from = wins.floor() as usize;
    counts[m][n][from.min(m * n)..].iter().sum::<f64>() / all
}

/// Returns the upper tail of the normal distribution (Abramowitz and Stegun, 26.2.17; the error is below 1e-7).
fn upper_tail(z: f64) -> f64 {
    if z < 0.0 {
        return 1.0 - upper_tail(-z);
    }
    let t = 1.0 / (1.0 + 0.231_641_9 * z);
    let polynomial = t
        * (0.319_381_53
            + t * (-0.356_563_782
                + t * (1.781_477_937 + t * (-1.821_255_978 + t * 1.330_274_429))));
    (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * polynomial
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(quantile(&[0.0, 10.0], 0.25), 2.5);
        assert_eq!(median(&[]), 0.0);
        assert_eq!(middle_mean(&[1.0, 3.0, 900.0, -900.0]), 2.0);
        assert_eq!(middle_mean(&[]), 0.0);
    }

    /// Published critical values: for samples of 5 and 5, U = 21 has a one-sided probability of 0.0476 and U = 25 of
    /// 1 / 252 (tables of Mann and Whitney).
    #[test]
    fn small_samples_have_the_published_probabilities() {
        let low = [1.0, 2.0, 3.0, 4.0, 5.0];
        let all = p_higher(&[6.0, 7.0, 8.0, 9.0, 10.0], &low);
        assert!((all - 1.0 / 252.0).abs() < 1e-9, "{all}");
        assert!((exact(5, 5, 21.0) - 12.0 / 252.0).abs() < 1e-9);
        assert!((exact(2, 2, 4.0) - 1.0 / 6.0).abs() < 1e-9);
    }

    #[test]
    fn large_samples_follow_the_normal_distribution() {
        let low: Vec<f64> = (0..30).map(|i| f64::from(i) * 2.0).collect();
        let same: Vec<f64> = (0..30).map(|i| f64::from(i) * 2.0 + 1.0).collect();
        assert!((p_higher(&same, &low) - 0.5).abs() < 0.2);
        let higher: Vec<f64> = low.iter().map(|v| v + 100.0).collect();
        assert!(p_higher(&higher, &low) < 1e-9);
        assert!(p_higher(&low, &higher) > 0.999);
        assert!((upper_tail(1.644_854) - 0.05).abs() < 1e-6);
    }
}
