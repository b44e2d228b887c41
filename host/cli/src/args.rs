//! What can be asked for.

mod record;

pub use record::{DurabilityWindow, FormatArg, PolicyArg, Record, WhenFullArg};

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;
use std::time::Duration;

/// Measures and explains the write stalls of SD cards and flash media.
///
/// Without arguments: measures the simulated card that comes along and writes an HTML report.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  cardiograph                                    the main job, on a simulated card
  cardiograph bench /media/card --html card.html a real card, mounted at /media/card
  cardiograph analyze times.csv --json -         figures of a trace somebody else made
  cardiograph plan card.parquet --rate 860 --line 100
                                                 the RAM that a logger needs, and its risk
  cardiograph record --compare                   ways to log samples, one beside the other
  cardiograph workloads                          the published experiments, by name
  cardiograph cards                              simulated cards and boards"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What can be done.
#[derive(Subcommand)]
pub enum Command {
    /// Measure how evenly a card writes and what rate it carries without loss
    Bench(Bench),
    /// Read traces and recordings made by anyone
    Analyze(Analyze),
    /// Record samples on a card, and show that none is lost
    Record(Record),
    /// Run the experiments of five published studies on simulated cards, beside what they found
    Reproduce(Reproduce),
    /// Propose a simulated card for a measured trace
    Fit(Fit),
    /// Say what RAM a data logger needs on a card, and what it risks
    Plan(Plan),
    /// Give recordings that were cut off their true length
    Recover(crate::recover::Recover),
    /// Turn a binary recording into CSV
    Export(crate::export::Export),
    /// List the workloads: the published experiments, by name
    #[command(after_help = "\
Examples:
  cardiograph workloads
  cardiograph bench --workload magod2                       one of them, on a simulated card")]
    Workloads,
    /// List the simulated cards and boards, or draw one
    Cards(Cards),
}

/// List the simulated cards and boards, or draw one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph cards                                         names of all
  cardiograph cards class10-16g                             what one is made of, and what follows
  cardiograph cards my-card.toml                            the same of a card or board of your own
  cardiograph bench sim:class10-16g@esp32                   a card on a board, measured")]
pub struct Cards {
    /// A card or board to draw, by name or as a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
}

/// Measure how evenly a card writes and what rate it carries without loss.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph bench                                         the simulated card that comes along
  cardiograph bench sim:class10-16g@esp32 --workload magod2 a published experiment on it
  cardiograph bench /media/card --html card.html            a real card, mounted at /media/card
  cardiograph bench /media/card --io direct --for 5min --trace card.parquet
  cardiograph bench . --workload my-logger.toml --repeat 3 --json -

A workload of your own is a TOML file; docs/workloads.md has its keys.")]
pub struct Bench {
    /// A simulated card as sim:CARD@BOARD (names or TOML files), or a directory on a real medium
    #[arg(default_value = DEFAULT_TARGET)]
    pub target: String,

    /// What is written: a name from `cardiograph workloads`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = cardiograph_workload::DEFAULT)]
    pub workload: String,

    /// How writes reach the medium under a directory [default: dsync; buffered for a workload that times its own syncs]
    #[arg(long, value_enum)]
    pub io: Option<IoArg>,

    /// Stop after this long [default: 60s for a directory, none for a simulated card]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub stop_after: Option<Duration>,

    /// Measure so many times; each time a new simulated card, with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,

    #[command(flatten)]
    pub reporting: Reporting,
}

/// Read traces and recordings made by anyone.
#[derive(clap::Args)]
#[command(after_help = "\
The format is told by content: Cardiograph's Parquet and CSV, the MagOD2 thesis' results,
the Qiita article's CSV, blinky's times-N.csv, fio's --write_lat_log, index,start_us,end_us,
and recordings with a time column.

Examples:
  cardiograph analyze card.parquet --html card.html
  cardiograph analyze job_lat.1.log --peak-threshold 50ms
  cardiograph analyze times-1.csv times-2.csv --block 2048 --json figures.json
  cardiograph analyze recording.csv                         late and missing samples
  cardiograph analyze card.csv --scope scope.csv            with energy from V1 and V2 of a shunt")]
pub struct Analyze {
    /// Traces or recordings
    #[arg(required_unless_present = "scope", value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Lay under the writes what a scope saw of the card's supply: time, V1 before and V2 behind a shunt
    #[arg(long, value_name = "FILE")]
    pub scope: Option<PathBuf>,

    /// The shunt of --scope
    #[arg(long, value_name = "RESISTANCE", default_value = "1ohm", requires = "scope", value_parser = ohm)]
    pub shunt: f64,

    /// How long after the start of the trace the scope's clock shows 0; may be negative [default: 0s, and said]
    #[arg(long, value_name = "TIME", requires = "scope", allow_hyphen_values = true, value_parser = signed_ns)]
    pub scope_offset: Option<i64>,

    /// Payload of a write in bytes, where a format has no lengths
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub block: u64,

    #[command(flatten)]
    pub reporting: Reporting,
}

/// Run the experiments of five published studies on simulated cards, beside what they found.
#[derive(clap::Args)]
#[command(after_help = "\
A row with the role fit is one that a card or board was tuned to; nothing was tuned to a prediction.
Times are virtual, and the same on every computer; but for the two rows of the load on two cores,
which is run on this one.

Examples:
  cardiograph reproduce                                     all studies
  cardiograph reproduce blinky                              one of them
  cardiograph reproduce --json rows.json --html studies.html")]
pub struct Reproduce {
    /// One study alone
    #[arg(value_name = "STUDY")]
    pub study: Option<String>,

    /// Write every row as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the rows and the studies' plots as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Propose a simulated card for a measured trace.
#[derive(clap::Args)]
#[command(after_help = "\
A trace shows how long writes take, how high stalls are and how far apart; values that
it cannot show are taken from the card named with --like.

Examples:
  cardiograph fit card.parquet --profile my-card.toml --html fit.html
  cardiograph bench sim:my-card.toml@esp32 --workload magod2")]
pub struct Fit {
    /// A trace of writes, in any format that `analyze` reads
    #[arg(value_name = "TRACE")]
    pub trace: PathBuf,

    /// The simulated card that the search begins with
    #[arg(long, value_name = "CARD", default_value = "class10-16g")]
    pub like: String,

    /// Trials of the search
    #[arg(long, value_name = "N", default_value_t = 3000, value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    pub trials: u32,

    /// Payload of a write in bytes, where a format has no lengths
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub block: u64,

    /// Write the profile here [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub profile: Option<PathBuf>,

    /// Write trace and refit, one above the other, as one HTML file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Say what RAM a data logger needs on a card, and what it risks.
#[derive(clap::Args)]
#[command(after_help = "\
A simulated card is measured as the recorder writes: one stream that stays open. A trace is taken
as it is, in any format that `analyze` reads.

Examples:
  cardiograph plan card.parquet --rate 860 --line 100       a logger of 860 lines/s of 100 B
  cardiograph plan sim:class10-16g@esp32 --rate 1000 --line 64 --for 7days --ram 32KiB
  cardiograph plan times.csv --rate 8 --line 81 --block 2048 --json plan.json")]
pub struct Plan {
    /// A trace of writes, or a simulated card as sim:CARD@BOARD (names or TOML files)
    #[arg(value_name = "TRACE|sim:CARD@BOARD")]
    pub source: String,

    /// Samples that the logger takes in a second
    #[arg(long, value_name = "HZ", value_parser = rate_hz)]
    pub rate: f64,

    /// Bytes of a sample
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub line: u64,

    /// How long the logger runs
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = run_time)]
    pub run: Duration,

    /// RAM that the answer is for
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = ram_bytes)]
    pub ram: u64,

    /// Payload of a write in bytes, where a format has no lengths
    #[arg(long, value_name = "BYTES", default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    pub block: u64,

    /// Write the plan as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// What is made of the result. Files that exist are never overwritten.
#[derive(clap::Args, Default)]
pub struct Reporting {
    /// A longer write time is a peak [default: chosen from the trace, and said]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub peak_threshold: Option<Duration>,

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a report as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the figures as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Write every operation as Parquet
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Write every operation as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
}

/// How writes reach the medium under a directory.
#[derive(Clone, Copy, ValueEnum)]
pub enum IoArg {
    /// Through the page cache, which hides the medium
    Buffered,
    /// Past the page cache (O_DIRECT), whole blocks only
    Direct,
    /// Each write returns when the medium has it (O_DSYNC)
    Dsync,
    /// fsync after each write
    FsyncWrite,
    /// fsync before a file is closed
    FsyncFile,
}

/// What is measured when nothing is named.
pub const DEFAULT_TARGET: &str = "sim:class10-16g@esp32";

fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(duration) if u64::try_from(duration.as_nanos()).is_ok() => Ok(duration),
        Ok(_) => Err("too long; at most 584 years".to_string()),
        Err(_) => Err("a number and a unit, as 50ms, 60s or 2min".to_string()),
    }
}

/// How long a logger runs: at least a second, as a shorter run is none.
fn run_time(text: &str) -> Result<Duration, String> {
    let run = duration(text)?;
    match run >= Duration::from_secs(1) {
        true => Ok(run),
        false => Err("must be 1s or more".to_string()),
    }
}

/// Samples a second.
fn rate_hz(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(rate) if (1e-3..=1e9).contains(&rate) => Ok(rate),
        _ => Err("must be a number, 0.001 to 1000000000".to_string()),
    }
}

/// A size of RAM: `64KiB`, `100kB`, `2048`.
fn ram_bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 5] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("kB", 1000),
        ("MB", 1_000_000),
        ("B", 1),
    ];
    let text = text.trim();
    let found = UNITS
        .iter()
        .find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.unwrap_or((text, 1));
    let bytes = number.trim().parse::<u64>().ok();
    match bytes.and_then(|bytes| bytes.checked_mul(factor)) {
        Some(bytes) if (1..=1 << 40).contains(&bytes) => Ok(bytes),
        Some(_) => Err("must be 1 B to 1048576 MiB".to_string()),
        None => Err("a whole number and a unit, as 64KiB or 100kB".to_string()),
    }
}

/// A time that may be negative, in ns.
fn signed_ns(text: &str) -> Result<i64, String> {
    let (sign, size) = match text.strip_prefix('-') {
        Some(size) => (-1, size),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let ns = duration(size)?.as_nanos();
    let ns = i64::try_from(ns).map_err(|_| "too long; at most 292 years".to_string())?;
    Ok(sign * ns)
}

/// A resistance in ohm: `1ohm`, `50mohm`, `0.1`.
fn ohm(text: &str) -> Result<f64, String> {
    const UNITS: [(&str, f64); 4] = [
        ("mohm", 1e-3),
        ("m\u{3a9}", 1e-3),
        ("ohm", 1.0),
        ("\u{3a9}", 1.0),
    ];
    // The sign for the unit and the Greek letter look the same.
    let text = text.trim().replace('\u{2126}', "\u{3a9}");
    let found = UNITS
        .iter()
        .find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.unwrap_or((&text, 1.0));
    match number.trim().parse::<f64>() {
        Ok(number) if (1e-6..=1e6).contains(&(number * factor)) => Ok(number * factor),
        Ok(_) => Err("must be 0.001mohm to 1000000ohm".to_string()),
        Err(_) => Err("a number and a unit, as 1ohm or 50mohm".to_string()),
    }
}
