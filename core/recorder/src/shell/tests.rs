//! Single decisions of the shell, in states that recordings rarely reach.

use super::test_rig::*;
use super::*;
use crate::control::FlushState;
use crate::reads::ReadClass;
use crate::session::Session;
use std::string::{String, ToString};
use std::vec;
use std::vec::Vec;

/// Returns the cause of a sample that is lost now.
fn cause(shell: &mut Tested, outside: &mut Outside) -> Cause {
    shell.set_causes();
    let producer = &mut outside.producers[0];
    while producer.push(&[7; SAMPLE_BYTES], NOW_US).is_ok() {}
    let consumer = &mut shell.streams[0].consumer;
    let cause = loop {
        match consumer.next() {
            Next::Samples(bytes) => consumer.release(bytes),
            _ => break consumer.take_gap().unwrap().cause,
        }
    };
    // The next sample ends the gap.
    outside.push(0, 1);
    cause
}

#[test]
fn losses_have_the_cause_of_the_moment() {
    with(&CASE, Config::default(), |shell, outside, _| {
        assert_eq!(cause(shell, outside), Cause::Busy);
        shell.state.card = Card::Writing(0);
        assert_eq!(cause(shell, outside), Cause::Busy);
        let file = shell.state.tracks[0].file.as_mut().unwrap();
        file.index = file.blocks;
        assert_eq!(cause(shell, outside), Cause::FileNotReady);
        shell.state.tracks[0].ahead = 1;
        assert_eq!(cause(shell, outside), Cause::Busy);
        shell.state.tracks[0].is_full = true;
        assert_eq!(cause(shell, outside), Cause::CardFull);
        for card in [Card::Absent, Card::Unmounted] {
            shell.state.card = card;
            for away in [Cause::NoCard, Cause::CardFailed] {
                shell.away = away;
                assert_eq!(cause(shell, outside), away);
            }
        }
    });
}

#[test]
fn a_flush_after_the_end_fails_if_something_was_given_up() {
    for (phase, has_given_up, is_durable, state) in [
        (Phase::Recording, false, true, FlushState::Durable),
        (Phase::Recording, true, true, FlushState::Durable),
        (Phase::Recording, false, false, FlushState::Failed),
        (Phase::Ended, false, true, FlushState::Durable),
        (Phase::Ended, true, true, FlushState::Failed),
    ] {
        with(&CASE, Config::default(), |shell, outside, _| {
            (shell.state.phase, shell.has_given_up) = (phase, has_given_up);
            let number = outside.control.flush();
            done(shell.carry_out(Action::AnswerFlush(number, is_durable))).unwrap();
            assert_eq!(outside.control.flush_state(number), state, "{phase:?}");
        });
    }
}

#[test]
fn a_file_begins_with_its_number_and_length() {
    with(&CASE, Config::default(), |shell, outside, _| {
        shell.tracks[0].next_number = 41;
        shell.begin(0);
        let opened = Event::Opened {
            track: 0,
            id: FileId {
                prefix: *b"LOG",
                extension: *b"BIN",
                number: 41,
            },
            bytes_max: 2048 * 512,
        };
        assert_eq!(*outside.events.borrow(), vec![opened]);
        assert_eq!(shell.files.space(1).unwrap().blocks, 2048);
        // No further file is prepared.
        shell.begin(0);
        assert_eq!(outside.events.borrow().len(), 1);
    });
}

/// The recorder wakes up when a block fills or a checkpoint is due, after 20 us to 2 ms.
#[test]
fn it_sleeps_until_a_block_fills_or_a_checkpoint_is_due() {
    let mut case = CASE;
    for (level, rate, us) in [
        // 512 bytes at 1 MB/s, some of which are there.
        (0, 1_000_000, 512),
        (256, 1_000_000, 256),
        (504, 1_000_000, 20),
        (512, 1_000_000, 20),
        (8, 1_000, 2_000),
        (256, 200_000, 1_280),
    ] {
        case.streams[0].level = level;
        case.streams[0].rate = rate;
        case.streams[0].durable_us = NOW_US;
        case.streams[1].level = 0;
        with(&case, Config::default(), |shell, _, _| {
            done(shell.rest());
            assert_eq!(shell.delay.0, us, "{level} bytes, {rate} B/s");
            // A track without room has nothing to wake up for.
            shell.state.tracks[0].file = None;
            done(shell.rest());
            assert_eq!(shell.delay.0, 2_000);
        });
    }
    (case.streams[0].level, case.streams[0].rate) = (8, 1_000);
    for before_us in [700, 1_999, 10] {
        with(&case, Config::default(), |shell, _, _| {
            let lead_us = shell.lead_us(&shell.streams[0]);
            let of = &mut shell.streams[0];
            of.durable_before_us = NOW_US + before_us - (SECOND_US - lead_us);
            done(shell.rest());
            assert_eq!(u64::from(shell.delay.0), before_us.max(20));
        });
    }
    // While others read, a sixteenth of what is free in the ring may arrive.
    case.is_reading = true;
    (case.streams[0].level, case.streams[0].rate) = (16_384, 1_000_000);
    with(&case, Config::default(), |shell, _, _| {
        shell.streams[0].durable_before_us = NOW_US;
        done(shell.rest());
        assert_eq!(shell.delay.0, 1_024);
    });
}

#[test]
fn a_lost_card_is_tried_again_at_once_and_then_every_100_ms() {
    with(&CASE, Config::default(), |shell, outside, _| {
        shell.is_started = true;
        shell.state.phase = Phase::Ending;
        for (card, retry_us) in [
            (Card::Writing(0), NOW_US),
            (Card::Absent, NOW_US + 100_000),
            (Card::Unmounted, NOW_US + 100_000),
            (Card::Idle, NOW_US),
        ] {
            shell.state.card = card;
            let attempts = shell.attempts;
            shell.lose_card();
            assert_eq!(shell.timers.retry_us, retry_us, "{card:?}");
            assert_eq!(shell.attempts, attempts - 1);
            assert!(!shell.conditions(retry_us.saturating_sub(1)).is_retry_due);
            assert!(shell.conditions(retry_us).is_retry_due);
        }
        assert!(shell.tracks[0].file.is_none() && shell.tracks[0].ahead.is_empty());
        assert!(shell.files.space(1).is_none());
        let events = outside.events.borrow();
        let lost = events.iter().filter(|event| **event == Event::CardLost);
        assert_eq!(lost.count(), 2);
    });
}

#[test]
fn a_full_card_is_tried_again_after_a_second() {
    with(&CASE, Config::default(), |shell, _, _| {
        shell.apply(Action::Start(Job::Reserve(0)), Outcome::Done);
        assert_eq!(shell.timers.step_us, NOW_US);
        let is_over = |shell: &mut Tested, us| shell.conditions(NOW_US + us).is_patience_over;
        assert!(!is_over(shell, 19_999) && is_over(shell, 20_000));
        // Within a page of an open write, the step waits for the end of the page.
        let file = shell.state.tracks[0].file.as_mut().unwrap();
        file.index = 650;
        shell.state.card = Card::Writing(0);
        assert!(!is_over(shell, 39_999) && is_over(shell, 40_000));
        shell.apply(Action::Step, Outcome::NoRoom);
        assert_eq!(shell.timers.retry_us, NOW_US + SECOND_US);
    });
}

/// Pushes a sample and empties the ring; returns the names of the sessions in it.
fn sessions(shell: &mut Tested, outside: &mut Outside, stream: usize) -> Vec<String> {
    outside.push(stream, 1);
    let consumer = &mut shell.streams[stream].consumer;
    let mut names = Vec::new();
    loop {
        match consumer.next() {
            Next::Empty => return names,
            Next::Samples(bytes) => consumer.release(bytes),
            _ => names.push(consumer.take_session().unwrap().name().as_str().to_string()),
        }
    }
}

#[test]
fn every_stream_is_asked_once_to_begin_a_session() {
    with(&CASE, Config::default(), |shell, outside, _| {
        let ask = |shell: &mut Tested| {
            shell.ask_for_session();
            shell.control.waiting_session().is_none()
        };
        let begin = |outside: &Outside, name| {
            let session = Session::new(name, None, "", &FORMAT).unwrap();
            outside.control.begin_session(&session).unwrap();
        };
        assert!(ask(shell), "no session waits");
        begin(outside, "A");
        assert!(ask(shell));
        assert_eq!(sessions(shell, outside, 1), ["A"]);
        // The first stream has not begun session A yet: the next one waits for it.
        begin(outside, "B");
        assert!(!ask(shell));
        assert_eq!(sessions(shell, outside, 1), ["B"]);
        assert!(!ask(shell));
        assert!(sessions(shell, outside, 1).is_empty());
        assert_eq!(sessions(shell, outside, 0), ["A"]);
        assert!(ask(shell));
        assert_eq!(sessions(shell, outside, 0), ["B"]);
        assert!(sessions(shell, outside, 1).is_empty());
    });
}

/// Samples that arrive after a request stay in the ring if the checkpoint ends before them.
#[test]
fn blocks_take_samples_up_to_a_checkpoint() {
    let (behind, later) = (10 * SAMPLE_BYTES, 5 * SAMPLE_BYTES);
    // Checkpoint, phase, whether the position is the end of a page, whether the rings absorb a checkpoint, and what
    // remains in the ring without and with samples that the checkpoint covers.
    for (checkpoint, phase, is_end, absorbs, left) in [
        (Checkpoint::None, Phase::Recording, true, true, [0, 0]),
        (Checkpoint::Wanted, Phase::Recording, true, true, [later, 0]),
        (Checkpoint::Wanted, Phase::Recording, false, true, [0, 0]),
        (Checkpoint::Wanted, Phase::Recording, true, false, [0, 0]),
        (
            Checkpoint::Forced,
            Phase::Recording,
            false,
            false,
            [later, later],
        ),
        (Checkpoint::Forced, Phase::Ending, false, false, [later, 0]),
    ] {
        for (covered, left) in [(0, left[0]), (behind, left[1])] {
            let mut case = CASE;
            if !absorbs {
                (case.measured.commit, case.measured.longest) = (100_000, 2_000_000);
            }
            with(&case, Config::default(), |shell, outside, _| {
                write_full_blocks(shell);
                // Each stream has an unfinished block.
                let file = shell.state.tracks[0].file.as_mut().unwrap();
                file.index = if is_end { 702 } else { 701 };
                shell.tracks[0].requested_us = shell.now_us();
                outside.push(0, covered / SAMPLE_BYTES);
                shell.streams[0].request_checkpoint();
                outside.push(0, later / SAMPLE_BYTES);
                shell.state.tracks[0].checkpoint = checkpoint;
                shell.state.phase = phase;
                shell.fill(shell.now_us());
                let level = shell.streams[0].consumer.level_bytes();
                assert_eq!(
                    level, left,
                    "{checkpoint:?}, {phase:?}, {is_end}, {absorbs}"
                );
            });
        }
    }
}

#[test]
fn readers_do_not_see_a_block_that_was_written_since() {
    with(&CASE, Config::default(), |shell, outside, _| {
        let lend = || outside.desk.lend(100, 4, ReadClass::Short, 0);
        let mut first = pin!(lend());
        assert!(poll(first.as_mut()).is_pending());
        act(shell, Action::Read);
        assert_eq!(shell.medium.take(), [Command::Read(100, 4)]);
        assert!(matches!(poll(first), Poll::Ready(Ok(_))));
        let is_held = || poll(pin!(lend())).is_ready();
        assert!(is_held());
        shell.note_write_to(104, 8);
        assert!(is_held());
        shell.note_write_to(99, 2);
        assert!(!is_held());
    });
}

#[test]
fn a_write_is_announced_with_the_length_of_the_file() {
    for (blocks, index, hint) in [(4096, 640, 3456), (4096, 0, 4096), (20_000, 5, 8192)] {
        let mut case = CASE;
        case.file = (6400, blocks, index);
        (case.measured.longest, case.measured.commit) = (1, 5_000);
        with(&case, Config::default(), |shell, outside, _| {
            shell.fill(NOW_US);
            act(shell, Action::Write(1));
            act(shell, Action::Write(0));
            let begin = Command::Begin(6400 + index, hint);
            assert_eq!(shell.medium.take(), [begin, Command::Push, Command::Push]);
            // Its first block names the session of the file.
            let first_stream = if index == 0 { 1 } else { 0 };
            assert_eq!(shell.tracks[0].first_stream, first_stream);
            assert_eq!(u64::from(shell.costs.longest_us), PUSH_US);
            act(shell, Action::Commit(0));
            assert_eq!(shell.medium.take(), [Command::End]);
            assert_eq!(u64::from(shell.costs.commit.us()), END_US);
            assert_eq!(u64::from(shell.costs.longest_us), END_US);
            shell.publish_figures(shell.now_us());
            let figures = outside.desk.figures();
            assert_eq!((figures.blocks, figures.writes), (2, 3));
            assert_eq!(u64::from(figures.write_us_max), END_US);
            // A file of another track keeps the write open.
            shell.state.card = Card::Writing(1);
            act(shell, Action::Leave(0));
            assert!(shell.medium.take().is_empty());
        });
    }
}

#[test]
fn leaving_a_file_ends_its_write() {
    with(&CASE, Config::default(), |shell, _, _| {
        write_all(shell);
        shell.medium.take();
        act(shell, Action::Leave(0));
        assert_eq!(shell.medium.take(), [Command::End]);
    });
}

/// A checkpoint is complete when all it covers is in marked blocks, even if more samples follow in the ring.
#[test]
fn a_checkpoint_is_reported_when_it_is_complete() {
    for (checkpoint, is_marked, is_behind, is_complete) in [
        (Checkpoint::Wanted, true, false, true),
        (Checkpoint::Forced, true, false, true),
        (Checkpoint::None, true, false, false),
        (Checkpoint::Wanted, false, false, false),
        (Checkpoint::Wanted, true, true, false),
    ] {
        with(&CASE, Config::default(), |shell, outside, _| {
            match is_marked {
                true => write_all(shell),
                false => write_full_blocks(shell),
            }
            let requested_us = NOW_US - 5_000;
            shell.tracks[0].requested_us = requested_us;
            shell.state.tracks[0].checkpoint = checkpoint;
            outside.push(0, 1);
            outside.push(1, 1);
            if is_behind {
                shell.streams[0].request_checkpoint();
            }
            outside.take_events();
            act(shell, Action::Commit(0));
            let report = |stream, samples| Event::Checkpoint {
                stream,
                samples,
                pushed_before_us: requested_us,
                is_late: false,
            };
            let expected = match is_complete {
                true => vec![report(0, 500), report(1, 100)],
                false => vec![],
            };
            assert_eq!(outside.take_events(), expected, "{checkpoint:?}");
        });
    }
}

/// A run that ended, or never used the card, leaves nothing behind. Any other one counts as a failure of the card.
#[test]
fn only_an_unfinished_run_is_abandoned() {
    let cards = [Card::Absent, Card::Unmounted, Card::Idle, Card::Writing(0)];
    for phase in [Phase::Recording, Phase::Ending, Phase::Ended] {
        for (card, job) in cards
            .into_iter()
            .flat_map(|card| [(card, None), (card, Some(Job::Mount))])
        {
            for (is_started, is_serving) in
                [(false, false), (true, false), (false, true), (true, true)]
            {
                with(&CASE, Config::default(), |shell, outside, _| {
                    (shell.state.phase, shell.state.card, shell.state.job) = (phase, card, job);
                    (shell.is_started, shell.is_serving) = (is_started, is_serving);
                    shell.timers.retry_us = 1;
                    shell.abandon_run();
                    let is_clean = match (job, card, phase) {
                        (None, Card::Absent, _) => true,
                        (None, _, Phase::Ended) => is_started || is_serving,
                        _ => false,
                    };
                    let name = std::format!("{phase:?} {card:?} {job:?} {is_started} {is_serving}");
                    assert_eq!(shell.tracks[0].file.is_some(), is_clean, "{name}");
                    assert_eq!(shell.timers.retry_us == 1, is_clean, "{name}");
                    let after = if is_clean {
                        (card, job)
                    } else {
                        (Card::Absent, None)
                    };
                    assert_eq!((shell.state.card, shell.state.job), after, "{name}");
                    let is_new = !is_clean && !is_started && !is_serving;
                    let after = if is_new { Phase::Recording } else { phase };
                    assert_eq!(shell.state.phase, after, "{name}");
                    let is_lost = matches!(card, Card::Idle | Card::Writing(_));
                    let is_reported = !is_clean && is_lost && (is_started || is_serving);
                    let lost = is_reported.then_some(Event::CardLost);
                    assert_eq!(outside.take_events(), Vec::from_iter(lost), "{name}");
                });
            }
        }
    }
}

/// Half of a nearly empty ring, 16,384 B, has to absorb the longest step and a stall of 40 ms at 200 kB/s.
#[test]
fn a_long_step_is_remembered() {
    let mut case = CASE;
    case.streams[0].rate = 200_000;
    case.streams.iter_mut().for_each(|of| of.level = 0);
    (case.measured.longest, case.measured.step) = (30_000, 12_000);
    for (us, is_absorbed) in [(0, true), (41_900, true), (41_940, false)] {
        with(&case, Config::default(), |shell, _, _| {
            assert!(shell.absorbs_step());
            shell.timers.step_us = NOW_US - us;
            shell.observe_step();
            assert_eq!(shell.absorbs_step(), is_absorbed, "{us} us");
        });
    }
}

/// At such moments they would keep the rings at the level of a turn, and divide each turn into many short writes.
#[test]
fn steps_wait_for_the_end_of_a_turn_and_for_turns_that_are_due() {
    let mut case = CASE;
    case.is_shared = false;
    case.measured.longest = 1_000;
    case.streams.iter_mut().for_each(|of| of.rate = 100);
    // A turn has 16 KiB, or 32 blocks, of which one is already filled.
    for (level, card, index, is_free) in [
        (15_000, Card::Idle, 650, true),
        (18_000, Card::Idle, 650, false),
        (15_000, Card::Writing(0), 640, true),
        (15_000, Card::Writing(0), 650, false),
        (15_000, Card::Writing(0), 672, true),
        (18_000, Card::Writing(0), 672, false),
    ] {
        case.streams[0].level = level;
        case.file = (6400, 4096, index);
        with(&case, Config::default(), |shell, _, _| {
            shell.state.card = card;
            shell.fill(NOW_US);
            assert_eq!(shell.absorbs_step(), is_free, "{level} {card:?} {index}");
            shell.state.job = Some(Job::Change);
            assert!(shell.absorbs_step(), "changes of other tasks do not wait");
        });
    }
}
