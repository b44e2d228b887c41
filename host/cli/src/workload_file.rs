//! Built-in workloads by name, and custom ones from TOML files.

use crate::failure::Failure;
use crate::target::read_text;
use cardiograph_workload::{Phase, WORKLOADS, Workload, workload};
use serde::Deserialize;
use std::path::Path;

/// A workload that owns its strings and phases.
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
    /// Returns the workload as the runner takes it.
    pub fn borrow(&self) -> Workload<'_> {
        Workload {
            name: &self.name,
            study: &self.study,
            about: &self.about,
            phases: &self.phase,
        }
    }

    /// Returns the built-in workload with this name, or the one in this file if the name ends in `.toml`.
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
                "no workload named {name}; use one of {}, or a TOML file",
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
        let workload: OwnedWorkload = cardiograph_sim_card::parse_toml(path, &text)
            .map_err(|error| Failure::new(format!("{error} (docs/workloads.md lists the keys)")))?;
        if workload.phase.is_empty() {
            return Err(Failure::new(format!(
                "{path}: no [[phase]]; add one (docs/workloads.md lists the keys)"
            )));
        }
        let checked = workload.borrow().check();
        checked.map_err(|invalid| Failure::new(format!("{path}, {invalid}")))?;
        Ok(workload)
    }
}
