//! Benchmarks that compare Cardiograph with today's common tools, run alternately on the same machine. Each
//! run is saved with its date in `benchmarks/runs`.

mod analyze;
mod card;
mod overhead;
mod page;
mod pan;
mod playground;
mod recorder;
mod report;
mod serve;

pub use report::save;

use crate::packages;
use crate::run::{cargo, check, target};
use std::path::PathBuf;

/// Number of measured rounds of each program, after one warm-up round.
const ROUNDS: usize = 7;

/// Runs every benchmark.
pub fn all() -> Result<(), String> {
    one("overhead")?;
    one("page")?;
    one("analyze")?;
    one("card")?;
    one("pan")?;
    one("playground")?;
    one("recorder")?;
    one("serve")
}

/// Runs the benchmark with the given name.
pub fn one(name: &str) -> Result<(), String> {
    packages::install(packages::FOR_BENCHMARKS)?;
    let targets: &[&str] = match name {
        "serve" | "page" | "pan" | "playground" | "analyze" => &["--package", "cardiograph"],
        _ => &["--workspace", "--examples", "--bins"],
    };
    check(cargo(&["build", "--quiet", "--release"]).args(targets))?;
    match name {
        "overhead" => overhead::run(),
        "analyze" => analyze::run(),
        "card" => card::run(),
        "page" => page::run(),
        "pan" => pan::run(),
        "playground" => playground::run(),
        "recorder" => recorder::run(),
        "serve" => serve::run(),
        _ => Err(format!(
            "no benchmark named {name}; benchmarks: overhead, analyze, card, page, pan, playground, recorder, serve"
        )),
    }
}

/// Returns the path of the command under measurement.
fn cardiograph() -> PathBuf {
    target().join("release/cardiograph")
}

/// Creates an empty folder for the files of a benchmark or an attack.
pub fn scratch(path: PathBuf) -> Result<PathBuf, String> {
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
