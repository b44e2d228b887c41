//! All CI checks.

use crate::packages::DEVICE_TARGET;
use crate::run::{capture, cargo, check};
use crate::{
    arduino, boards, c, crates, dist, english, fatfs, firmware, fuzz, packages, page, playground,
    power_cut, python, qemu, readme, rp2040, size,
};

/// Crates that run on devices.
const DEVICE_CRATES: [&str; 6] = [
    "cardiograph-card",
    "cardiograph-network",
    "cardiograph-recorder",
    "cardiograph-server",
    "cardiograph-timing",
    "cardiograph-workload",
];

/// The test of a feature that the other tests do not enable.
const LOG_TEST: [&str; 6] = [
    "--package",
    "cardiograph-recorder",
    "--features",
    "log",
    "--test",
    "log",
];

/// Number of inputs to each fuzz target; these take a few seconds.
const FUZZ_RUNS: u32 = 30_000;

/// Runs every check and prints the number of tests at the end.
pub fn everything() -> Result<(), String> {
    packages::install(packages::FOR_TESTS)?;
    packages::install_python(packages::PYTHON_FOR_TESTS)?;
    check(&mut cargo(&["fmt", "--all", "--check"]))?;
    check(&mut cargo(&[
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--",
        "-Dwarnings",
    ]))?;
    check(
        cargo(&["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings"),
    )?;
    // Boards that only record omit the code for servers; running these tests again would take minutes.
    check(&mut cargo(&[
        "check",
        "--quiet",
        "--tests",
        "--package",
        "cardiograph-recorder",
        "--no-default-features",
    ]))?;
    device_crates_build()?;
    // The workspace in fuzz/ is not part of the checks above, and its runs come last.
    fuzz::build()?;
    english::all()?;

    let mut count = cargo_tests(&["--workspace", "--no-fail-fast"])?;
    let log = cargo_tests(&LOG_TEST)?;
    count.passed += log.passed;
    count.failed += log.failed;
    if count.failed == 0 {
        count.passed += power_cut::all()?;
        count.passed += crates::all()?;
        count.passed += fatfs::all()?;
        count.passed += firmware::all()?;
        count.passed += arduino::all()?;
        count.passed += c::all()?;
        count.passed += rp2040::all()?;
        count.passed += qemu::all()?;
        count.passed += boards::one()?;
        count.passed += page::all()?;
        count.passed += playground::test()?;
        count.passed += python::tests()?;
        count.passed += size::all()?;
        count.passed += dist::check_targets()?;
        count.passed += readme::commands()?;
        count.passed += fuzz::all(fuzz::Effort::Runs(FUZZ_RUNS))?;
    }
    println!("\n{} passed, {} failed", count.passed, count.failed);
    if count.failed > 0 {
        return Err(String::from("some tests failed; see the output above"));
    }
    Ok(())
}

fn device_crates_build() -> Result<(), String> {
    packages::add_device_target()?;
    let build = |arguments: &[&str]| {
        let mut build = cargo(&["build", "--quiet", "--target", DEVICE_TARGET, "--package"]);
        check(build.args(arguments))
    };
    for name in DEVICE_CRATES {
        build(&[name])?;
    }
    build(&["cardiograph-server", "--no-default-features"])?;
    build(&["cardiograph-recorder", "--features", "defmt"])
}

struct Count {
    passed: usize,
    failed: usize,
}

fn cargo_tests(arguments: &[&str]) -> Result<Count, String> {
    let (succeeded, text) = capture(cargo(&["test"]).args(arguments))?;
    let mut count = Count {
        passed: 0,
        failed: 0,
    };
    for line in text.lines().filter(|line| line.starts_with("test result:")) {
        count.passed += number_before(line, " passed");
        count.failed += number_before(line, " failed");
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
