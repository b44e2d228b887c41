//! Searches the states of the planner that take too long for `cargo xtask test`, with the profile of the power-cut test.

use crate::run::{cargo, check};

/// Runs the ignored searches.
pub fn all() -> Result<(), String> {
    check(&mut cargo(&[
        "test",
        "--profile",
        "power-cut",
        "--package",
        "cardiograph-recorder",
        "--lib",
        "plan::search",
        "--",
        "--ignored",
        "--nocapture",
    ]))
}
