//! The tests in layers: `cargo xtask test` is for every commit, `--all` adds what needs other programs.

mod workspace;

use crate::packages::DEVICE_TARGET;
use crate::run::{cargo, check, root};
use crate::{
    arduino, boards, c, crates, dist, english, fatfs, firmware, fuzz, lane, packages, page,
    playground, power_cut, python, qemu, readme, rp2040, size,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use workspace::{Count, Programs};

/// Crates that run on devices.
const DEVICE_CRATES: [&str; 6] = [
    "cardiograph-card",
    "cardiograph-network",
    "cardiograph-recorder",
    "cardiograph-server",
    "cardiograph-timing",
    "cardiograph-workload",
];

/// Crates that the first layer leaves out: each links most of the others once more.
pub const LINKED_ELSEWHERE: [&str; 3] =
    ["cardiograph-fuzz", "cardiograph-python", "cardiograph-wasm"];

/// A part outside the workspace's `cargo test`: its name, and the function that runs it and returns how many tests
/// passed.
type Part = (&'static str, fn() -> Result<usize, String>);

const PARTS: [Part; 15] = [
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

/// Runs what every commit has to pass: without root, without other programs, and without a network once the crates
/// are there.
pub fn quick() -> Result<(), String> {
    summary(first_layer()?)
}

/// Runs the first layer, then everything that needs other programs.
pub fn all() -> Result<(), String> {
    let mut count = first_layer()?;
    if count.failed == 0 {
        second_layer(&mut count)?;
    }
    summary(count)
}

/// Runs everything, then a part of the long lanes, as CI does.
pub fn ci() -> Result<(), String> {
    let mut count = first_layer()?;
    if count.failed == 0 {
        second_layer(&mut count)?;
    }
    if count.failed == 0 {
        count.passed += timed("slice of a lane", lane::slice_of_commit)?;
        lane::warn_of_old_runs()?;
    }
    summary(count)
}

fn first_layer() -> Result<Count, String> {
    timed("checks", checks)?;
    let count = timed("workspace", || workspace::tests(Programs::Without))?;
    timed("device", device_crates_compile)?;
    Ok(count)
}

fn second_layer(count: &mut Count) -> Result<(), String> {
    timed("packages", || {
        packages::install(packages::FOR_TESTS)?;
        packages::install_python(packages::PYTHON_FOR_TESTS)
    })?;
    timed("all crates, documentation", more_checks)?;
    count.ignored = 0;
    count.add(timed("with programs", || workspace::tests(Programs::With))?);
    count.add(timed("documentation tests", workspace::documentation)?);
    count.add(timed("logging", workspace::logging)?);
    if count.failed > 0 {
        return Ok(());
    }
    for (name, part) in PARTS {
        count.passed += timed(name, part)?;
    }
    Ok(())
}

/// Prints the number of tests; fails if one failed.
fn summary(count: Count) -> Result<(), String> {
    println!("\n{} passed, {} failed", count.passed, count.failed);
    if count.ignored > 0 {
        println!(
            "{} tests need other programs and did not run, and fsck.fat judged no volume: cargo xtask test --all",
            count.ignored
        );
    }
    match count.failed {
        0 => Ok(()),
        _ => Err(String::from("some tests failed; see the output above")),
    }
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
    english::all()?;
    check(&mut cargo(&["fmt", "--all", "--check"]))?;
    let mut clippy = cargo(&["clippy", "--quiet", "--workspace", "--all-targets"]);
    for name in LINKED_ELSEWHERE {
        clippy.args(["--exclude", name]);
    }
    check(clippy.args(["--", "-Dwarnings"]))
}

/// Checks that CI adds: the crates that the first layer leaves out, and the documentation.
fn more_checks() -> Result<(), String> {
    let mut clippy = cargo(&["clippy", "--quiet", "--all-targets"]);
    for name in LINKED_ELSEWHERE {
        clippy.args(["--package", name]);
    }
    check(clippy.args(["--", "-Dwarnings"]))?;
    check(cargo(&["doc", "--quiet", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-Dwarnings"))
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
