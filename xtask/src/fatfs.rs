//! Runs ChaN's FatFs, the library of study 5, on the wire model.

use crate::packages;
use crate::run::{capture, cargo, check, target};
use std::process::Command;

const MANIFEST: &str = "tests/fatfs/Cargo.toml";
/// Each of three kinds of cards, formatted as manufacturers do and by FatFs; and the accesses of five ways to write files.
const CASES: usize = 6 + 5;

/// Builds FatFs with its bindings, and lets it work on simulated cards; returns the number of tests passed.
pub fn all() -> Result<usize, String> {
    packages::install(packages::FOR_FATFS)?;
    check(fatfs("clippy").args(["--all-targets", "--", "-Dwarnings"]))?;
    let (succeeded, text) = capture(&mut fatfs("run"))?;
    let passed = text.lines().filter(|line| line.starts_with("ok: ")).count();
    match succeeded && passed == CASES {
        true => Ok(passed),
        false => Err(String::from(
            "FatFs does not work on a simulated card, or a board differs from it; see the output above",
        )),
    }
}

fn fatfs(command: &str) -> Command {
    let mut cargo = cargo(&[command, "--quiet", "--locked", "--manifest-path", MANIFEST]);
    cargo.arg("--target-dir").arg(target().join("fatfs"));
    cargo
}
