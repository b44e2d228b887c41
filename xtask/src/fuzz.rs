//! Runs the fuzz targets of the crate in `fuzz/`.
//!
//! For minutes or hours, libFuzzer finds inputs; plain cargo builds it, because the stable compiler has the
//! instrumentation that it needs. In CI, plain programs run fixed mutations of the seeds.

use crate::run::{cargo, check, root, target};
use std::path::PathBuf;
use std::process::Command;

/// Coverage instrumentation with the flags of cargo-fuzz.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Number of mutations of a slice; these take about two minutes.
const SLICE_RUNS: u64 = 10_000;
/// Time limit of a target, in s.
const RUNS_S_MAX: &str = "600";
/// Limit on the memory of a target, in bytes: no input may make it allocate more.
const MEMORY_BYTES_MAX: u64 = 1 << 30;

/// Runs the seeds of every target and fixed mutations of them, without libFuzzer; returns the number of targets.
pub fn runs() -> Result<usize, String> {
    mutations(cardiograph_effort::MUTATIONS.now(), 1)
}

/// Runs other mutations, and more of them.
pub fn other_runs(turn: u64) -> Result<usize, String> {
    mutations(SLICE_RUNS, 2 + turn)
}

fn mutations(count: u64, seed: u64) -> Result<usize, String> {
    check(&mut cargo(&[
        "build",
        "--quiet",
        "--bins",
        "--package",
        "cardiograph-fuzz",
    ]))?;
    let names = names()?;
    for name in &names {
        let mut command = Command::new("timeout");
        command.args([RUNS_S_MAX, "prlimit"]);
        command.arg(format!("--data={MEMORY_BYTES_MAX}"));
        command.arg(target().join("debug").join(name));
        check(command.args([count.to_string(), seed.to_string()]))
            .map_err(|error| format!("{error}; the input is in fuzz/artifacts/{name}/input"))?;
    }
    Ok(names.len())
}

/// Runs every target with libFuzzer for a time in s, from a new seed.
pub fn for_seconds(seconds: u32) -> Result<(), String> {
    let host = host_triple()?;
    let mut build = cargo(&["build", "--quiet", "--profile", "fuzz", "--bins"]);
    build.args(["--package", "cardiograph-fuzz", "--target", &host]);
    check(build.env("RUSTFLAGS", RUSTFLAGS))?;
    let built = target().join(&host).join("fuzz");
    for name in names()? {
        run(built.join(&name), &name, seconds)?;
    }
    Ok(())
}

fn run(program: PathBuf, name: &str, seconds: u32) -> Result<(), String> {
    let folder = root().join("fuzz");
    let create = |parent: &str| -> Result<PathBuf, String> {
        let path = folder.join(parent).join(name);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let mut command = Command::new(program);
    command.arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-rss_limit_mb={}", MEMORY_BYTES_MAX >> 20));
    command.args(["-max_len=4096", "-timeout=10", "-verbosity=0"]);
    let artifacts = create("artifacts")?;
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    // libFuzzer adds new inputs to the first folder and leaves the seeds unchanged.
    command.arg(create("corpus")?);
    check(command.arg(folder.join("seeds").join(name)))
}

/// Returns the names of the targets.
fn names() -> Result<Vec<String>, String> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries =
        std::fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let names = entries.flatten().map(|entry| entry.path());
    let mut names: Vec<_> = names
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort();
    Ok(names)
}

fn host_triple() -> Result<String, String> {
    let output = Command::new("rustc").arg("-vV").output();
    let output = output.map_err(|error| format!("rustc: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_string)
        .ok_or_else(|| "`rustc -vV` prints no host triple".to_string())
}
