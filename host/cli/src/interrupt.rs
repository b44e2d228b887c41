//! Signals to end as a flag that a run looks at.

use crate::failure::Failure;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Asks a run to end.
#[derive(Clone, Default)]
pub struct Interrupt {
    is_raised: Arc<AtomicBool>,
    /// Number of the signal, valid once the flag is raised.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Raised by Ctrl-C and by the signals to end; a second one ends the program at once.
    pub fn catch() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt::default();
        for signal in [SIGHUP, SIGINT, SIGTERM] {
            interrupt
                .register(signal)
                .map_err(|error| Failure::new(format!("signals cannot be caught: {error}")))?;
        }
        Ok(interrupt)
    }

    fn register(&self, signal: i32) -> std::io::Result<()> {
        let is_raised = || Arc::clone(&self.is_raised);
        // Handlers run in the order of registration: the number is there before the flag.
        flag::register_conditional_shutdown(signal, 128 + signal, is_raised())?;
        flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
        flag::register(signal, is_raised())?;
        Ok(())
    }

    /// Returns true if the run is to end.
    pub fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

    /// Returns the exit code of a run that a signal ended: 128 and the signal's number, as shells have it.
    pub fn exit_code(&self) -> Option<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        self.is_raised().then_some(128 + signal as u8)
    }
}
