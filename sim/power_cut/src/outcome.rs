//! Result of a case.

use crate::judge::Found;
use std::ops::AddAssign;

/// Result of a case.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Samples and files found on the card.
    pub found: Found,
    /// Number of power cuts.
    pub cuts: u64,
    /// Number of files that a device recovered.
    pub recovered: u64,
    /// Number of times that fsck.fat was run.
    pub fsck_runs: u64,
    /// Number of cases in which injected faults took effect while the device kept its power.
    pub with_faults: u64,
    /// Number of cases in which the card was exchanged for another.
    pub exchanged: u64,
}

impl AddAssign for Outcome {
    fn add_assign(&mut self, other: Outcome) {
        self.found += other.found;
        self.cuts += other.cuts;
        self.recovered += other.recovered;
        self.fsck_runs += other.fsck_runs;
        self.with_faults += other.with_faults;
        self.exchanged += other.exchanged;
    }
}
