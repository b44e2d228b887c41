//! The command line: every command with its own arguments.

use crate::{
    analyze, bench, cards, check, compare, demo, export, fit, flash_benchmark, get, help, manual,
    plan, probe, record, recover, reproduce, serve, sweep,
};
use clap::{CommandFactory, Parser, Subcommand};
use std::ffi::{OsStr, OsString};

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

/// Joins an option and a negative number, as in `--rate=-1`, so that the parser of the number judges it, which knows the
/// range; clap takes `-1` for an unknown option, and proposes `-- -1`.
pub fn with_negative_numbers(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut joined: Vec<OsString> = Vec::new();
    let mut is_after_options = false;
    for word in words {
        is_after_options |= word == "--";
        match joined.last_mut() {
            Some(option) if !is_after_options && is_option(option) && is_negative(&word) => {
                option.push("=");
                option.push(word);
            }
            _ => joined.push(word),
        }
    }
    joined
}

fn is_option(word: &OsStr) -> bool {
    let word = word.as_encoded_bytes();
    word.len() > 2 && word.starts_with(b"--") && !word.contains(&b'=')
}

/// No option begins with a digit or a point.
fn is_negative(word: &OsStr) -> bool {
    matches!(word.as_encoded_bytes(), [b'-', b'0'..=b'9' | b'.', ..])
}

/// The commands.
#[derive(Subcommand)]
pub enum Command {
    /// Measure write latencies, stalls and sustained rate of a card
    Bench(bench::Args),
    /// Check whether a card is what its label says: capacity and speed
    Check(check::Args),
    /// Compare file systems, sizes and ways to sync on a disk or directory, as study 2 did
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    use std::any::TypeId;
    use std::num::NonZeroU32;
    use std::time::Duration;

    fn parse(words: &[&str]) -> clap::Error {
        let words = words.iter().map(OsString::from);
        let parsed = command().try_get_matches_from(with_negative_numbers(words));
        parsed.unwrap_err()
    }

    /// Returns true if the values of an option are numbers, with or without a unit.
    fn is_number(option: &clap::Arg) -> bool {
        const NAMES: [&str; 3] = ["N", "SIZE", "TIME"];
        let types = [
            TypeId::of::<u16>(),
            TypeId::of::<u32>(),
            TypeId::of::<NonZeroU32>(),
            TypeId::of::<u64>(),
            TypeId::of::<usize>(),
            TypeId::of::<f64>(),
            TypeId::of::<Duration>(),
        ];
        let parsed = option.get_value_parser().type_id();
        let mut names = option.get_value_names().unwrap_or_default().iter();
        types.iter().any(|number| parsed == *number)
            || names.any(|name| name.split('|').any(|part| NAMES.contains(&part)))
    }

    #[test]
    fn a_number_that_an_option_does_not_accept_is_refused_with_option_and_remedy() {
        let mut tested = 0;
        for command in command().get_subcommands() {
            let name = command.get_name();
            for option in command.get_arguments().filter(|option| is_number(option)) {
                let option = format!("--{}", option.get_long().unwrap());
                for value in ["-1", "-5s", "-1MiB", "-0.5", "-.5", "five", "1e99"] {
                    // The only option that may be negative.
                    if (option.as_str(), value) == ("--scope-offset", "-5s") {
                        continue;
                    }
                    let error = parse(&["cardiograph", name, &option, value]);
                    let said = format!("{name} {option} {value}: {error}");
                    assert_eq!(error.kind(), ErrorKind::ValueValidation, "{said}");
                    assert!(error.to_string().contains(&option), "{said}");
                    let given = error.get(ContextKind::InvalidValue);
                    assert_eq!(given, Some(&ContextValue::String(value.into())), "{said}");
                    assert!(error.to_string().contains("use "), "{said}");
                    tested += 1;
                }
            }
        }
        assert!(tested > 7 * 20, "{tested}");
    }

    #[test]
    fn only_a_negative_number_after_an_option_is_joined_with_it() {
        for words in [
            &["cardiograph", "record", "--rate", "--for", "5s"][..],
            &["cardiograph", "record", "--rate=5", "-1"],
            &["cardiograph", "record", "--quiet", "-q"],
            &["cardiograph", "bench", "--", "--rate", "-1"],
            &["cardiograph", "bench", "--", "-1"],
            &["cardiograph", "sweep", "-o", "-1"],
        ] {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            assert_eq!(with_negative_numbers(words.clone()), words);
        }
        let missing = parse(&["cardiograph", "record", "--rate", "--for", "5s"]);
        assert_eq!(missing.kind(), ErrorKind::InvalidValue);
        assert!(
            missing
                .to_string()
                .contains("a value is required for '--rate")
        );
    }
}
