//! Measures a program's time and memory, and writes reports.

use crate::run::root;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// Time, memory and output of a finished program.
pub struct Measured {
    pub wall_s: f64,
    pub peak_bytes: u64,
    pub stdout: String,
}

/// Runs a program under GNU time, which measures its peak memory.
pub fn timed(program: &Path, args: &[&str]) -> Result<Measured, String> {
    let shown = program.display();
    let begin = Instant::now();
    let output = Command::new("/usr/bin/time")
        .args(["--format", "%M", "--quiet"])
        .arg(program)
        .args(args)
        .output()
        .map_err(|error| format!("{shown}: {error}"))?;
    let wall_s = begin.elapsed().as_secs_f64();
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    if !output.status.success() {
        return Err(format!("{shown} failed: {stderr}"));
    }
    let kib = stderr
        .lines()
        .last()
        .and_then(|line| line.trim().parse::<u64>().ok());
    Ok(Measured {
        wall_s,
        peak_bytes: kib.ok_or_else(|| format!("{shown}: no memory reading"))? * 1024,
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
    })
}

/// Values of a quantity, one per measured round.
pub struct Series {
    pub name: String,
    pub values: Vec<f64>,
}

impl Series {
    pub fn new(name: &str) -> Series {
        Series {
            name: name.to_string(),
            values: Vec::new(),
        }
    }

    /// Returns the ratio of this series to `other`, round by round.
    pub fn over(&self, other: &Series) -> Series {
        let pairs = self.values.iter().zip(&other.values);
        Series {
            name: format!("{} / {}", self.name, other.name),
            values: pairs.map(|(a, b)| a / b).collect(),
        }
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    pub fn median(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Formats series as a Markdown table of minimum, median and maximum.
pub fn table(heading: &str, series: &[&Series]) -> String {
    let mut out = format!("| {heading} | minimum | median | maximum |\n|---|---:|---:|---:|\n");
    for one in series {
        let sorted = one.sorted();
        if let (Some(least), Some(greatest)) = (sorted.first(), sorted.last()) {
            let _ = writeln!(
                out,
                "| {} | {least:.3} | {:.3} | {greatest:.3} |",
                one.name,
                one.median()
            );
        }
    }
    out
}

/// Prints a report and saves it in `benchmarks/runs`, with the date and a description of the machine.
pub fn save(name: &str, text: &str) -> Result<(), String> {
    let date = output_of("date", &["+%Y-%m-%d"])?;
    let machine = output_of(
        "sh",
        &[
            "-c",
            "uname -sr; nproc; sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1",
        ],
    )?;
    let machine: Vec<_> = machine.lines().collect();
    let text = format!("# {name}, {date}\n\n{}\n\n{text}", machine.join(", "));
    let path = root().join(format!("benchmarks/runs/{date}-{name}.md"));
    print!("{text}");
    std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

fn output_of(program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(args).output();
    let output = output.map_err(|error| format!("{program}: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}
