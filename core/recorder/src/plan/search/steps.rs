//! Steps of the world: an event, a move of the shell, or an action of the planner.

use super::check;
use super::world::{Asked, Item, Layout, Tally, World};
use super::{Config, Violation};
use crate::plan::{
    Action, Block, Card, Checkpoint, Conditions, Job, Outcome, Phase, Request, Room, apply,
    next_action, request, update,
};
use core::fmt;
use std::vec::Vec;

/// An event outside the recorder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Sample(u8),
    /// More samples than a ring holds, before the recorder is polled again.
    Burst(u8),
    /// The producer begins a session.
    Session(u8),
    Flush,
    Rotate,
    Stop,
    /// Something else uses up the volume.
    RoomTaken,
    RoomFreed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Event(Event),
    /// The state is updated with conditions in which nothing is due.
    Update,
    CheckpointDue(u8),
    RotationDue(u8),
    Fill {
        stream: u8,
        layout: Layout,
    },
    Act {
        action: Action,
        outcome: Outcome,
        /// The predicates that were true.
        choice: Choice,
        is_fault: bool,
    },
}

impl Step {
    /// Returns true if the step needs no new outside event.
    pub(super) fn is_internal(self) -> bool {
        let is_asked = matches!(
            self,
            Step::Act {
                action: Action::Start(Job::Change),
                ..
            }
        );
        !is_asked && !matches!(self, Step::Event(_) | Step::Act { is_fault: true, .. })
    }
}

impl Step {
    /// Returns true if the step retries something that failed.
    pub(super) fn is_retry<const N: usize>(self, world: &World<N>) -> bool {
        match self {
            Step::Act { action, .. } => match action {
                Action::Acquire => true,
                Action::Start(Job::Reserve(_)) => world.plan.room != Room::Unknown,
                _ => false,
            },
            _ => false,
        }
    }

    /// Returns true if the step needs a card that answers.
    pub(super) fn needs_card(self) -> bool {
        match self {
            Step::Act {
                action, outcome, ..
            } => action == Action::Acquire && outcome == Outcome::Done,
            _ => false,
        }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Act {
                action,
                outcome,
                choice,
                is_fault,
            } => {
                let fault = if *is_fault { " (fault)" } else { "" };
                write!(to, "{action:?} -> {outcome:?}{fault}   {choice}")
            }
            Step::Event(event) => write!(to, "event {event:?}"),
            _ => write!(to, "{self:?}"),
        }
    }
}

/// Set of predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice(u32);

impl Choice {
    const ABSORBS_COMMIT: u32 = 1 << 0;
    const ABSORBS_STEP: u32 = 1 << 1;
    const ABSORBS_READ: u32 = 1 << 2;
    const PATIENCE_OVER: u32 = 1 << 3;
    const RETRY_DUE: u32 = 1 << 4;
    const NO_RETRY: u32 = 1 << 5;
    const READ: u32 = 1 << 6;
    const READING: u32 = 1 << 7;
    const CHANGE: u32 = 1 << 28;
    /// One bit for each of two tracks.
    const NAME_DUE: u32 = 1 << 29;
    const PAGE_END: u32 = 1 << 8;
    const SHORT: u32 = 1 << 12;
    const READY: u32 = 1 << 16;
    const TURN: u32 = 1 << 20;
    const HIGH: u32 = 1 << 24;

    fn has(self, bit: u32) -> bool {
        self.0 & bit != 0
    }

    fn apply<const N: usize>(self, now: &mut Conditions<N>) {
        now.absorbs_commit = self.has(Self::ABSORBS_COMMIT);
        now.absorbs_step = self.has(Self::ABSORBS_STEP);
        now.absorbs_read = self.has(Self::ABSORBS_READ);
        now.is_read_pending = self.has(Self::READ);
        now.is_reading = self.has(Self::READING);
        now.is_change_pending = self.has(Self::CHANGE);
        now.is_patience_over = self.has(Self::PATIENCE_OVER);
        now.is_retry_due = self.has(Self::RETRY_DUE);
        now.may_retry = !self.has(Self::NO_RETRY);
        for (at, track) in now.tracks.iter_mut().enumerate() {
            track.is_page_end = self.has(Self::PAGE_END << at);
            track.is_short = self.has(Self::SHORT << at);
            track.is_checkpoint_ready = self.has(Self::READY << at);
            track.is_name_due = self.has(Self::NAME_DUE << at);
        }
        for (at, stream) in now.streams.iter_mut().enumerate() {
            stream.has_turn = self.has(Self::TURN << at);
            if self.has(Self::HIGH << at) {
                stream.level = 900;
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = [
            (Choice::ABSORBS_COMMIT, "absorbs-commit"),
            (Choice::ABSORBS_STEP, "absorbs-step"),
            (Choice::ABSORBS_READ, "absorbs-read"),
            (Choice::READ, "read"),
            (Choice::READING, "reading"),
            (Choice::CHANGE, "change"),
            (Choice::PATIENCE_OVER, "patience-over"),
            (Choice::RETRY_DUE, "retry-due"),
            (Choice::NO_RETRY, "no-retry"),
            (0xF * Choice::PAGE_END, "page-end"),
            (0xF * Choice::SHORT, "short"),
            (0xF * Choice::READY, "ready"),
            (0xF * Choice::TURN, "turn"),
            (0xF * Choice::HIGH, "high"),
            (0x3 * Choice::NAME_DUE, "name-due"),
        ];
        for (bits, name) in names.iter().filter(|(bits, _)| self.has(*bits)) {
            let tracks = (self.0 & bits) / (bits & bits.wrapping_neg());
            write!(to, "{name}")?;
            if *bits >= 0xF * Choice::PAGE_END {
                write!(to, ":{tracks:b}")?;
            }
            write!(to, " ")?;
        }
        Ok(())
    }
}

/// Returns all subsets of a set of bits, the full set first.
fn subsets(set: u32) -> impl Iterator<Item = u32> {
    core::iter::successors(Some(set), move |subset| {
        (*subset != 0).then(|| (subset - 1) & set)
    })
}

/// Collects the possible steps of a world.
pub(super) struct Steps<'a, const N: usize> {
    config: &'a Config<N>,
    world: World<N>,
    pub(super) found: Vec<(Step, World<N>)>,
}

impl<'a, const N: usize> Steps<'a, N> {
    pub(super) fn new(config: &'a Config<N>, world: World<N>) -> Self {
        Steps {
            config,
            world,
            found: Vec::new(),
        }
    }

    /// Returns all possible steps.
    pub(super) fn of(config: &'a Config<N>, world: World<N>) -> Result<Self, (Step, Violation)> {
        Steps::with(config, world, subsets)
    }

    /// Returns the possible steps, with actions for some of the subsets of the free predicates.
    pub(super) fn with<S: Iterator<Item = u32>>(
        config: &'a Config<N>,
        world: World<N>,
        subsets: impl FnOnce(u32) -> S,
    ) -> Result<Self, (Step, Violation)> {
        let mut steps = Steps::new(config, world);
        let is_over = world.plan.phase == Phase::Ended && !config.has_reads;
        if is_over && matches!(world.plan.flush, crate::plan::Flush::None) {
            return Ok(steps);
        }
        steps.events()?;
        if steps.update()? {
            return Ok(steps);
        }
        steps.clocks()?;
        steps.fills()?;
        steps.actions(subsets(steps.free_choices()))?;
        Ok(steps)
    }

    /// Adds a step unless it changes nothing. Checks the invariants of every step.
    fn add(&mut self, step: Step, next: World<N>, tally: Tally) -> Result<(), (Step, Violation)> {
        let fail = |violation| (step, violation);
        if self.world.counts() + tally.pushed != next.counts() + tally.durable + tally.given_up {
            return Err(fail("pushed differs from written + lost + pending"));
        }
        let next = next.canonical(self.config);
        check::state(self.config, &self.world, &next).map_err(fail)?;
        if next != self.world {
            self.found.push((step, next));
        }
        Ok(())
    }

    fn events(&mut self) -> Result<(), (Step, Violation)> {
        let is_filling = (0..N).any(|at| self.world.may_fill(self.config, at));
        for event in self.config.events {
            // Samples that arrive while blocks are being filled could equally well arrive before or after.
            let is_request = matches!(event, Event::Flush | Event::Stop);
            if is_filling && !is_request {
                continue;
            }
            if let Some((next, tally)) = self.after(*event) {
                self.add(Step::Event(*event), next, tally)?;
            }
        }
        Ok(())
    }

    /// Returns the world after an event, if the event is possible.
    fn after(&self, event: Event) -> Option<(World<N>, Tally)> {
        let config = self.config;
        let mut next = self.world;
        let mut tally = Tally::default();
        let is_recording = next.plan.phase == Phase::Recording;
        let is_reserving = matches!(next.plan.job, Some(Job::Reserve(_))) && next.is_midway;
        let is_possible = match event {
            Event::Sample(_) | Event::Burst(_) | Event::Stop | Event::Rotate => is_recording,
            Event::Session(at) => is_recording && !next.streams[usize::from(at)].ring.has_session(),
            Event::Flush => true,
            // Room matters only while a file is being prepared.
            Event::RoomTaken => next.has_room && is_reserving,
            Event::RoomFreed => !next.has_room && is_reserving,
        };
        if !is_possible {
            return None;
        }
        match event {
            Event::Sample(at) => next.push(config, at, &mut tally),
            Event::Burst(at) => {
                (0..=config.ring).for_each(|_| next.push(config, at, &mut tally));
            }
            Event::Session(at) => next.begin_session(at),
            Event::Flush => {
                next.ask();
                self.request(&mut next, Request::Flush(1));
            }
            Event::Rotate => {
                for at in 0..config.track_count {
                    next.files[usize::from(at)].is_rotation_asked |= next.is_begun(config, at);
                }
                self.request(&mut next, Request::Rotate);
            }
            Event::Stop => self.request(&mut next, Request::Stop),
            Event::RoomTaken => next.has_room = false,
            Event::RoomFreed => next.has_room = true,
        }
        Some((next, tally))
    }

    fn request(&self, next: &mut World<N>, what: Request) {
        let now = next.facts(self.config);
        next.update_with(now, |plan, now| request(plan, now, what));
    }

    /// Updates the state with the conditions. Returns true if that changed it.
    fn update(&mut self) -> Result<bool, (Step, Violation)> {
        let mut next = self.world;
        next.update_with(next.facts(self.config), update);
        let count = self.found.len();
        self.add(Step::Update, next, Tally::default())?;
        Ok(self.found.len() > count)
    }

    fn clocks(&mut self) -> Result<(), (Step, Violation)> {
        for at in 0..self.config.track_count {
            let index = usize::from(at);
            let mut next = self.world;
            let mut now = next.facts(self.config);
            now.tracks[index].is_checkpoint_due = next.has_unsaved(self.config, at);
            next.update_with(now, update);
            self.add(Step::CheckpointDue(at), next, Tally::default())?;

            if !self.config.has_names_and_ages {
                continue;
            }
            let mut next = self.world;
            let mut now = next.facts(self.config);
            now.tracks[index].is_rotation_due = next.file(at).is_some();
            next.files[index].is_rotation_asked |= next.is_begun(self.config, at);
            next.update_with(now, update);
            if next.plan != self.world.plan {
                self.add(Step::RotationDue(at), next, Tally::default())?;
            }
        }
        Ok(())
    }

    fn fills(&mut self) -> Result<(), (Step, Violation)> {
        for at in 0..N {
            if !self.world.may_fill(self.config, at) {
                continue;
            }
            let track = self.config.tracks[at];
            let Some(file) = self.world.file(track) else {
                continue;
            };
            let stream = &self.world.streams[at];
            let is_last = file.blocks - file.index <= self.config.sharing(track);
            let mut layouts = std::vec![Layout::Marked];
            if stream.block.is_empty() {
                layouts.push(stream.layout);
            }
            if !is_last && self.config.is_text {
                layouts.push(Layout::Unmarked);
            }
            // A sample larger than a block begins only where it can continue.
            let is_behind = !is_last || !stream.block.is_empty();
            if is_behind && stream.pending.is_empty() && stream.ring.first() == Item::Sample {
                layouts.push(Layout::Split);
            }
            for layout in layouts {
                let mut next = self.world;
                next.fill(at, layout);
                let step = Step::Fill {
                    stream: at as u8,
                    layout,
                };
                self.add(step, next, Tally::default())?;
            }
        }
        Ok(())
    }

    /// Returns the predicates that may be true or false here.
    fn free_choices(&self) -> u32 {
        let (config, world) = (self.config, &self.world);
        let plan = &world.plan;
        match plan.card {
            _ if plan.phase == Phase::Ended && !config.has_reads => return 0,
            Card::Absent => {
                let is_ending = plan.phase == Phase::Ending;
                return Choice::RETRY_DUE | if is_ending { Choice::NO_RETRY } else { 0 };
            }
            Card::Unmounted => return 0,
            Card::Idle | Card::Writing(_) if plan.phase == Phase::Ended => {
                return Choice::READ | Choice::CHANGE;
            }
            Card::Idle | Card::Writing(_) => (),
        }
        let mut free = Choice::PATIENCE_OVER;
        if config.has_reads {
            free |= Choice::READ | Choice::CHANGE;
        }
        if plan.room != Room::Unknown {
            free |= Choice::RETRY_DUE;
        }
        // A full ring absorbs nothing, unless there is no room for its contents and that was reported.
        let is_pressed = (0..N)
            .any(|at| world.is_ring_full(config, at) && !world.is_hopeless(config.tracks[at]));
        if !is_pressed {
            free |= Choice::ABSORBS_STEP;
            if plan
                .tracks
                .iter()
                .any(|track| track.checkpoint != Checkpoint::None)
            {
                free |= Choice::ABSORBS_COMMIT;
            }
            if config.has_reads {
                free |= Choice::ABSORBS_READ | Choice::READING;
            }
        }
        for at in 0..config.track_count {
            let track = &plan.tracks[usize::from(at)];
            free |= Choice::SHORT << at;
            // It decides which job starts.
            if plan.job.is_none() && world.needs_name(config, at) {
                free |= Choice::NAME_DUE << at;
            }
            if track.checkpoint != Checkpoint::None {
                free |= Choice::PAGE_END << at;
            }
            if track.checkpoint == Checkpoint::Wanted && config.has_reads {
                free |= Choice::READY << at;
            }
        }
        for (at, stream) in world.streams.iter().enumerate() {
            let is_other = matches!(plan.card, Card::Writing(track) if track != config.tracks[at]);
            if is_other && stream.state_of_block() == Block::Full {
                free |= Choice::TURN << at;
            }
            if stream.ring.samples() > 0 && !world.is_ring_full(config, at) {
                free |= Choice::HIGH << at;
            }
        }
        free
    }

    /// Returns true if a pending read may be served here.
    pub(super) fn serves_read(&self) -> bool {
        subsets(self.free_choices()).any(|subset| {
            let mut now = self.world.facts(self.config);
            Choice(subset).apply(&mut now);
            next_action(&self.world.plan, &now) == Action::Read
        })
    }

    fn actions(&mut self, subsets: impl Iterator<Item = u32>) -> Result<(), (Step, Violation)> {
        let facts = self.world.facts(self.config);
        let may_act = (0..N).all(|at| self.may_wait(at));
        let mut seen: Vec<Action> = Vec::new();
        for subset in subsets {
            let choice = Choice(subset);
            let mut now = facts;
            choice.apply(&mut now);
            let action = next_action(&self.world.plan, &now);
            let step = Step::Act {
                action,
                outcome: Outcome::Done,
                choice,
                is_fault: false,
            };
            check::action(self.config, &self.world, &now, action)
                .map_err(|violation| (step, violation))?;
            if may_act && !seen.contains(&action) {
                seen.push(action);
                self.act(action, &now, choice)?;
            }
        }
        Ok(())
    }

    /// Returns true if the shell may leave the ring of a stream untouched because a checkpoint holds samples
    /// back.
    fn may_wait(&self, at: usize) -> bool {
        let track = self.config.tracks[at];
        let is_held = match self.world.plan.tracks[usize::from(track)].checkpoint {
            Checkpoint::None => false,
            Checkpoint::Wanted => self.world.is_drained(self.config, track),
            // A request may just have extended the checkpoint to samples that are not in blocks yet.
            Checkpoint::Forced => true,
        };
        is_held || !self.world.may_fill(self.config, at)
    }

    /// Adds all outcomes of an action.
    fn act(
        &mut self,
        action: Action,
        now: &Conditions<N>,
        choice: Choice,
    ) -> Result<(), (Step, Violation)> {
        let is_on_card = match action {
            Action::Acquire | Action::Step | Action::Write(_) | Action::Commit(_) => true,
            Action::Read => true,
            Action::Leave(at) => self.world.plan.card == Card::Writing(at),
            _ => false,
        };
        // Acquiring may keep failing, which is not a fault of its own.
        let is_fault = action != Action::Acquire;
        if is_on_card {
            let mut next = self.world;
            next.fail();
            apply(&mut next.plan, now, action, Outcome::Failed);
            let step = Step::Act {
                action,
                outcome: Outcome::Failed,
                choice,
                is_fault,
            };
            self.add(step, next, Tally::default())?;
        }
        let mut results = Vec::new();
        self.results(action, &mut results)?;
        for (outcome, mut next, tally) in results {
            let step = Step::Act {
                action,
                outcome,
                choice,
                is_fault: false,
            };
            // No time has passed: the predicates have not changed.
            let mut after = next.facts(self.config);
            choice.apply(&mut after);
            after.tracks = now.tracks;
            apply(&mut next.plan, &after, action, outcome);
            let is_effect_outside = matches!(action, Action::Rest | Action::Read);
            if next == self.world && !is_effect_outside {
                return Err((step, "an action without effect"));
            }
            self.add(step, next, tally)?;
        }
        Ok(())
    }

    /// Collects the worlds after a successful action, before the planner gets the outcome.
    fn results(
        &self,
        action: Action,
        results: &mut Vec<(Outcome, World<N>, Tally)>,
    ) -> Result<(), (Step, Violation)> {
        let config = self.config;
        let mut next = self.world;
        let mut tally = Tally::default();
        match action {
            Action::Rest | Action::Acquire => (),
            Action::Read => next.open = None,
            Action::Start(_) => next.is_midway = false,
            Action::Step => return self.step_job(results),
            Action::Write(at) => next.write(config, at.into()),
            Action::Mark(at) => return self.mark(at, results),
            Action::Commit(at) => next.commit(config, at, &mut tally),
            Action::Begin(at) => {
                let is_clean = next.take_sessions(config, at);
                debug_assert!(is_clean, "check::action has verified this");
                let files = &mut next.files[usize::from(at)];
                files.ahead -= 1;
                (files.is_named, files.is_full_reported) = (false, false);
                files.is_rotation_asked = false;
            }
            Action::Leave(at) => {
                next.end_write(at);
                let is_empty = next.file(at).is_none_or(|file| file.index == 0);
                let files = &mut next.files[usize::from(at)];
                match is_empty {
                    true => files.ahead += 1,
                    false => files.closing += 1,
                }
                files.is_rotation_asked = false;
                files.is_naming_previous = next.plan.job == Some(Job::Name(at));
                files.is_named = false;
            }
            Action::AnswerFlush(..) => next.forget_asked(),
            Action::ReportFull(at) => next.files[usize::from(at)].is_full_reported = true,
            Action::GiveUp(at) => next.give_up(config, at, &mut tally),
            Action::Abandon => {
                (0..config.track_count).for_each(|at| next.give_up(config, at, &mut tally));
            }
            Action::End => (),
        }
        results.push((Outcome::Done, next, tally));
        Ok(())
    }

    /// A mark fills the block. It may spill into a second block once.
    fn mark(
        &self,
        at: u8,
        results: &mut Vec<(Outcome, World<N>, Tally)>,
    ) -> Result<(), (Step, Violation)> {
        let file = self.world.file(at);
        let is_last = file.is_none_or(|file| file.index + 1 == file.blocks);
        for layout in [Layout::Marked, Layout::Unmarked] {
            let mut next = self.world;
            let mut is_spilled = false;
            for stream in next.streams_of(self.config, at) {
                if stream.state_of_block() == Block::Partial {
                    let pending = core::mem::take(&mut stream.pending);
                    stream.block.add(pending);
                    is_spilled |= !stream.block.is_empty();
                    stream.layout = layout;
                }
            }
            let is_possible = layout == Layout::Marked || is_spilled && !is_last;
            if is_possible && (layout == Layout::Marked || self.config.is_text) {
                results.push((Outcome::Done, next, Tally::default()));
            }
        }
        Ok(())
    }

    fn step_job(
        &self,
        results: &mut Vec<(Outcome, World<N>, Tally)>,
    ) -> Result<(), (Step, Violation)> {
        let mut next = self.world;
        if !next.is_midway {
            next.is_midway = true;
            next.open = None;
            results.push((Outcome::Done, next, Tally::default()));
        }
        // A job can end without a step, for example when a change is refused: the write then stays open.
        next.open = self.world.open;
        next.is_midway = false;
        let mut end = |outcome, next| results.push((outcome, next, Tally::default()));
        match next.plan.job {
            None => (),
            Some(Job::Mount) => {
                // The card may be another one, with more room or less.
                for (has_room, removable) in
                    [(true, true), (true, false), (false, true), (false, false)]
                {
                    next.has_room = has_room;
                    next.removable = removable && self.config.may_remove;
                    end(Outcome::JobDone, next);
                }
            }
            Some(Job::Reserve(at)) if next.has_room => {
                next.files[usize::from(at)].ahead += 1;
                next.is_known_full = false;
                end(Outcome::JobDone, next);
            }
            Some(Job::Reserve(_)) => {
                next.is_known_full = !self.config.may_remove;
                end(Outcome::NoRoom, next);
            }
            Some(Job::Remove) if next.removable => {
                next.removable = false;
                next.has_room = true;
                next.is_known_full = false;
                end(Outcome::JobDone, next);
            }
            Some(Job::Remove) => {
                next.is_known_full = true;
                end(Outcome::NoRoom, next);
            }
            Some(Job::Close(at)) => {
                next.files[usize::from(at)].closing -= 1;
                next.removable = self.config.may_remove;
                next.is_known_full = false;
                end(Outcome::JobDone, next);
                next.has_room = true;
                end(Outcome::JobDone, next);
            }
            Some(Job::Discard(at)) => {
                next.files[usize::from(at)].ahead -= 1;
                next.has_room = true;
                next.is_known_full = false;
                end(Outcome::JobDone, next);
            }
            // The change may have removed something.
            Some(Job::Change) => {
                end(Outcome::JobDone, next);
                next.has_room = true;
                next.is_known_full = false;
                end(Outcome::JobDone, next);
            }
            Some(Job::Name(at)) => {
                let files = &mut next.files[usize::from(at)];
                files.is_named |= !files.is_naming_previous;
                files.is_naming_previous = false;
                end(Outcome::JobDone, next);
            }
        }
        Ok(())
    }
}

impl<const N: usize> World<N> {
    /// Returns true if some data of a track is not durable.
    pub(super) fn has_unsaved(&self, config: &Config<N>, at: u8) -> bool {
        let mut streams = self.streams.iter().zip(config.tracks);
        streams.any(|(stream, track)| {
            track == at && (stream.counts() > 0 || stream.layout == Layout::Open(true))
        }) || self.file(at).is_some_and(|file| file.durable < file.index)
    }

    /// Returns true if no ring of a track holds data that its checkpoint covers.
    fn is_drained(&self, config: &Config<N>, at: u8) -> bool {
        let mut streams = self.streams.iter().zip(config.tracks);
        streams.all(|(stream, track)| track != at || stream.ring.covered == 0)
    }

    /// Returns true if a track has a file that is not empty.
    pub(super) fn is_begun(&self, config: &Config<N>, at: u8) -> bool {
        let mut streams = self.streams.iter().zip(config.tracks);
        let is_held =
            streams.any(|(stream, track)| track == at && stream.state_of_block() != Block::Clean);
        self.file(at).is_some_and(|file| file.index > 0 || is_held)
    }

    /// Returns true if the next item in a ring of the track is a session.
    pub(super) fn is_at_session(&self, config: &Config<N>, at: u8) -> bool {
        let mut streams = self.streams.iter().zip(config.tracks);
        streams.any(|(stream, track)| track == at && stream.ring.first() == Item::Session)
    }

    pub(super) fn is_flush_open(&self) -> bool {
        self.asked != Asked::None
    }
}
