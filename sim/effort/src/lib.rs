//! Counts of searches, seeds, replays, cuts and mutations of the tests, scaled by one number: `CARDIOGRAPH_EFFORT`.
//!
//! | effort | where |
//! |---|---|
//! | 1 | `cargo xtask test`, `--all`, CI |
//! | 10 | CI's slices of the long lanes |
//! | 100 | whole lanes, `cargo xtask lane NAME` |

#![forbid(unsafe_code)]

/// Number of repetitions of a test at each effort.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    name: &'static str,
    at_1: u64,
    at_10: u64,
    at_100: u64,
}

const fn count(name: &'static str, at_1: u64, at_10: u64, at_100: u64) -> Count {
    // Effort 1 finds next to nothing if it is much less than a tenth of effort 10.
    assert!(at_1 * 10 >= at_10 && at_10 <= at_100);
    Count {
        name,
        at_1,
        at_10,
        at_100,
    }
}

impl Count {
    /// Returns the number of repetitions, and prints it with the effort.
    ///
    /// # Panics
    ///
    /// Panics if the variable is set to another value than 1, 10 or 100.
    pub fn now(self) -> u64 {
        let effort = effort();
        let number = match effort {
            1 => self.at_1,
            10 => self.at_10,
            _ => self.at_100,
        };
        println!("effort {effort}: {number} {}", self.name);
        number
    }
}

/// Returns the effort: 1, 10 or 100.
///
/// # Panics
///
/// Panics if the variable is set to another value.
pub fn effort() -> u64 {
    match std::env::var("CARDIOGRAPH_EFFORT").as_deref() {
        Err(_) | Ok("1") => 1,
        Ok("10") => 10,
        Ok("100") => 100,
        Ok(other) => panic!("CARDIOGRAPH_EFFORT={other:?}; it can be 1, 10 or 100"),
    }
}

/// Random sequences of events for the real recorder. A thousand reach every state; some of the pairs of action and
/// outcome occur only once in several thousand, and are required from effort 10 on.
pub const REPLAYED_PATHS: Count = count("replayed paths", 1_000, 10_000, 100_000);

/// Random walks through each planner model that is too large to be searched. A walk takes milliseconds.
pub const PLANNER_WALKS: Count = count("walks", 40, 40, 4_000);

/// Random power cuts of whole recordings, each of which simulates a second of card time. Every scene occurs in a hundred.
pub const POWER_CUTS: Count = count("power cuts", 1_000, 4_000, 100_000);

/// Of the cuts at every write of a short recording, one in this number is followed by cuts of its recovery. The first cuts
/// are at every write at any effort.
pub const SECOND_CUTS_EVERY: Count = Count {
    name: "first cuts per cut recovery",
    at_1: 80,
    at_10: 40,
    at_100: 1,
};

/// Traces of each law of stalls, of which 95 % must have the true risk in their interval. With a hundred, the tolerance
/// of the share grows from 1.4 to 4.4 percentage points.
pub const COVERAGE_SEEDS: Count = count("traces per law", 100, 1_000, 10_000);

/// Mutations of the seeds of each fuzz target.
pub const MUTATIONS: Count = count("mutations per target", 3_000, 10_000, 1_000_000);
