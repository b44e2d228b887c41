//! Runs a target without libFuzzer.

use crate::mutate::mutate;
use cardiograph_sim_world::Seed;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, io};

/// Runs the target once with the file that is the only argument, or with every seed and a number of mutations of seeds:
/// the first argument. The second one is the seed of the mutations, 1 by default.
///
/// The file `fuzz/artifacts/NAME/input` contains the current input. It remains if the target panics or is killed.
pub fn main(name: &str, target: fn(&[u8])) -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    let seed = std::env::args().nth(2);
    let seed = seed.and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let result = match argument.parse() {
        Ok(count) => run(name, target, count, seed).map_err(|error| {
            format!("{error}; the folders are fuzz/seeds/{name} and fuzz/artifacts/{name}")
        }),
        Err(_) => fs::read(&argument)
            .map(|bytes| target(&bytes))
            .map_err(|error| {
                format!("{argument}: {error}; give a number of inputs, or the path of one")
            }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(name: &str, target: fn(&[u8]), count: u64, seed: u64) -> io::Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let seeds = seeds_in(&folder.join("seeds").join(name))?;
    let artifacts = folder.join("artifacts").join(name);
    fs::create_dir_all(&artifacts)?;
    let path = artifacts.join("input");
    let run_one = |bytes: &[u8]| -> io::Result<()> {
        fs::write(&path, bytes)?;
        target(bytes);
        Ok(())
    };
    seeds.iter().try_for_each(|seed| run_one(seed))?;
    let mut random = Seed::new(seed).stream(name);
    for _ in 0..count {
        run_one(&mutate(&seeds, &mut random))?;
    }
    fs::remove_file(path)
}

/// Reads the files of a folder, in the order of their names.
fn seeds_in(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let entries: io::Result<Vec<PathBuf>> = fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect();
    let mut paths = entries?;
    paths.sort();
    paths.iter().map(fs::read).collect()
}
