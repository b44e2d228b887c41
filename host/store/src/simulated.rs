//! Runs of a workload on a simulated card on a board.

use crate::{CachedCard, FatCard, MountError, StoreError};
use cardiograph_sim_card::{Board, Card, LibraryName};
use cardiograph_workload::{Observer, Outcome, RunError, Store, Workload, run};

/// Result of a run on a simulated card.
pub struct SimulatedRun {
    /// Result of the workload.
    pub result: Result<Outcome, RunError<StoreError>>,
    /// Number of times the driver timed out on a busy card or reader and was called again.
    pub timeouts: u64,
    /// True if the card rejects writes because too many flash blocks are worn out.
    pub is_worn_out: bool,
    /// True if file names may be longer than 8.3.
    pub has_long_names: bool,
}

/// Formats a card, runs `workload` on it in virtual time and returns the card. `buffer` must be at least
/// [`Workload::buffer_bytes`] long. Cards with equal profiles and seeds always give the same latencies.
///
/// # Errors
/// [`MountError`] if the card cannot be mounted on this board. Errors of the workload and of unmounting are in
/// the returned values.
pub fn run_on_card(
    card: Card,
    board: &Board,
    workload: &Workload,
    observer: &mut impl Observer,
    buffer: &mut [u8],
) -> Result<(SimulatedRun, Result<Card, StoreError>), MountError> {
    match board.library.name {
        LibraryName::EmbeddedSdmmc => {
            let mut store = FatCard::mount(card, board)?;
            let mut clock = store.clock();
            let run = SimulatedRun {
                result: run(workload, &mut store, &mut clock, observer, buffer),
                timeouts: store.timeouts(),
                is_worn_out: store.is_worn_out(),
                has_long_names: store.has_long_names(),
            };
            Ok((run, store.unmount()))
        }
        LibraryName::Fatfs | LibraryName::Linux => {
            let card = CachedCard::mount(card, board)?;
            let (mut store, mut clock) = (card.store(), card.clock());
            let run = SimulatedRun {
                result: run(workload, &mut store, &mut clock, observer, buffer),
                timeouts: card.timeouts(),
                is_worn_out: card.is_worn_out(),
                has_long_names: store.has_long_names(),
            };
            Ok((run, card.unmount()))
        }
    }
}
