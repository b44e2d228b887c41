//! All CI checks.

use crate::packages::DEVICE_TARGET;
use crate::run::{capture, cargo, check, root};
use crate::{
    arduino, boards, c, crates, dist, english, fatfs, firmware, fuzz, packages, page, playground,
    power_cut, python, qemu, readme, rp2040, size,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

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
const FUZZ_RUNS: u32 = 10_000;

/// A test outside the workspace's `cargo test`: its name, and the function that runs it and returns how many tests passed.
type Test = (&'static str, fn() -> Result<usize, String>);

/// These run only if all tests of the workspace pass.
const LATER_TESTS: [Test; 16] = [
    ("power cuts", power_cut::all),
    ("crates", crates::all),
    ("FatFS", fatfs::all),
    ("firmware", firmware::all),
    ("Arduino", arduino::all),
    ("C", c::all),
    ("RP2040", rp2040::all),
    ("network", qemu::all),
    ("boards", boards::one),
    ("page", page::all),
    ("playground", playground::test),
    ("Python", python::tests),
    ("size", size::all),
    ("Windows", dist::check_windows),
    ("README", readme::commands),
    ("fuzzing", || fuzz::all(fuzz::Effort::Runs(FUZZ_RUNS))),
];

/// Runs every check and prints the number of tests at the end.
pub fn everything() -> Result<(), String> {
    timed("packages", || {
        packages::install(packages::FOR_TESTS)?;
        packages::install_python(packages::PYTHON_FOR_TESTS)
    })?;
    timed("checks", checks)?;
    let mut count = timed("workspace", || {
        cargo_tests(&["--workspace", "--no-fail-fast"])
    })?;
    let log = timed("logging", || cargo_tests(&LOG_TEST))?;
    count.passed += log.passed;
    count.failed += log.failed;
    if count.failed == 0 {
        for (name, test) in LATER_TESTS {
            count.passed += timed(name, test)?;
        }
    }
    println!("\n{} passed, {} failed", count.passed, count.failed);
    if count.failed > 0 {
        return Err(String::from("some tests failed; see the output above"));
    }
    Ok(())
}

/// Runs a part and prints how long it took, also if it failed: CI's time is limited.
fn timed<T>(name: &str, part: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    let start = Instant::now();
    let result = part();
    println!("\n{name}: {} s", start.elapsed().as_secs());
    result
}

fn checks() -> Result<(), String> {
    integration_tests_are_named()?;
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
    english::all()
}

/// Fails for a file next to a `tests/all.rs` that nothing compiles, as its tests would never run.
fn integration_tests_are_named() -> Result<(), String> {
    for group in ["core", "host", "sim"] {
        for package in entries(&root().join(group))? {
            if package.join("tests/all.rs").is_file() {
                tests_are_named(&package)?;
            }
        }
    }
    Ok(())
}

fn tests_are_named(package: &Path) -> Result<(), String> {
    let all = package.join("tests/all.rs");
    let modules = read(&all)?;
    let manifest = read(&package.join("Cargo.toml"))?;
    for path in entries(&package.join("tests"))? {
        let is_test = path.extension().is_some_and(|end| end == "rs")
            || path.join("mod.rs").is_file()
            || path.join("main.rs").is_file();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let is_module = modules.lines().any(|line| line == format!("mod {name};"));
        let is_program = manifest.contains(&format!("[[test]]\nname = \"{name}\"\n"));
        if is_test && !is_module && !is_program {
            let (path, all) = (path.display(), all.display());
            return Err(format!(
                "{path}: nothing runs these tests; add `mod {name};` to {all}"
            ));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let paths =
        fs::read_dir(folder).and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect());
    paths.map_err(|error| format!("{}: {error}", folder.display()))
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
