//! `cardiograph demo`: a virtual data logger whose power and card users can pull.

use crate::failure::{Failure, print};
use crate::interrupt::Interrupt;
use crate::serve::{Access, AccessArgs, logger};

/// Run a virtual data logger in real time next to two simple sketches, and pull its power and its card.
#[derive(clap::Args)]
#[command(after_help = "\
Open the printed address in a browser. Three devices take the same 860 samples per second and write them to simulated
cards of the same model: Cardiograph's recorder, a sketch that opens and closes its file for each line, and a sketch that
keeps its file open. The page shows how many samples each of them has lost. Its buttons cut the power of all three for a
second, and pull the recorder's card. The recorder's files can be downloaded meanwhile. Ctrl-C ends the demo and discards
the cards with their files.

Examples:
  cardiograph demo                                          a 16 GB card on an ESP32
  cardiograph demo sim:kingston-8g-class10@esp32-26m                another card and board; see `cardiograph cards`")]
pub struct Demo {
    /// Simulated card, as sim:CARD@BOARD
    #[arg(
        value_name = "sim:CARD@BOARD",
        default_value = "sim:generic-16g-class10@esp32"
    )]
    pub target: String,

    #[command(flatten)]
    pub access: AccessArgs,
}

/// Runs the demo until Ctrl-C.
pub fn run(args: &Demo) -> Result<(), Failure> {
    let target = &args.target;
    let logger = logger(target)?.ok_or_else(|| {
        Failure::new(format!(
            "{target}: expected a simulated card, such as sim:generic-16g-class10@esp32; `cardiograph serve` serves real ones"
        ))
    })?;
    let access = Access::new(&args.access)?;
    let interrupt = Interrupt::catch()?;
    print(&format!("Demo of {target} at {}\n", access.urls()))?;
    access.demonstrate(logger, &|| interrupt.is_raised())?;
    match interrupt.exit_code() {
        Some(code) => Err(Failure::AlreadyPrinted(code)),
        None => Ok(()),
    }
}
