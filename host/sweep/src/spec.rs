//! The specification of a sweep, as TOML. docs/sweeps.md describes the keys.

use crate::SweepError;
use crate::fields::{SEED_MAX, check_range};
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// Simulation behind a task.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The card's timing alone, fed by the write pattern of the recorder.
    Card,
    /// The whole device: sampling interrupt, recorder or logger, file system, driver and card.
    Recorder,
}

impl Mode {
    /// Name in specifications and results.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Card => "card",
            Mode::Recorder => "recorder",
        }
    }
}

/// Way in which samples get to the file, as in `cardiograph record --policy`.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyName {
    /// Cardiograph's recorder.
    Stream,
    /// Opens and closes the file for each sample.
    Naive,
    /// Keeps the file open.
    KeepOpen,
    /// Collects the samples of a session in the buffer, then writes them.
    AfterSession,
}

impl PolicyName {
    /// Name in specifications and results.
    pub fn name(self) -> &'static str {
        match self {
            PolicyName::Stream => "stream",
            PolicyName::Naive => "naive",
            PolicyName::KeepOpen => "keep-open",
            PolicyName::AfterSession => "after-session",
        }
    }
}

/// A sweep as its author writes it: every combination of the lists is simulated with every seed.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Description, shown above the results.
    #[serde(default)]
    pub about: String,
    /// Simulation behind each result.
    pub mode: Mode,
    /// Names of simulated cards, or TOML files.
    pub cards: Vec<String>,
    /// Names of boards, or TOML files.
    #[serde(default = "default_boards")]
    pub boards: Vec<String>,
    /// Samples per second.
    pub rates_hz: Vec<u32>,
    /// Bytes per sample.
    pub sample_bytes: u32,
    /// Buffer sizes, in bytes.
    pub buffers_bytes: Vec<u64>,
    /// Ways to write the samples.
    #[serde(default = "default_policies")]
    pub policies: Vec<PolicyName>,
    /// Length of each recording, in s.
    pub run_s: u64,
    /// Durability window of the recorder, in ms.
    #[serde(default = "default_window_ms")]
    pub durability_window_ms: u64,
    /// Length of a session of the policy `after-session`, in s.
    #[serde(default = "default_session_s")]
    pub session_s: u64,
    /// Number of seeds, each of which is one recording per combination.
    pub seeds: u32,
    /// Smallest seed.
    #[serde(default = "default_first_seed")]
    pub first_seed: u64,
    /// Seeds per task.
    #[serde(default = "default_seeds_per_task")]
    pub seeds_per_task: u32,
    /// Number of tasks up to which the sweep may run; needed above 1,000,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tasks: Option<u64>,
}

fn default_boards() -> Vec<String> {
    vec!["esp32".to_string()]
}

fn default_policies() -> Vec<PolicyName> {
    vec![PolicyName::Stream]
}

fn default_window_ms() -> u64 {
    1000
}

fn default_session_s() -> u64 {
    10
}

fn default_first_seed() -> u64 {
    1
}

/// Seeds per task unless the specification names another number, or a task would take too long.
pub(crate) const SEEDS_PER_TASK: u32 = 10;

fn default_seeds_per_task() -> u32 {
    SEEDS_PER_TASK
}

impl Spec {
    /// Checks every value that does not depend on a card or board; error messages start with `name`.
    pub(crate) fn check(&self, name: &str) -> Result<(), SweepError> {
        list(name, "cards", &self.cards)?;
        list(name, "boards", &self.boards)?;
        list(name, "rates_hz", &self.rates_hz)?;
        list(name, "buffers_bytes", &self.buffers_bytes)?;
        let policies: Vec<_> = self.policies.iter().map(|policy| policy.name()).collect();
        list(name, "policies", &policies)?;
        for &rate_hz in &self.rates_hz {
            check_range(name, "rates_hz", rate_hz.into())?;
        }
        for &bytes in &self.buffers_bytes {
            check_range(name, "buffers_bytes", bytes)?;
        }
        for (field, value) in [
            ("sample_bytes", self.sample_bytes.into()),
            ("run_s", self.run_s),
            ("durability_window_ms", self.durability_window_ms),
            ("session_s", self.session_s),
            ("seeds", self.seeds.into()),
            ("seeds_per_task", self.seeds_per_task.into()),
        ] {
            check_range(name, field, value)?;
        }
        let last = SEED_MAX - u64::from(self.seeds);
        if self.first_seed > last {
            return Err(SweepError::new(format!(
                "{name}: `first_seed` is {}; it must be 0 to {last}",
                self.first_seed
            )));
        }
        self.check_policies(name)
    }

    fn check_policies(&self, name: &str) -> Result<(), SweepError> {
        let other = self
            .policies
            .iter()
            .find(|&&policy| policy != PolicyName::Stream);
        match (self.mode, other) {
            (Mode::Card, Some(policy)) => Err(SweepError::new(format!(
                "{name}: `policies` contains {}, which needs mode = \"recorder\": its reads and writes of FAT and directory \
                 depend on the file library and on the length of the file, and mode = \"card\" has no file system; use \
                 mode = \"recorder\", or \"stream\" alone",
                policy.name()
            ))),
            _ => Ok(()),
        }
    }
}

fn list<T: PartialEq + Display>(name: &str, field: &str, values: &[T]) -> Result<(), SweepError> {
    if values.is_empty() {
        return Err(SweepError::new(format!(
            "{name}: `{field}` is empty; list at least one value"
        )));
    }
    for (at, value) in values.iter().enumerate() {
        if values[..at].contains(value) {
            return Err(SweepError::new(format!(
                "{name}: `{field}` contains {value} twice; remove one"
            )));
        }
    }
    Ok(())
}
