//! State transitions: by conditions and requests, and by the outcome of an action.

use super::{
    Action, Block, Card, Checkpoint, Conditions, File, Flush, Job, Leave, Outcome, Phase, Request,
    Room, State, Track,
};

/// Applies a request to the state.
pub fn request<const N: usize>(state: &mut State<N>, now: &mut Conditions<N>, request: Request) {
    match request {
        Request::Flush(number) => {
            state.flush = Flush::Pending(number);
            for at in state.indices() {
                force(state, now, at);
            }
        }
        Request::Rotate => state.indices().for_each(|at| rotate(state, now, at)),
        Request::Stop if state.phase == Phase::Recording => state.phase = Phase::Ending,
        Request::Stop => (),
    }
}

/// Updates the state with new conditions: requests checkpoints and new files that are due, and answers a
/// flush whose result is known. A new pending checkpoint covers everything in the rings: `is_behind` is set
/// for its streams.
pub fn update<const N: usize>(state: &mut State<N>, now: &mut Conditions<N>) {
    match state.card {
        Card::Absent => return answer(state, false),
        Card::Unmounted => return,
        Card::Idle | Card::Writing(_) => (),
    }
    for at in state.indices() {
        let conditions = now.tracks[usize::from(at)];
        if conditions.is_rotation_due {
            rotate(state, now, at);
        }
        leave_when_possible(state, now, at);
        let track = &mut state.tracks[usize::from(at)];
        let has_file = track.file.is_some();
        if conditions.is_checkpoint_due && has_file && track.checkpoint == Checkpoint::None {
            track.checkpoint = Checkpoint::Wanted;
            request_checkpoint(now, at);
        }
        if state.phase == Phase::Ending {
            force(state, now, at);
        }
    }
    if !state.is_forced() {
        answer(state, true);
    } else if state.indices().any(|at| is_hopeless(state, at)) {
        answer(state, false);
    }
}

/// Returns true if a forced checkpoint finds no room.
fn is_hopeless<const N: usize>(state: &State<N>, at: u8) -> bool {
    let track = &state.tracks[usize::from(at)];
    track.checkpoint == Checkpoint::Forced && track.is_hopeless()
}

fn answer<const N: usize>(state: &mut State<N>, is_durable: bool) {
    if let Flush::Pending(number) = state.flush {
        state.flush = Flush::Answer(number, is_durable);
    }
}

/// Forces a checkpoint of everything pushed so far.
fn force<const N: usize>(state: &mut State<N>, now: &mut Conditions<N>, at: u8) {
    let track = &mut state.tracks[usize::from(at)];
    if now.has_unsaved(at, track.file) {
        track.checkpoint = Checkpoint::Forced;
        request_checkpoint(now, at);
    }
}

fn request_checkpoint<const N: usize>(now: &mut Conditions<N>, at: u8) {
    now.tracks[usize::from(at)].is_checkpoint_new = true;
    for stream in now.streams.iter_mut().filter(|stream| stream.track == at) {
        stream.is_behind = stream.is_waiting;
    }
}

/// Requests a new file, unless the current one is empty or a request is already pending.
fn rotate<const N: usize>(state: &mut State<N>, now: &Conditions<N>, at: u8) {
    let track = &mut state.tracks[usize::from(at)];
    let is_begun = track.file.is_some_and(|file| file.index > 0)
        || now
            .of_track(at)
            .any(|(_, stream)| stream.block != Block::Clean);
    let is_recording = state.phase == Phase::Recording;
    if track.leave == Leave::Stay && is_begun && is_recording {
        track.leave = Leave::Rotate;
    }
}

/// Seals the file if the recorder is to leave it and its successor is prepared, and any file whose remaining space is
/// reserved for blocks in progress. Before a new session, also seals the file if the card has no room for a successor,
/// because closing the file frees its unused blocks.
fn leave_when_possible<const N: usize>(state: &mut State<N>, now: &mut Conditions<N>, at: u8) {
    let room = state.room;
    let track = &mut state.tracks[usize::from(at)];
    if track.file.is_none() {
        return;
    }
    if now.is_at_session(at) && matches!(track.leave, Leave::Stay | Leave::Rotate) {
        track.leave = Leave::Session;
    }
    let is_used_up = now.tracks[usize::from(at)].is_used_up;
    let is_ready = match track.leave {
        Leave::Stay => is_used_up,
        Leave::Rotate => track.ahead > 0 || is_used_up,
        Leave::Session => track.ahead > 0 || room != Room::Unknown || is_used_up,
        Leave::Sealing | Leave::Sealed => false,
    };
    if is_ready {
        let is_saved = !now.has_unsaved(at, track.file);
        track.leave = match is_saved {
            true => Leave::Sealed,
            false => Leave::Sealing,
        };
        force(state, now, at);
    }
}

/// Applies the outcome of an action to the state.
pub fn apply<const N: usize>(
    state: &mut State<N>,
    now: &Conditions<N>,
    action: Action,
    outcome: Outcome,
) {
    if outcome == Outcome::Failed {
        return lose_card(state);
    }
    match action {
        Action::Rest | Action::Mark(_) => (),
        Action::Acquire => state.card = Card::Unmounted,
        Action::Start(job) => state.job = Some(job),
        Action::Step => step(state, now, outcome),
        Action::Write(stream) => write(state, now.streams[usize::from(stream)].track),
        Action::Commit(at) => commit(state, now, at),
        Action::Begin(at) => begin(state, now, at),
        Action::Leave(at) => leave(state, at),
        Action::Read => {
            state.card = Card::Idle;
            state.is_job_next = state.job.is_some();
        }
        Action::AnswerFlush(..) => state.flush = Flush::None,
        Action::ReportFull(at) => state.tracks[usize::from(at)].is_full = true,
        Action::GiveUp(at) => give_up(state, at),
        Action::Abandon => {
            lose_card(state);
            state.phase = Phase::Ended;
        }
        Action::End => state.phase = Phase::Ended,
    }
}

/// Handles the loss of the card: data that was not durable is lost, and nothing is known about the files.
fn lose_card<const N: usize>(state: &mut State<N>) {
    state.card = Card::Absent;
    (state.job, state.is_job_next) = (None, false);
    state.room = Room::Unknown;
    state.tracks = [Track::NEW; N];
    answer(state, false);
}

fn step<const N: usize>(state: &mut State<N>, now: &Conditions<N>, outcome: Outcome) {
    // A job can end without a step: a write that is open stays open.
    if state.card != Card::Unmounted && outcome == Outcome::Done {
        state.card = Card::Idle;
    }
    state.is_job_next = false;
    let Some(job) = state.job.filter(|_| outcome != Outcome::Done) else {
        return;
    };
    state.job = None;
    let has_room = outcome == Outcome::JobDone;
    match job {
        Job::Mount => state.card = Card::Idle,
        Job::Reserve(at) if has_room => {
            state.tracks[usize::from(at)].ahead += 1;
            state.room = Room::Unknown;
        }
        Job::Reserve(_) if now.may_remove => state.room = Room::Tight,
        Job::Remove if has_room => state.room = Room::Unknown,
        Job::Reserve(_) | Job::Remove => state.room = Room::None,
        Job::Close(at) => {
            state.tracks[usize::from(at)].closing -= 1;
            state.room = Room::Unknown;
        }
        Job::Discard(at) => {
            state.tracks[usize::from(at)].ahead -= 1;
            state.room = Room::Unknown;
        }
        // The change may have freed space.
        Job::Change => state.room = Room::Unknown,
        Job::Name(_) => (),
    }
    if let Job::Reserve(at) | Job::Close(at) | Job::Name(at) = job {
        state.turn = (at + 1) % state.track_count;
    }
}

fn write<const N: usize>(state: &mut State<N>, at: u8) {
    // A write to another track ends first: its blocks are then durable, but not yet committed.
    state.card = Card::Writing(at);
    if let Some(file) = &mut state.tracks[usize::from(at)].file {
        file.index += 1;
    }
}

fn commit<const N: usize>(state: &mut State<N>, now: &Conditions<N>, at: u8) {
    if state.card == Card::Writing(at) {
        state.card = Card::Idle;
    }
    let track = &mut state.tracks[usize::from(at)];
    if let Some(file) = &mut track.file {
        file.durable = file.index;
    }
    if !now.is_behind(at) && now.is_marked(at) {
        track.checkpoint = Checkpoint::None;
    }
    if track.leave == Leave::Sealing && now.is_drained(at) && now.is_marked(at) {
        track.leave = Leave::Sealed;
    }
}

fn begin<const N: usize>(state: &mut State<N>, now: &Conditions<N>, at: u8) {
    let track = &mut state.tracks[usize::from(at)];
    track.ahead -= 1;
    track.file = Some(File {
        blocks: now.tracks[usize::from(at)].next_blocks,
        index: 0,
        durable: 0,
    });
    track.leave = Leave::Stay;
    track.is_full = false;
    // The previous file was sealed with a forced checkpoint. The data that this checkpoint still covers is newer, and
    // stopping a write in the first page of the new file is expensive for the card.
    let is_urgent = matches!(state.flush, Flush::Pending(_)) || state.phase != Phase::Recording;
    if track.checkpoint == Checkpoint::Forced && !is_urgent {
        track.checkpoint = Checkpoint::Wanted;
    }
}

/// Leaves a file; an empty one is reused.
fn leave<const N: usize>(state: &mut State<N>, at: u8) {
    let track = &mut state.tracks[usize::from(at)];
    match track.file.take() {
        Some(file) if file.index > 0 => track.closing += 1,
        Some(_) => track.ahead += 1,
        None => (),
    }
    track.leave = Leave::Stay;
    if state.card == Card::Writing(at) {
        state.card = Card::Idle;
    }
}

fn give_up<const N: usize>(state: &mut State<N>, at: u8) {
    state.tracks[usize::from(at)].checkpoint = Checkpoint::None;
    answer(state, false);
}
