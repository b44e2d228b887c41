//! `cargo xtask mutants`: a crate of its own (mutants/), so that the other commands do not compile a parser of Rust.

use crate::run::{cargo, check};

/// Runs the program with these arguments.
pub fn with(args: &[&str]) -> Result<(), String> {
    let mut command = cargo(&["run", "--quiet", "--package", "cardiograph-mutants", "--"]);
    check(command.args(args))
}
