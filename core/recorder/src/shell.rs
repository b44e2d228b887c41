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
    ENDING_ATTEMPTS, FULL_RETRY_US, HINT_BLOCKS, Limits, MARK_BLOCKS, OVERDUE_PART, OVERDUE_US_MIN,
    PATIENCE_US, RETRY_US, SLEEP_US_MAX, SLEEP_US_MIN, STEP_PART, URGENT_REMOVAL_US, URGENT_US,
};
use crate::plan::{
    self, Action, Block, Card, Checkpoint, Conditions, Job, Outcome, Phase, Request, Room, State,
    StreamConditions, TrackConditions,
};
use crate::reads::{ReadDesk, ReadFailed};
use crate::recorder::{Config, WhenFull};
use crate::ring::Next;
use crate::stream::{Stream, StreamSummary, Window};
use crate::track::{Files, NameState, OpenFile, Space, Totals, Track};
use crate::volume::{self, FileId, FileRecord, ShortText};
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
    pub(crate) config: Config,
    /// Outside the tests they are constant, and take no memory.
    #[cfg(test)]
    limits: Limits,
    pub(crate) state: State<N>,
    /// Conditions of the action that is decided on.
    now: Conditions<N>,
    pub(crate) streams: [Stream<'a>; N],
    pub(crate) tracks: [Track; N],
    pub(crate) files: Files,
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
        config: Config,
        #[cfg_attr(not(test), expect(unused_variables, reason = "constant"))] limits: Limits,
        streams: [Stream<'a>; N],
    ) -> Self {
        let count = streams.iter().map(|stream| stream.track + 1).max();
        let tracks = core::array::from_fn(|track| {
            let mut streams = streams.iter();
            let first = streams.position(|stream| usize::from(stream.track) == track);
            Track::new(first.unwrap_or(0) as u8)
        });
        Shell {
            medium: parts.medium,
            clock: parts.clock,
            delay: parts.delay,
            events: parts.events,
            control: parts.control,
            reads: parts.reads,
            config,
            #[cfg(test)]
            limits,
            state: State::new(count.unwrap_or(0)),
            now: Conditions::new(),
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

    pub(crate) fn limits(&self) -> Limits {
        #[cfg(test)]
        let limits = self.limits;
        #[cfg(not(test))]
        let limits = Limits::PRODUCT;
        limits
    }

    pub(crate) fn now_us(&self) -> u64 {
        self.clock.now_us()
    }

    /// Takes in what has happened, and returns what to do next.
    pub(crate) fn next(&mut self) -> Action {
        let now_us = self.now_us();
        self.fill(now_us);
        let mut now = self.conditions(now_us);
        self.hear(&mut now);
        plan::update(&mut self.state, &mut now);
        self.note_targets(&now, now_us);
        self.set_causes();
        self.control.set_flush_us_max(self.flush_us_max());
        self.now = now;
        let action = plan::next_action(&self.state, &self.now);
        #[cfg(test)]
        crate::replay::decided(self, &self.now, action);
        action
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
                self.tracks[usize::from(track)].position(&self.files, file, sharing, step, now_us)
            else {
                continue;
            };
            let stream = &mut self.streams[at];
            let source = &mut stream.consumer;
            if let (_, Some(gap)) = stream.encoder.fill(&position, source, limit) {
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
        let unfinished = self.of_track(track).map(Stream::unfinished_blocks);
        let index = file.index + unfinished.sum::<u32>();
        step <= 1 || index.is_multiple_of(step) || self.is_step_over(track, now_us)
    }

    fn is_step_over(&self, track: u8, now_us: u64) -> bool {
        let target_us = self.tracks[usize::from(track)].target_us;
        now_us >= target_us.saturating_add(self.step_us_max(track))
    }

    /// Longest time that a checkpoint waits for the end of a page.
    fn step_us_max(&self, track: u8) -> u64 {
        let windows = self.of_track(track).map(|stream| match stream.window() {
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
            may_remove: self.config.when_full == WhenFull::RemoveOldest,
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
            is_used_up: self.is_used_up(at, now_us),
            is_rotation_due: track.file.as_ref().is_some_and(is_old),
            is_short: self.us_left(at).is_some_and(|us| us < self.urgent_us()),
            needs_name: track.file.as_ref().is_some_and(is_name_wanted),
            may_reserve: self.limits().may_reserve(
                state.ahead,
                state.closing,
                self.state.track_count,
            ),
            next_blocks: self.next_file(at).map_or(0, |file| file.blocks),
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
        let position = track.position(&self.files, file, self.sharing(at), 0, now_us);
        position.is_some_and(|position| {
            self.of_track(at).any(|stream| {
                stream.is_waiting()
                    && stream.conditions().block == Block::Clean
                    && !position.may_begin(stream.encoder.blocks_to_begin())
            })
        })
    }

    /// The prepared file that a track takes next.
    fn next_file(&self, at: u8) -> Option<&Space> {
        let slot = self.tracks[usize::from(at)].ahead.first()?;
        self.files.space(*slot)
    }

    /// A file is urgent when the prepared ones last no longer than this.
    fn urgent_us(&self) -> u64 {
        match self.config.when_full {
            WhenFull::Wait => URGENT_US,
            WhenFull::RemoveOldest => URGENT_REMOVAL_US,
        }
    }

    /// How long there is room in files, in us; `None` if nothing comes.
    fn us_left(&self, at: u8) -> Option<u64> {
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

    /// A checkpoint that waits for long because of its cost is believed to cost less: the cost was of one
    /// time, and fades.
    fn put_off(&mut self, at: u8, now_us: u64) {
        if self.state.tracks[usize::from(at)].checkpoint == Checkpoint::None {
            return;
        }
        let windows = self.of_track(at).map(|stream| match stream.window() {
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
        let (Some(position), Some(space)) = (
            files.position(&self.files, file, sharing, step, now_us),
            files.file.and_then(|open| self.files.space(open.slot)),
        ) else {
            return Ok(());
        };
        let start = space.start + file.index;
        if self.state.card != Card::Writing(track) {
            self.end_write().await?;
            let hint = (file.blocks - file.index).min(HINT_BLOCKS);
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
        let track = &self.tracks[usize::from(at)];
        let Some(position) = track.position(&self.files, file, sharing, 0, now_us) else {
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
            self.tracks[usize::from(at)].set_durable();
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
        for (number, stream) in (0..).zip(&mut self.streams) {
            if stream.track != at {
                continue;
            }
            let session = match stream.consumer.next() {
                Next::Session => stream.consumer.take_session(),
                _ => None,
            };
            if session.is_some() {
                self.tracks[usize::from(at)].session_of = number;
            }
            stream.encoder.start(session);
        }
        let blocks = self.next_file(at).map_or(0, |file| file.blocks);
        if let Some(number) = self.tracks[usize::from(at)]
            .begin(now_us)
            .map(|file| file.number)
        {
            let id = self.id(at, number);
            (self.events)(Event::Opened {
                track: at,
                id,
                bytes_max: u64::from(blocks) * BLOCK_BYTES as u64,
            });
        }
    }

    /// Stream that a track was made for.
    fn first_of_track(&self, at: u8) -> &Stream<'a> {
        self.of_track(at).next().unwrap_or(&self.streams[0])
    }

    /// Name of the file of a track with this number.
    fn id(&self, at: u8, number: u32) -> FileId {
        let encoder = &self.first_of_track(at).encoder;
        FileId {
            prefix: encoder.prefix(),
            extension: encoder.format().extension(),
            number,
        }
    }

    /// Name of the session that the files of a track belong to.
    fn session_name(&self, at: u8) -> ShortText {
        let stream = &self.streams[usize::from(self.tracks[usize::from(at)].session_of)];
        let session = stream.encoder.session();
        let name = session.and_then(|session| ShortText::new(session.name().as_str()));
        name.unwrap_or(ShortText::EMPTY)
    }

    /// What is asked of the volume for a file of a track.
    fn request(&self, at: u8) -> volume::Request {
        let encoder = &self.first_of_track(at).encoder;
        volume::Request {
            prefix: encoder.prefix(),
            extension: encoder.format().extension(),
            blocks: self.config.file_bytes / BLOCK_BYTES as u32,
            blocks_min: self.limits().file_blocks_min,
            note: encoder.format().note(),
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
        let totals = self.totals_of(at, &file, blocks);
        let session = self.session_name(at);
        let track = &mut self.tracks[usize::from(at)];
        track.file = None;
        match blocks {
            0 => {
                let is_noted = track.ahead.insert(0, file.slot).is_ok();
                debug_assert!(is_noted);
            }
            _ => self.files.put_aside(file.slot, at, session, totals),
        }
        Ok(())
    }

    fn totals_of(&self, at: u8, file: &OpenFile, blocks: u32) -> Totals {
        let track = &self.tracks[usize::from(at)];
        let now_us = self.now_us();
        let state = plan::File {
            blocks,
            index: blocks,
            durable: blocks,
        };
        let mut sum = Totals {
            number: file.number,
            bytes: 0,
            first_us: file.opened_us,
            last_us: now_us,
            samples: 0,
            gaps: 0,
            lost: 0,
        };
        let short = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        let position = track.position(&self.files, state, self.sharing(at), 0, now_us);
        for stream in self.of_track(at) {
            let totals = stream.encoder.account().in_file();
            sum.samples = sum.samples.saturating_add(short(totals.samples));
            sum.gaps = sum.gaps.saturating_add(short(totals.gaps));
            sum.lost = sum.lost.saturating_add(totals.lost);
            if let Some(position) = &position {
                let bytes = stream.encoder.content_bytes(position);
                sum.bytes = sum.bytes.max(short(bytes));
            }
        }
        sum
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
    pub(crate) fn apply(&mut self, action: Action, outcome: Outcome) {
        #[cfg(test)]
        crate::replay::applied(action, self.state.job, outcome);
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
        plan::apply(&mut self.state, &self.now, action, outcome);
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

    /// Takes in the result of a job.
    pub(crate) fn take_done(&mut self, done: Done) {
        match done {
            Done::Mounted(Some(id)) | Done::Removed(Some(id)) => {
                (self.events)(Event::Removed { id });
            }
            Done::Settled(Some(record)) => (self.events)(Event::Recovered { record }),
            Done::Mounted(None) | Done::Found(_) | Done::Settled(None) => (),
            Done::Removed(None) | Done::Named => (),
            Done::Reserved(at, reserved) => {
                if reserved.extent.blocks < self.request(at).blocks {
                    (self.events)(Event::Short {
                        track: at,
                        bytes_max: u64::from(reserved.extent.blocks) * BLOCK_BYTES as u64,
                    });
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
                for stream in self.streams.iter_mut().filter(|stream| stream.track == at) {
                    stream.summary.bytes += record.bytes;
                    stream.summary.files = stream.summary.files.saturating_add(1);
                }
                (self.events)(Event::Closed { track: at, record });
            }
            Done::Discarded(at) => {
                let ahead = &mut self.tracks[usize::from(at)].ahead;
                if !ahead.is_empty() {
                    self.files.free(ahead.remove(0));
                }
            }
        }
    }

    /// Returns the complete file of a track that is closed next: its slot and record.
    fn closing(&self, at: u8) -> Option<(u8, FileRecord)> {
        self.files.closing(at, |number| self.id(at, number))
    }

    /// Takes in that the running job found no room.
    pub(crate) fn take_no_room(&mut self) {
        if let Some(Job::Close(at)) = self.state.job
            && let Some((slot, record)) = self.closing(at)
        {
            self.files.free(slot);
            let id = record.id;
            (self.events)(Event::NotClosed { track: at, id });
        }
    }

    /// Ends the running job.
    pub(crate) fn end_job(&mut self, outcome: Outcome) {
        let now_us = self.now_us();
        self.now = self.conditions(now_us);
        self.apply(Action::Step, outcome);
    }

    /// Takes in that the card is mounted, and what its next numbers are, by prefix and extension.
    pub(crate) fn take_mounted(&mut self, next_number: impl Fn([u8; 3], [u8; 3]) -> u32) {
        for at in 0..self.state.track_count {
            let FileId {
                prefix, extension, ..
            } = self.id(at, 0);
            self.tracks[usize::from(at)].next_number = next_number(prefix, extension);
        }
        if self.is_started {
            (self.events)(Event::CardBack);
        }
    }

    /// Returns true while the volume is being mounted.
    pub(crate) fn is_mounting(&self) -> bool {
        self.state.job == Some(Job::Mount)
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

    /// Answers a flush that came too late to be planned: all files are closed, or nothing was recorded.
    pub(crate) fn answer_last_flush(&self, is_recorded: bool) {
        let asked = self.control.flush_asked();
        if self.control.is_flush_new(asked) {
            let is_durable = is_recorded && !self.has_given_up;
            self.control.answer(asked, is_durable);
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
