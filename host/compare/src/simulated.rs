//! Recordings by the policies of the studies on simulated cards.

use crate::{LoggerConfig, LoggerError, LoggerResult, run_logger};
use cardiograph_sim_card::{Board, Card, LibraryName};
use cardiograph_store::{CachedCard, FatCard, MountError, StoreError};
use cardiograph_workload::Observer;

/// Result of a recording on a simulated card.
pub struct CardRun {
    /// Result of the recording.
    pub result: Result<LoggerResult, LoggerError<StoreError>>,
    /// Number of timeouts of the card driver on a busy card, after which the operation was retried.
    pub time_outs: u64,
    /// True if the card accepts no more writes because too many flash blocks have failed.
    pub is_worn_out: bool,
}

/// Formats a card, runs `recording` on it in virtual time, and returns the card. `line` fills samples as in
/// [`run_logger`]. Cards with equal profiles and seeds give equal results.
///
/// # Errors
/// [`MountError`] if the card cannot be initialised on this board. Errors of the recording and of unmounting
/// are in the results.
pub fn run_logger_on_card(
    card: Card,
    board: &Board,
    recording: &LoggerConfig,
    path: &str,
    observer: &mut impl Observer,
    line: impl FnMut(u64, &mut [u8]),
) -> Result<(CardRun, Result<Card, StoreError>), MountError> {
    // A page cache may hold written data back even after the file is closed.
    let is_safe = board.library.name != LibraryName::Linux;
    match board.library.name {
        LibraryName::EmbeddedSdmmc => {
            let mut store = FatCard::mount(card, board)?;
            let mut clock = store.clock();
            let recorded = CardRun {
                result: run_logger(
                    recording, path, is_safe, &mut store, &mut clock, observer, line,
                ),
                time_outs: store.timeouts(),
                is_worn_out: store.is_worn_out(),
            };
            Ok((recorded, store.unmount()))
        }
        LibraryName::Fatfs | LibraryName::Linux => {
            let card = CachedCard::mount(card, board)?;
            let (mut store, mut clock) = (card.store(), card.clock());
            let recorded = CardRun {
                result: run_logger(
                    recording, path, is_safe, &mut store, &mut clock, observer, line,
                ),
                time_outs: card.timeouts(),
                is_worn_out: card.is_worn_out(),
            };
            Ok((recorded, card.unmount()))
        }
    }
}
