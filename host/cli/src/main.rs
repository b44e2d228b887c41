//! The command `cardiograph`: measures storage devices, real or simulated, and analyses traces.
//!
//! ```text
//!   args ──> bench:   target + workload ──> trace ─┐
//!       ├──> check:   disk ──> capacity and speed next to its label
//!       ├──> flash-benchmark: disk or directory ──> study 2, next to its published figures
//!       ├──> analyze: files ────────────> traces ──┴──> report ──> table, JSON, HTML, Markdown
//!       ├──> compare: traces or cards ──> table, verdicts, JSON, HTML, Markdown
//!       ├──> record: target + samples ──> files on the target, every sample verified ──> table, JSON
//!       ├──> probe: a card ──> page, unit, open units, log ... ──> table, JSON, Markdown
//!       ├──> fit: trace ──> a card's profile
//!       ├──> plan: trace or card + data rate ──> buffer size, risk
//!       ├──> sweep: specification ──> thousands of recordings ──> probability of loss
//!       ├──> cards: a card or board ──> a drawing, and figures derived from its values
//!       ├──> recover, export: recordings ──> repaired, as CSV or ULog
//!       ├──> serve: a directory or card ──> HTTP
//!       ├──> demo: simulated cards in real time ──> HTTP
//!       ├──> get: HTTP ──> lists, files
//!       └──> reproduce: published figures ──> their experiments, simulated ──> table, JSON, HTML
//! ```
//!
//! `help.rs` lists the exit codes.

mod analyze;
mod args;
mod bench;
mod board;
mod cards;
mod check;
mod compare;
mod conditions;
mod demo;
mod disk;
mod drawing;
mod export;
mod failure;
mod fit;
mod flash_benchmark;
mod get;
mod help;
mod interrupt;
mod json;
mod lists;
mod manual;
mod outputs;
mod phases;
mod plan;
mod probe;
mod progress;
mod record;
mod recover;
mod reproduce;
mod serve;
mod shared;
mod sweep;
mod target;
mod trust;
mod watch;
mod workload_file;

use args::{Args, Command};
use clap::FromArgMatches;
use failure::Failure;
use std::process::ExitCode;
use std::thread;

/// Stack of the thread that runs the command, whatever `ulimit -s` gives the first one.
const STACK_BYTES: usize = 8 << 20;

fn main() -> ExitCode {
    let thread = thread::Builder::new().name(String::from("main"));
    match thread.stack_size(STACK_BYTES).spawn(command) {
        Ok(command) => command
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
        Err(error) => report(
            &format!(
                "cannot start a thread ({error}); end other programs, or raise the limit with `ulimit -u`"
            ),
            2,
        ),
    }
}

fn command() -> ExitCode {
    let words = args::with_negative_numbers(std::env::args_os());
    let matches = args::command().get_matches_from(words);
    let args = Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match interrupt::survive_file_size_limit().and_then(|()| run(args.command)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::AlreadyPrinted(code)) => ExitCode::from(code),
        // The reader closed the pipe because it has read enough.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Message(message)) => report(&message, 2),
        Err(Failure::MessageWithCode(message, code)) => report(&message, code),
    }
}

fn run(command: Option<Command>) -> Result<(), Failure> {
    match command {
        None => bench::without_arguments(),
        Some(Command::Bench(args)) => bench::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::FlashBenchmark(args)) => flash_benchmark::run(&args),
        Some(Command::Analyze(args)) => analyze::run(&args),
        Some(Command::Compare(args)) => compare::run(&args),
        Some(Command::Record(args)) => record::run(&args),
        Some(Command::Reproduce(args)) => reproduce::run(&args),
        Some(Command::Probe(args)) => probe::run(&args),
        Some(Command::Fit(args)) => fit::run(&args),
        Some(Command::Plan(args)) => plan::run(&args),
        Some(Command::Sweep(args)) => sweep::run(&args),
        Some(Command::Recover(args)) => recover::run(&args),
        Some(Command::Export(args)) => export::run(&args),
        Some(Command::Serve(args)) => serve::run(&args),
        Some(Command::Demo(args)) => demo::run(&args),
        Some(Command::Get(args)) => get::run(&args),
        Some(Command::Workloads) => lists::workloads(),
        Some(Command::Cards(args)) => cards::run(&args),
        Some(Command::Completions(args)) => manual::completions(&args),
        Some(Command::Man(args)) => manual::pages(&args),
    }
}

fn report(message: &str, code: u8) -> ExitCode {
    failure::print_error(&format!("error: {message}\n"));
    ExitCode::from(code)
}
