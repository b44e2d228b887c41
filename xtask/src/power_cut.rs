//! The power-cut test: cuts the power of a data logger in thousands of cases. The workspace optimises its crate in the
//! profile of the tests too, because each case simulates a second of card time.

use crate::run::{build_workspace, cargo, check, target};
use std::process::Command;

const PROGRAM: &str = "cardiograph-sim-power-cut";
/// Number of cases that `cargo xtask test` runs: the first of those of `cargo xtask power-cut`, as CI's time is limited.
const CASES: u32 = 4_000;
/// Number of cases that count as one test.
const CASES_OF_TEST: u32 = 100;

/// Argument of `--every-write`: power is cut a second time after one in this number of first cuts.
const EVERY: &str = "40";

/// Runs the power-cut test with the given arguments.
pub fn with(args: &[&str]) -> Result<(), String> {
    let run = ["run", "--quiet", "--package", PROGRAM, "--"];
    check(&mut cargo(&[&run, args].concat()))
}

/// Runs the cases of `cargo xtask test`: seeded cuts, and a cut at every write of a short run. Returns the
/// number of tests that these cases count as.
pub fn all() -> Result<usize, String> {
    build_workspace()?;
    let program = target().join("debug").join(PROGRAM);
    check(Command::new(&program).args(["--cuts", &CASES.to_string()]))?;
    check(Command::new(&program).args(["--every-write", EVERY]))?;
    Ok((CASES / CASES_OF_TEST) as usize + 1)
}
