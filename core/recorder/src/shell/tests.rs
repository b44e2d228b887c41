//! Single decisions of the shell, in states that recordings rarely reach.

use super::test_rig::*;
use super::*;
use crate::control::FlushState;
use std::vec;

fn done<T>(future: impl Future<Output = T>) -> T {
    let mut context = core::task::Context::from_waker(core::task::Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing waits here"),
    }
}

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
        shell.apply(Action::Step, Outcome::NoRoom);
        assert_eq!(shell.timers.retry_us, NOW_US + SECOND_US);
    });
}
