//! Invariants of actions and states.

use super::world::{Asked, Layout, World};
use super::{Config, Violation};
use crate::plan::{
    Action, Block, Card, Checkpoint, Conditions, Flush, Job, Leave, Phase, Room, Track,
};

fn ensure(is_kept: bool, violation: Violation) -> Result<(), Violation> {
    if is_kept { Ok(()) } else { Err(violation) }
}

/// Checks a state and the step that led to it.
pub(super) fn state<const N: usize>(
    config: &Config<N>,
    before: &World<N>,
    world: &World<N>,
) -> Result<(), Violation> {
    let is_open = match world.plan.card {
        Card::Writing(at) => world.open == Some(at),
        _ => world.open.is_none(),
    };
    ensure(is_open, "the planner is wrong about the open write")?;
    let is_over = world.plan.phase == Phase::Ended;
    ensure(
        !is_over || world.counts() == 0,
        "ended with pending samples",
    )?;
    for at in 0..config.track_count {
        let index = usize::from(at);
        let track = &world.plan.tracks[index];
        ensure(world.slots(at) <= config.slots, "more files than slots")?;
        let files = &world.files[index];
        ensure(
            (track.ahead, track.closing) == (files.ahead, files.closing),
            "the planner is wrong about files that are prepared or closing",
        )?;
        let is_sealed = |world: &World<N>| {
            let leave = world.plan.tracks[index].leave;
            matches!(leave, Leave::Sealing | Leave::Sealed)
        };
        let may_seal = track.ahead > 0
            || before.plan.room != Room::Unknown
            || !before.may_begin(config, at)
            || before.is_used_up(config, at);
        ensure(
            may_seal || is_sealed(before) || !is_sealed(world),
            "a file is sealed before the planner has looked for room for the next",
        )?;
        let Some(file) = track.file else {
            let is_writing = world.plan.card == Card::Writing(at);
            ensure(!is_writing, "a write is open without a file")?;
            let mut streams = world.streams.iter().zip(config.tracks);
            let is_empty = streams.all(|(stream, of)| of != at || stream.volatile.is_empty());
            ensure(is_empty, "a file was left with blocks that are not durable")?;
            continue;
        };
        ensure(file.index <= file.blocks, "written past the end of a file")?;
        ensure(file.durable <= file.index, "more is durable than written")?;
        let mut streams = world.streams.iter().zip(config.tracks);
        let is_saved = streams.all(|(stream, of)| of != at || stream.volatile.is_empty());
        ensure(
            is_saved || file.durable < file.index,
            "the planner considers data durable that a power cut would lose",
        )?;
        if let Some(old) = before.plan.tracks[index].file {
            // A file at index 0 may be the next one.
            let is_same = file.index >= old.index && file.index > 0;
            ensure(
                !is_same || file.durable >= old.durable,
                "the durable index decreases",
            )?;
        }
    }
    Ok(())
}

/// Checks that an action is possible and correct, independently of how the planner chooses it.
pub(super) fn action<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
    action: Action,
) -> Result<(), Violation> {
    let plan = &world.plan;
    let is_mounted = matches!(plan.card, Card::Idle | Card::Writing(_));
    let needs_mount = match action {
        Action::Start(job) => job != Job::Mount,
        Action::Write(_) | Action::Mark(_) | Action::Commit(_) | Action::Begin(_) => true,
        Action::Leave(_) | Action::Read | Action::ReportFull(_) | Action::GiveUp(_) => true,
        _ => false,
    };
    ensure(is_mounted || !needs_mount, "the card is not mounted")?;
    priorities(config, world, now, action)?;
    patience(config, world, now, action)?;
    match action {
        Action::Rest => rest(config, world, now),
        Action::Acquire => ensure(plan.card == Card::Absent, "acquired twice"),
        Action::Start(job) => start(config, world, now, job),
        Action::Step => step(world),
        Action::Write(stream) => write(config, world, now, stream),
        Action::Mark(at) => mark(config, world, at),
        Action::Commit(at) => commit(config, world, now, at),
        Action::Begin(at) => begin(config, world, at),
        Action::Leave(at) => leave(config, world, at),
        Action::Read => read(world, now),
        Action::AnswerFlush(_, is_durable) => answer(config, world, is_durable),
        Action::ReportFull(at) => report_full(config, world, at),
        Action::GiveUp(at) => give_up(world, at),
        Action::Abandon => {
            let is_over = plan.phase == Phase::Ending && !now.may_retry;
            ensure(is_over && plan.card == Card::Absent, "abandoned too early")
        }
        Action::End => end(config, world),
    }
}

/// Returns true if a block is full and its file has room.
fn has_block<const N: usize>(config: &Config<N>, world: &World<N>, stream: usize) -> bool {
    let file = world.file(config.tracks[stream]);
    let has_room = file.is_some_and(|file| file.index < file.blocks);
    has_room && world.streams[stream].state_of_block() == Block::Full
}

/// Returns true if the block of a stream can be written to the open write, or to an idle card.
fn can_write<const N: usize>(config: &Config<N>, world: &World<N>, stream: usize) -> bool {
    let at = config.tracks[stream];
    let is_open = world.plan.card == Card::Idle || world.plan.card == Card::Writing(at);
    is_open && has_block(config, world, stream)
}

/// Checks that samples take precedence.
fn priorities<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
    action: Action,
) -> Result<(), Violation> {
    let is_other = matches!(action, Action::Read | Action::Start(_) | Action::Step);
    if !is_other || now.is_patience_over || world.plan.card == Card::Unmounted {
        return Ok(());
    }
    let is_forced = (0..config.track_count).any(|at| {
        let is_forced = world.plan.tracks[usize::from(at)].checkpoint == Checkpoint::Forced;
        is_forced && !world.is_hopeless(at)
    });
    let is_read = action == Action::Read;
    ensure(!is_read || !is_forced, "a read goes before a flush")?;
    for stream in 0..N {
        if can_write(config, world, stream) {
            // `read` checks that the rings absorb a read. A block that waits for readers is not urgent.
            let at = config.tracks[stream];
            let is_held = is_read || now.is_reading && world.plan.card != Card::Writing(at);
            let is_urgent = !is_held && now.streams[stream].level > 500;
            ensure(!is_urgent, "another action goes before an urgent block")?;
            ensure(is_read || now.absorbs_step, "rings do not absorb this job")?;
        }
    }
    Ok(())
}

/// Checks that a file that will soon be needed is prepared, even if the rings never absorb the steps.
fn patience<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
    action: Action,
) -> Result<(), Violation> {
    let plan = &world.plan;
    let is_mounted = matches!(plan.card, Card::Idle | Card::Writing(_));
    let is_forced = plan
        .tracks
        .iter()
        .any(|track| track.checkpoint == Checkpoint::Forced);
    if !now.is_patience_over || !is_mounted || is_forced || plan.phase != Phase::Recording {
        return Ok(());
    }
    let is_needed = (0..config.track_count).any(|at| {
        let conditions = &now.tracks[usize::from(at)];
        let has_none = plan.tracks[usize::from(at)].ahead == 0;
        // The running job has to end first.
        let may_reserve = conditions.may_reserve || has_none && plan.job.is_some();
        conditions.is_short && plan.room == Room::Unknown && may_reserve
    });
    let is_job = matches!(
        action,
        Action::Start(_) | Action::Step | Action::AnswerFlush(..)
    );
    ensure(is_job || !is_needed, "a file is never prepared")
}

fn rest<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
) -> Result<(), Violation> {
    if !matches!(world.plan.card, Card::Idle | Card::Writing(_)) {
        return Ok(());
    }
    for at in 0..config.track_count {
        let is_left_open = world
            .file(at)
            .is_some_and(|file| file.index == file.blocks && file.durable < file.index);
        ensure(
            !is_left_open,
            "the planner rests although a full file is not durable",
        )?;
    }
    for stream in 0..N {
        let at = config.tracks[stream];
        let has_turn = now.of_track(at).any(|(_, stream)| stream.has_turn);
        let is_held = now.is_reading && world.plan.card != Card::Writing(at);
        let may_write = match has_turn {
            true => has_block(config, world, stream),
            false => can_write(config, world, stream),
        };
        let may_write = may_write && !is_held;
        ensure(
            !may_write,
            "the planner rests although a full block can be written",
        )?;
    }
    Ok(())
}

fn start<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
    job: Job,
) -> Result<(), Violation> {
    let plan = &world.plan;
    ensure(plan.job.is_none(), "two jobs at once")?;
    let is_name_due = now.tracks.iter().any(|track| track.is_name_due);
    if is_name_due && plan.phase == Phase::Recording && !matches!(job, Job::Name(_)) {
        let may_lack_file = |at: u8| {
            let at = usize::from(at);
            plan.tracks[at].ahead == 0 || now.tracks[at].is_short
        };
        ensure(
            (0..config.track_count).any(may_lack_file),
            "a name that is due waits for a job that is not urgent",
        )?;
    }
    let track = |at: u8| &plan.tracks[usize::from(at)];
    match job {
        Job::Mount => ensure(plan.card == Card::Unmounted, "mounted twice"),
        Job::Close(at) => ensure(track(at).closing > 0, "no file to close"),
        Job::Discard(at) => ensure(track(at).ahead > 0, "no file to discard"),
        Job::Name(at) => ensure(world.needs_name(config, at), "no file to name"),
        Job::Reserve(_) | Job::Change => Ok(()),
        Job::Remove => ensure(plan.room == Room::Tight, "removed without need"),
    }
}

fn step<const N: usize>(world: &World<N>) -> Result<(), Violation> {
    let plan = &world.plan;
    match plan.job {
        None => Err("no job to continue"),
        Some(Job::Close(at)) => ensure(
            plan.tracks[usize::from(at)].closing > 0,
            "the file that is being closed is gone",
        ),
        Some(Job::Discard(at)) => ensure(
            plan.tracks[usize::from(at)].ahead > 0,
            "the file that is being discarded is in use",
        ),
        Some(_) => Ok(()),
    }
}

fn write<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
    stream: u8,
) -> Result<(), Violation> {
    let at = config.tracks[usize::from(stream)];
    let block = world.streams[usize::from(stream)].state_of_block();
    ensure(block == Block::Full, "a block that is not full is written")?;
    let file = world.file(at).ok_or("written without a file")?;
    ensure(file.index < file.blocks, "written past the end of a file")?;
    if let Card::Writing(other) = world.plan.card
        && other != at
    {
        let track = &world.plan.tracks[usize::from(at)];
        let has_turn = now.of_track(at).any(|(_, stream)| stream.has_turn);
        ensure(
            has_turn || track.checkpoint != Checkpoint::None,
            "the card switches tracks without need",
        )?;
    }
    Ok(())
}

fn mark<const N: usize>(config: &Config<N>, world: &World<N>, at: u8) -> Result<(), Violation> {
    let file = world.file(at).ok_or("a mark without a file")?;
    ensure(file.index < file.blocks, "a mark past the end of a file")?;
    let mut streams = world.streams.iter().zip(config.tracks);
    ensure(
        streams.any(|(stream, of)| of == at && stream.state_of_block() == Block::Partial),
        "a mark without a partial block",
    )
}

fn commit<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    now: &Conditions<N>,
    at: u8,
) -> Result<(), Violation> {
    let file = world.file(at).ok_or("committed without a file")?;
    let mut streams = world.streams.iter().zip(config.tracks);
    let is_marked = streams.all(|(stream, of)| of != at || !lacks_mark(stream.layout));
    ensure(is_marked, "committed before the mark is written")?;
    let is_full = file.index == file.blocks;
    let is_wanted = world.plan.tracks[usize::from(at)].checkpoint == Checkpoint::Wanted;
    let is_good_time = now.absorbs_commit && now.tracks[usize::from(at)].is_page_end;
    ensure(
        is_full || !is_wanted || is_good_time,
        "committed although the rings do not absorb it or the page continues",
    )
}

/// Returns true if written blocks lack a mark.
fn lacks_mark(layout: Layout) -> bool {
    layout == Layout::Open(true)
}

fn begin<const N: usize>(config: &Config<N>, world: &World<N>, at: u8) -> Result<(), Violation> {
    let track = &world.plan.tracks[usize::from(at)];
    ensure(track.file.is_none(), "begun before the last file was left")?;
    ensure(track.ahead > 0, "begun without a prepared file")?;
    let is_crossed = !{ *world }.take_sessions(config, at);
    ensure(!is_crossed, "samples cross a session boundary")
}

fn leave<const N: usize>(config: &Config<N>, world: &World<N>, at: u8) -> Result<(), Violation> {
    let track = &world.plan.tracks[usize::from(at)];
    ensure(track.file.is_some(), "left without a file")?;
    let has_room = world.may_begin(config, at);
    for (stream, _) in world
        .streams
        .iter()
        .zip(config.tracks)
        .filter(|(_, of)| *of == at)
    {
        ensure(
            stream.volatile.is_empty(),
            "left a file that is not durable",
        )?;
        ensure(!lacks_mark(stream.layout), "left a file without its mark")?;
        ensure(
            !stream.holds_samples(),
            "left a file before its samples were written",
        )?;
    }
    let is_rotating = world.files[usize::from(at)].is_rotation_asked && track.ahead > 0;
    let is_ending = world.plan.phase == Phase::Ending && !world.has_unsaved(config, at);
    let may_leave = !has_room || is_rotating || is_ending || world.is_at_session(config, at);
    ensure(may_leave, "left a file that has room")
}

fn read<const N: usize>(world: &World<N>, now: &Conditions<N>) -> Result<(), Violation> {
    ensure(now.is_read_pending, "no read is pending")?;
    let is_over = world.plan.phase == Phase::Ended;
    let mut tracks = world.plan.tracks().iter();
    let is_between = |track: &Track| {
        let is_left = track.file.is_none() && world.plan.phase == Phase::Recording;
        track.leave == Leave::Sealed || is_left && track.ahead > 0
    };
    ensure(
        is_over || !tracks.any(is_between),
        "a read delays the change to the next file",
    )?;
    ensure(
        is_over || now.absorbs_read,
        "the rings do not absorb this read",
    )
}

fn answer<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    is_durable: bool,
) -> Result<(), Violation> {
    ensure(world.is_flush_open(), "answered a flush twice")?;
    if is_durable {
        ensure(
            world.asked == Asked::Open,
            "a flush is reported durable although some of its samples are lost",
        )?;
        return ensure(
            !world.has_asked(),
            "a flush is reported durable before it is",
        );
    }
    let is_full = (0..config.track_count).any(|at| world.is_hopeless(at));
    let is_hopeless = world.asked == Asked::Lost || world.plan.card == Card::Absent || is_full;
    ensure(is_hopeless, "a flush is reported failed without reason")
}

fn report_full<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    at: u8,
) -> Result<(), Violation> {
    let is_reported = world.files[usize::from(at)].is_full_reported;
    ensure(!is_reported, "a full card is reported twice")?;
    ensure(
        world.is_starved(at),
        "a full card is reported while there is room",
    )?;
    ensure(
        world.is_known_full,
        "a full card is reported before the planner has looked for room",
    )?;
    ensure(
        world.has_unsaved(config, at),
        "a full card is reported while no samples are pending",
    )
}

fn give_up<const N: usize>(world: &World<N>, at: u8) -> Result<(), Violation> {
    ensure(
        world.plan.phase == Phase::Ending,
        "given up while recording",
    )?;
    ensure(world.is_starved(at), "given up while there is room")?;
    ensure(
        world.is_known_full,
        "given up before the planner has looked for room",
    )
}

fn end<const N: usize>(config: &Config<N>, world: &World<N>) -> Result<(), Violation> {
    ensure(!world.is_flush_open(), "ended with an unanswered flush")?;
    ensure(world.plan.job.is_none(), "ended with an unfinished job")?;
    for at in 0..config.track_count {
        ensure(world.slots(at) == 0, "ended with unfinished files")?;
        ensure(!world.has_unsaved(config, at), "ended with pending samples")?;
    }
    Ok(())
}

/// Checks a state that the recorder never leaves without outside events: nothing may be left to do.
pub(super) fn settled<const N: usize>(
    config: &Config<N>,
    world: &World<N>,
    is_card_gone: bool,
) -> Result<(), Violation> {
    let plan = &world.plan;
    if plan.phase == Phase::Ended {
        return Ok(());
    }
    ensure(plan.phase == Phase::Recording, "the recording never ends")?;
    ensure(
        !world.is_flush_open() && plan.flush == Flush::None,
        "a flush is never answered",
    )?;
    // The card does not come back.
    if is_card_gone {
        return Ok(());
    }
    ensure(
        matches!(plan.card, Card::Idle | Card::Writing(_)),
        "the card never comes back",
    )?;
    let has_room = world.has_room || config.may_remove && world.removable;
    for at in 0..config.track_count {
        let track = &plan.tracks[usize::from(at)];
        ensure(track.closing == 0, "a file is never closed")?;
        ensure(!world.needs_name(config, at), "a file is never named")?;
        let is_waiting = world.has_unsaved(config, at) || world.is_at_session(config, at);
        if world.is_starved(at) {
            ensure(
                !is_waiting || !has_room,
                "a track waits although there is room",
            )?;
            let is_reported = world.files[usize::from(at)].is_full_reported;
            ensure(
                is_reported || !world.has_unsaved(config, at),
                "a full card is never reported",
            )?;
        } else {
            let is_stopped = world.is_at_session(config, at) && !has_room;
            ensure(is_stopped || !is_waiting, "a checkpoint is never committed")?;
        }
        let is_rotating = world.files[usize::from(at)].is_rotation_asked;
        ensure(
            !is_rotating || track.file.is_none() || !has_room,
            "a new file is never begun",
        )?;
        let is_open = track
            .file
            .is_some_and(|file| file.index == file.blocks && file.durable < file.index);
        ensure(!is_open, "a full file never becomes durable")?;
    }
    Ok(())
}

/// Returns true if each track that waits for room looks for it in one of these worlds.
pub(super) fn looks_for_room<'a, const N: usize>(
    config: &Config<N>,
    worlds: impl Iterator<Item = &'a World<N>> + Clone,
) -> bool {
    (0..config.track_count).all(|at| {
        let mut all = worlds.clone();
        let is_looking = |world: &World<N>| world.plan.job == Some(Job::Reserve(at));
        let is_waiting = |world: &World<N>| {
            let is_recording = world.plan.phase == Phase::Recording;
            is_recording && world.is_starved(at) && world.has_unsaved(config, at)
        };
        !worlds.clone().any(is_waiting) || all.any(is_looking)
    })
}
