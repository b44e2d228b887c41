//! Orders and results of jobs, and the beginning and end of a recording.

use super::{Shell, report};
use crate::Clock;
use crate::event::Event;
use crate::guest::{FileError, FileSystem};
use crate::jobs::{Done, Order};
use crate::plan::{self, Action, Job, Outcome, Room};
use crate::stream::StreamSummary;
use crate::track::NameState;
use crate::volume::{FileId, FileRecord, Removed};
use cardiograph_card::{BLOCK_BYTES, BlockDevice};
use embedded_hal_async::delay::DelayNs;

impl<'a, M: BlockDevice, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Shell<'a, M, C, D, E, N>
{
    /// Collects the inputs of a job; `None` if its file is gone.
    pub(crate) fn order(&mut self, job: Job) -> Option<Order<'a>> {
        match job {
            Job::Mount => Some(Order::Mount),
            Job::Remove => Some(Order::Remove),
            Job::Change => {
                let desk = self.reads?;
                desk.changes.begin();
                if desk.changes.frees_blocks() {
                    desk.note_change();
                }
                Some(Order::Change(desk))
            }
            Job::Reserve(at) => {
                let request = self.request(at);
                Some(Order::Reserve(at, request))
            }
            Job::Name(at) => {
                let session = self.session_name(at);
                let file = self.tracks[usize::from(at)].file.as_mut()?;
                file.name = NameState::Given;
                let (slot, number) = (file.slot, file.number);
                Some(Order::Name(slot, self.id(at, number), session))
            }
            Job::Close(at) => {
                let (slot, record) = self.closing(at)?;
                Some(Order::Close(at, slot, record))
            }
            Job::Discard(at) => {
                let slot = self.tracks[usize::from(at)].ahead.first()?;
                Some(Order::Discard(at, *slot))
            }
        }
    }

    /// Evaluates the result of a job.
    pub(crate) fn take_done(&mut self, done: Done) {
        match done {
            Done::Mounted(removed) => {
                (self.removed, self.halvings) = (0, 0);
                if let Some(id) = removed {
                    self.report_removed(id);
                }
            }
            Done::Removed(Some(Removed { id, blocks })) => {
                self.note_removed(blocks);
                self.report_removed(id);
            }
            Done::Recovered(Some(record)) => {
                report(&mut self.events, self.reads, Event::Recovered { record })
            }
            Done::Found(_) | Done::Recovered(None) | Done::Removed(None) => (),
            Done::Changed => self.end_change(Ok(())),
            Done::Named(id) => self.publish_name(id),
            Done::Reserved(at, reserved) => {
                self.removed = 0;
                if reserved.extent.blocks < self.request(at).blocks {
                    report(
                        &mut self.events,
                        self.reads,
                        Event::Short {
                            track: at,
                            bytes_max: u64::from(reserved.extent.blocks) * BLOCK_BYTES as u64,
                        },
                    );
                }
                let track = &mut self.tracks[usize::from(at)];
                let is_noted = track.ahead.push(reserved.slot).is_ok();
                self.files.put(&reserved);
                debug_assert!(is_noted);
            }
            Done::Closed(at) => {
                let Some((slot, record)) = self.closing(at) else {
                    return;
                };
                self.files.free(slot);
                self.unpublish(slot);
                for stream in self.streams.iter_mut().filter(|stream| stream.track == at) {
                    stream.summary.bytes += record.bytes;
                    stream.summary.files = stream.summary.files.saturating_add(1);
                }
                report(
                    &mut self.events,
                    self.reads,
                    Event::Closed { track: at, record },
                );
            }
            Done::Discarded(at) => {
                let ahead = &mut self.tracks[usize::from(at)].ahead;
                if !ahead.is_empty() {
                    self.files.free(ahead.remove(0));
                }
            }
        }
    }

    /// Ends the change that another task requested.
    pub(crate) fn end_change(&self, result: Result<(), FileError>) {
        if let Some(reads) = self.reads {
            reads.end_change(result);
        }
    }

    /// Returns the slot and the record of the complete file of a track that is closed next.
    fn closing(&self, at: u8) -> Option<(u8, FileRecord)> {
        self.files.closing(at, |number| self.id(at, number))
    }

    /// Handles a job that found no room.
    pub(crate) fn take_no_room(&mut self) {
        if let Some(Job::Close(at)) = self.state.job
            && let Some((slot, record)) = self.closing(at)
        {
            self.files.free(slot);
            self.unpublish(slot);
            let id = record.id;
            report(
                &mut self.events,
                self.reads,
                Event::NotClosed { track: at, id },
            );
        }
    }

    /// Ends the running job.
    pub(crate) fn end_job(&mut self, outcome: Outcome) {
        let now_us = self.now_us();
        self.now = self.conditions(now_us);
        self.apply(Action::Step, outcome);
    }

    /// Notes that the card is mounted, with its next number for each prefix and extension.
    pub(crate) fn take_mounted(
        &mut self,
        system: Option<FileSystem>,
        next_number: impl Fn([u8; 3], [u8; 3]) -> u32,
    ) {
        for at in 0..self.state.track_count {
            let FileId {
                prefix, extension, ..
            } = self.id(at, 0);
            self.tracks[usize::from(at)].next_number = next_number(prefix, extension);
        }
        if let Some(reads) = self.reads {
            reads.set_mounted(system);
        }
        if self.is_started {
            report(&mut self.events, self.reads, Event::CardBack);
        }
    }

    /// Returns true while the volume is being mounted.
    pub(crate) fn is_mounting(&self) -> bool {
        self.state.job == Some(Job::Mount)
    }

    /// Returns true if a failure of the card does not end the run: sampling has begun, or other tasks are served.
    pub(crate) fn may_fail(&self) -> bool {
        self.is_started || self.is_serving
    }

    /// Returns true if a track has no file and none is prepared.
    pub(crate) fn has_no_file(&self) -> bool {
        let tracks = &self.state.tracks[..usize::from(self.state.track_count)];
        tracks.iter().any(plan::Track::is_starved)
    }

    /// Reports, once, each track that has no room for its first file.
    pub(crate) fn report_full_at_start(&mut self) {
        for track in 0..self.state.track_count {
            let state = &self.state.tracks[usize::from(track)];
            if state.is_starved() && !state.is_full {
                self.report_full(track);
                self.apply(Action::ReportFull(track), Outcome::Done);
            }
        }
    }

    fn report_removed(&mut self, id: FileId) {
        if let Some(reads) = self.reads {
            reads.note_change();
        }
        report(&mut self.events, self.reads, Event::Removed { id });
    }

    /// Reports that a track has no room.
    pub(super) fn report_full(&mut self, track: u8) {
        report(&mut self.events, self.reads, Event::Full { track });
    }

    /// Allows sampling to begin once all files are open and as many as possible are prepared: later,
    /// preparing files may have to wait.
    pub(crate) fn report_ready(&mut self) {
        if self.is_started || self.state.job.is_some() {
            return;
        }
        let now = self.conditions(self.now_us());
        let mut tracks = (0..self.state.track_count).map(usize::from);
        let is_ready = tracks.all(|at| {
            let is_prepared = !now.tracks[at].may_reserve || self.state.room != Room::Unknown;
            self.state.tracks[at].file.is_some() && is_prepared
        });
        if is_ready {
            self.is_started = true;
            let now_us = self.now_us();
            for stream in &mut self.streams {
                stream.durable_before_us = now_us;
            }
            self.control.set_ready();
        }
    }

    /// Answers a flush that was requested too late to be planned: all files are closed, or nothing was
    /// recorded.
    pub(crate) fn answer_last_flush(&self, is_recorded: bool) {
        let asked = self.control.flush_requested();
        if self.control.is_flush_new(asked) {
            let is_durable = is_recorded && !self.has_given_up;
            self.control.answer(asked, is_durable);
        }
    }

    /// Returns the final statistics.
    pub(crate) fn summaries(&self) -> [StreamSummary; N] {
        self.streams.each_ref().map(|stream| StreamSummary {
            ring_peak_bytes: stream.consumer.peak_bytes(),
            ..stream.summary
        })
    }
}

#[cfg(test)]
mod tests;
