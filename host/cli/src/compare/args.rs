//! Arguments of `cardiograph compare`.

use crate::analyze::unit;
use crate::conditions::{self, Condition};
use crate::shared::Shared;
use crate::target::{self, IoArg};
use cardiograph_report::values::{buffer_bytes, duration, sample_rate_hz, whole};
use cardiograph_trace::TimeUnit;
use std::path::PathBuf;
use std::time::Duration;

/// Tell whether one card is faster than another.
#[derive(clap::Args)]
#[command(after_help = "\
The first line is a decision for a data logger: the card whose buffer sustains the highest rate. Below, every two cards are
compared by median and p99, based on 95 % confidence intervals. With fewer than 10 stalls in either trace, p99 has no verdict.

Examples:
  cardiograph compare old.parquet new.parquet --html cards.html
  cardiograph compare a.csv b.csv --rate 860 --sample-bytes 100   for a logger of 86 kB/s
  cardiograph compare sim:generic-16g-class10@esp32 sim:team-8g@esp32 --markdown -
  cardiograph compare reference.parquet /media/card --fail-if 'p99 > 20ms'")]
pub struct Args {
    /// Traces of writes, in any format that `analyze` reads, simulated cards as sim:CARD@BOARD, or directories; cards are measured as by `bench`
    #[arg(value_name = "FILE|CARD", num_args = 2..=26, required = true, value_parser = target::parser())]
    pub sides: Vec<String>,

    /// Samples per second of the data logger; needs --sample-bytes [default: none, the fastest card is taken]
    #[arg(long, value_name = "HZ", requires = "sample_bytes", value_parser = sample_rate_hz)]
    pub rate: Option<f64>,

    /// Bytes per sample of the data logger; needs --rate [default: none]
    #[arg(long, value_name = "BYTES", requires = "rate", value_parser = whole::<u64>(1..=1 << 20))]
    pub sample_bytes: Option<u64>,

    /// Buffer of the data logger
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = buffer_bytes)]
    pub buffer: u64,

    /// Workload for the cards that are measured: a name from `cardiograph workloads`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = cardiograph_workload::DEFAULT)]
    pub workload: String,

    /// Method of syncing writes to the storage device; directories only [default: dsync; buffered if the workload itself calls fsync]
    #[arg(long, value_enum)]
    pub io: Option<IoArg>,

    /// Stop measuring a card after this time [default: 60s for a directory, no limit for a simulated card]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub stop_after: Option<Duration>,

    /// Bytes per write, for trace formats that do not state it
    #[arg(long = "block-bytes", value_name = "BYTES", default_value_t = 512, value_parser = whole::<u64>(1..=1 << 30))]
    pub block: u64,

    /// Unit of the times, for files that do not state it: s, ms, us or ns [default: from the magnitude, with a note]
    #[arg(long, value_name = "UNIT", value_parser = unit)]
    pub time_unit: Option<TimeUnit>,

    /// Column with the time of each row: its name, or its number from 1 [default: found by its name]
    #[arg(long, value_name = "COLUMN")]
    pub time_column: Option<String>,

    /// Column with the latency of each write: its name, or its number from 1 [default: found by its name]
    #[arg(long, value_name = "COLUMN")]
    pub latency_column: Option<String>,

    /// Writes slower than this belong to a stall [default: derived from each trace]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub stall_threshold: Option<Duration>,

    /// Exit with code 5 if a condition, such as 'p99 > 20ms', holds for any card after the first; may be repeated
    #[arg(long, value_name = "CONDITION", long_help = conditions::HELP_OF_COMPARE, value_parser = conditions::of_writes)]
    pub fail_if: Vec<Condition>,

    /// Write the comparison as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the comparison and the reports of all cards as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Write the comparison as Markdown; - is standard output
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}
