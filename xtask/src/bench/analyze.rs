//! Analysis of a long trace: `cardiograph analyze` compared with polars.

use super::report::{Series, save, table, timed};
use super::{ROUNDS, cardiograph, scratch};
use crate::run::{check, root, target};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

const ROWS: u64 = 10_000_000;

/// Version of polars that Cardiograph is compared with.
const POLARS: &str = "polars==2.1.0";

pub fn run() -> Result<(), String> {
    let folder = scratch(target().join("benchmark"))?;
    let csv = folder.join("trace.csv");
    generate(&csv, ROWS).map_err(|error| format!("{}: {error}", csv.display()))?;
    let (csv, parquet) = (
        csv.display().to_string(),
        folder.join("trace.parquet").display().to_string(),
    );
    timed(&cardiograph(), &["analyze", &csv, "--trace", &parquet])?;
    let python = polars()?;
    let script = root()
        .join("benchmarks/polars_figures.py")
        .display()
        .to_string();

    let mut walls = ["cardiograph, CSV", "cardiograph, Parquet", "polars, CSV"].map(Series::new);
    let mut memory = ["cardiograph, CSV", "cardiograph, Parquet", "polars, CSV"].map(Series::new);
    for round in 0..=ROUNDS {
        let taken = [
            timed(
                &cardiograph(),
                &["analyze", &csv, "--stall-threshold", "50ms"],
            )?,
            timed(
                &cardiograph(),
                &["analyze", &parquet, "--stall-threshold", "50ms"],
            )?,
            timed(Path::new(&python), &[&script, &csv])?,
        ];
        if round > 0 {
            for (i, taken) in taken.iter().enumerate() {
                walls[i].values.push(taken.wall_s);
                memory[i].values.push(taken.peak_bytes as f64 / 1e6);
            }
        }
    }
    let [csv_wall, parquet_wall, polars_wall] = &walls;
    let (to_csv, to_parquet) = (csv_wall.over(polars_wall), parquet_wall.over(polars_wall));
    let text = format!(
        "{ROWS} rows of `index,start_us,end_us`, generated from a fixed seed; whole processes, page \
         cache warm, {ROUNDS} rounds, alternating between the programs. polars ({POLARS}) computes \
         count, mean, percentiles and stalls with their spacing; cardiograph computes the same, and \
         the sustained rate for eleven buffer sizes.\n\n{}\n{}\n{}",
        table("wall time in s", &[csv_wall, parquet_wall, polars_wall]),
        table("ratio, round by round", &[&to_csv, &to_parquet]),
        table("peak memory in MB", &[&memory[0], &memory[1], &memory[2]]),
    );
    let _ = std::fs::remove_dir_all(&folder);
    save("analyze", &text)
}

/// Generates latencies like a card's: about 250 µs, a stall of 20 to 90 ms in one of 800 writes on
/// average, and short idle times between writes.
pub fn generate(path: &Path, rows: u64) -> std::io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut random = 0x9E37_79B9_7F4A_7C15u64;
    let mut below = |n: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        ((u128::from(random) * u128::from(n)) >> 64) as u64
    };
    let mut now_us = 0;
    writeln!(out, "index,start_us,end_us")?;
    for index in 0..rows {
        let usual_us = 100 + below(100) + below(100) + below(100);
        let stall_us = if below(800) == 0 {
            20_000 + below(70_000)
        } else {
            0
        };
        let start_us = now_us + below(20);
        now_us = start_us + usual_us + stall_us;
        writeln!(out, "{index},{start_us},{now_us}")?;
    }
    out.flush()
}

/// Returns a Python interpreter with polars, in its own virtual environment.
fn polars() -> Result<String, String> {
    let folder = target().join("benchmark-python");
    let python = folder.join("bin/python");
    if !python.exists() {
        check(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    check(Command::new(&python).args(["-m", "pip", "install", "--quiet", POLARS]))?;
    Ok(python.display().to_string())
}
