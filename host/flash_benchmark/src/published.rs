//! Figures of the study, from `studies/flash-benchmark-media.toml`.

use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// A published figure.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// Experiment.
    #[serde(skip_serializing)]
    pub experiment: String,
    /// Set-up in the study, such as `ext2`.
    pub set_up: String,
    /// Case.
    #[serde(skip_serializing)]
    pub case: String,
    /// Mode, or the only value; missing if the study gives a range only.
    #[serde(default)]
    pub value: Option<f64>,
    /// Least value.
    #[serde(default)]
    pub min: Option<f64>,
    /// Greatest value.
    #[serde(default)]
    pub max: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    figure: Vec<Published>,
}

const TEXT: &str = include_str!("../../../studies/flash-benchmark-media.toml");

/// Returns all published figures.
///
/// # Panics
/// Never: a test reads the file that the program contains.
pub fn published() -> &'static [Published] {
    static ALL: OnceLock<Vec<Published>> = OnceLock::new();
    ALL.get_or_init(|| {
        let file = cardiograph_sim_card::parse_toml::<File>("flash-benchmark-media.toml", TEXT);
        file.map(|file| file.figure).unwrap_or_default()
    })
}

/// Finds the figure of a case. A directory has the file system that it has: its cases are compared with whatever file
/// system the study used (`is_any_set_up`).
pub(crate) fn find(
    experiment: &str,
    set_up: &str,
    case: &str,
    is_any_set_up: bool,
) -> Option<Published> {
    let all = published().iter();
    let mut of_case = all
        .filter(|figure| (figure.experiment.as_str(), figure.case.as_str()) == (experiment, case));
    let found = of_case
        .clone()
        .find(|figure| figure.set_up == set_up)
        .or_else(|| of_case.next().filter(|_| is_any_set_up));
    found.cloned()
}
