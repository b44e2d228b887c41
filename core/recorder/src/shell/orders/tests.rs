//! Results of jobs, and the beginning and end of a recording.

use super::*;
use crate::control::FlushState;
use crate::reads::ReadError;
use crate::recorder::Config;
use crate::shell::test_rig::*;
use crate::volume::Reserved;
use core::pin::pin;
use core::task::Poll;
use std::vec;
use std::vec::Vec;

const FILE_BYTES: u32 = 1 << 20;

/// Both streams share a file whose first block is the next one.
const NEW_FILE: Case = Case {
    file: (6400, 4096, 0),
    ..CASE
};

fn short_files() -> Config {
    Config {
        file_bytes: FILE_BYTES,
        ..Config::default()
    }
}

#[test]
fn only_a_file_shorter_than_requested_is_reported() {
    with(&CASE, short_files(), |shell, outside, _| {
        let requested = FILE_BYTES / 512;
        assert_eq!(shell.request(0).blocks, requested);
        for (slot, blocks, is_short) in [
            (2, requested + 1, false),
            (3, requested, false),
            (4, requested - 1, true),
            (5, 128, true),
        ] {
            let file: Reserved = reserved(slot, 300_000, blocks);
            shell.take_done(Done::Reserved(0, file));
            let short = is_short.then_some(Event::Short {
                track: 0,
                bytes_max: u64::from(blocks) * 512,
            });
            assert_eq!(outside.take_events(), Vec::from_iter(short));
            assert_eq!(shell.files.space(slot).unwrap().blocks, blocks);
            assert_eq!(shell.tracks[0].ahead.last(), Some(&slot));
        }
    });
}

/// Writes a file and leaves it; returns its record.
fn left_file(shell: &mut Tested) -> FileRecord {
    write_all(shell);
    act(shell, Action::Commit(0));
    act(shell, Action::Leave(0));
    shell.closing(0).unwrap().1
}

#[test]
fn closed_files_count_for_the_streams_of_their_track() {
    for is_shared in [true, false] {
        let case = Case {
            is_shared,
            ..NEW_FILE
        };
        with(&case, Config::default(), |shell, outside, _| {
            let first = left_file(shell);
            shell.state.tracks[0].ahead = 1;
            act(shell, Action::Begin(0));
            outside.push(0, 100);
            shell.take_done(Done::Closed(0));
            let second = left_file(shell);
            outside.take_events();
            shell.take_done(Done::Closed(0));
            let closed = Event::Closed {
                track: 0,
                record: second,
            };
            assert_eq!(outside.take_events(), vec![closed]);
            assert!(shell.closing(0).is_none());
            // A header, and 100 samples in two blocks of 59.
            assert_eq!(second.bytes, 3 * 512);
            let sums = |shell: &Tested, at: usize| {
                let summary = shell.streams[at].summary;
                (summary.bytes, summary.files)
            };
            let both = (first.bytes + second.bytes, 2);
            assert_eq!(sums(shell, 0), both);
            assert_eq!(sums(shell, 1), if is_shared { both } else { (0, 0) });
        });
    }
}

#[test]
fn a_file_without_room_for_its_entry_is_reported_and_forgotten() {
    with(&NEW_FILE, Config::default(), |shell, outside, _| {
        let id = left_file(shell).id;
        outside.take_events();
        for job in [None, Some(Job::Reserve(0)), Some(Job::Close(0))] {
            assert!(shell.closing(0).is_some(), "{job:?}");
            assert!(
                outside.take_events().is_empty() && outside.desk.unfinished(|_| true).is_some()
            );
            shell.state.job = job;
            shell.take_no_room();
        }
        assert_eq!(
            outside.take_events(),
            vec![Event::NotClosed { track: 0, id }]
        );
        assert!(shell.closing(0).is_none() && outside.desk.unfinished(|_| true).is_none());
    });
}

/// The next change waits for the end of the one before.
#[test]
fn a_change_that_is_done_or_refused_makes_way_for_the_next() {
    with(&CASE, Config::default(), |shell, outside, _| {
        let changes = &outside.desk.changes;
        changes.abandon(0);
        for is_done in [true, false] {
            assert!(shell.conditions(NOW_US).is_change_pending);
            changes.begin();
            changes.abandon(1);
            assert!(!shell.conditions(NOW_US).is_change_pending);
            match is_done {
                true => shell.take_done(Done::Changed),
                false => shell.end_change(Err(FileError::NotFound)),
            }
        }
        assert!(shell.conditions(NOW_US).is_change_pending);
    });
}

#[test]
fn a_mounted_card_has_numbers_for_all_tracks() {
    for is_started in [false, true] {
        let case = Case {
            is_shared: false,
            ..CASE
        };
        with(&case, Config::default(), |shell, outside, _| {
            shell.is_started = is_started;
            let generation = outside.desk.generation();
            shell.take_mounted(None, |prefix, extension| {
                assert_eq!((&prefix, &extension), (b"LOG", b"BIN"));
                41
            });
            let numbers = shell.tracks.each_ref().map(|track| track.next_number);
            assert_eq!(numbers, [41, 41]);
            assert!(outside.desk.is_other_card(generation.max(1)) || generation == 0);
            assert_ne!(outside.desk.generation(), generation);
            let back = is_started.then_some(Event::CardBack);
            assert_eq!(outside.take_events(), Vec::from_iter(back));
        });
    }
}

#[test]
fn only_a_mount_is_mounting() {
    with(&CASE, Config::default(), |shell, _, _| {
        for (job, is_mounting) in [
            (None, false),
            (Some(Job::Mount), true),
            (Some(Job::Reserve(0)), false),
        ] {
            shell.state.job = job;
            assert_eq!(shell.is_mounting(), is_mounting, "{job:?}");
        }
    });
}

#[test]
fn a_track_without_a_file_or_a_prepared_one_has_none() {
    with(&CASE, Config::default(), |shell, _, _| {
        assert!(!shell.has_no_file());
        shell.state.tracks[0].file = None;
        assert!(shell.has_no_file());
        shell.state.tracks[0].ahead = 1;
        assert!(!shell.has_no_file());
    });
    let apart = Case {
        is_shared: false,
        ..CASE
    };
    with(&apart, Config::default(), |shell, _, _| {
        assert!(shell.has_no_file(), "the second track has none");
        shell.state.tracks[1].ahead = 1;
        assert!(!shell.has_no_file());
    });
}

/// Sampling may begin when the file is open, and as many files are prepared as the table or the card has room for.
#[test]
fn the_recorder_is_ready_when_all_files_are_prepared() {
    for room in [Room::Unknown, Room::Tight, Room::None] {
        // Seven files in addition to the one that is open.
        for (ahead, is_open) in [(6, true), (7, true), (7, false), (0, false)] {
            with(&CASE, Config::default(), |shell, outside, _| {
                let is_ready = is_open && (ahead == 7 || room != Room::Unknown);
                shell.state.room = room;
                shell.state.tracks[0].ahead = ahead;
                if !is_open {
                    shell.state.tracks[0].file = None;
                }
                shell.state.job = Some(Job::Reserve(0));
                shell.report_ready();
                assert!(!outside.control.is_ready(), "a job runs");
                shell.state.job = None;
                shell.report_ready();
                assert_eq!(outside.control.is_ready(), is_ready, "{room:?}, {ahead}");
                assert_eq!(shell.is_started, is_ready);
                let since_us = if is_ready {
                    NOW_US
                } else {
                    CASE.streams[0].durable_us
                };
                assert_eq!(shell.streams[0].durable_before_us, since_us);
            });
        }
    }
}

#[test]
fn a_flush_that_comes_too_late_has_the_result_of_the_recording() {
    for (is_recorded, has_given_up, state) in [
        (true, false, FlushState::Durable),
        (true, true, FlushState::Failed),
        (false, false, FlushState::Failed),
        (false, true, FlushState::Failed),
    ] {
        with(&CASE, Config::default(), |shell, outside, _| {
            shell.has_given_up = has_given_up;
            shell.answer_last_flush(is_recorded);
            let number = outside.control.flush();
            assert_eq!(outside.control.flush_state(number), FlushState::Pending);
            shell.answer_last_flush(is_recorded);
            assert_eq!(outside.control.flush_state(number), state);
            // An answer is final.
            shell.has_given_up = !has_given_up;
            shell.answer_last_flush(!is_recorded);
            assert_eq!(outside.control.flush_state(number), state);
        });
    }
}

#[test]
fn a_summary_has_the_peak_of_the_ring() {
    with(&CASE, Config::default(), |shell, _, case| {
        shell.streams[0].consumer.release(800);
        shell.streams[1].summary.written = 41;
        let [first, second] = shell.summaries();
        assert_eq!(first.ring_peak_bytes, case.streams[0].level);
        assert_eq!(second.ring_peak_bytes, case.streams[1].level);
        assert_eq!(second.written, 41);
    });
}

#[test]
fn a_read_of_a_card_that_was_mounted_again_fails() {
    with(&CASE, Config::default(), |shell, outside, _| {
        shell.take_mounted(None, |_, _| 1);
        let generation = outside.desk.generation();
        let class = crate::ReadClass::Bulk;
        let mut lend = pin!(outside.desk.lend(100, 1, class, generation));
        assert!(poll(lend.as_mut()).is_pending());
        shell.take_mounted(None, |_, _| 1);
        let Poll::Ready(Err(error)) = poll(lend) else {
            panic!("the read has failed");
        };
        assert_eq!(error, ReadError::OtherCard);
    });
}
