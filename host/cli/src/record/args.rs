//! What can be asked of `cardiograph record`.

use crate::target::DEFAULT_TARGET;
use crate::values::duration;
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// Record samples on a card, and show that none is lost.
#[derive(clap::Args)]
#[command(after_help = "\
Lines come at a fixed rate, whatever the card does, and wait in RAM until they are written. Afterwards
all of them are read back and compared. A simulated card takes virtual time; a directory takes real
time, and keeps its files.

Examples:
  cardiograph record --rate 860 --line 100 --for 120s       on the simulated card that comes along
  cardiograph record /media/card --rate 200 --for 1h        files on a medium of this computer
  cardiograph record --compare --ram 16KiB                  four ways to record, one beside the other
  cardiograph record sim:kingston-8g@esp32 --streams 4 --rate 200 --json figures.json
  cardiograph record --samples recording.csv                a recording, line by line at its own times
  my-sensor | cardiograph record --samples - --rate 100     lines of another program

Exit codes; where several apply, the first of this list:
  1    samples are unaccounted for: neither in files nor in reported gaps
  2    bad input, or the medium failed
  4    the medium is full, and samples were lost
  3    samples were lost, and the gaps say which
  130, 143, 129   ended by SIGINT (Ctrl-C), SIGTERM, SIGHUP; nothing was lost
  0    nothing was lost
With --compare losses are a result: 0, 2, or that of a signal.")]
pub struct Record {
    /// A simulated card as sim:CARD@BOARD (names or TOML files), or a directory
    #[arg(default_value = DEFAULT_TARGET)]
    pub target: String,

    /// Lines a second, of each stream [default: 860]
    #[arg(long, value_name = "HZ")]
    pub rate: Option<u32>,

    /// Bytes of a line, with its CR LF [default: 100]
    #[arg(long, value_name = "BYTES")]
    pub line: Option<usize>,

    /// Record for so long [default: 60s; with --samples all there are]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub length: Option<Duration>,

    /// RAM in front of the card; several streams share it in equal parts
    #[arg(long, value_name = "BYTES", default_value = "64KiB", value_parser = bytes)]
    pub ram: u64,

    /// How much of the newest data a power cut may cost: a time, or `sample` for the newest line
    #[arg(long, value_name = "TIME|sample", default_value = "1s", value_parser = durability)]
    pub durability: Durability,

    /// How lines get to the card
    #[arg(long, value_enum, default_value = "stream")]
    pub policy: PolicyArg,

    /// Streams that share the card, 1 to 4. Binary streams share their files, CSV streams have files of their own
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub streams: u32,

    /// File format [default: csv for one stream and with --samples, binary for several streams]
    #[arg(long, value_enum)]
    pub format: Option<FormatArg>,

    /// All policies on the same card with the same RAM, one beside the other
    #[arg(long)]
    pub compare: bool,

    /// Seed of the simulated card
    #[arg(long, value_name = "SEED", default_value_t = 1)]
    pub seed: u64,

    /// How long a recipe is: `after-recipe` writes when it is over, `stream` goes on in a new file [default: 10s for after-recipe]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub recipe: Option<Duration>,

    /// Length of a file, 64 KiB to 4 GiB; the next one begins when it is full
    #[arg(long, value_name = "BYTES", default_value = "64MiB", value_parser = bytes)]
    pub file_size: u64,

    /// What is done when the card is full
    #[arg(long, value_enum, default_value = "stop")]
    pub when_full: WhenFullArg,

    /// Lines from standard input (-), or a recording with a time column, at its own times
    #[arg(long, value_name = "-|FILE")]
    pub samples: Option<PathBuf>,

    /// Write the figures as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

impl Record {
    /// Returns the format of the files: the one that was named, or the default.
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
    /// Samples in blocks with checksums; `cardiograph export` converts them to CSV or ULog
    Binary,
    /// Lines of text
    Csv,
}

/// How lines get to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyArg {
    /// The file is opened, appended to and closed for every line
    Naive,
    /// The file is kept open until the end
    KeepOpen,
    /// Lines stay in RAM until a recipe is over
    AfterRecipe,
    /// Cardiograph's recorder: one unbroken stream of blocks
    Stream,
}

/// What is done when the card is full.
#[derive(Clone, Copy, ValueEnum)]
pub enum WhenFullArg {
    /// What comes is lost, and told
    Stop,
    /// The oldest recording is removed; files of others never are
    RemoveOldest,
}

/// How much of the newest data a power cut may cost.
#[derive(Clone, Copy)]
pub enum Durability {
    /// What came in this time.
    Time(Duration),
    /// The newest line.
    Sample,
}

fn durability(text: &str) -> Result<Durability, String> {
    match text {
        "sample" => Ok(Durability::Sample),
        text => duration(text).map(Durability::Time),
    }
}

/// A size: `65536`, `64KiB`, `1MB`.
fn bytes(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 7] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("B", 1),
    ];
    let text = text.trim();
    let found = UNITS
        .iter()
        .find_map(|&(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (number, factor) = found.unwrap_or((text, 1));
    let number: Option<u64> = number.trim_end().parse().ok();
    let size = number.and_then(|number| number.checked_mul(factor));
    size.ok_or("a whole number and a unit, as 64KiB or 1MB".to_string())
}
