//! Single decisions of two tracks, with one stream each.

use super::*;

type Change = fn(&mut State<2>, &mut Conditions<2>);

/// Two tracks whose open files have room, and whose next files are prepared. Nothing is left to do.
fn quiet() -> (State<2>, Conditions<2>) {
    let mut state = State::new(2);
    state.card = Card::Idle;
    state.tracks = [Track {
        file: Some(File {
            blocks: 100,
            index: 10,
            durable: 10,
        }),
        ahead: 1,
        ..Track::NEW
    }; 2];
    let mut now = Conditions::new();
    now.streams[1].track = 1;
    (state, now)
}

fn chosen(change: Change) -> Action {
    let (mut state, mut now) = quiet();
    change(&mut state, &mut now);
    next_action(&state, &now)
}

/// Fills the block of a stream.
fn fill(now: &mut Conditions<2>, stream: usize, level: u16) {
    (now.streams[stream].block, now.streams[stream].level) = (Block::Full, level);
}

/// Makes the next file of the first track urgent.
fn make_short(state: &mut State<2>, now: &mut Conditions<2>) {
    state.tracks[0].ahead = 0;
    (now.tracks[0].is_short, now.tracks[0].may_reserve) = (true, true);
}

/// Fills the file of the first track, without a prepared one.
fn starve(state: &mut State<2>) {
    state.tracks[0].ahead = 0;
    state.tracks[0].file = Some(File {
        blocks: 100,
        index: 100,
        durable: 100,
    });
    state.tracks[0].leave = Leave::Sealed;
    apply(state, &quiet().1, Action::Leave(0), Outcome::Done);
    state.tracks[0].closing = 0;
}

#[test]
fn nothing_is_done_when_nothing_is_wanted() {
    assert_eq!(chosen(|_, _| ()), Action::Rest);
}

/// After the end: reads first, except that a step of a job follows each read.
#[test]
fn other_tasks_are_served_after_the_end() {
    for bits in 0..32 {
        let has = |bit: u32| bits & 1 << bit != 0;
        let (mut state, mut now) = quiet();
        state.phase = Phase::Ended;
        state.job = has(0).then_some(Job::Change);
        state.is_job_next = has(0) && has(1);
        (now.is_read_pending, now.is_change_pending) = (has(2), has(3));
        now.is_serving = has(4);
        let expected = match (state.job, now.is_read_pending, now.is_change_pending) {
            _ if !now.is_serving => Action::End,
            (Some(_), true, _) if state.is_job_next => Action::Step,
            (_, true, _) => Action::Read,
            (Some(_), false, _) => Action::Step,
            (None, false, true) => Action::Start(Job::Change),
            (None, false, false) => Action::Rest,
        };
        assert_eq!(next_action(&state, &now), expected, "{state:?}\n{now:?}");
    }
}

#[test]
fn the_fuller_ring_is_written_first() {
    for (levels, first) in [([100, 100], 0), ([100, 101], 1), ([101, 100], 0)] {
        let (state, mut now) = quiet();
        (0..2).for_each(|at| fill(&mut now, at, levels[at]));
        assert_eq!(
            next_action(&state, &now),
            Action::Write(first),
            "{levels:?}"
        );
    }
    // A forced checkpoint counts more than a level.
    let forced = chosen(|state, now| {
        (0..2).for_each(|at| fill(now, at, 400 - 100 * at as u16));
        state.tracks[1].checkpoint = Checkpoint::Forced;
    });
    assert_eq!(forced, Action::Write(1));
}

#[test]
fn a_ring_more_than_half_full_precedes_a_job() {
    for (level, action) in [
        (499, Action::Step),
        (500, Action::Step),
        (501, Action::Write(0)),
        (900, Action::Write(0)),
    ] {
        let (mut state, mut now) = quiet();
        state.job = Some(Job::Name(0));
        now.absorbs_step = true;
        fill(&mut now, 0, level);
        assert_eq!(next_action(&state, &now), action, "{level}");
    }
}

#[test]
fn a_write_begins_for_a_checkpoint_but_not_before_readers_or_other_turns() {
    let cases: [(Change, Action); 9] = [
        (|_, now| now.is_reading = true, Action::Rest),
        (
            |state, now| {
                state.card = Card::Writing(0);
                now.is_reading = true;
            },
            Action::Write(0),
        ),
        (
            |state, now| {
                now.is_reading = true;
                state.tracks[0].checkpoint = Checkpoint::Wanted;
            },
            Action::Rest,
        ),
        (
            |state, now| {
                (now.is_reading, now.tracks[0].is_checkpoint_ready) = (true, true);
                state.tracks[0].checkpoint = Checkpoint::Wanted;
            },
            Action::Write(0),
        ),
        // An urgent job waits for blocks, and so blocks do not wait for readers.
        (
            |state, now| {
                now.is_reading = true;
                make_short(state, now);
            },
            Action::Write(0),
        ),
        (|state, _| state.card = Card::Writing(1), Action::Rest),
        (
            |state, now| {
                state.card = Card::Writing(1);
                now.streams[0].has_turn = true;
            },
            Action::Write(0),
        ),
        (
            |state, _| {
                state.card = Card::Writing(1);
                state.tracks[0].checkpoint = Checkpoint::Wanted;
            },
            Action::Write(0),
        ),
        (
            |state, now| {
                state.card = Card::Writing(1);
                (now.is_reading, now.streams[0].has_turn) = (true, true);
            },
            Action::Rest,
        ),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        fill(&mut now, 0, 100);
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

#[test]
fn reads_wait_for_checkpoints_and_alternate_with_jobs() {
    let cases: [(Change, Action); 9] = [
        (|_, _| (), Action::Read),
        (|_, now| now.absorbs_step = true, Action::Read),
        (|_, now| now.absorbs_read = false, Action::Rest),
        (
            |state, now| {
                (state.job, state.is_job_next) = (Some(Job::Change), true);
                now.absorbs_step = true;
            },
            Action::Step,
        ),
        (
            |state, _| (state.job, state.is_job_next) = (Some(Job::Change), true),
            Action::Read,
        ),
        (
            |state, _| state.tracks[0].checkpoint = Checkpoint::Wanted,
            Action::Read,
        ),
        (
            |state, now| {
                state.tracks[0].checkpoint = Checkpoint::Wanted;
                now.tracks[0].is_checkpoint_ready = true;
            },
            Action::Rest,
        ),
        (
            |state, _| state.tracks[0].checkpoint = Checkpoint::Forced,
            Action::Commit(0),
        ),
        // The next file begins without card time.
        (
            |state, _| state.tracks[1].leave = Leave::Sealed,
            Action::Leave(1),
        ),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        (now.is_read_pending, now.absorbs_read) = (true, true);
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

#[test]
fn a_checkpoint_is_marked_and_committed_when_its_data_is_in_blocks() {
    let cases: [(Change, Action); 9] = [
        (|_, _| (), Action::Commit(0)),
        (
            |_, now| now.streams[0].block = Block::Partial,
            Action::Mark(0),
        ),
        (|_, now| now.streams[0].is_behind = true, Action::Rest),
        (
            |_, now| {
                now.streams[0].is_behind = true;
                now.streams[0].block = Block::Partial;
            },
            Action::Rest,
        ),
        // The rest belongs to the next session: nothing is left to do in this file.
        (
            |_, now| (now.streams[0].is_behind, now.streams[0].is_at_session) = (true, true),
            Action::Rest,
        ),
        (
            |state, now| {
                (now.streams[0].is_behind, now.streams[0].is_at_session) = (true, true);
                state.tracks[0].file.as_mut().unwrap().index = 11;
            },
            Action::Commit(0),
        ),
        (
            |state, now| {
                (now.streams[0].is_behind, now.streams[0].is_at_session) = (true, true);
                state.tracks[0].leave = Leave::Sealing;
            },
            Action::Commit(0),
        ),
        // The rest has no room in this file.
        (
            |state, now| {
                (now.streams[0].is_behind, now.tracks[0].is_used_up) = (true, true);
                state.tracks[0].file.as_mut().unwrap().index = 11;
            },
            Action::Commit(0),
        ),
        (
            |_, now| {
                (now.streams[0].is_behind, now.tracks[0].is_used_up) = (true, true);
                now.streams[0].block = Block::Partial;
            },
            Action::Rest,
        ),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        state.tracks[0].checkpoint = Checkpoint::Forced;
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

/// A job that is not urgent needs rings that absorb it and no pending checkpoint; an urgent one only waits for blocks, and
/// no longer when its patience is over.
#[test]
fn jobs_wait_for_rings_and_checkpoints() {
    let cases: [(Change, Action); 11] = [
        (|_, _| (), Action::Rest),
        (
            |_, now| now.absorbs_step = true,
            Action::Start(Job::Close(0)),
        ),
        (
            |state, now| {
                now.absorbs_step = true;
                state.tracks[1].checkpoint = Checkpoint::Wanted;
            },
            Action::Rest,
        ),
        (|_, now| now.is_patience_over = true, Action::Rest),
        (
            |state, now| make_short(state, now),
            Action::Start(Job::Reserve(0)),
        ),
        (
            |state, now| {
                make_short(state, now);
                fill(now, 1, 100);
            },
            Action::Write(1),
        ),
        (
            |state, now| {
                make_short(state, now);
                now.is_patience_over = true;
                fill(now, 1, 900);
            },
            Action::Start(Job::Reserve(0)),
        ),
        (
            |state, now| {
                make_short(state, now);
                now.is_patience_over = true;
                state.tracks[1].checkpoint = Checkpoint::Forced;
            },
            Action::Commit(1),
        ),
        // The job that runs is not urgent, but another one is.
        (
            |state, now| {
                make_short(state, now);
                state.job = Some(Job::Name(1));
                now.is_patience_over = true;
                fill(now, 1, 900);
            },
            Action::Step,
        ),
        (
            |state, now| {
                state.job = Some(Job::Name(1));
                now.is_patience_over = true;
                fill(now, 1, 900);
            },
            Action::Write(1),
        ),
        // At the end, every job is urgent.
        (
            |state, now| {
                state.job = Some(Job::Name(1));
                (state.tracks[0].closing, state.phase) = (0, Phase::Ending);
                now.is_patience_over = true;
                fill(now, 1, 900);
            },
            Action::Step,
        ),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        state.tracks[0].closing = 1;
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

/// The first step of a job that the rings absorb: urgent jobs, then those of the track whose turn it is.
#[test]
fn jobs_have_an_order() {
    let cases: [(Change, Action); 10] = [
        (
            |_, now| now.is_change_pending = true,
            Action::Start(Job::Change),
        ),
        (
            |state, now| {
                now.is_change_pending = true;
                state.tracks[1].closing = 1;
            },
            Action::Start(Job::Close(1)),
        ),
        (
            |state, now| {
                state.tracks[1].closing = 1;
                make_short(state, now);
                state.turn = 1;
            },
            Action::Start(Job::Reserve(0)),
        ),
        (
            |state, _| {
                (state.tracks[0].closing, state.tracks[1].closing) = (1, 1);
                state.turn = 1;
            },
            Action::Start(Job::Close(1)),
        ),
        (
            |state, now| {
                state.tracks[0].closing = 1;
                now.tracks[1].is_name_due = true;
            },
            Action::Start(Job::Name(1)),
        ),
        (
            |_, now| now.tracks[1].needs_name = true,
            Action::Start(Job::Name(1)),
        ),
        (
            |_, now| now.tracks[1].may_reserve = true,
            Action::Start(Job::Reserve(1)),
        ),
        (
            |state, now| {
                state.room = Room::None;
                now.tracks[1].may_reserve = true;
            },
            Action::Rest,
        ),
        (
            |state, now| {
                state.room = Room::Tight;
                make_short(state, now);
            },
            Action::Start(Job::Remove),
        ),
        (
            |state, now| {
                state.room = Room::Tight;
                state.tracks[1].closing = 1;
                make_short(state, now);
            },
            Action::Start(Job::Close(1)),
        ),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        now.absorbs_step = true;
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

/// Rings that absorb nothing let only an urgent job begin, once its patience is over.
#[test]
fn a_file_is_urgent_when_the_last_one_ends_soon() {
    for bits in 0..16 {
        let has = |bit: u32| bits & 1 << bit != 0;
        let (mut state, mut now) = quiet();
        (now.is_patience_over, now.tracks[0].may_reserve) = (true, true);
        let is_full = has(0);
        if is_full {
            state.tracks[0].file.as_mut().unwrap().blocks = 10;
        }
        state.tracks[0].ahead = u8::from(has(1));
        now.tracks[0].is_short = has(2);
        let has_session = has(3);
        state.tracks[0].leave = if has_session {
            Leave::Session
        } else {
            Leave::Rotate
        };
        let is_urgent = has(2) || !has(1) && (is_full || has_session);
        let action = match (is_urgent, is_full) {
            (true, _) => Action::Start(Job::Reserve(0)),
            (false, true) => Action::Leave(0),
            (false, false) => Action::Rest,
        };
        assert_eq!(next_action(&state, &now), action, "{bits:04b}");
    }
}

#[test]
fn a_full_card_is_reported_and_tried_again() {
    let cases: [(Change, Action); 6] = [
        (|_, _| (), Action::ReportFull(0)),
        (|state, _| state.tracks[0].is_full = true, Action::Rest),
        (
            |_, now| now.is_retry_due = true,
            Action::Start(Job::Reserve(0)),
        ),
        (
            |_, now| (now.is_retry_due, now.tracks[0].may_reserve) = (true, false),
            Action::ReportFull(0),
        ),
        // At the end, nobody waits for room.
        (
            |state, now| {
                now.is_retry_due = true;
                (state.phase, state.tracks[0].is_full) = (Phase::Ending, true);
            },
            Action::GiveUp(0),
        ),
        (
            |state, _| {
                (state.phase, state.tracks[0].closing) = (Phase::Ending, 1);
            },
            Action::Start(Job::Close(0)),
        ),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        starve(&mut state);
        state.room = Room::None;
        (now.streams[0].is_waiting, now.tracks[0].may_reserve) = (true, true);
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

#[test]
fn at_the_end_a_file_is_prepared_only_for_data_without_room() {
    let cases: [(Change, Action); 4] = [
        (|_, _| (), Action::Write(0)),
        (
            |_, now| now.streams[0].is_at_session = true,
            Action::Start(Job::Reserve(0)),
        ),
        (
            |state, now| {
                now.streams[0].is_at_session = true;
                state.tracks[0].ahead = 1;
            },
            Action::Write(0),
        ),
        (|state, _| starve(state), Action::Start(Job::Reserve(0))),
    ];
    for (number, (change, action)) in cases.into_iter().enumerate() {
        let (mut state, mut now) = quiet();
        (state.phase, state.tracks[0].ahead) = (Phase::Ending, 0);
        (now.is_patience_over, now.tracks[0].may_reserve) = (true, true);
        fill(&mut now, 0, 100);
        change(&mut state, &mut now);
        assert_eq!(next_action(&state, &now), action, "case {number}");
    }
}

#[test]
fn only_a_file_with_data_is_rotated() {
    let leaves = [Leave::Stay, Leave::Session, Leave::Sealing, Leave::Sealed];
    for leave in leaves {
        for phase in [Phase::Recording, Phase::Ending] {
            for index in [None, Some(0), Some(1), Some(2)] {
                for block in [Block::Clean, Block::Partial, Block::Full] {
                    let (mut state, mut now) = quiet();
                    state.phase = phase;
                    state.tracks[0].leave = leave;
                    state.tracks[0].file = index.map(|index| File {
                        blocks: 100,
                        index,
                        durable: 0,
                    });
                    now.streams[0].block = block;
                    request(&mut state, &mut now, Request::Rotate);
                    let has_data = index > Some(0) || block != Block::Clean;
                    let is_rotated = leave == Leave::Stay && phase == Phase::Recording && has_data;
                    let after = if is_rotated { Leave::Rotate } else { leave };
                    assert_eq!(
                        state.tracks[0].leave, after,
                        "{phase:?} {index:?} {block:?}"
                    );
                }
            }
        }
    }
}

/// A file is left for its successor, or when it is used up; before a session, also when the card has no room.
#[test]
fn a_file_is_left_when_its_successor_is_prepared() {
    for leave in [Leave::Stay, Leave::Rotate, Leave::Session] {
        for room in [Room::Unknown, Room::Tight, Room::None] {
            for (ahead, is_used_up, is_durable) in
                (0..8).map(|bits| (bits & 1, bits & 2 != 0, bits & 4 != 0))
            {
                let (mut state, mut now) = quiet();
                let track = &mut state.tracks[0];
                (track.leave, track.ahead, state.room) = (leave, ahead, room);
                track.file.as_mut().unwrap().durable = if is_durable { 10 } else { 9 };
                now.tracks[0].is_used_up = is_used_up;
                update(&mut state, &mut now);
                let is_left = match leave {
                    Leave::Rotate => is_used_up || ahead == 1,
                    Leave::Session => is_used_up || ahead == 1 || room != Room::Unknown,
                    _ => is_used_up,
                };
                let (after, checkpoint) = match (is_left, is_durable) {
                    (false, _) => (leave, Checkpoint::None),
                    (true, true) => (Leave::Sealed, Checkpoint::None),
                    (true, false) => (Leave::Sealing, Checkpoint::Forced),
                };
                let track = state.tracks[0];
                assert_eq!(
                    (track.leave, track.checkpoint),
                    (after, checkpoint),
                    "{leave:?}"
                );
            }
        }
    }
}

#[test]
fn jobs_find_out_about_room_and_take_turns() {
    let all = [Room::Unknown, Room::Tight, Room::None];
    for (job, outcome, may_remove, room) in [
        (Job::Reserve(0), Outcome::JobDone, true, Some(Room::Unknown)),
        (Job::Reserve(0), Outcome::NoRoom, true, Some(Room::Tight)),
        (Job::Reserve(0), Outcome::NoRoom, false, Some(Room::None)),
        (Job::Remove, Outcome::JobDone, true, Some(Room::Unknown)),
        (Job::Remove, Outcome::NoRoom, true, Some(Room::None)),
        (Job::Close(0), Outcome::JobDone, false, Some(Room::Unknown)),
        (
            Job::Discard(0),
            Outcome::JobDone,
            false,
            Some(Room::Unknown),
        ),
        (Job::Change, Outcome::JobDone, false, Some(Room::Unknown)),
        (Job::Name(0), Outcome::JobDone, false, None),
    ] {
        for before in all {
            let (mut state, mut now) = quiet();
            (state.job, state.room, state.tracks[0].closing) = (Some(job), before, 1);
            now.may_remove = may_remove;
            apply(&mut state, &now, Action::Step, outcome);
            assert_eq!(state.room, room.unwrap_or(before), "{job:?} {outcome:?}");
            assert_eq!(state.job, None);
        }
    }
    let (mut state, now) = quiet();
    for (at, turn) in [(0, 1), (1, 0), (0, 1)] {
        for job in [Job::Reserve(at), Job::Close(at), Job::Name(at)] {
            (state.job, state.tracks[usize::from(at)].closing) = (Some(job), 1);
            apply(&mut state, &now, Action::Step, Outcome::JobDone);
            assert_eq!(state.turn, turn, "{job:?}");
        }
    }
}

/// The checkpoint that ends a file is not forced in the next one, unless a flush or the end waits for it.
#[test]
fn a_new_file_defers_the_checkpoint_of_the_last_one() {
    for checkpoint in [Checkpoint::None, Checkpoint::Wanted, Checkpoint::Forced] {
        for flush in [Flush::None, Flush::Answer(1, true), Flush::Pending(1)] {
            for phase in [Phase::Recording, Phase::Ending] {
                let (mut state, mut now) = quiet();
                (state.phase, state.flush) = (phase, flush);
                let track = &mut state.tracks[0];
                (track.file, track.checkpoint, track.leave) = (None, checkpoint, Leave::Sealed);
                now.tracks[0].next_blocks = 77;
                apply(&mut state, &now, Action::Begin(0), Outcome::Done);
                let waits = flush == Flush::Pending(1) || phase == Phase::Ending;
                let after = match checkpoint {
                    Checkpoint::Forced if !waits => Checkpoint::Wanted,
                    other => other,
                };
                let begun = Track {
                    file: Some(File {
                        blocks: 77,
                        index: 0,
                        durable: 0,
                    }),
                    checkpoint: after,
                    ..Track::NEW
                };
                assert_eq!(state.tracks[0], begun, "{flush:?} {phase:?}");
            }
        }
    }
}

#[test]
fn a_flush_fails_when_its_data_is_given_up() {
    let (mut state, now) = quiet();
    (state.tracks[0].checkpoint, state.flush) = (Checkpoint::Forced, Flush::Pending(3));
    apply(&mut state, &now, Action::GiveUp(0), Outcome::Done);
    assert_eq!(state.flush, Flush::Answer(3, false));
    assert_eq!(state.tracks[0].checkpoint, Checkpoint::None);
}
