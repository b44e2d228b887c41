//! Carries out what the planner decides: the only place that touches the card.
//!
//! ```text
//!   observe: rings ──> encoders, rates, windows ──> Conditions ──> planner ──> Action
//!   carry out: Action ──> BlockDevice, encoders, events ──> Outcome ──> planner
//! ```

use crate::Clock;
use crate::admission::Costs;
use crate::control::Control;
use crate::event::Event;
use crate::gap::Cause;
use crate::jobs::{Done, Order};
use crate::limits::{
    ENDING_ATTEMPTS, FULL_RETRY_US, HINT_BLOCKS, MARK_BLOCKS, OVERDUE_PART, OVERDUE_US_MIN,
    PATIENCE_US, RETRY_US, SLEEP_US_MAX, SLEEP_US_MIN, STEP_PART,
};
use crate::plan::{
    self, Action, Block, Card, Checkpoint, Conditions, Job, Outcome, Phase, Request, Room, State,
    StreamConditions, TrackConditions,
};
use crate::reads::{ReadDesk, ReadFailed};
use crate::ring::Next;
use crate::stream::{Stream, StreamSummary, Window};
use crate::track::{Closing, Files, Track};
use crate::volume::{FileRecord, RESERVED_MAX, Reserved, ShortText};
use cardiograph_card::{BLOCK_BYTES, BlockDevice};
use embedded_hal_async::delay::DelayNs;

/// The card, the streams, and the planner's state.
pub(crate) struct Shell<'a, M, C, D, E, const N: usize> {
    pub(crate) medium: M,
    pub(crate) clock: C,
    pub(crate) delay: D,
    pub(crate) events: E,
    pub(crate) control: &'a Control,
    pub(crate) reads: Option<&'a ReadDesk<'a>>,
    pub(crate) settings: Settings,
    pub(crate) state: State<N>,
    pub(crate) streams: [Stream<'a>; N],
    pub(crate) tracks: [Track; N],
    files: Files,
    costs: Costs,
    timers: Timers,
    /// New files that were asked for, by their number.
    rotations: u32,
    /// Attempts that a card which failed has left once the recording ends.
    attempts: u32,
    /// Cause of losses while the card is away.
    away: Cause,
    /// Sampling may begin.
    is_started: bool,
    /// Something that was pushed could not be written at the end.
    has_given_up: bool,
}

/// Settings that conditions depend on.
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    /// A new file is begun after this time.
    pub(crate) rotate_us: Option<u64>,
    /// A file is urgent when the prepared ones last no longer than this.
    pub(crate) urgent_us: u64,
    /// The oldest recording may be removed to make room.
    pub(crate) may_remove: bool,
}

/// Moments that conditions depend on.
#[derive(Clone, Copy, Default)]
struct Timers {
    /// Time of the last step of a job.
    step_us: u64,
    /// Earliest time to try a card that failed, or a full one, again.
    retry_us: u64,
}

impl<'a, M: BlockDevice, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Shell<'a, M, C, D, E, N>
{
    pub(crate) fn new(
        parts: ShellParts<'a, M, C, D, E>,
        settings: Settings,
        streams: [Stream<'a>; N],
        tracks: [Track; N],
    ) -> Self {
        let count = streams.iter().map(|stream| stream.track + 1).max();
        Shell {
            medium: parts.medium,
            clock: parts.clock,
            delay: parts.delay,
            events: parts.events,
            control: parts.control,
            reads: parts.reads,
            settings,
            state: State::new(count.unwrap_or(0)),
            streams,
            tracks,
            files: Files::new(),
            costs: Costs::new(),
            timers: Timers::default(),
            rotations: parts.control.roll_asked(),
            attempts: ENDING_ATTEMPTS,
            away: Cause::CardFailed,
            is_started: false,
            has_given_up: false,
        }
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Takes in what has happened, and returns what to do next.
    pub(crate) fn next(&mut self) -> (Conditions<N>, Action) {
        let now_us = self.now_us();
        self.fill(now_us);
        let mut now = self.conditions(now_us);
        self.hear(&mut now);
        plan::update(&mut self.state, &mut now);
        self.note_targets(&now, now_us);
        self.set_causes();
        self.control.set_flush_us_max(self.flush_us_max());
        (now, plan::next_action(&self.state, &now))
    }

    /// Takes in what others have asked for.
    fn hear(&mut self, now: &mut Conditions<N>) {
        let asked = self.control.flush_asked();
        if self.control.is_flush_new(asked) && !self.is_flushing(asked) {
            plan::request(&mut self.state, now, Request::Flush(asked));
        }
        let rotations = self.control.roll_asked();
        if core::mem::replace(&mut self.rotations, rotations) != rotations {
            plan::request(&mut self.state, now, Request::Rotate);
        }
        if let Some(session) = self.control.take_session() {
            for stream in &self.streams {
                // A ring whose queue is full has a session that is as new.
                let _ = stream.consumer.request_session(&session);
            }
        }
        let is_closed = self
            .streams
            .iter()
            .all(|stream| stream.consumer.is_closed());
        if self.control.is_stopped() || is_closed {
            for stream in &self.streams {
                stream.consumer.stop();
            }
            plan::request(&mut self.state, now, Request::Stop);
        }
    }

    fn is_flushing(&self, number: u32) -> bool {
        matches!(self.state.flush,
            plan::Flush::Pending(other) | plan::Flush::Answer(other, _) if other == number)
    }

    /// Remembers what checkpoints cover from now on.
    fn note_targets(&mut self, now: &Conditions<N>, now_us: u64) {
        for (at, conditions) in now.tracks.iter().enumerate() {
            if !conditions.is_target_new {
                continue;
            }
            self.tracks[at].target_us = now_us;
            let streams = self.streams.iter_mut();
            streams
                .filter(|stream| usize::from(stream.track) == at)
                .for_each(Stream::set_target);
        }
    }

    /// Moves samples from the rings to blocks, as far as that needs no card.
    fn fill(&mut self, now_us: u64) {
        for at in 0..N {
            self.streams[at].observe(now_us);
            let track = self.streams[at].track;
            let state = &self.state.tracks[usize::from(track)];
            let Some(file) = state.open_file() else {
                continue;
            };
            let holds = self.is_holding(track, now_us);
            let limit = match state.checkpoint {
                _ if holds => continue,
                Checkpoint::Forced if self.state.phase != Phase::Ending => {
                    self.streams[at].target_bytes()
                }
                _ => usize::MAX,
            };
            let sharing = self.sharing(track);
            let step = self.mark_step(track, now_us);
            let Some(position) =
                self.tracks[usize::from(track)].position(file, sharing, step, now_us)
            else {
                continue;
            };
            let stream = &mut self.streams[at];
            stream.encoder.fill(&position, &mut stream.consumer, limit);
            while let Some(gap) = self.streams[at].encoder.take_report() {
                (self.events)(Event::Lost {
                    stream: at as u8,
                    gap,
                });
            }
        }
    }

    /// Returns true if no more samples go to the blocks of a track: its checkpoint is to be made here.
    fn is_holding(&self, track: u8, now_us: u64) -> bool {
        let state = &self.state.tracks[usize::from(track)];
        let is_place = match state.checkpoint {
            Checkpoint::None => false,
            Checkpoint::Wanted => self.is_page_end(track, now_us) && self.absorbs_commit(),
            Checkpoint::Forced => true,
        };
        is_place
            && self.of_track(track).all(|stream| {
                let conditions = stream.conditions();
                !conditions.is_behind || conditions.is_at_session
            })
    }

    fn of_track(&self, track: u8) -> impl Iterator<Item = &Stream<'a>> {
        let streams = self.streams.iter();
        streams.filter(move |stream| stream.track == track)
    }

    fn sharing(&self, track: u8) -> u8 {
        self.of_track(track).count() as u8
    }

    /// Blocks from mark to mark in text, on top of those that always have one.
    fn mark_step(&self, track: u8, now_us: u64) -> u32 {
        let state = &self.state.tracks[usize::from(track)];
        match state.checkpoint {
            Checkpoint::Wanted if !self.is_step_over(track, now_us) => self.step_blocks(track),
            _ => 0,
        }
    }

    /// Returns true if the next block but those that wait begins a page, or there is no time to wait for it.
    fn is_page_end(&self, track: u8, now_us: u64) -> bool {
        let Some(file) = self.state.tracks[usize::from(track)].file else {
            return false;
        };
        let step = self.step_blocks(track);
        let unfinished = self
            .of_track(track)
            .filter(|stream| stream.conditions().block != Block::Clean);
        let index = file.index + unfinished.count() as u32;
        step <= 1 || index.is_multiple_of(step) || self.is_step_over(track, now_us)
    }

    fn is_step_over(&self, track: u8, now_us: u64) -> bool {
        let target_us = self.tracks[usize::from(track)].target_us;
        now_us >= target_us.saturating_add(self.step_us_max(track))
    }

    /// Longest time that a checkpoint waits for the end of a page.
    fn step_us_max(&self, track: u8) -> u64 {
        let windows = self
            .of_track(track)
            .map(|stream| match stream.config.window {
                Window::Us(window_us) => window_us / STEP_PART,
                Window::Sample => 0,
            });
        windows.min().unwrap_or(0)
    }

    /// Blocks between places for checkpoints: a power of two that fills while a checkpoint may wait.
    fn step_blocks(&self, track: u8) -> u32 {
        let us = u32::try_from(self.step_us_max(track)).unwrap_or(u32::MAX);
        let bytes: u64 = self
            .of_track(track)
            .map(|stream| stream.rate.bytes_in(us))
            .sum();
        let blocks = (bytes / BLOCK_BYTES as u64).clamp(1, MARK_BLOCKS.into());
        1 << blocks.ilog2()
    }

    /// Time to fill so many blocks.
    fn step_us(&self, track: u8) -> u64 {
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

    /// How long before the end of its window a checkpoint becomes pending: twice what it took lately with
    /// what waits in the ring, until the end of a page, and through a stall.
    fn lead_us(&self, stream: &Stream) -> u64 {
        let waiting = stream.consumer.level_bytes() as u64;
        2 * (u64::from(self.costs.commit.us()) + self.costs.us_to_write(waiting))
            + self.step_us(stream.track)
            + u64::from(self.costs.longest_us)
    }

    /// The longest that it takes to make everything durable that waits now, in us: through one stall as
    /// long as the specification allows, or as the longest since the card was acquired. What arrives
    /// during such a stall is included.
    fn flush_us_max(&self) -> u32 {
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

    /// Streams that more time on the card would help: those of a full card lose samples whatever it does.
    fn absorbing(&self) -> impl Iterator<Item = &Stream<'a>> {
        let tracks = &self.state.tracks;
        let streams = self.streams.iter();
        streams.filter(|stream| !tracks[usize::from(stream.track)].is_hopeless())
    }

    /// Returns true if all rings absorb an absence of the card for so many us, followed by a stall as long
    /// as the longest.
    fn absorbs(&self, us: u32) -> bool {
        self.absorbing().all(|stream| {
            self.costs.absorbs(
                stream.rate,
                stream.consumer.level_bytes(),
                stream.consumer.capacity_bytes(),
                us,
            )
        })
    }

    fn absorbs_commit(&self) -> bool {
        self.absorbs(self.costs.commit.us())
    }

    fn absorbs_step(&self) -> bool {
        self.absorbing().all(|stream| {
            self.costs.absorbs_step(
                stream.rate,
                stream.consumer.level_bytes(),
                stream.consumer.capacity_bytes(),
            )
        })
    }

    /// A read stops the write wherever it is, which the card may have to collect garbage for, unless a
    /// checkpoint has just stopped it at a good place.
    fn absorbs_guest(&self) -> bool {
        let is_between = !matches!(self.state.card, Card::Writing(_));
        let absorbs_garbage = |stream: &Stream| {
            let (level, capacity) = (
                stream.consumer.level_bytes(),
                stream.consumer.capacity_bytes(),
            );
            self.costs.absorbs_garbage(stream.rate, level, capacity)
        };
        is_between && self.absorbs(self.costs.read.us()) || self.streams.iter().all(absorbs_garbage)
    }

    fn conditions(&mut self, now_us: u64) -> Conditions<N> {
        for track in 0..self.state.track_count {
            self.put_off(track, now_us);
        }
        let is_guest_waiting = self.reads.is_some_and(|reads| reads.asked().is_some());
        let absorbs_guest = is_guest_waiting && self.absorbs_guest();
        if is_guest_waiting
            && !absorbs_guest
            && let Some(reads) = self.reads
        {
            reads.put_off();
        }
        let is_turn_over = self.is_turn_over();
        Conditions {
            streams: self.streams.each_ref().map(|stream| StreamConditions {
                has_turn: is_turn_over && stream.conditions().has_turn,
                ..stream.conditions()
            }),
            tracks: core::array::from_fn(|at| self.track_conditions(at as u8, now_us)),
            absorbs_commit: self.absorbs_commit(),
            absorbs_step: self.absorbs_step(),
            absorbs_guest,
            is_patience_over: now_us >= self.timers.step_us.saturating_add(PATIENCE_US),
            is_guest_waiting,
            is_retry_due: now_us >= self.timers.retry_us,
            may_retry: self.attempts > 0,
            may_remove: self.settings.may_remove,
        }
    }

    /// Returns true unless the open write is inside a turn and goes on. Tracks that alternate more often make the
    /// card end its write within a page again and again.
    fn is_turn_over(&self) -> bool {
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

    fn track_conditions(&self, at: u8, now_us: u64) -> TrackConditions {
        let track = &self.tracks[usize::from(at)];
        let state = &self.state.tracks[usize::from(at)];
        let is_due =
            |stream: &Stream| stream.has_unsaved() && now_us >= stream.due_us(self.lead_us(stream));
        let is_old = |file: &crate::track::OpenFile| {
            let age_us = now_us.saturating_sub(file.opened_us);
            self.settings
                .rotate_us
                .is_some_and(|rotate_us| age_us >= rotate_us)
        };
        let unnamed = track.file.filter(|file| !file.is_named);
        let durable_us = unnamed.and_then(|file| file.durable_since_us);
        let count = usize::from(self.state.track_count).max(1);
        TrackConditions {
            is_checkpoint_due: self.of_track(at).any(is_due),
            is_page_end: self.is_page_end(at, now_us),
            is_used_up: self.is_used_up(at, now_us),
            is_rotation_due: track.file.as_ref().is_some_and(is_old),
            is_short: self
                .us_left(at)
                .is_some_and(|us| us < self.settings.urgent_us),
            needs_name: durable_us.is_some(),
            may_reserve: usize::from(state.ahead + state.closing) < RESERVED_MAX / count - 1,
            next_blocks: self.next_file(at).map_or(0, |file| file.extent.blocks),
            is_target_new: false,
        }
    }

    /// Returns true if a stream has something to write and the rest of the file belongs to the others'
    /// unfinished blocks.
    fn is_used_up(&self, at: u8, now_us: u64) -> bool {
        let Some(file) = self.state.tracks[usize::from(at)].file else {
            return false;
        };
        let track = &self.tracks[usize::from(at)];
        let position = track.position(file, self.sharing(at), 0, now_us);
        position.is_some_and(|position| !position.may_begin(1))
            && self
                .of_track(at)
                .any(|stream| stream.is_waiting() && stream.conditions().block == Block::Clean)
    }

    /// The prepared file that a track takes next.
    fn next_file(&self, at: u8) -> Option<&Reserved> {
        let slot = self.tracks[usize::from(at)].ahead.front()?;
        self.files.reserved(*slot)
    }

    /// How long there is room in files, in us; `None` if nothing comes.
    fn us_left(&self, at: u8) -> Option<u64> {
        let file = self.state.tracks[usize::from(at)].file;
        let left = file.map_or(0, |file| u64::from(file.blocks - file.index));
        let ahead = self.tracks[usize::from(at)].ahead.iter();
        let ahead = ahead.filter_map(|slot| self.files.reserved(*slot));
        let blocks = left + ahead.map(|file| u64::from(file.extent.blocks)).sum::<u64>();
        let rate: u64 = self
            .of_track(at)
            .map(|stream| stream.rate.bytes_in(1_000_000))
            .sum();
        (blocks * BLOCK_BYTES as u64)
            .saturating_mul(1_000_000)
            .checked_div(rate)
    }

    /// A checkpoint that waits for long because of its cost is believed to cost less: the cost was of one
    /// time, and fades.
    fn put_off(&mut self, at: u8, now_us: u64) {
        if self.state.tracks[usize::from(at)].checkpoint == Checkpoint::None {
            return;
        }
        let windows = self.of_track(at).map(|stream| match stream.config.window {
            Window::Us(window_us) => (window_us / OVERDUE_PART).max(OVERDUE_US_MIN),
            Window::Sample => OVERDUE_US_MIN,
        });
        let wait_us = windows.min().unwrap_or(OVERDUE_US_MIN);
        let since_us = self.tracks[usize::from(at)]
            .target_us
            .saturating_add(self.step_us_max(at))
            .max(self.tracks[usize::from(at)].put_off_us);
        if now_us >= since_us.saturating_add(wait_us) {
            self.costs.commit.fade();
            self.tracks[usize::from(at)].put_off_us = now_us;
        }
    }

    /// Tells the rings what samples that find no room are lost to from now on.
    pub(crate) fn set_causes(&self) {
        for stream in &self.streams {
            let track = &self.state.tracks[usize::from(stream.track)];
            stream.consumer.set_cause(match self.state.card {
                Card::Absent | Card::Unmounted => self.away,
                _ if track.is_full => Cause::CardFull,
                _ if track.is_starved() => Cause::FileNotReady,
                _ => Cause::Busy,
            });
        }
    }

    /// Carries out an action other than those of jobs.
    pub(crate) async fn carry_out(&mut self, action: Action) -> Result<(), M::Error> {
        match action {
            Action::Rest => self.rest().await,
            Action::Acquire => self.acquire().await?,
            Action::Write(stream) => self.write(usize::from(stream)).await?,
            Action::Mark(at) => self.mark(at),
            Action::Commit(at) => self.commit(at).await?,
            Action::Begin(at) => self.begin(at),
            Action::Leave(at) => self.leave(at).await?,
            Action::Guest => self.guest().await?,
            Action::AnswerFlush(number, is_durable) => self.control.answer(number, is_durable),
            Action::ReportFull(track) => (self.events)(Event::Full { track }),
            Action::GiveUp(at) => self.give_up(Some(at), Cause::CardFull),
            Action::Abandon => self.give_up(None, self.away),
            Action::Start(_) | Action::Step | Action::End => (),
        }
        Ok(())
    }

    async fn acquire(&mut self) -> Result<(), M::Error> {
        self.away = Cause::NoCard;
        self.medium.acquire().await?;
        self.away = Cause::CardFailed;
        self.costs = Costs::new();
        Ok(())
    }

    /// Ends the open write of another track, or any for `None`: its blocks are durable.
    pub(crate) async fn end_write(&mut self) -> Result<(), M::Error> {
        if let Card::Writing(_) = self.state.card {
            let begun_us = self.now_us();
            self.medium.end().await.map_err(|error| error.cause)?;
            let us = self.us_since(begun_us);
            self.costs.commit.saw(us);
            self.costs.saw_block(us, 0);
            self.state.card = Card::Idle;
        }
        Ok(())
    }

    fn us_since(&self, begun_us: u64) -> u32 {
        u32::try_from(self.now_us().saturating_sub(begun_us)).unwrap_or(u32::MAX)
    }

    async fn write(&mut self, at: usize) -> Result<(), M::Error> {
        let now_us = self.now_us();
        let track = self.streams[at].track;
        let Some(file) = self.state.tracks[usize::from(track)].file else {
            return Ok(());
        };
        let files = &self.tracks[usize::from(track)];
        let sharing = self.sharing(track);
        let step = self.mark_step(track, now_us);
        let (Some(position), Some(open)) =
            (files.position(file, sharing, step, now_us), files.file)
        else {
            return Ok(());
        };
        if self.state.card != Card::Writing(track) {
            self.end_write().await?;
            let hint = (file.blocks - file.index).min(HINT_BLOCKS);
            let start = open.reserved.extent.start + file.index;
            let begun = self.medium.begin(start, hint).await;
            begun.map_err(|error| error.cause)?;
        }
        let begun_us = self.now_us();
        let block = self.streams[at].encoder.block(&position);
        let pushed = self.medium.push(block).await;
        pushed.map_err(|error| error.cause)?;
        self.costs.saw_block(self.us_since(begun_us), 1);
        self.streams[at].encoder.advance(&position);
        Ok(())
    }

    fn mark(&mut self, at: u8) {
        let now_us = self.now_us();
        let Some(file) = self.state.tracks[usize::from(at)].file else {
            return;
        };
        let sharing = self.sharing(at);
        let Some(position) = self.tracks[usize::from(at)].position(file, sharing, 0, now_us) else {
            return;
        };
        for stream in self.streams.iter_mut().filter(|stream| stream.track == at) {
            stream.encoder.mark(&position, &mut stream.consumer);
        }
    }

    async fn commit(&mut self, at: u8) -> Result<(), M::Error> {
        if self.state.card == Card::Writing(at) {
            self.end_write().await?;
        }
        let now_us = self.now_us();
        let file = self.state.tracks[usize::from(at)].file;
        // A file without blocks has no mark: its number is still free.
        if file.is_some_and(|file| file.index > 0) {
            self.tracks[usize::from(at)].set_durable(now_us);
        }
        let is_marked = self
            .of_track(at)
            .all(|stream| stream.conditions().block == Block::Clean);
        let is_complete = is_marked
            && self.state.tracks[usize::from(at)].checkpoint != Checkpoint::None
            && self.of_track(at).all(|stream| !stream.is_behind());
        let target_us = is_complete.then_some(self.tracks[usize::from(at)].target_us);
        for (number, stream) in (0..).zip(&mut self.streams) {
            if stream.track != at {
                continue;
            }
            if let Some(covered) = stream.cover(now_us, target_us) {
                (self.events)(Event::Checkpoint {
                    stream: number,
                    samples: covered.samples,
                    pushed_before_us: covered.pushed_before_us,
                    is_late: covered.is_late,
                });
            }
        }
        Ok(())
    }

    /// Begins the next prepared file. Sessions whose boundaries have been reached begin with it.
    fn begin(&mut self, at: u8) {
        let now_us = self.now_us();
        for stream in self.streams.iter_mut().filter(|stream| stream.track == at) {
            let session = match stream.consumer.next() {
                Next::Session => stream.consumer.take_session(),
                _ => None,
            };
            if let Some(session) = &session {
                let name = ShortText::new(session.name().as_str());
                self.tracks[usize::from(at)].session = name.unwrap_or(ShortText::EMPTY);
            }
            stream.encoder.start(session, now_us);
        }
        let track = &mut self.tracks[usize::from(at)];
        if let Some(file) = track.begin(&self.files, now_us) {
            let bytes_max = u64::from(file.reserved.extent.blocks) * BLOCK_BYTES as u64;
            let id = track.id(track.next_number);
            (self.events)(Event::Opened {
                track: at,
                id,
                bytes_max,
            });
        }
    }

    /// Puts the file aside. One without blocks is used again.
    async fn leave(&mut self, at: u8) -> Result<(), M::Error> {
        if self.state.card == Card::Writing(at) {
            self.end_write().await?;
        }
        let Some(file) = self.tracks[usize::from(at)].file else {
            return Ok(());
        };
        let blocks = self.state.tracks[usize::from(at)]
            .file
            .map_or(0, |file| file.index);
        let record = self.record_of(at, &file, blocks);
        let track = &mut self.tracks[usize::from(at)];
        track.file = None;
        let slot = file.reserved.slot;
        match blocks {
            0 => {
                let is_noted = track.ahead.push_front(slot).is_ok();
                debug_assert!(is_noted);
            }
            _ => self.files.put_aside(Closing {
                track: at,
                slot,
                record,
            }),
        }
        Ok(())
    }

    fn record_of(&self, at: u8, file: &crate::track::OpenFile, blocks: u32) -> FileRecord {
        let track = &self.tracks[usize::from(at)];
        let now_us = self.now_us();
        let state = plan::File {
            blocks,
            index: blocks,
            durable: blocks,
        };
        let mut record = FileRecord {
            id: track.id(file.number),
            session: track.session,
            bytes: 0,
            first_us: file.opened_us,
            last_us: now_us,
            samples: 0,
            gaps: 0,
            lost: 0,
            is_recovered: false,
        };
        let position = track.position(state, self.sharing(at), 0, now_us);
        for stream in self.of_track(at) {
            let totals = stream.encoder.account().in_file();
            record.samples += totals.samples;
            record.gaps = record.gaps.saturating_add(totals.gaps as u32);
            record.lost += totals.lost;
            if let Some(position) = &position {
                record.bytes = record.bytes.max(stream.encoder.content_bytes(position));
            }
        }
        record
    }

    async fn guest(&mut self) -> Result<(), M::Error> {
        let Some((reads, request)) = self.reads.and_then(|reads| Some((reads, reads.asked()?)))
        else {
            return Ok(());
        };
        let Some(blocks) = reads.begin() else {
            return Ok(());
        };
        for stream in &self.streams {
            stream.consumer.set_cause(Cause::Read);
        }
        let begun_us = self.now_us();
        let ended = self.end_write().await;
        let wanted = &mut blocks[..request.count as usize];
        let result = match ended {
            Ok(()) => self.medium.read(request.start, wanted).await,
            Err(error) => {
                reads.end(blocks, Err(ReadFailed), self.us_since(begun_us));
                return Err(error);
            }
        };
        let us = self.us_since(begun_us);
        self.costs.read.saw(us);
        // A reader may ask for blocks that are not there: the next write shows if the card failed.
        let answer = result.map(|()| request.count).map_err(|_| ReadFailed);
        reads.end(blocks, answer, us);
        Ok(())
    }

    /// Counts what waits for a track, or for all, as lost.
    fn give_up(&mut self, track: Option<u8>, cause: Cause) {
        let now_us = self.now_us();
        for (number, stream) in (0..).zip(&mut self.streams) {
            if track.is_some_and(|track| track != stream.track) {
                continue;
            }
            if let Some(gap) = stream.lose_rest(now_us, cause) {
                self.has_given_up = true;
                (self.events)(Event::Lost {
                    stream: number,
                    gap,
                });
            }
        }
    }

    /// The card failed: what was not durable becomes gaps.
    pub(crate) fn lose_card(&mut self) {
        let was_mounted = matches!(self.state.card, Card::Idle | Card::Writing(_));
        if was_mounted {
            (self.events)(Event::CardLost);
        }
        let now_us = self.now_us();
        for (number, stream) in (0..).zip(&mut self.streams) {
            if let Some(gap) = stream.lose_card(now_us, self.away) {
                (self.events)(Event::Lost {
                    stream: number,
                    gap,
                });
            }
        }
        for track in &mut self.tracks {
            track.forget_files();
        }
        self.files.clear();
        // The first attempt follows at once: a card that lost contact for a moment is back.
        self.timers.retry_us = match was_mounted {
            true => now_us,
            false => now_us.saturating_add(RETRY_US),
        };
        if self.state.phase == Phase::Ending {
            self.attempts = self.attempts.saturating_sub(1);
        }
        if let Some(reads) = self.reads {
            reads.refuse();
        }
    }

    /// Takes an outcome into the planner's state.
    pub(crate) fn apply(&mut self, now: &Conditions<N>, action: Action, outcome: Outcome) {
        match (action, outcome) {
            (Action::Step, Outcome::NoRoom) => {
                self.timers.retry_us = self.now_us().saturating_add(FULL_RETRY_US);
            }
            (_, Outcome::Failed) => self.lose_card(),
            _ => (),
        }
        if let Action::Step | Action::Start(_) = action {
            self.timers.step_us = self.now_us();
        }
        plan::apply(&mut self.state, now, action, outcome);
    }

    /// Takes note of what a step of a job took.
    pub(crate) fn saw_step(&mut self, begun_us: u64) {
        let us = self.us_since(begun_us);
        self.costs.saw_step(us);
    }

    /// Sleeps until there is something to do.
    async fn rest(&mut self) {
        let now_us = self.now_us();
        let mut us = u64::from(SLEEP_US_MAX);
        for stream in &self.streams {
            if self.state.tracks[usize::from(stream.track)].is_starved() {
                continue;
            }
            let level = stream.consumer.level_bytes();
            let wanted = BLOCK_BYTES.saturating_sub(level) as u64;
            us = us.min(stream.rate.us_for(wanted).unwrap_or(us));
            if stream.has_unsaved() {
                let due_us = stream.due_us(self.lead_us(stream));
                us = us.min(due_us.saturating_sub(now_us));
            }
        }
        let us = (us as u32).clamp(SLEEP_US_MIN, SLEEP_US_MAX);
        self.delay.delay_us(us).await;
    }
}

/// Parts of a shell that come from outside.
pub(crate) struct ShellParts<'a, M, C, D, E> {
    pub(crate) medium: M,
    pub(crate) clock: C,
    pub(crate) delay: D,
    pub(crate) events: E,
    pub(crate) control: &'a Control,
    pub(crate) reads: Option<&'a ReadDesk<'a>>,
}

/// Jobs, and the beginning and end of a recording.
impl<'a, M: BlockDevice, C: Clock, D: DelayNs, E: FnMut(Event), const N: usize>
    Shell<'a, M, C, D, E, N>
{
    /// Collects what a job needs; `None` if its file is gone.
    pub(crate) fn order(&mut self, job: Job) -> Option<Order> {
        match job {
            Job::Mount => Some(Order::Mount),
            Job::Remove => Some(Order::Remove),
            Job::Reserve(at) => {
                let request = self.tracks[usize::from(at)].request;
                Some(Order::Reserve(at, request))
            }
            Job::Name(at) => {
                let track = &mut self.tracks[usize::from(at)];
                let session = track.session;
                let file = track.file.as_mut()?;
                file.is_named = true;
                let (slot, number) = (file.reserved.slot, file.number);
                Some(Order::Name(slot, track.id(number), session))
            }
            Job::Close(at) => {
                let closing = self.files.closing(at)?;
                Some(Order::Close(at, closing.slot, closing.record))
            }
            Job::Discard(at) => {
                let slot = self.tracks[usize::from(at)].ahead.front()?;
                Some(Order::Discard(at, *slot))
            }
        }
    }

    /// Takes in the result of a job.
    pub(crate) fn take_done(&mut self, done: Done) {
        match done {
            Done::Mounted if self.is_started => (self.events)(Event::CardBack),
            Done::Mounted | Done::Named => (),
            Done::Reserved(at, reserved) => {
                let track = &mut self.tracks[usize::from(at)];
                if reserved.extent.blocks < track.request.blocks {
                    (self.events)(Event::Short {
                        track: at,
                        bytes_max: u64::from(reserved.extent.blocks) * BLOCK_BYTES as u64,
                    });
                }
                let is_noted = track.ahead.push_back(reserved.slot).is_ok();
                self.files.put(reserved);
                debug_assert!(is_noted);
            }
            Done::Closed(at, record) => {
                self.files.take_closing(at);
                for stream in self.streams.iter_mut().filter(|stream| stream.track == at) {
                    stream.summary.bytes += record.bytes;
                    stream.summary.files = stream.summary.files.saturating_add(1);
                }
                (self.events)(Event::Closed { track: at, record });
            }
            Done::Discarded(at) => {
                self.tracks[usize::from(at)].ahead.pop_front();
            }
            Done::Removed(Some(id)) => (self.events)(Event::Removed { id }),
            Done::Removed(None) => (),
        }
    }

    /// Takes in that the running job found no room.
    pub(crate) fn take_no_room(&mut self) {
        if let Some(Job::Close(at)) = self.state.job
            && let Some(closing) = self.files.take_closing(at)
        {
            (self.events)(Event::NotClosed {
                track: at,
                id: closing.record.id,
            });
        }
    }

    /// Ends the running job.
    pub(crate) fn end_job(&mut self, outcome: Outcome) {
        let now_us = self.now_us();
        let now = self.conditions(now_us);
        self.apply(&now, Action::Step, outcome);
    }

    /// Takes the next numbers from a volume that was just mounted.
    pub(crate) fn set_numbers(&mut self, number: impl Fn(&Track) -> u32) {
        for track in &mut self.tracks {
            track.next_number = number(track);
        }
    }

    /// Returns true once sampling may begin.
    pub(crate) fn is_started(&self) -> bool {
        self.is_started
    }

    /// Returns true if a track has no file and none is prepared.
    pub(crate) fn has_no_file(&self) -> bool {
        let tracks = &self.state.tracks[..usize::from(self.state.track_count)];
        tracks.iter().any(plan::Track::is_starved)
    }

    /// Lets sampling begin once all files are open, and as many as may be are prepared: later that may have
    /// to wait.
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
                stream.covered_us = now_us;
            }
            self.control.set_ready();
        }
    }

    /// Answers a flush that came too late to be planned: all files are closed.
    pub(crate) fn answer_last_flush(&self) {
        let asked = self.control.flush_asked();
        if self.control.is_flush_new(asked) {
            self.control.answer(asked, !self.has_given_up);
        }
    }

    /// Final statistics.
    pub(crate) fn summaries(&self) -> [StreamSummary; N] {
        self.streams.each_ref().map(|stream| StreamSummary {
            ring_peak_bytes: stream.consumer.peak_bytes(),
            ..stream.summary
        })
    }
}
