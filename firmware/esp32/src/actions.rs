//! The state of the board that the server shows.

use crate::card::{Bus, Clock};
use crate::{clock, wifi};
use cardiograph_card::{BlockDevice, Card};
use cardiograph_logger::Fault;
use cardiograph_recorder::{DosTime, FatError, StartError};
use cardiograph_server::Actions;
use core::convert::Infallible;
use core::fmt;
use embassy_time::Delay;
use esp_hal::gpio::Output;
use static_cell::StaticCell;

/// The card of the board.
pub type BoardCard = Card<Bus, Output<'static>, Delay, Clock>;
type BoardError = StartError<<BoardCard as BlockDevice>::Error, FatError<Infallible>>;

/// Faults of card and network, and the clock.
pub struct BoardActions {
    /// The reason why no recording has started.
    pub fault: Fault<BoardError>,
}

impl BoardActions {
    /// Returns the only instance; panics at the second call.
    pub fn start() -> &'static BoardActions {
        static ACTIONS: StaticCell<BoardActions> = StaticCell::new();
        ACTIONS.init(BoardActions {
            fault: Fault::new(),
        })
    }
}

impl Actions for BoardActions {
    fn write_fault(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        self.fault.write_fault(text)
    }

    fn write_notice(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        match wifi::failure() {
            Some(failure) => write!(text, "{failure}"),
            None => Ok(()),
        }
    }

    fn has_clock(&self) -> bool {
        clock::now_fat() != DosTime::NO_CLOCK
    }
}
