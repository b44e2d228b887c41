//! The answer with its comparisons, for programs.

use crate::answer::Answer;
use crate::check::{Checked, PlanDifference};
use serde::Serialize;

/// An element of `results` in the JSON of the command.
#[derive(Serialize)]
pub struct Figures<'a> {
    /// Probabilities.
    #[serde(flatten)]
    pub answer: &'a Answer,
    /// Comparison with the whole device; null without `--check`.
    pub check: Option<&'a Checked>,
    /// Differences from `plan`; null without `--plan`.
    pub plan_differences: Option<&'a [PlanDifference]>,
}
