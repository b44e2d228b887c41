//! `cardiograph record`: samples to files on a card, and whether any is lost.
//!
//! ```text
//!   args ──> checks ──> samples ──> target ──> simulated card ──┬── stream: our recorder
//!                                      │                        └── the studies' ways
//!                                      └──> directory                       │
//!                                                        Figures ──> table, JSON
//! ```

mod checks;
mod compare;
mod figures;
mod samples;
mod simulated;
mod text;

use crate::args::{IoArg, PolicyArg, Record};
use crate::failure::{Failure, print, print_error};
use crate::interrupt::Interrupt;
use crate::outputs::{self, is_standard_output};
use crate::target::Target;
use samples::Source;
use simulated::Simulated;

/// Records as asked, shows what came of it, and compares all of it.
pub fn run(args: &Record) -> Result<(), Failure> {
    let rate_hz = checks::options(args)?;
    outputs::check_files(&args.json)?;
    let card = simulated_card(args)?;
    let source = Source::of(args, rate_hz)?;
    let interrupt = Interrupt::catch()?;
    if args.compare {
        let all = compare::run(&card, args, &source, &interrupt)?;
        tell(args, &compare::text(args, &all))?;
        write_json(args, &all)?;
    } else {
        let figures = card.record(args, args.policy, &source, &interrupt)?;
        tell(args, &text::text(args, &figures))?;
        write_json(args, &figures)?;
    }
    match interrupt.is_raised() {
        true => Err(Failure::Interrupted),
        false => Ok(()),
    }
}

/// The card to record on.
fn simulated_card(args: &Record) -> Result<Simulated, Failure> {
    match Target::named(&args.target, IoArg::Dsync)? {
        Target::Simulated { profile, board } => {
            if args.compare || args.policy == PolicyArg::Stream {
                checks::spi(args, &board)?;
            }
            Ok(Simulated { profile, board })
        }
        Target::Directory(..) => Err(Failure::new(format!(
            "{}: recording to a directory is not there yet; name a simulated card as sim:CARD@BOARD",
            args.target
        ))),
    }
}

fn write_json(args: &Record, figures: &impl serde::Serialize) -> Result<(), Failure> {
    let Some(path) = &args.json else {
        return Ok(());
    };
    let json = serde_json::to_string_pretty(figures).map_err(Failure::new)?;
    outputs::put(path, &(json + "\n"))
}

/// Speaks to the person: on standard error where standard output is for a program.
fn tell(args: &Record, text: &str) -> Result<(), Failure> {
    if args.json.as_deref().is_some_and(is_standard_output) {
        print_error(text);
        return Ok(());
    }
    match print(text) {
        // The file asked for is still to be written.
        Err(Failure::OutputClosed) => Ok(()),
        printed => printed,
    }
}
