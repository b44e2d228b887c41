//! Operations of the file system, with what they need and what they give.

use crate::error::StartError;
use crate::event::Event;
use crate::recover::recover_slot;
use crate::steps::{Port, Steps};
use crate::volume::{FileId, FileRecord, RESERVED_MAX, Request, Reserved, ShortText, Volume};

/// A job with everything it needs.
#[derive(Clone, Copy)]
pub(crate) enum Order {
    Mount,
    Reserve(u8, Request),
    Name(u8, FileId, ShortText),
    Close(u8, u8, FileRecord),
    Discard(u8, u8),
    Remove,
}

/// Result of a job.
#[derive(Clone, Copy)]
pub(crate) enum Done {
    Mounted,
    Reserved(u8, Reserved),
    Named,
    Closed(u8, FileRecord),
    Discarded(u8),
    /// The recording that was removed, if there was one.
    Removed(Option<FileId>),
}

/// Carries out a job through `steps`.
pub(crate) async fn execute<'s, V: Volume<Port<'s>>>(
    volume: &mut V,
    steps: &'s Steps,
    order: Order,
) -> Result<Done, V::Error> {
    let card = &mut Port(steps);
    match order {
        Order::Mount => mount(volume, steps).await,
        Order::Reserve(track, request) => {
            let reserved = volume.reserve(card, request).await?;
            Ok(Done::Reserved(track, reserved))
        }
        Order::Name(slot, id, session) => {
            volume.name(card, slot, id, session.as_str()).await?;
            Ok(Done::Named)
        }
        // A file in which nothing became durable is none.
        Order::Close(track, slot, record) => {
            volume.close(card, slot, &record).await?;
            Ok(Done::Closed(track, record))
        }
        Order::Discard(track, slot) => {
            volume.discard(card, slot).await?;
            Ok(Done::Discarded(track))
        }
        Order::Remove => Ok(Done::Removed(volume.remove_oldest(card).await?)),
    }
}

/// Mounts the volume and closes the recordings that were interrupted.
async fn mount<'s, V: Volume<Port<'s>>>(
    volume: &mut V,
    steps: &'s Steps,
) -> Result<Done, V::Error> {
    let card = &mut Port(steps);
    volume.mount(card).await?;
    if let Some(id) = volume.take_removed() {
        steps.report(Event::Removed { id }).await;
    }
    for slot in 0..RESERVED_MAX as u8 {
        let recovered = recover_slot(volume, card, slot).await;
        let recovered = recovered.map_err(|error| match error {
            StartError::Volume(error) => error,
            // A port does not fail.
            _ => unreachable!(),
        });
        if let Some(record) = recovered? {
            steps.report(Event::Recovered { record }).await;
        }
    }
    Ok(Done::Mounted)
}
