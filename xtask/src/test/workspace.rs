//! The workspace's `cargo test`, with and without other programs.

use super::LINKED_ELSEWHERE;
use crate::run::{capture, cargo};

/// Number of tests.
#[derive(Default)]
pub struct Count {
    pub passed: usize,
    pub failed: usize,
    pub ignored: usize,
}

impl Count {
    pub fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
    }
}

/// Tests that need other programs are `#[ignore = "needs …"]`; ignored tests of lanes begin with `lane_`. Those of the recorder format volumes with mkfs.fat and
/// judge them with fsck.fat; without programs they use recorded volumes and judges of their own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    Without,
    With,
}

/// Variable that allows the tests of the recorder to use other programs.
const PROGRAMS: &str = "CARDIOGRAPH_PROGRAMS";

/// Runs the tests of the workspace. With programs: those that need them, and those of the recorder once more.
pub fn tests(programs: Programs) -> Result<Count, String> {
    let everything = ["--lib", "--bins", "--tests"];
    match programs {
        Programs::Without => in_workspace(&everything, &[], "0"),
        Programs::With => {
            let mut count = in_workspace(&everything, &["--ignored", "--skip", "lane_"], "1")?;
            // The other crates have no test programs and tests of these names.
            count.add(in_workspace(&["--test", "promises"], &[], "1")?);
            count.add(in_workspace(&["--test", "all"], &["fat_"], "1")?);
            Ok(count)
        }
    }
}

/// Runs the examples in the documentation.
pub fn documentation() -> Result<Count, String> {
    counted(&["--workspace", "--doc"], &[], "1")
}

/// Runs a test of a feature that the other tests do not enable, without the code for servers, which boards that only
/// record omit.
pub fn logging() -> Result<Count, String> {
    let features = ["--no-default-features", "--features", "log"];
    let package = ["--package", "cardiograph-recorder", "--test", "log"];
    counted(&[package.as_slice(), &features].concat(), &[], "1")
}

/// Runs tests of the first layer's crates, all with the same features, so that nothing compiles twice. Clippy compiles the
/// examples.
fn in_workspace(targets: &[&str], arguments: &[&str], programs: &str) -> Result<Count, String> {
    let mut selection = vec!["--workspace"];
    for name in LINKED_ELSEWHERE {
        selection.extend(["--exclude", name]);
    }
    selection.extend(targets);
    counted(&selection, arguments, programs)
}

fn counted(selection: &[&str], arguments: &[&str], programs: &str) -> Result<Count, String> {
    let mut test = cargo(&["test", "--no-fail-fast"]);
    test.args(selection).arg("--").args(arguments);
    let (succeeded, text) = capture(test.env(PROGRAMS, programs))?;
    let mut count = Count::default();
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        count.passed += number_before(line, " passed");
        count.failed += number_before(line, " failed");
        count.ignored += number_before(line, " ignored");
    }
    // A test binary that crashes prints no result.
    if !succeeded && count.failed == 0 {
        count.failed = 1;
    }
    Ok(count)
}

fn number_before(line: &str, word: &str) -> usize {
    let before = line.split(word).next().unwrap_or_default();
    let digits = before.rsplit(' ').next().unwrap_or_default();
    digits.parse().unwrap_or(0)
}
