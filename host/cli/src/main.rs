//! The command `cardiograph`: measures any medium, real or simulated, and reads any trace.
//!
//! ```text
//!   args ──> bench:   target + workload ──> trace ─┐
//!       ├──> analyze: files ────────────> traces ──┴──> report ──> table, JSON, HTML, Markdown
//!       ├──> record: target + samples ──> files on the target, every line read back ──> table, JSON
//!       ├──> fit: trace ──> a card's profile
//!       ├──> plan: trace or card + data rate ──> RAM, risk
//!       ├──> cards: a card or board ──> a drawing, and what follows from its values
//!       ├──> recover, export: recordings ──> in order, as CSV
//!       └──> reproduce: published figures ──> their experiments, simulated ──> table, JSON, HTML
//! ```
//!
//! Exit codes: 0 done, 2 something was wrong with the input or the medium, 130, 143 or 129 ended by SIGINT,
//! SIGTERM or SIGHUP. `record` has more: see `record/exit.rs`.

mod analyze;
mod args;
mod bench;
mod cards;
mod drawing;
mod export;
mod failure;
mod fit;
mod interrupt;
mod lists;
mod outputs;
mod parts;
mod plan;
mod progress;
mod record;
mod recover;
mod reproduce;
mod target;
mod watch;
mod workload_file;

use args::{Args, Command};
use clap::Parser;
use failure::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.command {
        None => bench::without_arguments(),
        Some(Command::Bench(bench)) => bench::run(&bench),
        Some(Command::Analyze(analyze)) => analyze::run(&analyze),
        Some(Command::Record(args)) => record::run(&args),
        Some(Command::Reproduce(args)) => reproduce::run(&args),
        Some(Command::Fit(args)) => fit::run(&args),
        Some(Command::Plan(args)) => plan::run(&args),
        Some(Command::Recover(args)) => recover::run(&args),
        Some(Command::Export(args)) => export::run(&args),
        Some(Command::Workloads) => lists::workloads(),
        Some(Command::Cards(args)) => cards::run(args.name.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::AlreadyPrinted(code)) => ExitCode::from(code),
        // Whoever closed our output has read enough.
        Err(Failure::OutputClosed) => ExitCode::SUCCESS,
        Err(Failure::Message(sentence)) => said(&sentence, 2),
        Err(Failure::MessageWithCode(sentence, code)) => said(&sentence, code),
    }
}

fn said(sentence: &str, code: u8) -> ExitCode {
    failure::print_error(&format!("error: {sentence}\n"));
    ExitCode::from(code)
}
