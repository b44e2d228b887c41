//! The envelope of `--json`, the same for every command. docs/json.md describes it, docs/schemas every key.

use crate::failure::Failure;
use crate::outputs::write_text;
use serde::Serialize;
use std::path::Path;

/// Version of the layout, for all commands together. It changes if a key is renamed, removed or gets another type.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    schema: u32,
    command: &'static str,
    results: &'a [T],
}

/// Formats the results of a command.
pub fn text<T: Serialize>(command: &'static str, results: &[T]) -> Result<String, Failure> {
    let envelope = Envelope {
        schema: SCHEMA,
        command,
        results,
    };
    let text = serde_json::to_string_pretty(&envelope).map_err(Failure::new)?;
    Ok(text + "\n")
}

/// Writes the results of a command, if there is a path for them.
pub fn write<T: Serialize>(
    path: Option<&Path>,
    command: &'static str,
    results: &[T],
) -> Result<(), Failure> {
    match path {
        Some(path) => write_text(path, &text(command, results)?),
        None => Ok(()),
    }
}
