//! Mode, median and range of repeated measurements.

use serde::Serialize;

/// Statistics as the study gives them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Most frequent value with two significant digits, as `dd` prints it; `None` if no value occurs more often than
    /// any other.
    pub mode: Option<f64>,
    /// Median; of an even number of values, the mean of the middle two.
    pub median: f64,
    /// Least value.
    pub min: f64,
    /// Greatest value.
    pub max: f64,
}

impl Statistics {
    /// Computes the statistics; returns `None` without values.
    pub fn of(values: &[f64]) -> Option<Statistics> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            0 => (sorted[middle - 1] + sorted[middle]) / 2.0,
            _ => sorted[middle],
        };
        Some(Statistics {
            mode: mode(&sorted),
            median,
            min,
            max,
        })
    }
}

/// Returns the most frequent of the rounded values, if there is a single one.
fn mode(sorted: &[f64]) -> Option<f64> {
    let rounded: Vec<f64> = sorted.iter().map(|&value| two_digits(value)).collect();
    let groups: Vec<&[f64]> = rounded.chunk_by(|a, b| a == b).collect();
    let most = groups.iter().map(|group| group.len()).max()?;
    let mut modes = groups.iter().filter(|group| group.len() == most);
    let first = modes.next()?.first().copied();
    first.filter(|_| modes.next().is_none())
}

/// Rounds to two significant digits.
pub(crate) fn two_digits(value: f64) -> f64 {
    // Formatting rounds correctly in decimal; arithmetic would leave 7.6000000000000005.
    format!("{value:.1e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mode_is_that_of_two_digits() {
        let values = [7.61, 7.58, 3.1, 8.04, 7.64];
        let statistics = Statistics::of(&values).unwrap();
        assert_eq!(statistics.mode, Some(7.6));
        assert_eq!((statistics.min, statistics.max), (3.1, 8.04));
        assert_eq!(statistics.median, 7.6_f64.max(7.61));
        let even = Statistics::of(&[1.0, 2.0, 4.0, 4.0]).unwrap();
        assert_eq!((even.mode, even.median), (Some(4.0), 3.0));
    }

    #[test]
    fn there_is_no_mode_if_several_values_are_as_frequent() {
        assert_eq!(Statistics::of(&[1.0, 2.0, 3.0]).unwrap().mode, None);
        assert_eq!(Statistics::of(&[1.0, 1.0, 3.0, 3.0]).unwrap().mode, None);
        assert_eq!(Statistics::of(&[0.985]).unwrap().mode, Some(0.98));
        assert!(Statistics::of(&[]).is_none());
    }

    #[test]
    fn values_are_rounded_to_two_digits() {
        for (value, rounded) in [(47.83, 48.0), (0.9864, 0.99), (1234.0, 1200.0), (7.96, 8.0)] {
            assert_eq!(two_digits(value), rounded);
        }
    }
}
