//! Changes of the state: by conditions and requests, and by the outcome of an action.

use super::{
    Action, Block, Card, Checkpoint, Conditions, File, Flush, Job, Leave, Outcome, Phase, Request,
    Room, State, Track,
};

/// Takes a request into the state.
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

/// Takes new conditions into the state: checkpoints and new files that are due, and a flush that has its
/// answer. A checkpoint that becomes pending covers everything that the rings hold: `is_behind` of its
/// streams is set.
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
            cover_rings(now, at);
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

/// Makes a checkpoint of everything pushed so far pending, at any cost.
fn force<const N: usize>(state: &mut State<N>, now: &mut Conditions<N>, at: u8) {
    let track = &mut state.tracks[usize::from(at)];
    if now.has_unsaved(at, track.file) {
        track.checkpoint = Checkpoint::Forced;
        cover_rings(now, at);
    }
}

fn cover_rings<const N: usize>(now: &mut Conditions<N>, at: u8) {
    now.tracks[usize::from(at)].is_target_new = true;
    for stream in now.streams.iter_mut().filter(|stream| stream.track == at) {
        stream.is_behind = stream.is_waiting;
    }
}

/// Wants a new file, unless this one is empty or another is wanted already.
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

/// Seals the file once its successor is there. For a new session it is also sealed if there is no room
/// for another: what it does not need becomes free.
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

/// Takes the outcome of an action into the state.
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
        Action::Guest => state.card = Card::Idle,
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

/// The card is gone: what was not durable is lost, and nothing is known of its files.
fn lose_card<const N: usize>(state: &mut State<N>) {
    state.card = Card::Absent;
    state.job = None;
    state.room = Room::Unknown;
    state.tracks = [Track::NEW; N];
    answer(state, false);
}

fn step<const N: usize>(state: &mut State<N>, now: &Conditions<N>, outcome: Outcome) {
    if state.card != Card::Unmounted {
        state.card = Card::Idle;
    }
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
        Job::Name(_) => (),
    }
    if let Job::Reserve(at) | Job::Close(at) | Job::Name(at) = job {
        state.turn = (at + 1) % state.track_count;
    }
}

fn write<const N: usize>(state: &mut State<N>, at: u8) {
    // The write that was open ends first: its blocks are durable, but not yet known to be complete.
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
    // The file before was sealed at any cost. What its checkpoint still covers is newer, and a write that stops
    // in the new file's first page costs the card much.
    let is_urgent = matches!(state.flush, Flush::Pending(_)) || state.phase != Phase::Recording;
    if track.checkpoint == Checkpoint::Forced && !is_urgent {
        track.checkpoint = Checkpoint::Wanted;
    }
}

/// An empty file is used again.
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
