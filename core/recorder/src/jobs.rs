//! File-system operations, with their inputs and results.

use crate::reads::ReadDesk;
use crate::recover::{close_or_discard, scan};
use crate::steps::{Port, Steps};
use crate::volume::{
    FileId, FileRecord, RESERVED_MAX, Removed, Request, Reserved, ShortText, Volume,
};

/// An operation with all its inputs. A job is one operation, except that a mount is followed by two for each
/// slot.
pub(crate) enum Order<'d> {
    Mount,
    /// Finds the end of the file in this slot, if it was interrupted.
    Find(u8),
    /// Closes the file in this slot with this record, or discards it if there is none.
    CloseOrDiscard(u8, Option<FileRecord>),
    Reserve(u8, Request),
    Name(u8, FileId, ShortText),
    Close(u8, u8, FileRecord),
    Discard(u8, u8),
    Remove,
    /// Carries out the change that another task requested at this desk.
    Change(&'d ReadDesk<'d>),
}

impl<'d> Order<'d> {
    /// Returns the next operation of the same job.
    pub(crate) fn next(&self, done: &Done) -> Option<Order<'d>> {
        let slot = match (self, done) {
            (Order::Mount, _) => 0,
            (Order::Find(slot), Done::Found(Some(record))) => {
                return Some(Order::CloseOrDiscard(*slot, *record));
            }
            (Order::Find(slot) | Order::CloseOrDiscard(slot, _), _) => slot + 1,
            _ => return None,
        };
        (usize::from(slot) < RESERVED_MAX).then_some(Order::Find(slot))
    }
}

/// Result of an operation.
pub(crate) enum Done {
    /// The recording whose interrupted removal was completed, if there was one.
    Mounted(Option<FileId>),
    /// The interrupted file, if there is one: its record, if any of it is durable.
    Found(Option<Option<FileRecord>>),
    /// The recording that was closed, if any of it was durable.
    Recovered(Option<FileRecord>),
    Reserved(u8, Reserved),
    Named(FileId),
    Closed(u8),
    Discarded(u8),
    /// The recording that was removed, if there was one.
    Removed(Option<Removed>),
    /// The change that another task requested.
    Changed,
}

/// Carries out an operation through `steps`.
#[expect(
    clippy::await_holding_refcell_ref,
    reason = "nothing else borrows a change that is under way"
)]
pub(crate) async fn execute<'s, V: Volume<Port<'s>>>(
    volume: &mut V,
    steps: &'s Steps,
    order: &mut Order<'_>,
) -> Result<Done, V::Error> {
    let card = &mut Port(steps);
    match order {
        Order::Mount => {
            volume.mount(card).await?;
            Ok(Done::Mounted(volume.take_removed()))
        }
        Order::Find(slot) => {
            let Some(file) = volume.reserved(*slot) else {
                return Ok(Done::Found(None));
            };
            let Ok(found) = scan(Port(steps), &file).await;
            Ok(Done::Found(Some(found.record(&file))))
        }
        Order::CloseOrDiscard(slot, record) => {
            close_or_discard(volume, card, *slot, record.as_mut()).await?;
            Ok(Done::Recovered(*record))
        }
        Order::Reserve(track, request) => {
            let reserved = volume.reserve(card, *request).await?;
            Ok(Done::Reserved(*track, reserved))
        }
        Order::Name(slot, id, session) => {
            volume.name(card, *slot, *id, session.as_str()).await?;
            Ok(Done::Named(*id))
        }
        // Files in which nothing became durable are discarded, not closed.
        Order::Close(track, slot, record) => {
            volume.close(card, *slot, record).await?;
            Ok(Done::Closed(*track))
        }
        Order::Discard(track, slot) => {
            volume.discard(card, *slot).await?;
            Ok(Done::Discarded(*track))
        }
        Order::Remove => Ok(Done::Removed(volume.remove_oldest(card).await?)),
        Order::Change(desk) => {
            let mut task = desk.changes.task();
            volume.change(card, &mut task).await?;
            Ok(Done::Changed)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each slot is looked at once, and the file in it is closed.
    #[test]
    fn a_mount_goes_through_all_slots() {
        for has_files in [true, false] {
            let (mut order, mut visited) = (Order::Mount, std::vec![]);
            loop {
                let done = match &order {
                    Order::Mount => Done::Mounted(None),
                    Order::Find(slot) => {
                        visited.push((*slot, false));
                        Done::Found(has_files.then_some(None))
                    }
                    Order::CloseOrDiscard(slot, _) => {
                        visited.push((*slot, true));
                        Done::Recovered(None)
                    }
                    _ => unreachable!("a mount consists of these"),
                };
                match order.next(&done) {
                    Some(next) => order = next,
                    None => break,
                }
            }
            let slots = 0..RESERVED_MAX as u8;
            let expected = slots.flat_map(|slot| {
                let closes = has_files.then_some((slot, true));
                core::iter::once((slot, false)).chain(closes)
            });
            assert!(visited.into_iter().eq(expected));
        }
        assert!(Order::Remove.next(&Done::Removed(None)).is_none());
    }
}
