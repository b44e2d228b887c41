//! Termination signals as a flag that a run polls.

use crate::failure::Failure;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(unix)]
const SIGNALS: [i32; 3] = [HANGUP, SIGINT, SIGTERM];
#[cfg(not(unix))]
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// SIGHUP, which Windows does not have.
const HANGUP: i32 = 1;

/// Keeps a file that reaches the limit of `ulimit -f` from killing the process: the write fails instead.
pub fn survive_file_size_limit() -> Result<(), Failure> {
    #[cfg(unix)]
    flag::register(signal_hook::consts::SIGXFSZ, Arc::default()).map_err(not_installed)?;
    Ok(())
}

fn not_installed(error: std::io::Error) -> Failure {
    Failure::new(format!("cannot install signal handlers: {error}"))
}

/// A request to end a run.
#[derive(Clone, Default)]
pub struct Interrupt {
    is_raised: Arc<AtomicBool>,
    /// Number of the signal, valid once the flag is raised.
    signal: Arc<AtomicUsize>,
}

impl Interrupt {
    /// Catches Ctrl-C and the termination signals; a second signal terminates the program at once. SIGHUP stays ignored
    /// if it was at the start, as under nohup(1).
    pub fn catch() -> Result<Interrupt, Failure> {
        let interrupt = Interrupt::default();
        let is_hangup_ignored = cardiograph_system::is_hangup_ignored();
        let caught = SIGNALS.into_iter();
        for signal in caught.filter(|&signal| !(is_hangup_ignored && signal == HANGUP)) {
            interrupt.register(signal).map_err(not_installed)?;
        }
        Ok(interrupt)
    }

    fn register(&self, signal: i32) -> std::io::Result<()> {
        let is_raised = || Arc::clone(&self.is_raised);
        // Handlers run in the order of registration, so the number is set before the flag.
        flag::register_conditional_shutdown(signal, 128 + signal, is_raised())?;
        flag::register_usize(signal, Arc::clone(&self.signal), signal as usize)?;
        flag::register(signal, is_raised())?;
        Ok(())
    }

    /// Returns true if the run must end.
    pub fn is_raised(&self) -> bool {
        self.is_raised.load(Ordering::SeqCst)
    }

    /// Returns the exit code if a signal ended the run: 128 plus the signal's number, as in shells.
    pub fn exit_code(&self) -> Option<u8> {
        let signal = self.signal.load(Ordering::SeqCst);
        self.is_raised().then_some(128 + signal as u8)
    }
}
