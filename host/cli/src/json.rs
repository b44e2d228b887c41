//! Writes `--json`.

use crate::failure::Failure;
use crate::outputs::write_text;
use serde::Serialize;
use std::path::Path;

/// Writes the results of a command, if there is a path for them.
pub fn write<T: Serialize>(
    path: Option<&Path>,
    command: &'static str,
    results: &[T],
) -> Result<(), Failure> {
    let Some(path) = path else {
        return Ok(());
    };
    let text = cardiograph_report::json(command, results).map_err(Failure::new)?;
    write_text(path, &text)
}
