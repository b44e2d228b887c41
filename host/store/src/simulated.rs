//! Runs of a workload on a simulated card on a board.

use crate::{
    CachedCard, CardClock, Download, DownloadError, Downloaded, FatCard, MountError, SharedCard,
    StoreError,
};
use cardiograph_sim_card::{Board, Card, LibraryName};
use cardiograph_workload::{Observer, Outcome, RunError, Store, Workload, run};

/// Result of a run on a simulated card.
pub struct SimulatedRun {
    /// Result of the workload.
    pub result: Result<Outcome, RunError<StoreError>>,
    /// Result of the download, if there was one.
    pub downloaded: Option<Result<Downloaded, DownloadError<StoreError>>>,
    /// Number of times the driver timed out on a busy card and was called again.
    pub timeouts: u64,
    /// True if the card rejects writes because too many flash blocks are worn out.
    pub is_worn_out: bool,
    /// True if file names may be longer than 8.3.
    pub has_long_names: bool,
}

/// Formats a card, runs `workload` on it in virtual time and returns the card. `buffer` must be at least
/// [`Workload::buffer_bytes`] long. The download, if any, runs at the same time. Cards with equal profiles
/// and seeds always give the same latencies.
///
/// # Errors
/// [`MountError`] if the card cannot be mounted on this board. Errors of the workload, the download and of
/// unmounting are in the results of the workload and of the download.
pub fn run_on_card(
    card: Card,
    board: &Board,
    workload: &Workload,
    download: Option<Download>,
    observer: &mut impl Observer,
    buffer: &mut [u8],
) -> Result<(SimulatedRun, Result<Card, StoreError>), MountError> {
    match board.library.name {
        LibraryName::EmbeddedSdmmc => {
            let mut store = FatCard::mount(card, board)?;
            let clock = store.clock();
            let (result, downloaded) =
                run_with_download(download, workload, &mut store, clock, observer, buffer)?;
            let run = SimulatedRun {
                result,
                downloaded,
                timeouts: store.timeouts(),
                is_worn_out: store.is_worn_out(),
                has_long_names: store.has_long_names(),
            };
            Ok((run, store.unmount()))
        }
        LibraryName::Fatfs | LibraryName::Linux => {
            let card = CachedCard::mount(card, board)?;
            let (mut store, clock) = (card.store(), card.clock());
            let (result, downloaded) =
                run_with_download(download, workload, &mut store, clock, observer, buffer)?;
            let run = SimulatedRun {
                result,
                downloaded,
                timeouts: card.timeouts(),
                is_worn_out: card.is_worn_out(),
                has_long_names: store.has_long_names(),
            };
            Ok((run, card.unmount()))
        }
    }
}

/// Results of the workload and of the download.
type Results = (
    Result<Outcome, RunError<StoreError>>,
    Option<Result<Downloaded, DownloadError<StoreError>>>,
);

fn run_with_download(
    download: Option<Download>,
    workload: &Workload,
    store: &mut impl Store<Error = StoreError>,
    mut clock: CardClock,
    observer: &mut impl Observer,
    buffer: &mut [u8],
) -> Result<Results, MountError> {
    let Some(download) = download else {
        return Ok((run(workload, store, &mut clock, observer, buffer), None));
    };
    let shared = SharedCard::new(store, &mut clock, download).map_err(MountError::Download)?;
    let result = run(
        workload,
        &mut shared.store(),
        &mut shared.clock(),
        observer,
        buffer,
    );
    Ok((result, Some(shared.finish())))
}
