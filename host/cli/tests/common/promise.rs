//! Helpers for tests of `record`: exit codes and figures.

use super::{Run, command, run};
use serde_json::Value;
use std::path::Path;

/// Exit codes of `record`. If several apply, the first of 1, 2, 4, 3 and the signal's code is returned.
pub mod code {
    pub const NOTHING_LOST: i32 = 0;
    pub const UNACCOUNTED: i32 = 1;
    pub const REFUSED: i32 = 2;
    pub const LOST: i32 = 3;
    pub const FULL: i32 = 4;
    pub const HANGUP: i32 = 129;
    pub const INTERRUPTED: i32 = 130;
    pub const TERMINATED: i32 = 143;
}

/// Runs `record` with these arguments, separated by spaces, and `--json -`.
pub fn record(directory: &Path, words: &str) -> (Run, Value) {
    let args: Vec<_> = ["record"].into_iter().chain(words.split(' ')).collect();
    let run = run(directory, &[&args[..], &["--json", "-"]].concat());
    let figures = super::results_or_null(&run.stdout);
    (run, figures)
}

/// Starts `record` in the background, with `--json -`.
pub fn spawn(directory: &Path, words: &str) -> std::process::Child {
    let args: Vec<_> = ["record"].into_iter().chain(words.split(' ')).collect();
    let mut command = command(directory, &[&args[..], &["--json", "-"]].concat());
    command.spawn().unwrap()
}

/// Asserts that all written samples were read back, and that gaps account for the lost ones.
pub fn assert_accounted(run: &Run, figures: &Value) {
    assert!(!figures.is_null(), "no figures: {}", run.stderr);
    let number = |name| super::number(figures, name);
    assert_eq!(
        number("samples_written") + number("samples_lost"),
        number("samples_pushed")
    );
    assert_eq!(figures["verified"], true, "{}", run.stderr);
}

/// Asserts that nothing is lost, according to figures and exit code.
pub fn assert_nothing_lost(run: &Run, figures: &Value) {
    assert_accounted(run, figures);
    assert_eq!(super::number(figures, "samples_lost"), 0, "{}", run.stderr);
    assert_eq!(run.code, Some(code::NOTHING_LOST), "{}", run.stderr);
}
