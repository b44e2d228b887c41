//! Arguments of `cardiograph record`.

use crate::conditions::{self, Condition};
use crate::serve::PublicArgs;
use crate::shared::Shared;
use crate::target::{self, DEFAULT_TARGET};
use cardiograph_record::BINARY_SAMPLE_BYTES_MIN;
use cardiograph_recorder::{LINE_BYTES_MAX, STREAMS_MAX, WINDOW_US_MIN};
use cardiograph_report::values::{RECORD_RATES_HZ, bytes, duration, whole};
use clap::ValueEnum;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

/// Record samples to a card and account for every sample.
#[derive(clap::Args)]
#[command(after_help = "\
Samples arrive at a fixed rate, even while the card is busy, and wait in a buffer until they are
written. Afterwards the files are read back and compared with the samples. Simulated cards run in virtual time.
Recording to a directory runs in real time, and the files are kept.

Examples:
  cardiograph record --rate 860 --sample-bytes 100 --for 120s  the built-in simulated card
  cardiograph record /media/card --rate 200 --for 1h           a directory on this computer
  cardiograph record --compare --buffer 16KiB                  compare four ways to record
  cardiograph record sim:kingston-8g-class10@esp32 --streams 4 --rate 200 --json figures.json
  cardiograph record --samples recording.csv                   replay a recording with its original timing
  my-sensor | cardiograph record --samples - --rate 100        record lines from another program
  cardiograph record /media/card --for 1h --serve 0.0.0.0:8080 other computers can read the files meanwhile")]
pub struct Record {
    /// A simulated card as sim:CARD@BOARD (names or TOML files), or a directory
    #[arg(default_value = DEFAULT_TARGET, value_parser = target::parser())]
    pub target: String,

    /// Samples per second in each stream, or lines per second of standard input on a simulated card; not allowed if the
    /// samples have their own times [default: 860]
    #[arg(long, value_name = "HZ", value_parser = whole(RECORD_RATES_HZ), help_heading = "Samples")]
    pub rate: Option<NonZeroU32>,

    /// Bytes per generated sample: 8 to 152 with --format binary; with csv 14 to 405, the length of a line including CR LF
    /// [default: 100]
    #[arg(long, value_name = "BYTES", value_parser = whole(BINARY_SAMPLE_BYTES_MIN..=LINE_BYTES_MAX), help_heading = "Samples")]
    pub sample_bytes: Option<usize>,

    /// Length of the recording [default: 60s; with --samples, all samples]
    #[arg(long = "for", value_name = "TIME", value_parser = duration, help_heading = "Samples")]
    pub length: Option<Duration>,

    /// Size of the buffer that holds samples while the card is busy, divided equally among the streams
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = bytes, help_heading = "Writing")]
    pub buffer: u64,

    /// Target for the maximum age of data that a power loss may destroy, 1ms or more; `sample` for only the newest sample
    #[arg(long, value_name = "TIME|sample", default_value = "1s", value_parser = durability_window, help_heading = "Writing")]
    pub durability_window: DurabilityWindow,

    /// Way to write samples to the card
    #[arg(long, value_enum, default_value = "stream", help_heading = "Writing")]
    pub policy: PolicyArg,

    /// Number of streams, 1 to 4. With --format binary all streams share their files; with csv each stream has its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=STREAMS_MAX as u32), help_heading = "Samples")]
    pub streams: u32,

    /// File format [default: csv for one stream and with --samples, binary for several streams]
    #[arg(long, value_enum, help_heading = "Writing")]
    pub format: Option<FormatArg>,

    /// Exit with code 5 if a condition holds; may be repeated. Figures: max, the longest write, as in 'max > 20ms', for
    /// policies whose writes block; and lost, as in 'lost > 0', for --compare: without it, lost samples already result in exit
    /// code 3 or 4
    #[arg(long, value_name = "CONDITION", value_parser = conditions::of_recorder, help_heading = "Results")]
    pub fail_if: Vec<Condition>,

    /// Compare all policies on the same card with the same buffer
    #[arg(long, conflicts_with = "policy", help_heading = "Writing")]
    pub compare: bool,

    /// Seed of the simulated card
    #[arg(long, value_name = "SEED", default_value_t = 1, value_parser = whole(0..=u64::MAX), help_heading = "Writing")]
    pub seed: u64,

    /// Begin a new file after this time, or once the next one is ready (`stream`), or write the collected samples (`after-session`) [default: never;
    /// 10s for after-session]
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Writing")]
    pub rotate_every: Option<Duration>,

    /// Maximum file size, 64 KiB to 4 GiB - 1 B; files are up to an eighth shorter, so that they end with a unit of flash, and
    /// a full file is followed by a new one
    #[arg(long, value_name = "SIZE", default_value = "45MiB", value_parser = bytes, help_heading = "Writing")]
    pub file_size: u64,

    /// Behaviour when the card is full
    #[arg(long, value_enum, default_value = "stop", help_heading = "Writing")]
    pub when_full: WhenFullArg,

    /// Samples to record: lines of standard input (-), or a recording with a time column, replayed with its original timing.
    /// A directory records lines when they arrive. A line of more than 405 B, its end included, is lost, and reported as a gap
    /// [default: generated samples]
    #[arg(long, value_name = "-|FILE", help_heading = "Samples")]
    pub samples: Option<PathBuf>,

    /// Serve the directory over HTTP during the recording; other computers can only read unless --auth is given. See
    /// also `cardiograph serve --help` [default: no server]
    #[arg(long, value_name = "ADDR", help_heading = "Server")]
    pub serve: Option<String>,

    /// User name and password that every request of --serve needs [default: none]
    #[arg(
        long,
        value_name = "USER:PASSWORD",
        requires = "serve",
        help_heading = "Server"
    )]
    pub auth: Option<String>,

    #[command(flatten)]
    pub public: PublicArgs,

    /// Space that uploads to --serve leave free for the recording [default: its size and that of two files per stream, or
    /// 1GiB with `--samples -`]
    #[arg(long, value_name = "SIZE", requires = "serve", value_parser = bytes)]
    pub keep_free: Option<u64>,

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub json: Option<PathBuf>,

    #[command(flatten, next_help_heading = "Results")]
    pub shared: Shared,
}

impl Record {
    /// Returns the file format: the requested one, or the default.
    pub fn format(&self) -> FormatArg {
        let is_binary = self.streams > 1 && self.samples.is_none();
        let default = if is_binary {
            FormatArg::Binary
        } else {
            FormatArg::Csv
        };
        self.format.unwrap_or(default)
    }
}

/// File format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FormatArg {
    /// Blocks with checksums; `cardiograph export` converts them to CSV or ULog
    Binary,
    /// Lines of text
    Csv,
}

impl FormatArg {
    /// Returns the name in the figures.
    pub fn name(self) -> &'static str {
        match self {
            FormatArg::Binary => "binary",
            FormatArg::Csv => "csv",
        }
    }
}

/// Way to write samples to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// Open the file, append and close it for every sample
    Naive,
    /// Keep the file open until the end
    KeepOpen,
    /// Buffer samples until a session is over, then write them
    AfterSession,
    /// Cardiograph's recorder: one sequential write to preallocated files
    Stream,
}

/// Behaviour when the card is full.
#[derive(Clone, Copy, ValueEnum)]
pub enum WhenFullArg {
    /// End the recording; the samples that no longer fit are reported as lost
    Stop,
    /// Remove the oldest recording; other files are never removed
    RemoveOldest,
}

/// Newest data that a power cut may lose.
#[derive(Clone, Copy)]
pub enum DurabilityWindow {
    /// At most the samples of this time span.
    Time(Duration),
    /// Only the newest sample.
    Sample,
}

fn durability_window(text: &str) -> Result<DurabilityWindow, String> {
    match text {
        "sample" => Ok(DurabilityWindow::Sample),
        text => match duration(text)? {
            time if time >= Duration::from_micros(WINDOW_US_MIN) => {
                Ok(DurabilityWindow::Time(time))
            }
            _ => Err(format!(
                "too short; use at least {}, or `sample` for only the newest sample",
                humantime::format_duration(Duration::from_micros(WINDOW_US_MIN))
            )),
        },
    }
}
