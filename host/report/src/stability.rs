//! Decides whether a run was long enough for its worst case.

/// Largest increase of the worst case by the last half of all writes at which it counts as stable.
pub const INCREASE_MAX: f64 = 0.1;

/// The worst case of every beginning of a run, in memory that grows only with the number of new worst cases.
#[derive(Clone, Debug, Default)]
pub struct Stability {
    writes: u64,
    /// Index and latency of each write that was slower than all before it.
    records: Vec<(u64, u64)>,
}

/// Worst cases of a run and of its first half.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorstCases {
    /// Longest latency among the first half of all writes (rounded down).
    pub first_half_ns: u64,
    /// Longest latency of all.
    pub all_ns: u64,
}

impl WorstCases {
    /// Returns the increase that the last half of all writes caused, as a ratio; infinite if the first half took no time.
    pub fn increase(&self) -> f64 {
        match self.all_ns == self.first_half_ns {
            true => 0.0,
            false => self.all_ns as f64 / self.first_half_ns as f64 - 1.0,
        }
    }

    /// Returns true if the last half of all writes raised the worst case by less than [`INCREASE_MAX`].
    pub fn is_stable(&self) -> bool {
        self.increase() < INCREASE_MAX
    }
}

impl Stability {
    /// Adds the next write.
    #[inline]
    pub fn push(&mut self, latency_ns: u64) {
        if self.records.last().is_none_or(|last| last.1 < latency_ns) {
            self.records.push((self.writes, latency_ns));
        }
        self.writes += 1;
    }

    /// Returns the worst cases, or `None` with fewer than two writes.
    pub fn worst_cases(&self) -> Option<WorstCases> {
        let half = self.writes / 2;
        let before = self.records.partition_point(|record| record.0 < half);
        Some(WorstCases {
            first_half_ns: self.records.get(before.checked_sub(1)?)?.1,
            all_ns: self.records.last()?.1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_brute_force(latencies_ns: &[u64]) -> Option<WorstCases> {
        let first = &latencies_ns[..latencies_ns.len() / 2];
        Some(WorstCases {
            first_half_ns: *first.iter().max()?,
            all_ns: *latencies_ns.iter().max()?,
        })
    }

    #[test]
    fn every_beginning_has_the_worst_cases_of_its_halves() {
        let seed = 7;
        println!("seed {seed}");
        let mut random = seed;
        for range in [1, 2, 5, 1000, u64::MAX] {
            let mut stability = Stability::default();
            let mut latencies_ns = Vec::new();
            for _ in 0..300 {
                assert_eq!(stability.worst_cases(), by_brute_force(&latencies_ns));
                // Numerical Recipes' linear congruential generator; the high bits are the random ones.
                random = u64::wrapping_mul(random, 6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let latency_ns = (random >> 20) % range;
                stability.push(latency_ns);
                latencies_ns.push(latency_ns);
            }
        }
    }

    #[test]
    fn less_than_ten_percent_is_stable() {
        let of = |latencies_ns: &[u64]| {
            let mut stability = Stability::default();
            latencies_ns.iter().for_each(|&ns| stability.push(ns));
            stability.worst_cases().map(|cases| cases.is_stable())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[5]), None);
        assert_eq!(of(&[1000, 1099]), Some(true));
        assert_eq!(of(&[1000, 1100]), Some(false));
        assert_eq!(of(&[1000, 1101]), Some(false));
        // The write in the middle of an odd number belongs to the last half.
        assert_eq!(of(&[10, 90, 90]), Some(false));
        assert_eq!(of(&[90, 10, 10]), Some(true));
        assert_eq!(of(&[0, 0]), Some(true));
        assert_eq!(of(&[0, 1]), Some(false));
    }
}
