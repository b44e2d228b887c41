//! Reading a long trace: `cardiograph analyze` against polars, which many would reach for.

use super::report::{Series, keep, table, timed};
use super::{ROUNDS, cardiograph, scratch};
use crate::run::{check, root, target};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;

const ROWS: u64 = 10_000_000;

/// The polars this is measured against.
const POLARS: &str = "polars==2.1.0";

pub fn run() -> Result<(), String> {
    let folder = scratch(target().join("benchmark"))?;
    let csv = folder.join("trace.csv");
    generate(&csv).map_err(|error| format!("{}: {error}", csv.display()))?;
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
    let mut peaks = ["cardiograph, CSV", "cardiograph, Parquet", "polars, CSV"].map(Series::new);
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
                peaks[i].values.push(taken.peak_bytes as f64 / 1e6);
            }
        }
    }
    let [csv_wall, parquet_wall, polars_wall] = &walls;
    let (to_csv, to_parquet) = (csv_wall.over(polars_wall), parquet_wall.over(polars_wall));
    let text = format!(
        "{ROWS} rows of `index,start_us,end_us`, made from a fixed seed; whole processes, page cache \
         warm, {ROUNDS} rounds, the programs in turn. polars ({POLARS}) computes count, mean, \
         percentiles and peaks with their spacing; cardiograph the same, and the lossless rate for \
         eleven sizes of RAM besides.\n\n{}\n{}\n{}",
        table("wall time in s", &[csv_wall, parquet_wall, polars_wall]),
        table("ratio, round by round", &[&to_csv, &to_parquet]),
        table("peak memory in MB", &[&peaks[0], &peaks[1], &peaks[2]]),
    );
    let _ = std::fs::remove_dir_all(&folder);
    keep("analyze", &text)
}

/// Write times of a card: near 250 us, one in 800 a stall of 20 to 90 ms, and a little idle time.
fn generate(path: &Path) -> std::io::Result<()> {
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
    for index in 0..ROWS {
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

/// A Python with polars, in a folder of its own.
fn polars() -> Result<String, String> {
    let folder = target().join("benchmark-python");
    let python = folder.join("bin/python");
    if !python.exists() {
        check(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    }
    check(Command::new(&python).args(["-m", "pip", "install", "--quiet", POLARS]))?;
    Ok(python.display().to_string())
}
