//! Runs the fuzz targets of the workspace in `fuzz/`.
//!
//! Plain cargo builds them, because the stable compiler has the instrumentation that libFuzzer needs.

use crate::run::{cargo, check, root};
use std::path::PathBuf;
use std::process::Command;

/// Coverage instrumentation with the flags of cargo-fuzz.
const RUSTFLAGS: &str = "--cfg fuzzing -Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Duration of the run of each fuzz target.
#[derive(Clone, Copy)]
pub enum Effort {
    /// Runs a number of inputs from a fixed seed, reproducibly.
    Runs(u32),
    /// Runs for a time in s, from a new seed.
    Seconds(u32),
}

/// Builds every target.
pub fn build() -> Result<(), String> {
    let mut build = cargo(&[
        "build",
        "--quiet",
        "--release",
        "--manifest-path",
        "fuzz/Cargo.toml",
        "--target",
    ]);
    check(build.arg(host_triple()?).env("RUSTFLAGS", RUSTFLAGS))
}

/// Builds and runs every target; returns the number of targets.
pub fn all(effort: Effort) -> Result<usize, String> {
    build()?;
    let host = host_triple()?;
    let targets = targets()?;
    for target in &targets {
        run(&host, target, effort)?;
    }
    Ok(targets.len())
}

fn run(host: &str, target: &str, effort: Effort) -> Result<(), String> {
    let folder = root().join("fuzz");
    let create = |name: &str| -> Result<PathBuf, String> {
        let path = folder.join(name).join(target);
        std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    };
    let built = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(path) => PathBuf::from(path),
        None => folder.join("target"),
    };
    let mut command = Command::new(built.join(host).join("release").join(target));
    match effort {
        Effort::Runs(runs) => command.args([format!("-runs={runs}"), "-seed=1".to_string()]),
        Effort::Seconds(seconds) => command.arg(format!("-max_total_time={seconds}")),
    };
    command.args([
        "-max_len=4096",
        "-rss_limit_mb=1024",
        "-timeout=10",
        "-verbosity=0",
    ]);
    command.arg(format!(
        "-artifact_prefix={}/",
        create("artifacts")?.display()
    ));
    // libFuzzer adds new inputs to the first folder and leaves the seeds unchanged. With a fixed seed the
    // first folder must be empty, or the run would not be reproducible.
    let corpus = match effort {
        Effort::Seconds(_) => create("corpus")?,
        Effort::Runs(_) => {
            let _ = std::fs::remove_dir_all(folder.join("target/scratch"));
            create("target/scratch")?
        }
    };
    command.arg(corpus);
    check(command.arg(folder.join("seeds").join(target)))
}

fn targets() -> Result<Vec<String>, String> {
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
