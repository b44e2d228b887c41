//! `cardiograph plan`: buffer size and risk of a data logger on a card.

use crate::conditions::{self, Condition, Planned};
use crate::failure::{Failure, print, print_error};
use crate::json;
use crate::outputs::{self, is_standard_output};
use crate::progress::Progress;
use crate::shared::Shared;
use crate::target;
use cardiograph_plan::{Logger, Plan, Ranking, Unmeasured, plan_file, plan_simulated, text};
use cardiograph_report::values::{buffer_bytes, run_time, sample_rate_hz, whole};
use cardiograph_sim_card::{Board, Profile};
use cardiograph_trace::{ReadOptions, read_with_progress};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Find the buffer size that a data logger needs, and the risk of losing samples.
#[derive(clap::Args)]
#[command(after_help = "\
The first line is the answer. Without a card, it is the buffer that the SD specification asks for. A simulated card is
measured with the recorder's way of writing, one continuous multi-block write; of an ensemble, every member is measured,
and the worst one counts. A trace, in any format that `analyze` reads, is used as it is. Several cards are ranked by the
risk of losing samples with the given buffer.

Examples:
  cardiograph plan --rate 860 --sample-bytes 100                a card that was not measured
  cardiograph plan card.parquet --rate 860 --sample-bytes 100   a logger of 860 samples/s of 100 B
  cardiograph plan sim:generic-16g-class10@esp32 --rate 1000 --sample-bytes 64 --for 7days --buffer 32KiB
  cardiograph plan a.parquet b.parquet --rate 860 --sample-bytes 100 --buffer 32KiB   which card is best
  cardiograph plan times.csv --rate 8 --sample-bytes 81 --block-bytes 2048 --json plan.json")]
pub struct Args {
    /// A trace of writes, or a simulated card as sim:CARD@BOARD (names or TOML files); several are ranked [default: a card that was not measured]
    #[arg(value_name = "TRACE|sim:CARD@BOARD")]
    pub sources: Vec<String>,

    /// Rank simulated cards along with measured ones
    #[arg(long)]
    pub simulated: bool,

    /// Samples per second
    #[arg(long, value_name = "HZ", value_parser = sample_rate_hz)]
    pub rate: f64,

    /// Bytes per sample
    #[arg(long, value_name = "BYTES", value_parser = whole::<u64>(1..=1 << 20))]
    pub sample_bytes: u64,

    /// Length of a recording
    #[arg(long = "for", value_name = "TIME", default_value = "24h", value_parser = run_time)]
    pub run: Duration,

    /// Buffer size for which the risk of losing samples is calculated
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = buffer_bytes)]
    pub buffer: u64,

    /// Bytes per write, for trace formats that do not state it
    #[arg(long = "block-bytes", value_name = "BYTES", default_value_t = 512, value_parser = whole::<u64>(1..=1 << 30))]
    pub block: u64,

    /// Exit with code 5 if a condition holds for any card; may be repeated. Figures: needed, the largest backlog of the worst
    /// member, as in 'needed > 32KiB'; risk, the upper limit of the share of runs that lose samples with --buffer, as in
    /// 'risk > 1%'; and sustained, the rate with --buffer, as in 'sustained < 500kB/s'
    #[arg(long, value_name = "CONDITION", value_parser = conditions::of_plan)]
    pub fail_if: Vec<Condition>,

    /// Write the plan as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    #[command(flatten)]
    pub shared: Shared,
}

/// Reads the trace or measures the simulated card, then prints the plan.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply(&args.sources);
    outputs::check_files(&args.json)?;
    let logger = Logger {
        sample_rate_hz: args.rate,
        sample_bytes: args.sample_bytes,
        run_s: args.run.as_secs_f64(),
        buffer_bytes: args.buffer,
    };
    if args.sources.is_empty() {
        return unmeasured(args, &logger);
    }
    let cards = args.sources.iter().map(|source| Card::of(source, args));
    let cards = cards.collect::<Result<Vec<_>, _>>()?;
    let plans = cards.iter().map(|card| card.plan(args, &logger));
    let plans = plans.collect::<Result<Vec<_>, _>>()?;
    let ranking = Ranking::of(plans, args.buffer);
    let table = match ranking.cards.as_slice() {
        [one] => text::text(&one.plan, args.buffer),
        _ => ranking.text(),
    };
    show(args, &table)?;
    let done = json::write(args.json.as_deref(), "plan", &ranking.cards);
    let plans = ranking.cards.iter().map(|card| Planned {
        name: card.plan.target.clone(),
        specified_bytes: None,
        plan: Some(&card.plan),
        buffer_bytes: args.buffer,
    });
    conditions::check_plans(&args.fail_if, plans, done)
}

/// Answers for a card that was not measured.
fn unmeasured(args: &Args, logger: &Logger) -> Result<(), Failure> {
    let answer = Unmeasured::of(logger);
    show(args, &answer.text())?;
    let needed_bytes = answer.specification.sdxc_buffer_bytes;
    let done = json::write(args.json.as_deref(), "plan", &[answer]);
    let planned = Planned {
        name: String::from("card not measured"),
        specified_bytes: Some(needed_bytes),
        plan: None,
        buffer_bytes: args.buffer,
    };
    conditions::check_plans(&args.fail_if, [planned], done)
}

fn show(args: &Args, text: &str) -> Result<(), Failure> {
    match args.json.as_deref() {
        Some(path) if is_standard_output(path) => {
            print_error(text);
            Ok(())
        }
        _ => print(text),
    }
}

/// Source of a plan.
enum Card<'a> {
    Trace(&'a str),
    Simulated(&'a str, Box<(Profile, Board)>),
}

impl<'a> Card<'a> {
    fn of(source: &'a str, args: &Args) -> Result<Card<'a>, Failure> {
        match target::simulated_set_up(source)? {
            None => Ok(Card::Trace(source)),
            Some(set_up) => {
                check_simulated(source, args)?;
                Ok(Card::Simulated(source, Box::new(set_up)))
            }
        }
    }

    /// Returns the plan, and true if the card is simulated.
    fn plan(&self, args: &Args, logger: &Logger) -> Result<(Plan, bool), Failure> {
        match self {
            Card::Trace(file) => from_trace(file, args, logger),
            Card::Simulated(name, set_up) => {
                let planned = plan_simulated(name, (&set_up.0, &set_up.1), logger);
                let plan = planned.map_err(|error| Failure::new(format!("{name}: {error}")))?;
                Ok((plan, true))
            }
        }
    }
}

/// Refuses to rank a simulated card with other cards, unless --simulated permits it.
fn check_simulated(source: &str, args: &Args) -> Result<(), Failure> {
    match args.sources.len() > 1 && !args.simulated {
        true => Err(Failure::new(format!(
            "{source} comes from a simulated card, and only --simulated ranks those; add --simulated, or leave {source} out"
        ))),
        false => Ok(()),
    }
}

/// Plans from a trace; returns true with the plan if it is the trace of a simulated card.
fn from_trace(file: &str, args: &Args, logger: &Logger) -> Result<(Plan, bool), Failure> {
    let path = Path::new(file);
    let options = ReadOptions::with_block_bytes(args.block);
    let mut progress = Progress::over_file(path);
    let loaded = read_with_progress(path, &options, &mut |bytes| progress.show(bytes));
    progress.clear();
    let loaded = loaded.map_err(|error| Failure::new(error.without_options()))?;
    let (plan, is_simulated) = plan_file(file, &loaded, logger).map_err(Failure::new)?;
    if is_simulated {
        check_simulated(file, args)?;
    }
    Ok((plan, is_simulated))
}
