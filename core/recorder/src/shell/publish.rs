//! Publishes recordings in progress to readers.

use super::Shell;
use crate::Clock;
use crate::event::Event;
use crate::guest::Unfinished;
use crate::plan::Block;
use crate::track::{NameState, Totals};
use crate::volume::{Extent, FileId, ShortText};
use cardiograph_card::BlockDevice;
use embedded_hal_async::delay::DelayNs;

impl<'a, M: BlockDevice, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Shell<'a, M, C, D, E, N>
{
    /// Publishes what is durable in the file of a track, if all of its blocks have their marks.
    pub(super) fn publish_durable(&self, at: u8) {
        let Some(file) = self.state.tracks[usize::from(at)].file else {
            return;
        };
        let is_marked = self
            .of_track(at)
            .all(|stream| stream.conditions().block == Block::Clean);
        if let Some(open) = &self.tracks[usize::from(at)].file
            && is_marked
            && file.index > 0
        {
            let totals = self.totals_of(at, open, file.index);
            let is_named = open.name == NameState::Given;
            self.publish(at, open.slot, &totals, self.session_name(at), is_named);
        }
    }

    /// Publishes a recording in progress in a slot.
    pub(super) fn publish(
        &self,
        at: u8,
        slot: u8,
        totals: &Totals,
        session: ShortText,
        is_named: bool,
    ) {
        let (Some(reads), Some(space)) = (self.reads, self.files.space(slot)) else {
            return;
        };
        let file = Unfinished {
            id: self.id(at, totals.number),
            session,
            extent: Extent {
                start: space.start,
                blocks: space.blocks,
            },
            epoch: space.epoch,
            is_named,
            bytes: totals.bytes,
            first_us: totals.first_us,
            last_us: totals.last_us,
            samples: totals.samples.into(),
            gaps: totals.gaps,
            lost: totals.lost,
        };
        reads.publish(slot, Some(file));
    }

    /// Notes that the recording in a slot has its name in the directory.
    pub(super) fn publish_name(&self, id: FileId) {
        if let Some(reads) = self.reads
            && let Some((slot, file)) = reads.next_unfinished(0, |file| file.id == id)
        {
            let file = Unfinished {
                is_named: true,
                ..file
            };
            reads.publish(slot, Some(file));
        }
    }

    /// Notes that a slot has no recording in progress any more.
    pub(super) fn unpublish(&self, slot: u8) {
        if let Some(reads) = self.reads {
            reads.publish(slot, None);
        }
    }
}
