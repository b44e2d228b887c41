//! Cards, boards and workloads by name or as TOML files, with the messages of the command.

use crate::error::error;
use cardiograph_sim_card::{Board, Profile, parse_toml};
use cardiograph_workload::{Phase, WORKLOADS, Workload, workload};
use pyo3::prelude::*;
use serde::Deserialize;
use std::io::ErrorKind;

/// Prefix of simulated targets.
pub const PREFIX: &str = "sim:";
const DEFAULT_BOARD: &str = "esp32";

/// Returns card and board of `sim:CARD@BOARD`, or `None` for any other name.
pub fn simulated(target: &str) -> PyResult<Option<(Profile, Board)>> {
    let Some(set_up) = target.strip_prefix(PREFIX) else {
        return Ok(None);
    };
    let (card, board) = set_up.split_once('@').unwrap_or((set_up, DEFAULT_BOARD));
    let profile = match toml_text(card)? {
        Some(text) => Profile::from_toml(card, &text),
        None => Profile::named(card),
    };
    let board = match toml_text(board)? {
        Some(text) => Board::from_toml(board, &text),
        None => Board::named(board),
    };
    Ok(Some((profile.map_err(error)?, board.map_err(error)?)))
}

/// Returns card and board of `sim:CARD@BOARD`.
pub fn simulated_only(target: &str) -> PyResult<(Profile, Board)> {
    simulated(target)?.ok_or_else(|| {
        error(format!(
            "target: {target} is no simulated card; name one as sim:CARD@BOARD"
        ))
    })
}

fn toml_text(name: &str) -> PyResult<Option<String>> {
    if !name.ends_with(".toml") {
        return Ok(None);
    }
    let read = std::fs::read_to_string(name).map_err(|failed| {
        error(match failed.kind() {
            ErrorKind::NotFound => format!("{name}: no such file; check the name"),
            ErrorKind::InvalidData => format!("{name}: not a text file; use a TOML file"),
            _ => format!("{name}: {failed}; use a readable TOML file"),
        })
    });
    read.map(Some)
}

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
    /// Returns the workload of the given name, or reads it from a TOML file.
    pub fn named(name: &str) -> PyResult<OwnedWorkload> {
        if let Some(text) = toml_text(name)? {
            let found: OwnedWorkload = parse_toml(name, &text)
                .map_err(|failed| error(format!("{failed}; see docs/workloads.md for the keys")))?;
            if found.phase.is_empty() {
                return Err(error(format!(
                    "{name}: contains no [[phase]]; add one, see docs/workloads.md for the keys"
                )));
            }
            let checked = found.borrow().check();
            checked.map_err(|invalid| error(format!("{name}, {invalid}")))?;
            return Ok(found);
        }
        let Some(known) = workload(name) else {
            let names: Vec<_> = WORKLOADS
                .iter()
                .copied()
                .flatten()
                .map(|w| w.name)
                .collect();
            return Err(error(format!(
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

    /// Borrows the workload for the runner.
    pub fn borrow(&self) -> Workload<'_> {
        Workload {
            name: &self.name,
            study: &self.study,
            about: &self.about,
            phases: &self.phase,
        }
    }
}
