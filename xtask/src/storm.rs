//! The storm: a data logger's power is cut in thousands of cases; built with optimisation, since a case is
//! a second of a card's life.

use crate::run::{cargo, check};

/// Cases of a run that is not asked for more.
const CASES: u32 = 10_000;
/// Every so many cases count as a test.
const CASES_OF_TEST: u32 = 100;

/// Second cuts follow one of so many first cuts.
const EVERY: &str = "40";

/// Runs the storm with these arguments.
pub fn with(args: &[&str]) -> Result<(), String> {
    let run = [
        "run",
        "--quiet",
        "--profile",
        "storm",
        "--package",
        "cardiograph-sim-storm",
        "--",
    ];
    check(&mut cargo(&[&run, args].concat()))
}

/// What every test run has: seeded cuts, and every write of a short run; returns how many tests that is.
pub fn all() -> Result<usize, String> {
    with(&["--cuts", &CASES.to_string()])?;
    with(&["--every-write", EVERY])?;
    Ok((CASES / CASES_OF_TEST) as usize + 1)
}
