//! The envelope of `--json`, the same for every command. docs/json.md describes it, docs/schemas every key.

use serde::Serialize;

/// Version of the layout, for all commands together. It changes if a key is renamed, removed or gets another type.
const SCHEMA: u32 = 1;

#[derive(Serialize)]
struct Envelope<'a, T> {
    schema: u32,
    command: &'static str,
    results: &'a [T],
}

/// Formats the results of a command.
///
/// # Errors
/// If a result cannot be serialised.
pub fn json<T: Serialize>(command: &'static str, results: &[T]) -> serde_json::Result<String> {
    let envelope = Envelope {
        schema: SCHEMA,
        command,
        results,
    };
    serde_json::to_string_pretty(&envelope).map(|text| text + "\n")
}
