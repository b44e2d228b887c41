//! Traces of stand-ins of cards on emulated boards: they show what a board's program adds to the time of a card, and
//! nothing about cards.

use crate::Operations;
use cardiograph_trace::{Loaded, ReadOptions, read_from};

/// Name and text of each trace.
const TRACES: [(&str, &str); 1] = [(
    "mega2560-stand-in",
    include_str!("../../../studies/traces/mega2560-stand-in.txt"),
)];

/// Returns the writes of a trace.
///
/// # Errors
/// If there is no such trace, or if it cannot be read.
pub(crate) fn operations(name: &str) -> Result<Operations, String> {
    let (_, text) = TRACES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| format!("no trace named {name}"))?;
    match read_from(name, text.as_bytes(), &ReadOptions::default()) {
        Ok(Loaded::Trace(trace)) => Ok(trace.operations().collect::<Vec<_>>().into()),
        Ok(_) => Err(format!("{name} is not a trace")),
        Err(error) => Err(error.to_string()),
    }
}
