//! `cardiograph demo`: a virtual data logger whose power anyone may cut.

use crate::failure::{Failure, print};
use crate::interrupt::Interrupt;
use crate::serve::{Access, logger};

/// Run a virtual data logger in real time whose power and card you can pull, beside the usual ways to log.
#[derive(clap::Args)]
#[command(after_help = "\
Open the printed address in a browser. Three devices take the same 860 samples per second and write them to equal
simulated cards: the recorder of Cardiograph, a sketch that opens and closes its file for each line, and a sketch that
keeps its file open. The page shows the samples that each has lost, and has buttons that cut the power of all three for a
second, and pull the card of the recorder. Its files can be downloaded meanwhile. Ctrl-C ends the demo; the cards and their
files are gone then.

Examples:
  cardiograph demo                                          a 16 GB card on an ESP32
  cardiograph demo sim:kingston-8g@esp32-26m                another card and board; see `cardiograph cards`")]
pub struct Demo {
    /// Simulated card, as sim:CARD@BOARD
    #[arg(value_name = "sim:CARD@BOARD", default_value = "sim:class10-16g@esp32")]
    pub target: String,

    /// Address to listen on (IP address and port); port 0 selects a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    pub listen: String,

    /// Let other computers press the buttons and change files, too
    #[arg(long)]
    pub write: bool,

    /// User name and password that every request needs; lets other computers press the buttons [default: none]
    #[arg(long, value_name = "USER:PASSWORD")]
    pub auth: Option<String>,
}

/// Runs the demo until Ctrl-C.
pub fn run(args: &Demo) -> Result<(), Failure> {
    let target = &args.target;
    let logger = logger(target)?.ok_or_else(|| {
        Failure::new(format!(
            "{target}: expected a simulated card, such as sim:class10-16g@esp32; `cardiograph serve` serves real ones"
        ))
    })?;
    let access = Access::new(&args.listen, args.write, args.auth.as_deref())?;
    let interrupt = Interrupt::catch()?;
    print(&format!("Demo of {target} at {}\n", access.urls()))?;
    access.demonstrate(logger, &|| interrupt.is_raised())?;
    match interrupt.exit_code() {
        Some(code) => Err(Failure::AlreadyPrinted(code)),
        None => Ok(()),
    }
}
