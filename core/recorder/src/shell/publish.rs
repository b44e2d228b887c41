//! Publishes recordings in progress and their figures to readers.

use super::Shell;
use crate::Clock;
use crate::event::Event;
use crate::guest::Unfinished;
use crate::plan::{Block, Phase};
use crate::stream::{Stream, Window};
use crate::track::{NameState, Totals};
use crate::volume::{Extent, FileId, ShortText};
use crate::watched::{FIGURES_US, Figures};
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

    /// Notes the first sample of every stream of a track in a new file.
    pub(super) fn publish_first(&self, at: u8, id: FileId) {
        let Some(reads) = self.reads else {
            return;
        };
        for (number, stream) in (0..).zip(&self.streams) {
            if stream.track == at {
                let first = stream.encoder.account().first_in_file();
                reads.watched.borrow_mut().note_file(number, first, id);
            }
        }
    }

    /// Publishes the figures of the recording, if an update is due.
    pub(super) fn publish_figures(&self, now_us: u64) {
        let Some(reads) = self.reads else {
            return;
        };
        let is_recording = self.is_started && self.state.phase != Phase::Ended;
        let mut watched = reads.watched.borrow_mut();
        if now_us < watched.due_us && watched.figures.is_recording == is_recording {
            return;
        }
        watched.due_us = now_us.saturating_add(FIGURES_US);
        watched.update(Figures {
            is_recording,
            ..self.figures(now_us)
        });
    }

    /// Returns the figures of the rings and streams.
    fn figures(&self, now_us: u64) -> Figures {
        let level = |stream: &&Stream| {
            let level_bytes = stream.consumer.level_bytes() as u64;
            level_bytes * 1000 / stream.consumer.capacity_bytes() as u64
        };
        let mut figures = Figures {
            streams: N as u8,
            window_us: u64::MAX,
            ..Figures::default()
        };
        if let Some(fullest) = self.streams.iter().max_by_key(level) {
            figures.ring_bytes = fullest.consumer.level_bytes() as u32;
            figures.ring_capacity_bytes = fullest.consumer.capacity_bytes() as u32;
            figures.ring_bytes_max = fullest.consumer.peak_bytes() as u32;
        }
        for stream in &self.streams {
            let encoded = stream.encoder.account().encoded();
            let pending = stream.encoder.account().gap().map_or(0, |gap| gap.count);
            figures.samples += encoded.next + pending;
            figures.lost += encoded.lost + pending;
            figures.rate_bytes_per_s = figures
                .rate_bytes_per_s
                .saturating_add(stream.rate.bytes_in(1_000_000) as u32);
            figures.windows_exceeded += u64::from(stream.summary.window_breaches);
            let window_us = match stream.window() {
                Window::Us(us) => us,
                Window::Sample => 0,
            };
            figures.window_us = figures.window_us.min(window_us);
            if stream.has_unsaved() {
                let unsaved_us = now_us.saturating_sub(stream.durable_before_us);
                figures.unsaved_us = figures.unsaved_us.max(unsaved_us);
            }
        }
        figures
    }

    /// Notes that a slot no longer has a recording in progress.
    pub(super) fn unpublish(&self, slot: u8) {
        if let Some(reads) = self.reads {
            reads.publish(slot, None);
        }
    }
}

#[cfg(test)]
mod tests;
