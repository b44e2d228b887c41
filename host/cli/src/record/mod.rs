//! `cardiograph record`: records samples to files on a card, and accounts for every sample.
//!
//! ```text
//!   args ──> checks ──> target ──> samples ──┬── simulated card ──┬── stream: the recorder ──┐
//!                                            │                    └── the studies' policies ─┤
//!                                            └── directory: the recorder, in real time ──────┤
//!                                                                          Figures ──> table, JSON
//! ```

mod args;
mod checks;
mod compare;
mod exit;
mod live;
mod samples;
#[cfg_attr(not(target_os = "linux"), path = "not_served.rs")]
mod served;
mod simulated;
mod text;

pub use args::Record;

use crate::conditions;
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::json;
use crate::outputs::{self, is_standard_output};
use crate::target::{IoArg, Target};
use args::PolicyArg;
use cardiograph_compare::Figures;
use live::Live;
use samples::Source;
use simulated::Simulated;
use std::num::NonZeroU32;

/// Records, prints the figures, and returns the exit code.
pub fn run(args: &Record) -> Result<(), Failure> {
    args.shared.apply(&args.samples);
    let rate_hz = checks::options(args)?;
    outputs::check_files(&args.json)?;
    match Target::named(&args.target, IoArg::Dsync)? {
        Target::Simulated { profile, board } => {
            checks::no_server(args)?;
            if args.compare || args.policy == PolicyArg::Stream {
                checks::spi(args, &board)?;
            }
            on_card(
                args,
                rate_hz,
                &Simulated {
                    profile: *profile,
                    board,
                },
            )
        }
        Target::Directory(..) => {
            checks::directory(args)?;
            in_directory(args, rate_hz)
        }
    }
}

fn on_card(args: &Record, rate_hz: NonZeroU32, card: &Simulated) -> Result<(), Failure> {
    let source = Source::of(args, rate_hz)?;
    let interrupt = Interrupt::catch()?;
    if args.compare {
        let all = compare::run(card, args, &source, &interrupt)?;
        print_summary(args, &compare::text(args, &all))?;
        write_json(args, &all.iter().collect::<Vec<_>>())?;
        check_conditions(args, &all, exit::of_comparison(&interrupt))
    } else {
        let figures = card.record(args, args.policy, &source, &interrupt)?;
        print_summary(args, &text::text(args, &figures))?;
        write_json(args, &[&figures])?;
        let done = exit::of_recording(&args.target, &figures, &interrupt);
        check_conditions(args, &[figures], done)
    }
}

fn in_directory(args: &Record, rate_hz: NonZeroU32) -> Result<(), Failure> {
    let lines = Live::of(args, rate_hz)?;
    let interrupt = Interrupt::catch()?;
    let figures = live::record(args, lines, &interrupt)?;
    print_summary(args, &text::text(args, &figures))?;
    write_json(args, &[&figures])?;
    let done = exit::of_recording(&args.target, &figures, &interrupt);
    check_conditions(args, &[figures], done)
}

/// Checks --fail-if for each policy.
fn check_conditions(
    args: &Record,
    all: &[Figures],
    done: Result<(), Failure>,
) -> Result<(), Failure> {
    let results = all.iter().map(|figures| conditions::Recorded {
        name: format!("{}, {}", args.target, figures.policy),
        lost: figures.samples_lost,
        worst_case_us: figures.worst_case_write_us,
    });
    conditions::check_recordings(&args.fail_if, results, done)
}

fn write_json(args: &Record, figures: &[&Figures]) -> Result<(), Failure> {
    json::write(args.json.as_deref(), "record", figures)
}

/// Prints text for the user, on standard error if standard output is in use for JSON.
fn print_summary(args: &Record, text: &str) -> Result<(), Failure> {
    if args.json.as_deref().is_some_and(is_standard_output) {
        print_error(text);
        return Ok(());
    }
    match print(text) {
        // The JSON file must be written even if nobody reads standard output.
        Err(Failure::OutputClosed) => Ok(()),
        printed => printed,
    }
}
