//! Observes every decision of the real recorder: counts the actions and their outcomes, and compares the shell with the
//! planner's state and with the model checker's assumptions about conditions.

use crate::plan::{Action, Block, Card, Conditions, Job, Outcome};
use crate::shell::Shell;
use cardiograph_card::BlockDevice;
use core::cell::{Cell, RefCell};
use embedded_hal_async::delay::DelayNs;
use std::vec::Vec;
use std::{print, println, thread_local};

/// Names of all kinds of actions.
const KINDS: [&str; 26] = [
    "Rest",
    "Acquire",
    "Start(Mount)",
    "Start(Reserve)",
    "Start(Name)",
    "Start(Close)",
    "Start(Discard)",
    "Start(Remove)",
    "Start(Change)",
    "Step(Mount)",
    "Step(Reserve)",
    "Step(Name)",
    "Step(Close)",
    "Step(Discard)",
    "Step(Remove)",
    "Step(Change)",
    "Write",
    "Mark",
    "Commit",
    "Begin",
    "Leave",
    "Read",
    "AnswerFlush",
    "ReportFull",
    "GiveUp",
    "Abandon",
];
const OUTCOMES: [&str; 4] = ["Done", "JobDone", "NoRoom", "Failed"];

/// Returns which of the [`OUTCOMES`] a kind of action must have had on the paths.
fn needed(kind: usize) -> [bool; 4] {
    let name = KINDS[kind];
    let is_step = name.starts_with("Step");
    let may_fail = is_step || matches!(name, "Acquire" | "Write" | "Commit" | "Read");
    let may_lack_room = matches!(name, "Step(Reserve)" | "Step(Remove)");
    [true, is_step, may_lack_room, may_fail]
}

fn job_at(job: Job) -> usize {
    match job {
        Job::Mount => 0,
        Job::Reserve(_) => 1,
        Job::Name(_) => 2,
        Job::Close(_) => 3,
        Job::Discard(_) => 4,
        Job::Remove => 5,
        Job::Change => 6,
    }
}

fn kind(action: Action, job: Option<Job>) -> usize {
    match action {
        Action::Rest => 0,
        Action::Acquire => 1,
        Action::Start(job) => 2 + job_at(job),
        Action::Step => 9 + job.map_or(0, job_at),
        Action::Write(_) => 16,
        Action::Mark(_) => 17,
        Action::Commit(_) => 18,
        Action::Begin(_) => 19,
        Action::Leave(_) => 20,
        Action::Read => 21,
        Action::AnswerFlush(..) => 22,
        Action::ReportFull(_) => 23,
        Action::GiveUp(_) => 24,
        Action::Abandon => 25,
        Action::End => unreachable!("the recorder has ended"),
    }
}

/// Counts of the decisions on all paths.
#[derive(Default)]
pub(super) struct Counts {
    of: [[u64; 4]; KINDS.len()],
    ends: u64,
}

impl Counts {
    pub(super) fn print(&self) {
        for (name, counts) in KINDS.iter().zip(&self.of) {
            print!("{name:16}");
            for (outcome, count) in OUTCOMES.iter().zip(counts) {
                if *count > 0 {
                    print!(" {outcome} {count}");
                }
            }
            println!();
        }
        println!("{:16} {}", "End", self.ends);
    }

    /// Returns the first kind of action and outcome that must occur and never did.
    pub(super) fn missing(&self) -> Option<(&'static str, &'static str)> {
        for (at, counts) in self.of.iter().enumerate() {
            let outcome = (0..4).find(|outcome| needed(at)[*outcome] && counts[*outcome] == 0);
            if let Some(outcome) = outcome {
                return Some((KINDS[at], OUTCOMES[outcome]));
            }
        }
        (self.ends == 0).then_some(("End", "Done"))
    }
}

/// State of one stream at the last decision.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// Samples with a lower index are durable, or in a durable gap.
    pub(super) durable: u64,
}

/// Observations of the recorder on this thread.
#[derive(Default)]
pub(super) struct Watch {
    pub(super) counts: Counts,
    /// Number of samples pushed, and size of a sample, per stream.
    pub(super) pushed: Vec<(u64, usize)>,
    pub(super) seen: Vec<Seen>,
    /// Number of blocks in the file of each track.
    pub(super) blocks: [u32; 2],
    pub(super) is_mounted: bool,
    pub(super) has_given_up: bool,
    /// The last decision gave up samples.
    pub(super) is_giving_up: bool,
    /// Decisions are printed.
    pub(super) is_traced: bool,
    /// Set while a path is replayed.
    pub(super) is_on: bool,
    /// The first violation.
    pub(super) violation: Option<&'static str>,
}

thread_local! {
    pub(super) static WATCH: RefCell<Watch> = RefCell::default();
    /// True while a write is open on the card; `None` if it has failed.
    pub(super) static OPEN: Cell<Option<bool>> = const { Cell::new(None) };
}

impl Watch {
    /// Begins observing a recorder.
    pub(super) fn begin(&mut self) {
        self.seen.clear();
        OPEN.set(None);
        (self.is_on, self.has_given_up) = (true, false);
    }

    fn ensure(&mut self, is_kept: bool, violation: &'static str) {
        if !is_kept && self.violation.is_none() {
            self.violation = Some(violation);
        }
    }
}

/// Observes a decision.
pub(crate) fn decided<M: BlockDevice, C, D: DelayNs, E, const N: usize>(
    shell: &Shell<'_, M, C, D, E, N>,
    now: &Conditions<N>,
    action: Action,
) {
    WATCH.with_borrow_mut(|watch| {
        if !watch.is_on {
            return;
        }
        if watch.is_traced {
            println!("{action:?}   {:?} {:?}", shell.state, now.streams);
        }
        if action == Action::End {
            watch.counts.ends += 1;
        }
        watch.is_giving_up = matches!(action, Action::GiveUp(_) | Action::Abandon);
        watch.has_given_up |= watch.is_giving_up;
        watch.is_mounted = matches!(shell.state.card, Card::Idle | Card::Writing(_));
        streams(watch, shell);
        tracks(watch, shell);
        conditions(watch, shell, now);
        let is_writing = matches!(shell.state.card, Card::Writing(_));
        let is_right = OPEN.get().is_none_or(|is_open| is_open == is_writing);
        watch.ensure(is_right, "the planner is wrong about the open write");
    });
}

/// Checks that every sample is in a block, lost, or pending, and that durable samples stay durable.
fn streams<M: BlockDevice, C, D: DelayNs, E, const N: usize>(
    watch: &mut Watch,
    shell: &Shell<'_, M, C, D, E, N>,
) {
    for (at, stream) in shell.streams.iter().enumerate() {
        let account = stream.encoder.account();
        let (encoded, durable) = (account.encoded().next, account.durable().next);
        let gap = account.gap();
        let follows = gap.is_none_or(|gap| gap.first == encoded);
        watch.ensure(follows, "a pending gap does not follow the encoded samples");
        let (pushed, bytes) = watch.pushed[at];
        let waiting = (stream.consumer.level_bytes() / bytes) as u64;
        let lost = stream
            .consumer
            .lost()
            .wrapping_sub(stream.consumer.lost_taken());
        let held = encoded + gap.map_or(0, |gap| gap.count) + waiting + u64::from(lost);
        watch.ensure(
            held == pushed || watch.has_given_up,
            "pushed differs from written + lost + pending",
        );
        let before = watch.seen.get(at).map_or(0, |seen| seen.durable);
        watch.ensure(durable >= before, "the durable index decreases");
        let seen = Seen { durable };
        match watch.seen.get_mut(at) {
            Some(place) => *place = seen,
            None => watch.seen.push(seen),
        }
    }
}

/// Checks that the planner's view of the files is correct.
fn tracks<M: BlockDevice, C, D: DelayNs, E, const N: usize>(
    watch: &mut Watch,
    shell: &Shell<'_, M, C, D, E, N>,
) {
    for at in 0..usize::from(shell.state.track_count) {
        let (plan, track) = (&shell.state.tracks[at], &shell.tracks[at]);
        watch.blocks[at] = plan.file.map_or(0, |file| file.index);
        let is_same = plan.file.is_some() == track.file.is_some();
        watch.ensure(is_same, "the planner is wrong about the file being written");
        let is_same = usize::from(plan.ahead) == track.ahead.len();
        watch.ensure(is_same, "the planner is wrong about prepared files");
        if let (Some(file), Some(open)) = (plan.file, track.file) {
            let space = shell.files.space(open.slot);
            let is_right = space.is_some_and(|space| space.blocks == file.blocks);
            watch.ensure(is_right, "the planner is wrong about the length of a file");
            let is_right = file.durable <= file.index && file.index <= file.blocks;
            watch.ensure(
                is_right,
                "written past the end of the file, or more durable than written",
            );
        }
    }
}

/// Checks the model checker's assumptions.
fn conditions<M: BlockDevice, C, D: DelayNs, E, const N: usize>(
    watch: &mut Watch,
    shell: &Shell<'_, M, C, D, E, N>,
    now: &Conditions<N>,
) {
    for (stream, facts) in shell.streams.iter().zip(&now.streams) {
        let lost = stream.consumer.lost() != stream.consumer.lost_taken();
        let is_waiting =
            stream.encoder.account().gap().is_some() || stream.consumer.level_bytes() > 0 || lost;
        watch.ensure(
            facts.is_waiting == is_waiting,
            "is_waiting differs from the search's assumption",
        );
        watch.ensure(
            !facts.is_behind || facts.is_waiting,
            "a checkpoint is behind although no data are pending",
        );
        let track = &shell.state.tracks[usize::from(facts.track)];
        let is_held = facts.block != Block::Clean;
        watch.ensure(
            !is_held || track.file.is_some(),
            "a block belongs to no file",
        );
    }
}

/// Observes the outcome of an action, before the planner does.
pub(crate) fn applied(action: Action, job: Option<Job>, outcome: Outcome) {
    WATCH.with_borrow_mut(|watch| {
        if !watch.is_on {
            return;
        }
        let outcome_at = match outcome {
            Outcome::Done => 0,
            Outcome::JobDone => 1,
            Outcome::NoRoom => 2,
            Outcome::Failed => 3,
        };
        let kind = kind(action, job);
        watch.counts.of[kind][outcome_at] += 1;
        let is_mounted = kind == 8 && outcome == Outcome::NoRoom;
        watch.ensure(!is_mounted, "an unmounted volume counts as mounted");
    });
}
