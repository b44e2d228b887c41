//! The command line: every command with its own arguments.

use crate::{
    analyze, bench, cards, check, compare, demo, export, fit, flash_benchmark, get, help, manual,
    plan, probe, record, recover, reproduce, serve, sweep,
};
use clap::{CommandFactory, Parser, Subcommand};

/// Measures and explains the write stalls of SD cards and flash media.
///
/// Without arguments: measures the built-in simulated card and writes an HTML report.
#[derive(Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  cardiograph                                     measure the built-in simulated card
  cardiograph bench /media/card --html card.html  measure a real card mounted at /media/card
  cardiograph analyze times.csv --json -          analyse a trace from another tool
  cardiograph compare a.parquet b.parquet         tell whether card B is faster than card A
  cardiograph plan card.parquet --rate 860 --sample-bytes 100
                                                  size the buffer of a data logger
  cardiograph record --compare                    compare ways to record samples
  cardiograph serve /media/card                   browse and download files over HTTP
  cardiograph demo                                pull the power of a data logger, in a browser
  cardiograph workloads                           list the published experiments
  cardiograph cards                               list simulated cards and boards"
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// Returns the definition of the command line, with units and exit codes in every help.
pub fn command() -> clap::Command {
    help::complete(Args::command())
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Measure write latencies, stalls and sustained rate of a card
    Bench(bench::Args),
    /// Check whether a card is what its label says: capacity and speed
    Check(check::Args),
    /// Run study 2 on a disk or directory: file systems, sizes and ways to sync
    FlashBenchmark(flash_benchmark::Args),
    /// Analyse traces and recordings, including those of other tools
    Analyze(analyze::Args),
    /// Tell whether one card is faster than another
    Compare(compare::Args),
    /// Record samples to a card and account for every sample
    Record(record::Record),
    /// Reproduce the experiments of five published studies on simulated cards
    Reproduce(reproduce::Args),
    /// Find out how a card works inside, by timing
    Probe(probe::Args),
    /// Fit a simulated card to a measured trace
    Fit(fit::Args),
    /// Find the buffer size that a data logger needs, and the risk of losing samples
    Plan(plan::Args),
    /// Simulate thousands of recordings, and find the probability of losing samples
    Sweep(sweep::Args),
    /// Repair interrupted recordings
    Recover(recover::Recover),
    /// Convert a binary recording to CSV or ULog
    Export(export::Export),
    /// Serve files over HTTP
    Serve(serve::Serve),
    /// Run a virtual data logger whose power and card you can pull
    Demo(demo::Demo),
    /// List and download files from a server
    Get(get::Get),
    /// List the built-in workloads: the experiments of the published studies
    #[command(after_help = "\
Examples:
  cardiograph workloads
  cardiograph bench --workload magod2                        run one on a simulated card")]
    Workloads,
    /// List the simulated cards and boards, or draw the structure of one
    Cards(cards::Args),
    /// Print completions for a shell
    Completions(manual::Completions),
    /// Write a manual page for each command
    Man(manual::Man),
}
