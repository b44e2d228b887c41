//! Chooses the next action for a state and its conditions.

use super::{
    Action, Block, Card, Checkpoint, Conditions, File, Flush, Job, Leave, Phase, Room, State,
};

/// Ring level above which samples have priority over everything else, in thousandths.
const LEVEL_URGENT: u16 = 500;

/// Returns the next action. Call [`update`](super::update) first, which updates the state with new
/// conditions.
pub fn next_action<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Action {
    if let Flush::Answer(number, is_durable) = state.flush {
        return Action::AnswerFlush(number, is_durable);
    }
    match (state.phase, state.card) {
        (Phase::Ended, _) if !now.is_serving => Action::End,
        (Phase::Ending, Card::Absent) if !now.may_retry => Action::Abandon,
        (_, Card::Absent) if now.is_retry_due => Action::Acquire,
        (_, Card::Absent) => Action::Rest,
        (_, Card::Unmounted) if state.job.is_some() => Action::Step,
        (_, Card::Unmounted) => Action::Start(Job::Mount),
        (Phase::Ended, Card::Idle | Card::Writing(_)) => after_end(state, now),
        (_, Card::Idle | Card::Writing(_)) => with_card(state, now),
    }
}

/// Returns the next action when the recording has ended and other tasks use the card.
fn after_end<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Action {
    match state.job {
        _ if now.is_read_pending && !state.is_job_next => Action::Read,
        Some(_) => Action::Step,
        None if now.is_change_pending => Action::Start(Job::Change),
        None => Action::Rest,
    }
}

/// Returns the next action when a card is mounted.
fn with_card<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Action {
    let job = next_job(state, now);
    // An urgent job waits until blocks are written, so in that case the blocks do not wait for readers.
    let is_urgent = matches!(job, Some((true, _)));
    let candidate = strongest_candidate(state, now, now.is_reading && !is_urgent);
    let is_forced = state.is_forced_with_room();
    if let Some((true, action)) = job
        && now.is_patience_over
        && !is_forced
    {
        return action;
    }
    let is_free = now.absorbs_step && !has_checkpoint(state);
    let is_saving = state.indices().any(|at| is_saving(state, now, at));
    let may_read = now.is_read_pending && now.absorbs_read && !is_saving && !is_forced;
    if may_read && !(state.is_job_next && is_free) {
        return change_of_file(state, now).unwrap_or(Action::Read);
    }
    if let Some(candidate) = candidate.filter(|candidate| candidate.is_pressing) {
        return candidate.action;
    }
    if let Some((is_urgent, action)) = job
        && (is_free || is_urgent && candidate.is_none())
    {
        return action;
    }
    if let Some(candidate) = candidate {
        return candidate.action;
    }
    match state.job {
        None => when_stuck(state, now).unwrap_or(Action::Rest),
        Some(_) => Action::Rest,
    }
}

/// Returns a change from one file to the next. It takes no card time, so that readers never delay it.
fn change_of_file<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Option<Action> {
    let candidates = state
        .indices()
        .filter_map(|at| candidate_of(state, now, at, false));
    let mut actions = candidates.map(|candidate| candidate.action);
    actions.find(|action| matches!(action, Action::Leave(_) | Action::Begin(_)))
}

/// Work of a track that needs the card.
#[derive(Clone, Copy)]
struct Candidate {
    /// A ring is more than half full, or data must become durable at any cost.
    is_pressing: bool,
    /// Highest level of the track's rings.
    level: u16,
    action: Action,
}

/// Returns the most urgent work of all tracks. If `yields` is true, no write begins unless a checkpoint needs it.
fn strongest_candidate<const N: usize>(
    state: &State<N>,
    now: &Conditions<N>,
    yields: bool,
) -> Option<Candidate> {
    let candidates = state
        .indices()
        .filter_map(|at| candidate_of(state, now, at, yields));
    // Among equals, the first wins.
    candidates.reduce(|best, other| {
        let is_stronger = (other.is_pressing, other.level) > (best.is_pressing, best.level);
        if is_stronger { other } else { best }
    })
}

fn candidate_of<const N: usize>(
    state: &State<N>,
    now: &Conditions<N>,
    at: u8,
    yields: bool,
) -> Option<Candidate> {
    let track = &state.tracks[usize::from(at)];
    let level = now.of_track(at).map(|(_, stream)| stream.level).max()?;
    let is_forced = track.checkpoint == Checkpoint::Forced;
    let action = match track.file {
        Some(file) if track.leave == Leave::Sealed || file.is_full() && file.is_durable() => {
            Action::Leave(at)
        }
        Some(file) if file.is_full() => Action::Commit(at),
        Some(_) => write_or_commit(state, now, at, yields)?,
        None => {
            let is_needed = state.phase == Phase::Recording || now.has_unsaved(at, None);
            (track.ahead > 0 && is_needed).then_some(Action::Begin(at))?
        }
    };
    Some(Candidate {
        is_pressing: is_forced || level > LEVEL_URGENT,
        level,
        action,
    })
}

/// Returns the action of a track whose file has room.
fn write_or_commit<const N: usize>(
    state: &State<N>,
    now: &Conditions<N>,
    at: u8,
    yields: bool,
) -> Option<Action> {
    let track = &state.tracks[usize::from(at)];
    let full = now
        .of_track(at)
        .filter(|(_, stream)| stream.block == Block::Full);
    if let Some((stream, _)) = full.max_by_key(|(_, stream)| stream.level) {
        // Switching tracks ends one write and begins another.
        let is_open = !matches!(state.card, Card::Writing(other) if other != at);
        let has_turn = now.of_track(at).any(|(_, stream)| stream.has_turn);
        let is_held = yields && state.card != Card::Writing(at) && !is_saving(state, now, at);
        let is_wanted = track.checkpoint != Checkpoint::None;
        let may_write = !is_held && (is_wanted || is_open || has_turn);
        return may_write.then_some(Action::Write(stream));
    }
    let is_time = match track.checkpoint {
        Checkpoint::None => false,
        Checkpoint::Wanted => now.absorbs_commit && now.tracks[usize::from(at)].is_page_end,
        Checkpoint::Forced => true,
    };
    if !is_time || !now.is_drained(at) {
        return None;
    }
    // The remaining data of the checkpoint belongs to the next session, and so to the next file.
    let is_saved = track.file.is_none_or(File::is_durable) && now.is_marked(at);
    if is_saved && now.is_behind(at) && track.leave != Leave::Sealing {
        return None;
    }
    Some(match now.is_marked(at) {
        true => Action::Commit(at),
        false => Action::Mark(at),
    })
}

/// Returns true if a checkpoint is pending whose track has a file to write to.
fn has_checkpoint<const N: usize>(state: &State<N>) -> bool {
    let mut tracks = state.tracks().iter();
    tracks.any(|track| {
        track.checkpoint != Checkpoint::None && track.file.is_some() && !track.is_hopeless()
    })
}

/// Returns true if the pending checkpoint of a track takes precedence over reads.
fn is_saving<const N: usize>(state: &State<N>, now: &Conditions<N>, at: u8) -> bool {
    let track = &state.tracks[usize::from(at)];
    let is_now = match track.checkpoint {
        Checkpoint::None => false,
        Checkpoint::Wanted => now.tracks[usize::from(at)].is_checkpoint_ready,
        Checkpoint::Forced => true,
    };
    is_now && track.file.is_some() && !track.is_hopeless()
}

/// Returns the next step of the running job or the next job to start, and whether it is urgent.
fn next_job<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Option<(bool, Action)> {
    let wanted = wanted_job(state, now);
    match state.job {
        // If another job is urgent, the running one has to finish first.
        Some(job) => {
            let is_supply = matches!(job, Job::Reserve(at) if is_short(state, now, at));
            let is_urgent = is_supply || wanted.is_some_and(|(is_urgent, _)| is_urgent);
            Some((is_urgent || state.phase == Phase::Ending, Action::Step))
        }
        None => wanted.map(|(is_urgent, job)| (is_urgent, Action::Start(job))),
    }
}

/// Returns the most important pending job: urgent ones first, then round-robin, so that no track starves.
fn wanted_job<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Option<(bool, Job)> {
    let count = state.track_count;
    let mut first = None;
    for step in 0..count {
        let at = (state.turn + step) % count;
        let job = match state.phase {
            Phase::Ending => job_at_end(state, now, at),
            _ => job_of(state, now, at),
        };
        match job {
            Some((true, _)) => return job,
            _ => first = first.or(job),
        }
    }
    let is_recording = state.phase == Phase::Recording;
    let is_asked = now.is_change_pending && is_recording;
    let mut tracks = state.indices().filter(|_| is_recording);
    if let Some(at) = tracks.find(|at| now.tracks[usize::from(*at)].is_name_due) {
        return Some((false, Job::Name(at)));
    }
    first.or(is_asked.then_some((false, Job::Change)))
}

fn job_of<const N: usize>(state: &State<N>, now: &Conditions<N>, at: u8) -> Option<(bool, Job)> {
    let track = &state.tracks[usize::from(at)];
    let conditions = &now.tracks[usize::from(at)];
    if is_short(state, now, at)
        && let Some(job) = supply_job(state, now, at)
    {
        return Some((true, job));
    }
    if track.closing > 0 {
        return Some((false, Job::Close(at)));
    }
    if conditions.needs_name {
        return Some((false, Job::Name(at)));
    }
    let can_reserve = conditions.may_reserve && state.room == Room::Unknown;
    can_reserve.then_some((false, Job::Reserve(at)))
}

/// Returns true if a track needs its next file. A track that only rotates keeps its file until the next one is
/// prepared.
fn is_short<const N: usize>(state: &State<N>, now: &Conditions<N>, at: u8) -> bool {
    let track = &state.tracks[usize::from(at)];
    let is_stopped = track.is_starved() || track.leave == Leave::Session;
    let is_near = now.tracks[usize::from(at)].is_short;
    is_near || track.ahead == 0 && is_stopped
}

/// Returns the job that brings a track closer to its next file.
fn supply_job<const N: usize>(state: &State<N>, now: &Conditions<N>, at: u8) -> Option<Job> {
    let may_reserve = now.tracks[usize::from(at)].may_reserve;
    if may_reserve && state.room == Room::Unknown {
        return Some(Job::Reserve(at));
    }
    // Closing a file frees space and a slot for the next one.
    let mut others = state.indices();
    if let Some(closing) = others.find(|at| state.tracks[usize::from(*at)].closing > 0) {
        return Some(Job::Close(closing));
    }
    match state.room {
        Room::Tight => Some(Job::Remove),
        Room::None if now.is_retry_due && may_reserve => Some(Job::Reserve(at)),
        _ => None,
    }
}

/// Returns the next job of a track at the end of the recording: first supplies a file for pending samples, then closes
/// every file.
fn job_at_end<const N: usize>(
    state: &State<N>,
    now: &Conditions<N>,
    at: u8,
) -> Option<(bool, Job)> {
    let track = &state.tracks[usize::from(at)];
    if needs_file(state, now, at) {
        let job = match state.room {
            Room::None => None,
            _ => supply_job(state, now, at),
        };
        let closing = (track.closing > 0).then_some(Job::Close(at));
        return job.or(closing).map(|job| (true, job));
    }
    if track.closing > 0 {
        return Some((true, Job::Close(at)));
    }
    (track.file.is_none() && track.ahead > 0).then_some((true, Job::Discard(at)))
}

/// Returns true if pending data has no room in the current file, and no file is prepared.
fn needs_file<const N: usize>(state: &State<N>, now: &Conditions<N>, at: u8) -> bool {
    let track = &state.tracks[usize::from(at)];
    let is_stopped = track.is_starved() || track.ahead == 0 && now.is_at_session(at);
    is_stopped
        && now
            .of_track(at)
            .any(|(_, stream)| stream.is_waiting || stream.block != Block::Clean)
}

/// Returns the next action when no job runs and neither samples nor jobs can proceed.
fn when_stuck<const N: usize>(state: &State<N>, now: &Conditions<N>) -> Option<Action> {
    let starved =
        |at: &u8| state.tracks[usize::from(*at)].is_starved() && needs_file(state, now, *at);
    let mut unreported = state.indices().filter(starved);
    if let Some(at) = unreported.find(|at| !state.tracks[usize::from(*at)].is_full) {
        return Some(Action::ReportFull(at));
    }
    if state.phase != Phase::Ending {
        return None;
    }
    if let Some(at) = state.indices().find(starved) {
        return Some(Action::GiveUp(at));
    }
    let mut open = state.indices().filter_map(|at| {
        let file = state.tracks[usize::from(at)].file?;
        Some((at, now.has_unsaved(at, Some(file))))
    });
    match open.next() {
        // The shell has not filled the block yet.
        Some((_, true)) => None,
        Some((at, false)) => Some(Action::Leave(at)),
        None => Some(Action::End),
    }
}
