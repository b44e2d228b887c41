//! `cardiograph probe`: the inner values of a card, found by timing.

use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{self, is_standard_output};
use crate::progress::Progress;
use crate::shared::{self, Shared};
use crate::target::{self, simulated_set_up};
use cardiograph_probe::{
    DirectoryTarget, FILE_BYTES_MIN, Findings, Limits, ProbeError, SimulatedTarget, Target, probe,
};
use cardiograph_report::units;
use cardiograph_report::values::{bytes, duration};
use cardiograph_store::StorageInfo;
use serde::Serialize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find a card's page size, unit, open units, log, FAT zone and idle behaviour by timing
#[derive(clap::Args)]
#[command(after_help = "\
The probe writes and reads, measures how long this takes, and infers how the card works inside. It states a
confidence for each answer; an answer that it cannot be confident of is `cannot tell`. On a directory, it writes
only to a file of its own, cardiograph-probe.tmp, and removes it.

Examples:
  cardiograph probe /media/card
  cardiograph probe sim:kingston-8g-class10@linux-reader --markdown -
  cardiograph probe /media/card --json probe.json
  cardiograph fit card.parquet --probe probe.json --profile my-card.toml")]
pub struct Args {
    /// Directory on a card with a FAT file system, or a simulated card as sim:CARD@BOARD
    #[arg(value_name = "TARGET", value_parser = target::parser())]
    pub target: String,

    /// Largest number of bytes to write
    #[arg(long, value_name = "SIZE", default_value = "4GB", value_parser = limit_bytes)]
    pub max_bytes: u64,

    /// Longest duration
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = limit_time)]
    pub max_time: Duration,

    /// Use a directory on a file system other than FAT, which may place the file in pieces
    #[arg(long)]
    pub any_file_system: bool,

    /// Write the answers as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the answers as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// Size of the file on a directory, if there is room.
const FILE_BYTES: u64 = 512 << 20;
/// File systems whose files are usually in one piece.
const FAT_TYPES: [&str; 3] = ["vfat", "msdos", "exfat"];

fn limit_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        size if size <= Limits::MAX.bytes => Ok(size),
        _ => Err("too large; use at most 4GB".to_string()),
    }
}

fn limit_time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time.as_nanos() <= u128::from(Limits::MAX.ns) => Ok(time),
        _ => Err("too long; use at most 10min".to_string()),
    }
}

/// A result of `--json`.
#[derive(Serialize)]
struct JsonResult<'a> {
    target: &'a str,
    is_simulated: bool,
    #[serde(flatten)]
    findings: &'a Findings,
    elapsed_s: f64,
}

/// Probes the target, prints the answers and writes the requested files.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply([""; 0]);
    check_outputs(args)?;
    let limits = Limits {
        bytes: args.max_bytes,
        ns: args.max_time.as_nanos() as u64,
    };
    let simulated = simulated_set_up(&args.target)?;
    let is_simulated = simulated.is_some();
    let interrupt = Interrupt::catch()?;
    let findings = match simulated {
        Some((profile, board)) => {
            announce(args, "");
            let target = SimulatedTarget::new(&profile, &board, 1);
            let mut target = target.map_err(|error| failed(args, error))?;
            findings(&mut target, limits, args, &interrupt)?
        }
        None => on_directory(limits, args, &interrupt)?,
    };
    let to_standard_output = [&args.json, &args.markdown]
        .into_iter()
        .flatten()
        .any(|path| is_standard_output(path));
    let text = findings.text(&args.target);
    match to_standard_output {
        true => print_error(&text),
        false => print(&text)?,
    }
    let result = JsonResult {
        target: &args.target,
        is_simulated,
        findings: &findings,
        elapsed_s: findings.elapsed_ns as f64 / 1e9,
    };
    json::write(args.json.as_deref(), "probe", &[result])?;
    match &args.markdown {
        Some(path) => outputs::write_text(path, &findings.markdown(&args.target)),
        None => Ok(()),
    }
}

fn check_outputs(args: &Args) -> Result<(), Failure> {
    let paths = [&args.json, &args.markdown];
    let paths = paths.into_iter().flatten();
    if paths
        .clone()
        .filter(|path| is_standard_output(path))
        .count()
        > 1
    {
        return Err(Failure::new(
            "only one result can go to standard output; write the others to files",
        ));
    }
    outputs::check_files(paths)
}

/// Tells what the probe is about to do.
fn announce(args: &Args, file: &str) {
    if shared::is_quiet() {
        return;
    }
    let (most, time) = (
        units::bytes(args.max_bytes as f64),
        humantime::format_duration(args.max_time),
    );
    let virtually = match file {
        "" => " of virtual time",
        _ => "",
    };
    print_error(&format!(
        "Probing {}: writes at most {most} and takes at most {time}{virtually}; ends earlier if all answers are known.{file}\n",
        args.target
    ));
}

fn on_directory(limits: Limits, args: &Args, interrupt: &Interrupt) -> Result<Findings, Failure> {
    let directory = Path::new(&args.target);
    let metadata = std::fs::metadata(directory).map_err(|error| {
        Failure::new(format!(
            "{}: {error}; name a directory on the card, or a simulated card as sim:CARD@BOARD",
            args.target
        ))
    })?;
    if !metadata.is_dir() {
        return Err(failed(
            args,
            "not a directory; name a directory on the card",
        ));
    }
    check_file_system(directory, args)?;
    let file_bytes = file_bytes(directory, args)?;
    announce(
        args,
        &format!(
            " Before that, it fills a file of {}.",
            units::bytes(file_bytes as f64)
        ),
    );
    let mut progress = Progress::over(file_bytes);
    let target = DirectoryTarget::create(directory, file_bytes, |written| {
        progress.show(written);
        !interrupt.is_raised()
    });
    progress.clear();
    let mut target = match target {
        Ok(target) => target,
        Err(error) => {
            return Err(match interrupt.exit_code() {
                Some(code) => Failure::AlreadyPrinted(code),
                None => Failure::new(error),
            });
        }
    };
    // The file counts as well.
    let limits = Limits {
        bytes: limits.bytes.saturating_sub(file_bytes),
        ns: limits.ns.saturating_sub(target.elapsed_ns()),
    };
    let mut findings = findings(&mut target, limits, args, interrupt)?;
    findings.written_bytes += file_bytes;
    Ok(findings)
}

fn check_file_system(directory: &Path, args: &Args) -> Result<(), Failure> {
    let storage = StorageInfo::of(directory);
    if storage.is_memory {
        return Err(failed(args, "in memory; name a directory on a card"));
    }
    let kind = storage.file_system.unwrap_or_default();
    if args.any_file_system || FAT_TYPES.contains(&kind.as_str()) {
        return Ok(());
    }
    Err(failed(
        args,
        format!(
            "on the file system {kind}, which may place a file in pieces; use a directory on a card with a FAT file \
             system, or add --any-file-system"
        ),
    ))
}

/// Returns the size of the file: half of the free space, but no more than the experiments need.
fn file_bytes(directory: &Path, args: &Args) -> Result<u64, Failure> {
    let space = cardiograph_system::space(directory).map_err(|error| failed(args, error))?;
    let free_bytes = space.free_bytes;
    let largest = FILE_BYTES.min(free_bytes / 2).min(args.max_bytes / 2);
    // A power of two, so that sizes up to a quarter of the file can be compared.
    let bytes = 1 << largest.max(1).ilog2();
    if bytes < FILE_BYTES_MIN {
        return Err(failed(
            args,
            format!(
                "a probe needs a file of at least {}, but half of the free space ({}) or of --max-bytes ({}) is less; \
                 free some space, or raise --max-bytes",
                units::binary_bytes(FILE_BYTES_MIN),
                units::bytes(free_bytes as f64),
                units::bytes(args.max_bytes as f64)
            ),
        ));
    }
    Ok(bytes)
}

fn findings(
    target: &mut dyn Target,
    limits: Limits,
    args: &Args,
    interrupt: &Interrupt,
) -> Result<Findings, Failure> {
    const STEPS: f64 = 1000.0;
    let mut progress = Progress::over_steps(STEPS as u64);
    let found = probe(target, limits, &mut |_, share| {
        progress.show((share * STEPS) as u64);
        match interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
    progress.clear();
    found.map_err(|error| match error {
        ProbeError::Stopped => Failure::AlreadyPrinted(interrupt.exit_code().unwrap_or(130)),
        ProbeError::Target(error) => failed(args, error),
    })
}

fn failed(args: &Args, reason: impl std::fmt::Display) -> Failure {
    Failure::new(format!("{}: {reason}", args.target))
}
