//! Overhead of measuring a write: `cardiograph bench` on a directory in memory, where writes are fastest,
//! compared with a plain loop that stores two clock readings around each pwrite, and with fio.

use super::report::{Series, save, table, timed};
use super::{ROUNDS, cardiograph, scratch};
use crate::run::target;
use std::path::{Path, PathBuf};

const WRITES: u64 = 1_000_000;
const BLOCK_BYTES: u64 = 512;

pub fn run() -> Result<(), String> {
    let folder = scratch(PathBuf::from("/dev/shm/cardiograph-benchmark"))?;
    let result = measure(&folder);
    let _ = std::fs::remove_dir_all(&folder);
    save("overhead", &result?)
}

fn measure(folder: &Path) -> Result<String, String> {
    let workload = write_workload(folder, WRITES, "")?;
    let names = ["cardiograph", "plain loop", "fio with latency log"];
    let [mut ours, mut plain, mut fio] = names.map(Series::new);
    for round in 0..=ROUNDS {
        let times = [
            ours_ns(folder, &workload)?,
            plain_ns(folder)?,
            fio_ns(folder)?,
        ];
        if round > 0 {
            for (series, ns) in [&mut ours, &mut plain, &mut fio].into_iter().zip(times) {
                series.values.push(ns / WRITES as f64);
            }
        }
    }
    let (to_plain, to_fio) = (ours.over(&plain), ours.over(&fio));
    Ok(format!(
        "{WRITES} writes of {BLOCK_BYTES} B to one new file in memory (tmpfs), with trace; {ROUNDS} rounds, \
         alternating between the programs. Time from the start of the first write to the end of the \
         last; for fio its own run time, in whole milliseconds.\n\n{}\n{}\n{}",
        table("ns per write", &[&ours, &plain, &fio]),
        table("ratio, round by round", &[&to_plain, &to_fio]),
        memory(folder)?
    ))
}

/// Describes the memory per write, for one file and for two files in turn: the difference between a long and
/// a short run.
fn memory(folder: &Path) -> Result<String, String> {
    let one = memory_with(folder, "")?;
    let in_turn = memory_with(folder, "files = 2\norder = \"round-robin\"\n")?;
    Ok(format!(
        "Peak memory, one file: {one}.\n\nPeak memory, two files in turn: {in_turn}.\n"
    ))
}

fn memory_with(folder: &Path, keys: &str) -> Result<String, String> {
    let (few, many) = (WRITES, 4 * WRITES);
    let mut peaks = [0; 2];
    for (peak, writes) in peaks.iter_mut().zip([few, many]) {
        let files = if keys.is_empty() { 1 } else { 2 };
        let workload = write_workload(folder, writes / files, keys)?;
        let args = ours_args(folder, &workload);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        *peak = timed(&cardiograph(), &args)?.peak_bytes;
    }
    let [small, large] = peaks;
    let each = (large as f64 - small as f64) / (many - few) as f64;
    Ok(format!(
        "{:.1} MB at {few} writes, {:.1} MB at {many}, {each:.1} B per write",
        small as f64 / 1e6,
        large as f64 / 1e6
    ))
}

fn write_workload(folder: &Path, calls: u64, keys: &str) -> Result<String, String> {
    let path = folder.join("workload.toml");
    let text = format!(
        "name = \"overhead\"\n[[phase]]\ncalls_per_file = {calls}\nbytes_per_call = {BLOCK_BYTES}\n{keys}"
    );
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path.display().to_string())
}

fn ours_args(folder: &Path, workload: &str) -> Vec<String> {
    let folder = folder.display().to_string();
    [
        "bench",
        &folder,
        "--io",
        "buffered",
        "--workload",
        workload,
        "--json",
        "-",
    ]
    .map(String::from)
    .to_vec()
}

fn ours_ns(folder: &Path, workload: &str) -> Result<f64, String> {
    let args = ours_args(folder, workload);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let taken = timed(&cardiograph(), &args)?;
    let figures: serde_json::Value =
        serde_json::from_str(&taken.stdout).map_err(|error| error.to_string())?;
    let elapsed_us = figures["results"][0]["elapsed_us"].as_f64();
    Ok(elapsed_us.ok_or("cardiograph: no elapsed_us")? * 1000.0)
}

fn plain_ns(folder: &Path) -> Result<f64, String> {
    let program = target().join("release/examples/plain_loop");
    let file = folder.join("plain").display().to_string();
    let taken = timed(&program, &[&file, &WRITES.to_string()])?;
    taken
        .stdout
        .trim()
        .parse()
        .map_err(|_| "plain_loop: no time".to_string())
}

fn fio_ns(folder: &Path) -> Result<f64, String> {
    let log = folder.join("fio-log").display().to_string();
    let args = [
        "--name=plain".to_string(),
        format!("--directory={}", folder.display()),
        "--rw=write".to_string(),
        format!("--bs={BLOCK_BYTES}"),
        format!("--size={}", WRITES * BLOCK_BYTES),
        "--ioengine=psync".to_string(),
        // Without this option, fio writes the file once before measuring.
        "--create_on_open=1".to_string(),
        "--fallocate=none".to_string(),
        format!("--write_lat_log={log}"),
        "--output-format=json".to_string(),
    ];
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let taken = timed(Path::new("/usr/bin/fio"), &args)?;
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(['p', 'f']) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
    let figures: serde_json::Value =
        serde_json::from_str(&taken.stdout).map_err(|error| error.to_string())?;
    let runtime_ms = figures["jobs"][0]["write"]["runtime"].as_f64();
    Ok(runtime_ms.ok_or("fio: no run time")? * 1e6)
}
