//! Carries out the planner's decisions: the only module that accesses the card.
//!
//! ```text
//!   observe: rings ──> encoders, rates, windows ──> Conditions ──> planner ──> Action
//!   carry out: Action ──> BlockDevice, encoders, events ──> Outcome ──> planner
//! ```

mod conditions;
mod orders;
mod publish;
mod room;
#[cfg(test)]
mod test_rig;
#[cfg(test)]
mod tests;

use crate::Clock;
use crate::admission::Costs;
use crate::control::Control;
use crate::event::Event;
use crate::gap::{Cause, Gap};
use crate::limits::{
    ENDING_ATTEMPTS, FULL_RETRY_US, HINT_BLOCKS, Limits, RETRY_US, SLEEP_PART_OF_RING,
    SLEEP_US_MAX, SLEEP_US_MIN,
};
use crate::plan::{
    self, Action, Block, Card, Checkpoint, Conditions, Job, Outcome, Phase, Request, State,
};
use crate::reads::{ReadDesk, ReadError};
use crate::recorder::Config;
use crate::ring::Next;
use crate::session::SessionError;
use crate::stream::Stream;
use crate::track::{Files, NameState, OpenFile, Totals, Track};
use crate::volume::{FileId, ShortText};
use cardiograph_card::{BLOCK_BYTES, BlockDevice};
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
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
    /// Outside the tests, the limits are constants and take no memory.
    #[cfg(test)]
    limits: Limits,
    pub(crate) state: State<N>,
    /// Conditions of the current decision.
    now: Conditions<N>,
    pub(crate) streams: [Stream<'a>; N],
    pub(crate) tracks: [Track; N],
    pub(crate) files: Files,
    costs: Costs,
    timers: Timers,
    /// Number of rotation requests seen so far.
    rotations: u32,
    /// Streams that have been asked to begin the waiting session, as bits.
    asked: u8,
    /// Remaining attempts to bring back a failed card once the recording ends.
    attempts: u32,
    /// Cause of losses while the card is away.
    away: Cause,
    /// Length of the recordings that were removed since the last file was prepared, in units of [`FILE_BLOCKS_MIN`].
    removed: u16,
    /// Number of times that removals on this card made no room for a file, so that half the length became enough.
    halvings: u8,
    /// True once sampling may begin.
    is_started: bool,
    /// True if some data could not be written at the end.
    has_given_up: bool,
    /// True while other tasks are served after the end of the recording.
    pub(crate) is_serving: bool,
}

/// Times that conditions depend on, in us.
#[derive(Clone, Copy, Default)]
struct Timers {
    /// Time of the last step of a job: of its beginning while it is carried out, then of its end.
    step_us: u64,
    /// Earliest time of the next attempt with a failed or full card.
    retry_us: u64,
}

// A bit of `asked` for each stream.
const _: () = assert!(crate::STREAMS_MAX <= u8::BITS as usize);

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
            costs: Costs::new(config.stall_budget_us),
            timers: Timers::default(),
            rotations: parts.control.rotation_requested(),
            asked: 0,
            attempts: ENDING_ATTEMPTS,
            away: Cause::CardFailed,
            removed: 0,
            halvings: 0,
            is_started: false,
            has_given_up: false,
            is_serving: false,
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

    /// Observes the rings and requests, and returns the next action.
    pub(crate) fn next(&mut self) -> Action {
        let now_us = self.now_us();
        self.fill(now_us);
        self.publish_figures(now_us);
        let mut now = self.conditions(now_us);
        self.poll_requests(&mut now);
        plan::update(&mut self.state, &mut now);
        self.note_requested_checkpoints(&now, now_us);
        self.set_causes();
        self.control.set_flush_us_max(self.flush_us_max());
        self.now = now;
        let action = plan::next_action(&self.state, &self.now);
        #[cfg(test)]
        crate::replay::decided(self, &self.now, action);
        action
    }

    /// Polls the control for new requests.
    fn poll_requests(&mut self, now: &mut Conditions<N>) {
        let asked = self.control.flush_requested();
        if self.control.is_flush_new(asked) && !self.is_flushing(asked) {
            plan::request(&mut self.state, now, Request::Flush(asked));
        }
        let rotations = self.control.rotation_requested();
        if core::mem::replace(&mut self.rotations, rotations) != rotations {
            plan::request(&mut self.state, now, Request::Rotate);
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
        self.ask_for_session();
    }

    /// Asks every stream once to begin the waiting session. Streams that still have to begin the session before are
    /// asked later; streams that have ended need not begin any.
    fn ask_for_session(&mut self) {
        let Some(session) = self.control.waiting_session() else {
            return;
        };
        for (at, stream) in self.streams.iter().enumerate() {
            let is_asked = self.asked & 1 << at != 0;
            if !is_asked
                && stream.consumer.request_session(&session) != Err(SessionError::QueueFull)
            {
                self.asked |= 1 << at;
            }
        }
        if self.asked.count_ones() as usize == N {
            self.asked = 0;
            self.control.take_session();
        }
    }

    fn is_flushing(&self, number: u32) -> bool {
        matches!(self.state.flush,
            plan::Flush::Pending(other) | plan::Flush::Answer(other, _) if other == number)
    }

    /// Marks the time and the ring positions of newly requested checkpoints.
    fn note_requested_checkpoints(&mut self, now: &Conditions<N>, now_us: u64) {
        for (at, conditions) in now.tracks.iter().enumerate() {
            if !conditions.is_checkpoint_new {
                continue;
            }
            self.tracks[at].requested_us = now_us;
            self.tracks[at].faded_after_us = 0;
            let streams = self.streams.iter_mut();
            streams
                .filter(|stream| usize::from(stream.track) == at)
                .for_each(Stream::request_checkpoint);
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
                    self.streams[at].checkpoint_bytes()
                }
                _ => usize::MAX,
            };
            let sharing = self.sharing(track);
            let step = self.checkpoint_step(track, now_us);
            let Some(mut position) =
                self.tracks[usize::from(track)].position(&self.files, file, sharing, step, now_us)
            else {
                continue;
            };
            let unfinished = self.of_track(track).map(Stream::unfinished_blocks);
            let others = unfinished.sum::<u32>() - self.streams[at].unfinished_blocks();
            // At most two blocks of each.
            position.others = others as u8;
            let stream = &mut self.streams[at];
            let consumer = &mut stream.consumer;
            if let (_, Some(gap)) = stream.encoder.fill(&position, consumer, limit) {
                report_gap(&mut self.events, self.reads, at as u8, gap);
            }
        }
    }

    /// Returns true if a track's blocks take no more samples, because its checkpoint ends here.
    fn is_holding(&self, track: u8, now_us: u64) -> bool {
        let state = &self.state.tracks[usize::from(track)];
        let is_place = match state.checkpoint {
            Checkpoint::None => false,
            Checkpoint::Wanted => self.is_page_end(track, now_us) && self.absorbs_commit(now_us),
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

    /// Sets the cause of future overflows in the rings.
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

    /// Carries out any action except those of jobs.
    pub(crate) async fn carry_out(&mut self, action: Action) -> Result<(), M::Error> {
        match action {
            Action::Rest => self.rest().await,
            Action::Acquire => self.acquire().await?,
            Action::Write(stream) => self.write(usize::from(stream)).await?,
            Action::Mark(at) => self.mark(at),
            Action::Commit(at) => self.commit(at).await?,
            Action::Begin(at) => self.begin(at),
            Action::Leave(at) => self.leave(at).await?,
            Action::Read => self.serve_read().await?,
            Action::AnswerFlush(number, is_durable) => {
                let is_over = self.state.phase == Phase::Ended;
                let is_durable = is_durable && !(is_over && self.has_given_up);
                self.control.answer(number, is_durable);
            }
            Action::ReportFull(track) => self.report_full(track),
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
        self.costs = Costs::new(self.config.stall_budget_us);
        Ok(())
    }

    /// Ends the open write, if there is one: its blocks are then durable.
    pub(crate) async fn end_write(&mut self) -> Result<(), M::Error> {
        if let Card::Writing(_) = self.state.card {
            let begun_us = self.now_us();
            self.medium.end().await.map_err(|error| error.cause)?;
            self.costs.commit.observe(self.us_since(begun_us));
            self.note_write(begun_us, 0);
            self.state.card = Card::Idle;
        }
        Ok(())
    }

    /// Tells readers that a step writes these blocks. Streams write only blocks that no directory uses.
    pub(crate) fn note_write_to(&self, start: u32, count: u32) {
        if let Some(reads) = self.reads {
            reads.note_write(start, count);
        }
    }

    /// Notes the latency of a write of `blocks` blocks.
    fn note_write(&mut self, begun_us: u64, blocks: u32) {
        let us = self.us_since(begun_us);
        self.costs.observe_block(us, blocks);
        if let Some(reads) = self.reads {
            reads.watched.borrow_mut().note_write(us, blocks);
        }
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
        let step = self.checkpoint_step(track, now_us);
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
        self.note_write(begun_us, 1);
        self.streams[at].encoder.advance(&position);
        if file.index == 0 {
            self.tracks[usize::from(track)].first_stream = at as u8;
        }
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
        let requested_us = is_complete.then_some(self.tracks[usize::from(at)].requested_us);
        for (number, stream) in (0..).zip(&mut self.streams) {
            if stream.track != at {
                continue;
            }
            if let Some(committed) = stream.commit(now_us, requested_us) {
                report(
                    &mut self.events,
                    self.reads,
                    Event::Checkpoint {
                        stream: number,
                        samples: committed.samples,
                        pushed_before_us: committed.pushed_before_us,
                        is_late: committed.is_late,
                    },
                );
            }
        }
        self.publish_durable(at);
        Ok(())
    }

    /// Begins the next prepared file, and the sessions whose boundaries have been reached.
    fn begin(&mut self, at: u8) {
        let now_us = self.now_us();
        for stream in self.streams.iter_mut().filter(|stream| stream.track == at) {
            let session = match stream.consumer.next() {
                Next::Session => stream.consumer.take_session(),
                _ => None,
            };
            stream.encoder.start(session);
        }
        let blocks = self.next_file(at).map_or(0, |file| file.blocks);
        if let Some(number) = self.tracks[usize::from(at)]
            .begin(now_us)
            .map(|file| file.number)
        {
            let id = self.id(at, number);
            report(
                &mut self.events,
                self.reads,
                Event::Opened {
                    track: at,
                    id,
                    bytes_max: u64::from(blocks) * BLOCK_BYTES as u64,
                },
            );
            self.publish_first(at, id);
        }
    }

    fn first_of_track(&self, at: u8) -> &Stream<'a> {
        self.of_track(at).next().unwrap_or(&self.streams[0])
    }

    /// Returns the name of a track's file with this number.
    fn id(&self, at: u8, number: u32) -> FileId {
        let encoder = &self.first_of_track(at).encoder;
        FileId {
            prefix: encoder.prefix(),
            extension: encoder.format().extension(),
            number,
        }
    }

    /// Returns the name of the session that a track's file belongs to. It comes from the file's first header, from
    /// which recovery takes it too.
    fn session_name(&self, at: u8) -> ShortText {
        let stream = &self.streams[usize::from(self.tracks[usize::from(at)].first_stream)];
        let session = stream.encoder.session();
        let name = session.and_then(|session| ShortText::new(session.name().as_str()));
        name.unwrap_or(ShortText::EMPTY)
    }

    /// Puts the file being written aside, to be closed later. A file without blocks is reused.
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
        self.tracks[usize::from(at)].file = None;
        match blocks {
            0 => {
                let track = &mut self.tracks[usize::from(at)];
                let is_noted = track.ahead.insert(0, file.slot).is_ok();
                debug_assert!(is_noted);
            }
            _ => {
                let is_named = file.name == NameState::Given;
                self.publish(at, file.slot, &totals, session, is_named);
                self.files.put_aside(file.slot, at, session, totals);
            }
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

    async fn serve_read(&mut self) -> Result<(), M::Error> {
        let Some((reads, mut job)) = self.reads.and_then(|reads| Some((reads, reads.begin()?)))
        else {
            return Ok(());
        };
        for stream in &self.streams {
            stream.consumer.set_cause(Cause::Read);
        }
        let begun_us = self.now_us();
        let ended = self.end_write().await;
        // A failed read may have had a bad block address: the next write shows whether the card failed.
        let answer = match ended {
            Ok(()) => {
                let read = self.medium.read(job.start, job.blocks()).await;
                read.map_err(|_| ReadError::CardFailed)
            }
            Err(_) => Err(ReadError::NoCard),
        };
        let us = self.us_since(begun_us);
        self.costs.read.observe(us);
        reads.end(job, answer, us, self.now_us());
        ended
    }

    /// Counts the pending data of a track, or of all tracks, as lost.
    fn give_up(&mut self, track: Option<u8>, cause: Cause) {
        let now_us = self.now_us();
        for (number, stream) in (0..).zip(&mut self.streams) {
            if track.is_some_and(|track| track != stream.track) {
                continue;
            }
            if let Some(gap) = stream.lose_rest(now_us, cause) {
                self.has_given_up = true;
                report_gap(&mut self.events, self.reads, number, gap);
            }
        }
    }

    /// Abandons what an earlier run left unfinished, as if the card had failed: nothing is known about the card.
    pub(crate) fn abandon_run(&mut self) {
        let is_complete = self.state.phase == Phase::Ended && self.state.job.is_none();
        let is_unused = self.state.card == Card::Absent && self.state.job.is_none();
        let has_begun = self.is_started || self.is_serving;
        if is_complete && has_begun || is_unused {
            return;
        }
        self.lose_card();
        plan::apply(&mut self.state, &self.now, Action::Acquire, Outcome::Failed);
        self.timers = Timers::default();
        if let Some(reads) = self.reads {
            reads.reopen();
        }
        if !has_begun {
            self.state.phase = Phase::Recording;
        }
    }

    /// Handles a failure of the card: data that was not durable becomes a gap.
    pub(crate) fn lose_card(&mut self) {
        let was_mounted = matches!(self.state.card, Card::Idle | Card::Writing(_));
        if was_mounted && self.may_fail() {
            report(&mut self.events, self.reads, Event::CardLost);
        }
        let now_us = self.now_us();
        for (number, stream) in (0..).zip(&mut self.streams) {
            if let Some(gap) = stream.lose_card(now_us, self.away) {
                report_gap(&mut self.events, self.reads, number, gap);
            }
        }
        for track in &mut self.tracks {
            track.forget_files();
        }
        self.files.clear();
        // The first attempt follows at once, because the card may have lost contact only for a moment.
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

    /// Applies an outcome to the planner's state.
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
        if let Some(reads) = self.reads
            && matches!(action, Action::Start(Job::Remove))
        {
            reads.note_change();
        }
        if let Action::Step | Action::Start(_) = action {
            self.timers.step_us = self.now_us();
        }
        plan::apply(&mut self.state, &self.now, action, outcome);
    }

    /// Notes the beginning of a job's step, here because the recorder's future would keep it twice.
    pub(crate) fn begin_step(&mut self) {
        self.timers.step_us = self.now_us();
    }

    /// Returns the time since the step began, in us.
    pub(crate) fn us_of_step(&self) -> u32 {
        self.us_since(self.timers.step_us)
    }

    /// Records the duration of the step.
    pub(crate) fn observe_step(&mut self) {
        let us = self.us_of_step();
        self.costs.observe_step(us);
    }

    /// Sleeps until there may be something to do.
    async fn rest(&mut self) {
        let now_us = self.now_us();
        let mut us = u64::from(SLEEP_US_MAX);
        for stream in &self.streams {
            if self.state.tracks[usize::from(stream.track)].is_starved() {
                continue;
            }
            let level = stream.consumer.level_bytes();
            let wanted = match self.now.is_reading {
                false => BLOCK_BYTES.saturating_sub(level),
                true => (stream.consumer.capacity_bytes() - level) / SLEEP_PART_OF_RING,
            };
            us = us.min(stream.rate.us_for(wanted as u64).unwrap_or(us));
            if stream.has_unsaved() {
                let due_us = stream.due_us(self.lead_us(stream));
                us = us.min(due_us.saturating_sub(now_us));
            }
        }
        let us = (us as u32).clamp(SLEEP_US_MIN, SLEEP_US_MAX);
        // Requests that are already pending wait for the rings; they must not wake the recorder again.
        let known = (self.now.is_read_pending, self.now.is_change_pending);
        let reads = self.reads;
        let mut delay = pin!(self.delay.delay_us(us));
        poll_fn(|context| match (delay.as_mut().poll(context), reads) {
            (Poll::Pending, Some(reads)) => reads.poll_request(context, known),
            (polled, _) => polled,
        })
        .await;
    }
}

/// The parts of a shell that the caller supplies.
pub(crate) struct ShellParts<'a, M, C, D, E> {
    pub(crate) medium: M,
    pub(crate) clock: C,
    pub(crate) delay: D,
    pub(crate) events: E,
    pub(crate) control: &'a Control,
    pub(crate) reads: Option<&'a ReadDesk<'a>>,
}

/// Reports an event, and notes it for other tasks.
fn report(events: &mut impl FnMut(Event), reads: Option<&ReadDesk>, event: Event) {
    if let Some(reads) = reads {
        reads.watched.borrow_mut().note_event(&event);
    }
    events(event);
}

/// Reports that samples of a stream are missing.
fn report_gap(events: &mut impl FnMut(Event), reads: Option<&ReadDesk>, stream: u8, gap: Gap) {
    report(events, reads, Event::Lost { stream, gap });
}
