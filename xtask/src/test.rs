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

/// The tests of cargo. Clippy compiles the examples as well.
const TESTS: [(&str, &[&str]); 3] = [
    (
        "workspace",
        &[
            "--workspace",
            "--no-fail-fast",
            "--lib",
            "--bins",
            "--tests",
        ],
    ),
    ("documentation", &["--workspace", "--no-fail-fast", "--doc"]),
    // A feature that the other tests do not enable, without the code for servers, which boards that only record omit.
    (
        "logging",
        &[
            "--package",
            "cardiograph-recorder",
            "--no-default-features",
            "--features",
            "log",
            "--test",
            "log",
        ],
    ),
];

/// A test outside the workspace's `cargo test`: its name, and the function that runs it and returns how many tests passed.
type Test = (&'static str, fn() -> Result<usize, String>);

/// These run only if all tests of the workspace pass.
const LATER_TESTS: [Test; 15] = [
    ("power cuts", power_cut::all),
    ("crates", crates::all),
    ("FatFS", fatfs::all),
    ("firmware", firmware::all),
    ("Arduino", arduino::all),
    ("C", c::all),
    ("RP2040 and README", rp2040_and_readme),
    ("network", qemu::all),
    ("boards", boards::one),
    ("page", page::all),
    ("playground", playground::test),
    ("Python", python::tests),
    ("size", size::all),
    ("Windows", dist::check_windows),
    ("fuzzing", fuzz::runs),
];

/// Runs every check and prints the number of tests at the end.
pub fn everything() -> Result<(), String> {
    timed("packages", || {
        packages::install(packages::FOR_TESTS)?;
        packages::install_python(packages::PYTHON_FOR_TESTS)
    })?;
    timed("checks", checks)?;
    let mut count = Count::default();
    for (name, arguments) in TESTS {
        count.add(timed(name, || cargo_tests(arguments))?);
    }
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

/// Runs these at the same time: most of the time, each of them uses only one processor, and neither is judged by its
/// speed.
fn rp2040_and_readme() -> Result<usize, String> {
    std::thread::scope(|scope| {
        let readme = scope.spawn(readme::commands);
        let boards = rp2040::all();
        let readme = readme
            .join()
            .map_err(|_| String::from("README: panicked"))?;
        Ok(boards? + readme?)
    })
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
    device_crates_compile()?;
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

/// Checks that the crates compile without an operating system; the firmware links them.
fn device_crates_compile() -> Result<(), String> {
    packages::add_device_target()?;
    let mut all = cargo(&["check", "--quiet", "--target", DEVICE_TARGET]);
    for name in DEVICE_CRATES {
        all.args(["--package", name]);
    }
    check(&mut all)?;
    for arguments in [
        ["cardiograph-server", "--no-default-features"].as_slice(),
        &["cardiograph-recorder", "--features", "defmt"],
    ] {
        let mut one = cargo(&["check", "--quiet", "--target", DEVICE_TARGET]);
        check(one.arg("--package").args(arguments))?;
    }
    Ok(())
}

/// Number of tests.
#[derive(Default)]
struct Count {
    passed: usize,
    failed: usize,
}

impl Count {
    fn add(&mut self, other: Count) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

fn cargo_tests(arguments: &[&str]) -> Result<Count, String> {
    let (succeeded, text) = capture(cargo(&["test"]).args(arguments))?;
    let mut count = Count::default();
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
