//! Workloads by name or from a TOML file.

use crate::failure::Failure;
use crate::target::read_text;
use cardiograph_workload::{Phase, WORKLOADS, Workload, workload};
use serde::Deserialize;
use std::path::Path;

/// A workload that owns its text and phases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnedWorkload {
    name: String,
    #[serde(default)]
    study: String,
    #[serde(default)]
    about: String,
    phase: Vec<Phase>,
}

impl OwnedWorkload {
    /// Borrows the workload for the runner.
    pub fn borrow(&self) -> Workload<'_> {
        Workload {
            name: &self.name,
            study: &self.study,
            about: &self.about,
            phases: &self.phase,
        }
    }

    /// Returns the workload of the given name, or reads it from a file if the name ends in `.toml`.
    pub fn named(name: &str) -> Result<OwnedWorkload, Failure> {
        if name.ends_with(".toml") {
            return OwnedWorkload::from_file(name);
        }
        let Some(known) = workload(name) else {
            let names: Vec<_> = WORKLOADS
                .iter()
                .copied()
                .flatten()
                .map(|w| w.name)
                .collect();
            return Err(Failure::new(format!(
                "no workload named {name}; choose one of {}, or use a TOML file",
                names.join(", ")
            )));
        };
        Ok(OwnedWorkload {
            name: known.name.to_string(),
            study: known.study.to_string(),
            about: known.about.to_string(),
            phase: known.phases.to_vec(),
        })
    }

    fn from_file(path: &str) -> Result<OwnedWorkload, Failure> {
        let text = read_text(Path::new(path))?;
        let workload: OwnedWorkload =
            cardiograph_sim_card::parse_toml(path, &text).map_err(|error| {
                Failure::new(format!("{error}; see docs/workloads.md for the keys"))
            })?;
        if workload.phase.is_empty() {
            return Err(Failure::new(format!(
                "{path}: contains no [[phase]]; add one, see docs/workloads.md for the keys"
            )));
        }
        let checked = workload.borrow().check();
        checked.map_err(|invalid| Failure::new(format!("{path}, {invalid}")))?;
        Ok(workload)
    }
}
