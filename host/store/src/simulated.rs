//! Any workload on any simulated card on any board.

use crate::{
    CachedCard, CardClock, Download, DownloadError, Downloaded, FatCard, MountError, SharedCard,
    StoreError,
};
use cardiograph_sim_card::{Board, Card, LibraryName};
use cardiograph_workload::{Observer, Outcome, RunError, Store, Workload, run};

/// How a run on a simulated card ended.
pub struct SimulatedRun {
    /// The run itself.
    pub result: Result<Outcome, RunError<StoreError>>,
    /// What was downloaded meanwhile, if anything was to be.
    pub downloaded: Option<Result<Downloaded, DownloadError<StoreError>>>,
    /// How often the card driver gave up on a busy card and was asked again.
    pub time_outs: u64,
    /// Whether the card takes no more writes, because too many of its blocks have given out.
    pub is_worn_out: bool,
    /// Whether names of files may be longer than eight and three characters.
    pub has_long_names: bool,
}

/// Carries `workload` out on a card, which is formatted first, in virtual time; gives the card back.
/// `buffer` is at least [`Workload::buffer_bytes`] long. A download goes on beside the workload if there is
/// one. The same card gives the same times.
///
/// # Errors
/// [`MountError`] if the card cannot be brought up on this board. That a run or a download fails is in its
/// result, and so it is with unmounting.
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
                run_beside(download, workload, &mut store, clock, observer, buffer)?;
            let run = SimulatedRun {
                result,
                downloaded,
                time_outs: store.time_outs(),
                is_worn_out: store.is_worn_out(),
                has_long_names: store.has_long_names(),
            };
            Ok((run, store.unmount()))
        }
        LibraryName::Fatfs | LibraryName::Linux => {
            let card = CachedCard::mount(card, board)?;
            let (mut store, clock) = (card.store(), card.clock());
            let (result, downloaded) =
                run_beside(download, workload, &mut store, clock, observer, buffer)?;
            let run = SimulatedRun {
                result,
                downloaded,
                time_outs: card.time_outs(),
                is_worn_out: card.is_worn_out(),
                has_long_names: store.has_long_names(),
            };
            Ok((run, card.unmount()))
        }
    }
}

/// How the workload and the download ended.
type Ends = (
    Result<Outcome, RunError<StoreError>>,
    Option<Result<Downloaded, DownloadError<StoreError>>>,
);

fn run_beside(
    download: Option<Download>,
    workload: &Workload,
    store: &mut impl Store<Error = StoreError>,
    mut clock: CardClock,
    observer: &mut impl Observer,
    buffer: &mut [u8],
) -> Result<Ends, MountError> {
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
