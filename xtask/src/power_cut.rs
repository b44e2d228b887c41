//! The power-cut test: cuts the power of a data logger in thousands of cases. The workspace optimises its crate in the
//! profile of the tests too, because each case simulates a second of card time.

use crate::run::{cargo, check};

const PROGRAM: &str = "cardiograph-sim-power-cut";
/// Number of cases that count as one test.
const CASES_OF_TEST: u64 = 100;
/// Cases of a slice; these take about two minutes.
const SLICE_CASES: u64 = 4_000;

/// Runs the power-cut test with the given arguments.
pub fn with(args: &[&str]) -> Result<(), String> {
    let run = ["run", "--quiet", "--package", PROGRAM, "--"];
    check(&mut cargo(&[&run, args].concat()))
}

/// Runs seeded cuts, and a cut at every write of a short run. Returns the number of tests that these cases count as.
pub fn all() -> Result<usize, String> {
    let cases = cardiograph_effort::POWER_CUTS.now();
    let every = cardiograph_effort::SECOND_CUTS_EVERY.now();
    with(&["--cuts", &cases.to_string()])?;
    with(&["--every-write", &every.to_string()])?;
    Ok((cases / CASES_OF_TEST) as usize + 1)
}

/// Runs seeded cuts that no other slice and no other run has, until the seeds begin again.
pub fn slice(turn: u64) -> Result<usize, String> {
    let first = 100_000 + turn % 100_000 * SLICE_CASES;
    with(&[
        "--seed",
        &first.to_string(),
        "--cuts",
        &SLICE_CASES.to_string(),
    ])?;
    Ok((SLICE_CASES / CASES_OF_TEST) as usize)
}
