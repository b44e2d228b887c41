//! The reason why no recording has started, for the server.

use crate::{BoardCard, BoardFatError};
use cardiograph_card::BlockDevice;
use cardiograph_recorder::StartError;
use cardiograph_server::Actions;
use core::cell::RefCell;
use core::fmt;
use static_cell::StaticCell;

type BoardError = StartError<<BoardCard as BlockDevice>::Error, BoardFatError>;

/// Shared by the recorder's task and the server's tasks, which run on one executor.
pub struct Fault(RefCell<Option<BoardError>>);

impl Fault {
    /// Returns the only one; panics at the second call.
    pub fn start() -> &'static Fault {
        static FAULT: StaticCell<Fault> = StaticCell::new();
        FAULT.init(Fault(RefCell::new(None)))
    }

    /// Notes why no recording has started.
    pub fn set(&self, error: Option<BoardError>) {
        self.0.replace(error);
    }
}

impl Actions for Fault {
    fn write_fault(&self, text: &mut dyn fmt::Write) -> fmt::Result {
        match &*self.0.borrow() {
            Some(error) => write!(text, "{error}"),
            None => Ok(()),
        }
    }
}
