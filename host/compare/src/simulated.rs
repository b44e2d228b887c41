//! Recordings on simulated cards.

use crate::{RecordError, Recorded, Recording, record};
use cardiograph_sim_card::{Board, Card, LibraryName};
use cardiograph_store::{CachedCard, FatCard, MountError, StoreError};
use cardiograph_workload::Observer;

/// How a recording on a simulated card ended.
pub struct SimulatedRecord {
    /// The recording itself.
    pub result: Result<Recorded, RecordError<StoreError>>,
    /// How often the card driver gave up on a busy card and was asked again.
    pub time_outs: u64,
    /// Whether the card takes no more writes, because too many of its blocks have given out.
    pub is_worn_out: bool,
}

/// Carries `recording` out on a card, which is formatted first, in virtual time; gives the card back. `line`
/// makes the lines as [`record`] has it. The same card gives the same result.
///
/// # Errors
/// [`MountError`] if the card cannot be brought up on this board. That a recording fails is in its result,
/// and so it is with unmounting.
pub fn record_on_card(
    card: Card,
    board: &Board,
    recording: &Recording,
    path: &str,
    observer: &mut impl Observer,
    line: impl FnMut(u64, &mut [u8]),
) -> Result<(SimulatedRecord, Result<Card, StoreError>), MountError> {
    // A page cache keeps what is written, and a close brings none of it to the card.
    let is_safe = board.library.name != LibraryName::Linux;
    match board.library.name {
        LibraryName::EmbeddedSdmmc => {
            let mut store = FatCard::mount(card, board)?;
            let mut clock = store.clock();
            let recorded = SimulatedRecord {
                result: record(
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
            let recorded = SimulatedRecord {
                result: record(
                    recording, path, is_safe, &mut store, &mut clock, observer, line,
                ),
                time_outs: card.timeouts(),
                is_worn_out: card.is_worn_out(),
            };
            Ok((recorded, card.unmount()))
        }
    }
}
