//! Conditions of a decision: positions of checkpoints, turns, deadlines, and the time that the rings absorb.

use super::Shell;
use crate::Clock;
use crate::event::Event;
use crate::limits::{
    BUSY_US_MAX, LATE_PART, LATE_PART_OF_RING, LATE_WINDOWS, MARK_BLOCKS, NAME_US_MAX,
    OVERDUE_PART, OVERDUE_US_MIN, PAGE_PATIENCE_US, PAGE_WAIT_US, PATIENCE_US, ROOM_PART,
    STALL_PART, STEP_PART, URGENT_REMOVAL_US, URGENT_REMOVAL_US_MAX, URGENT_US,
};
use crate::plan::{Block, Card, Checkpoint, Conditions, Job, StreamConditions, TrackConditions};
use crate::recorder::WhenFull;
use crate::stream::{Stream, Window};
use crate::track::{NameState, OpenFile, Space};
use cardiograph_card::{BLOCK_BYTES, BlockDevice};
use embedded_hal_async::delay::DelayNs;

impl<'a, M: BlockDevice, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Shell<'a, M, C, D, E, N>
{
    /// Returns the interval of the places where the wanted checkpoint of a track may end, in blocks; 0 for none.
    pub(super) fn checkpoint_step(&self, track: u8, now_us: u64) -> u32 {
        let state = &self.state.tracks[usize::from(track)];
        match state.checkpoint {
            Checkpoint::Wanted if !self.is_step_over(track, now_us) => self.step_blocks(track),
            _ => 0,
        }
    }

    /// Returns true if the block after the unfinished ones begins a page, or there is no time to wait for
    /// that.
    pub(super) fn is_page_end(&self, track: u8, now_us: u64) -> bool {
        let Some(file) = self.state.tracks[usize::from(track)].file else {
            return false;
        };
        let step = self.step_blocks(track);
        let unfinished = self.of_track(track).map(Stream::unfinished_blocks);
        let index = file.index + unfinished.sum::<u32>();
        step <= 1 || index.is_multiple_of(step) || self.is_step_over(track, now_us)
    }

    /// Returns true if the rings hold enough to write everything that the pending checkpoint of a track covers and
    /// reach the end of a page, or there is no time to wait for that.
    fn is_checkpoint_ready(&self, track: u8, now_us: u64) -> bool {
        let Some(file) = self.state.tracks[usize::from(track)].file else {
            return true;
        };
        let step = self.step_blocks(track);
        let sum = |bytes: fn(&Stream) -> usize| self.of_track(track).map(bytes).sum::<usize>();
        // One block more, because the covered bytes may extend into the next page.
        let payload_bytes = self.first_of_track(track).encoder.format().payload_bytes();
        let covered = 1 + sum(|stream| stream.checkpoint_bytes()) / payload_bytes;
        let unfinished = self.of_track(track).map(Stream::unfinished_blocks);
        let index = file.index + unfinished.sum::<u32>();
        let end = (index + covered as u32)
            .next_multiple_of(step)
            .min(file.blocks);
        let needed = end.saturating_sub(index) as usize * BLOCK_BYTES;
        step <= 1
            || self.is_step_over(track, now_us)
            || sum(|stream| stream.consumer.level_bytes()) >= needed
    }

    pub(super) fn is_step_over(&self, track: u8, now_us: u64) -> bool {
        let requested_us = self.tracks[usize::from(track)].requested_us;
        now_us >= requested_us.saturating_add(self.step_us_max(track))
    }

    /// Returns the longest time that a checkpoint waits for the end of a page.
    pub(super) fn step_us_max(&self, track: u8) -> u64 {
        let windows = self.of_track(track).map(|stream| match stream.window() {
            Window::Us(window_us) => window_us / STEP_PART,
            Window::Sample => 0,
        });
        windows.min().unwrap_or(0)
    }

    /// Returns the interval of positions for checkpoints, in blocks: the greatest power of two that fills while a
    /// checkpoint may wait, at most [`MARK_BLOCKS`].
    pub(super) fn step_blocks(&self, track: u8) -> u32 {
        let us = u32::try_from(self.step_us_max(track)).unwrap_or(u32::MAX);
        let bytes: u64 = self
            .of_track(track)
            .map(|stream| stream.rate.bytes_in(us))
            .sum();
        let blocks = (bytes / BLOCK_BYTES as u64).clamp(1, MARK_BLOCKS.into());
        1 << blocks.ilog2()
    }

    /// Returns the time to fill [`step_blocks`](Self::step_blocks) blocks.
    pub(super) fn step_us(&self, track: u8) -> u64 {
        match self.step_blocks(track) {
            1 => 0,
            blocks => {
                let us = self.of_track(track).filter_map(|stream| {
                    stream.rate.us_for(u64::from(blocks) * BLOCK_BYTES as u64)
                });
                us.min().unwrap_or(0)
            }
        }
    }

    /// Returns the lead time before the end of the window at which a checkpoint is requested: the sum of
    ///
    /// - twice the recent cost of a checkpoint and of writing the ring's contents;
    /// - the wait for the end of a page;
    /// - a stall, and writing what arrives meanwhile: the longest observed, and on a single track at least as long as the
    ///   specification allows or [`STALL_PART`] of the window, whichever is less. Several tracks make checkpoints no more
    ///   often than they must: each ends a write to every file within a page, which costs longer stalls later;
    /// - the cost of a read, while other tasks read.
    pub(super) fn lead_us(&self, stream: &Stream) -> u64 {
        let waiting = stream.consumer.level_bytes() as u64;
        let allowed_us = match stream.window() {
            Window::Us(window_us) if self.state.track_count == 1 => {
                (window_us / STALL_PART).min(BUSY_US_MAX.into()) as u32
            }
            _ => 0,
        };
        let stall_us = self.costs.longest_us.max(allowed_us);
        2 * (u64::from(self.costs.commit.us()) + self.costs.us_to_write(waiting))
            + if self.now.is_reading {
                self.step_us_max(stream.track)
            } else {
                self.step_us(stream.track)
            }
            + u64::from(stall_us)
            + self.costs.us_to_write(stream.rate.bytes_in(stall_us))
            + u64::from(if self.now.is_reading {
                self.costs.read.us()
            } else {
                0
            })
    }

    /// Returns the longest time to make everything durable that is pending now, in us. It includes one stall, as long
    /// as the specification allows or the longest since the card was acquired if that is longer, and the data that
    /// arrives during that stall.
    pub(super) fn flush_us_max(&self) -> u32 {
        let stall_us = self.costs.stall_us();
        let waiting = self.streams.iter().map(|stream| {
            let level = stream.consumer.level_bytes() + 2 * BLOCK_BYTES;
            level as u64 + stream.rate.bytes_in(stall_us)
        });
        let us = self.costs.us_to_write(waiting.sum())
            + u64::from(self.state.track_count) * u64::from(self.costs.commit.us())
            + u64::from(stall_us);
        u32::try_from(us).unwrap_or(u32::MAX)
    }

    /// Returns the streams that would benefit from more card time: streams of a full card lose samples regardless.
    pub(super) fn absorbing(&self) -> impl Iterator<Item = &Stream<'a>> {
        let tracks = &self.state.tracks;
        let streams = self.streams.iter();
        streams.filter(|stream| !tracks[usize::from(stream.track)].is_hopeless())
    }

    /// Returns true if all rings absorb `us` without the card, followed by the longest stall; `part` is that of
    /// [`Costs::absorbs`](crate::admission::Costs::absorbs).
    pub(super) fn absorbs(&self, us: u32, part: u64) -> bool {
        self.absorbing().all(|stream| {
            self.costs.absorbs(
                stream.rate,
                stream.consumer.level_bytes(),
                stream.consumer.capacity_bytes(),
                us,
                part,
            )
        })
    }

    /// Returns true if all rings absorb a checkpoint. One that is about to be late may begin with fuller rings: otherwise,
    /// several streams whose rings are shorter than the longest stall would put it off for many windows. After
    /// [`LATE_WINDOWS`] it begins in any case: at rates above the card's, the rings are never emptier.
    pub(super) fn absorbs_commit(&self, now_us: u64) -> bool {
        let is_late = self.is_any_older(now_us, |window_us| window_us - window_us / LATE_PART);
        let part = match is_late {
            true => LATE_PART_OF_RING,
            false => ROOM_PART,
        };
        self.absorbs(self.costs.commit.us(), part)
            || self.is_any_older(now_us, |window_us| window_us.saturating_mul(LATE_WINDOWS))
    }

    /// Returns true if data has been at risk for longer than an age that depends on its window.
    fn is_any_older(&self, now_us: u64, age_us: impl Fn(u64) -> u64) -> bool {
        self.absorbing().any(|stream| match stream.window() {
            Window::Us(window_us) => {
                let due_us = stream.durable_before_us.saturating_add(age_us(window_us));
                stream.has_unsaved() && now_us > due_us
            }
            Window::Sample => false,
        })
    }

    /// Returns true if all rings absorb a file-system step, and the step interrupts neither a turn nor a write within a page
    /// that is about to be complete: a card that has part of a page writes the rest of its erase block to the log, and
    /// merges both later. Another task's change does not wait for either, because an upload takes many steps.
    pub(super) fn absorbs_step(&self) -> bool {
        let is_between = match self.state.card {
            _ if self.is_changing() || self.is_any_name_due() => true,
            _ if self.has_turn_left() => false,
            Card::Writing(at) => self.is_at_page(at) || !self.is_page_near(at),
            _ => true,
        };
        is_between
            && self.absorbing().all(|stream| {
                self.costs.absorbs_step(
                    stream.rate,
                    stream.consumer.level_bytes(),
                    stream.consumer.capacity_bytes(),
                )
            })
    }

    /// Returns true if a turn is in progress or due. Steps at such moments would keep the rings at the level of a turn, and
    /// divide each turn into many short writes.
    fn has_turn_left(&self) -> bool {
        let mut streams = self.absorbing().map(Stream::conditions);
        !self.is_turn_over() || streams.any(|of| of.has_turn && of.block == Block::Full)
    }

    /// Returns true if an urgent step has waited long enough for the rings, and a little longer for the end of a page.
    fn is_patience_over(&self, now_us: u64) -> bool {
        let waited_us = now_us.saturating_sub(self.timers.step_us);
        let is_between = match self.state.card {
            Card::Writing(at) => self.is_at_page(at),
            _ => true,
        };
        waited_us >= PAGE_PATIENCE_US || waited_us >= PATIENCE_US && is_between
    }

    /// Returns true if a requested read may be carried out now. A read must not end a write within a page, or while the
    /// rings hold another page.
    pub(super) fn absorbs_read(&self) -> bool {
        let is_between = match self.state.card {
            Card::Writing(at) => self.is_at_page(at) && !self.has_page(at),
            _ => true,
        };
        is_between && self.absorbs_readers()
    }

    /// Returns true if every ring absorbs one more read before the next write begins. A ring does so if it also has
    /// room for a stall as long as the specification allows. Until its track holds a page, room for the longest stall
    /// so far is enough.
    pub(super) fn absorbs_readers(&self) -> bool {
        let read_us = self.costs.read.us();
        self.absorbing().all(|stream| {
            let (rate, level) = (stream.rate, stream.consumer.level_bytes());
            let capacity = stream.consumer.capacity_bytes();
            let worst_us = read_us.saturating_add(self.costs.stall_us());
            level as u64 + rate.bytes_in(worst_us) <= capacity as u64
                || !self.has_page(stream.track)
                    && self
                        .costs
                        .absorbs(rate, level, capacity, read_us, ROOM_PART)
        })
    }

    /// Returns true if the next block of a track begins a page of the card.
    fn is_at_page(&self, at: u8) -> bool {
        let file = self.state.tracks[usize::from(at)].file;
        let open = self.tracks[usize::from(at)].file.as_ref();
        let space = open.and_then(|open| self.files.space(open.slot));
        match (file, space) {
            (Some(file), Some(space)) => {
                file.index == file.blocks
                    || (space.start + file.index).is_multiple_of(self.limits().page_blocks)
            }
            _ => true,
        }
    }

    /// Returns true if another task's change is in progress, or comes next.
    fn is_changing(&self) -> bool {
        let is_pending = || self.reads.is_some_and(|reads| reads.changes.is_pending());
        match self.state.job {
            Some(job) => job == Job::Change,
            None => is_pending(),
        }
    }

    /// Returns true if the file of a track has needed its name for half of [`NAME_US_MAX`]. The time counts from the
    /// beginning of the file, which precedes its first mark.
    fn is_name_due(&self, at: u8) -> bool {
        let file = self.tracks[usize::from(at)].file.as_ref();
        file.is_some_and(|file| {
            let age_us = self.now_us().saturating_sub(file.opened_us);
            file.name == NameState::Wanted && age_us >= NAME_US_MAX / 2
        })
    }

    fn is_any_name_due(&self) -> bool {
        (0..self.state.track_count).any(|at| self.is_name_due(at))
    }

    /// Returns true if a track fills the rest of the page within [`PAGE_WAIT_US`].
    fn is_page_near(&self, at: u8) -> bool {
        let page_bytes = u64::from(self.limits().page_blocks) * BLOCK_BYTES as u64;
        let rates = self.of_track(at).map(|stream| stream.rate);
        rates.map(|rate| rate.bytes_in(PAGE_WAIT_US)).sum::<u64>() >= page_bytes
    }

    /// Returns true if the rings of a track hold the contents of another page, or one of them is half full.
    fn has_page(&self, at: u8) -> bool {
        let level_bytes = |stream: &Stream| stream.consumer.level_bytes();
        let is_half_full =
            |stream: &Stream| level_bytes(stream) >= stream.consumer.capacity_bytes() / 2;
        let page_bytes = self.limits().page_blocks as usize * BLOCK_BYTES;
        self.of_track(at).map(level_bytes).sum::<usize>() >= page_bytes
            || self.of_track(at).any(is_half_full)
    }

    pub(super) fn conditions(&mut self, now_us: u64) -> Conditions<N> {
        for track in 0..self.state.track_count {
            self.fade_postponed_cost(track, now_us);
        }
        let is_read_pending = self.reads.is_some_and(|reads| reads.poll_pending(now_us));
        let is_reading = self.reads.is_some_and(|reads| reads.is_active(now_us));
        let absorbs_read = is_read_pending && self.absorbs_read();
        if is_read_pending
            && !absorbs_read
            && let Some(reads) = self.reads
        {
            reads.postpone();
        }
        let is_turn_over = self.is_turn_over();
        Conditions {
            streams: self.streams.each_ref().map(|stream| StreamConditions {
                has_turn: is_turn_over && stream.conditions().has_turn,
                ..stream.conditions()
            }),
            tracks: core::array::from_fn(|at| self.track_conditions(at as u8, now_us)),
            absorbs_commit: self.absorbs_commit(now_us),
            absorbs_step: self.absorbs_step(),
            absorbs_read,
            is_patience_over: self.is_patience_over(now_us),
            is_reading: is_reading && self.absorbs_readers(),
            is_serving: self.is_serving,
            is_read_pending,
            is_change_pending: self.reads.is_some_and(|reads| reads.changes.is_pending()),
            is_retry_due: now_us >= self.timers.retry_us,
            may_retry: self.attempts > 0,
            may_remove: self.config.when_full == WhenFull::RemoveOldest,
        }
    }

    /// Returns true unless a turn is in progress in the open write. If tracks alternated more often than once per turn,
    /// the card's writes would repeatedly end within a page.
    pub(super) fn is_turn_over(&self) -> bool {
        let Card::Writing(at) = self.state.card else {
            return true;
        };
        let Some(file) = self.state.tracks[usize::from(at)].file else {
            return true;
        };
        let turn_bytes = self.of_track(at).map(Stream::turn_bytes).min();
        let turn_blocks = (turn_bytes.unwrap_or(0) / BLOCK_BYTES).max(1) as u32;
        let mut streams = self.of_track(at);
        file.index.is_multiple_of(turn_blocks)
            || !streams.any(|stream| stream.conditions().block == Block::Full)
    }

    pub(super) fn track_conditions(&self, at: u8, now_us: u64) -> TrackConditions {
        let track = &self.tracks[usize::from(at)];
        let state = &self.state.tracks[usize::from(at)];
        let is_due =
            |stream: &Stream| stream.has_unsaved() && now_us >= stream.due_us(self.lead_us(stream));
        let is_old = |file: &OpenFile| {
            let age_us = now_us.saturating_sub(file.opened_us);
            self.config
                .rotate_us
                .is_some_and(|rotate_us| age_us >= rotate_us)
        };
        let is_name_wanted = |file: &OpenFile| file.name == NameState::Wanted;
        TrackConditions {
            is_checkpoint_due: self.of_track(at).any(is_due),
            is_page_end: self.is_page_end(at, now_us),
            is_checkpoint_ready: self.is_checkpoint_ready(at, now_us),
            is_used_up: self.is_used_up(at, now_us),
            is_rotation_due: track.file.as_ref().is_some_and(is_old),
            is_short: self.are_files_short(at),
            needs_name: track.file.as_ref().is_some_and(is_name_wanted),
            is_name_due: self.is_name_due(at),
            may_reserve: self.limits().may_reserve(
                state.ahead,
                state.closing,
                self.state.track_count,
            ),
            next_blocks: self.next_file(at).map_or(0, |file| file.blocks),
            is_checkpoint_new: false,
        }
    }

    /// Returns true if a stream has data to write, but the rest of the file is reserved for the unfinished
    /// blocks of the other streams.
    pub(super) fn is_used_up(&self, at: u8, now_us: u64) -> bool {
        let Some(file) = self.state.tracks[usize::from(at)].file else {
            return false;
        };
        let track = &self.tracks[usize::from(at)];
        let position = track.position(&self.files, file, self.sharing(at), 0, now_us);
        position.is_some_and(|position| {
            self.of_track(at).any(|stream| {
                stream.is_waiting()
                    && stream.conditions().block == Block::Clean
                    && !position.may_begin(stream.encoder.blocks_to_begin())
            })
        })
    }

    /// Returns the prepared file that a track uses next.
    pub(super) fn next_file(&self, at: u8) -> Option<&Space> {
        let slot = self.tracks[usize::from(at)].ahead.first()?;
        self.files.space(*slot)
    }

    /// Returns true if the files of a track are nearly used up, and no prepared one has at least half of the requested
    /// length. On a card that is nearly full, prepared files may be short, and the search for the next one takes long.
    fn are_files_short(&self, at: u8) -> bool {
        let least_blocks = self.request(at).blocks / 2;
        let ahead = self.tracks[usize::from(at)].ahead.iter();
        let mut files = ahead.filter_map(|slot| self.files.space(*slot));
        files.all(|file| file.blocks < least_blocks)
            && self.us_left(at).is_some_and(|us| us < self.urgent_us())
    }

    /// Returns the time limit, in us: if the remaining space in the files lasts no longer, preparing a file is urgent.
    pub(super) fn urgent_us(&self) -> u64 {
        match self.config.when_full {
            WhenFull::Wait => URGENT_US,
            WhenFull::RemoveOldest if self.may_absorb_step() => URGENT_REMOVAL_US,
            WhenFull::RemoveOldest => URGENT_REMOVAL_US_MAX,
        }
    }

    /// Returns true if all rings absorb a file-system step when they are empty. Otherwise no step is made before it is
    /// urgent.
    fn may_absorb_step(&self) -> bool {
        self.absorbing().all(|stream| {
            let capacity = stream.consumer.capacity_bytes();
            self.costs.absorbs_step(stream.rate, 0, capacity)
        })
    }

    /// Returns the time until the files are full, in us; `None` if nothing arrives.
    pub(super) fn us_left(&self, at: u8) -> Option<u64> {
        let file = self.state.tracks[usize::from(at)].file;
        let left = file.map_or(0, |file| u64::from(file.blocks - file.index));
        let ahead = self.tracks[usize::from(at)].ahead.iter();
        let ahead = ahead.filter_map(|slot| self.files.space(*slot));
        let blocks = left + ahead.map(|file| u64::from(file.blocks)).sum::<u64>();
        let rate: u64 = self
            .of_track(at)
            .map(|stream| stream.rate.bytes_in(1_000_000))
            .sum();
        (blocks * BLOCK_BYTES as u64)
            .saturating_mul(1_000_000)
            .checked_div(rate)
    }

    /// Lowers the assumed cost of a checkpoint that this cost has postponed for a long time: it may stem from a
    /// single slow operation.
    pub(super) fn fade_postponed_cost(&mut self, at: u8, now_us: u64) {
        if self.state.tracks[usize::from(at)].checkpoint == Checkpoint::None {
            return;
        }
        let windows = self.of_track(at).map(|stream| match stream.window() {
            Window::Us(window_us) => (window_us / OVERDUE_PART).max(OVERDUE_US_MIN),
            Window::Sample => OVERDUE_US_MIN,
        });
        let wait_us = windows.min().unwrap_or(OVERDUE_US_MIN);
        let step_us_max = self.step_us_max(at);
        let track = &mut self.tracks[usize::from(at)];
        let age_us = now_us.saturating_sub(track.requested_us);
        let since_us = step_us_max.max(track.faded_after_us.into());
        if age_us >= since_us.saturating_add(wait_us) {
            self.costs.commit.fade();
            track.faded_after_us = u32::try_from(age_us).unwrap_or(u32::MAX);
        }
    }
}

#[cfg(test)]
mod tests;
