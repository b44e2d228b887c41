//! In place of a server next to a recording, where directories are not served.

use super::args::Record;
use crate::failure::Failure;
use cardiograph_record::Monitor;
use std::sync::Arc;

/// A server, of which there is none.
pub enum Served {}

impl Served {
    /// Returns an error.
    pub fn open(
        _: &Record,
        listen: &str,
        _: &Arc<Monitor>,
        _: Option<u64>,
    ) -> Result<Served, Failure> {
        Err(Failure::new(format!(
            "--serve {listen}: directories are served on Linux only; remove it"
        )))
    }
}

/// Runs the recording.
pub fn while_served<T>(_: Option<Served>, record: impl FnOnce() -> T) -> Result<T, Failure> {
    Ok(record())
}
