//! Recordings in progress and figures that a shell publishes, compared with what the test did.

use super::*;
use crate::gap::Cause;
use crate::jobs::Done;
use crate::plan::Action;
use crate::recorder::Config;
use crate::shell::test_rig::*;
use crate::volume::Reserved;

/// Blocks in the file when everything in the rings is written: a header and the marked samples of each stream, after
/// 8 full blocks of 59 samples of the first stream, and one of the second.
const BLOCKS: u32 = 2 * 2 + 8 + 1;

fn id(number: u32) -> FileId {
    FileId {
        prefix: *b"LOG",
        extension: *b"BIN",
        number,
    }
}

/// Both streams share a file whose first block is the next one.
const NEW_FILE: Case = Case {
    file: (6400, 4096, 0),
    ..CASE
};

#[test]
fn a_marked_file_is_published_with_its_totals() {
    with(&NEW_FILE, Config::default(), |shell, outside, _| {
        let published = |slot| outside.desk.next_unfinished(slot, |_| true);
        shell.tracks[0].file.as_mut().unwrap().number = 41;
        shell.publish_durable(0);
        assert!(published(0).is_none(), "nothing is written");
        write_full_blocks(shell);
        shell.publish_durable(0);
        assert!(published(0).is_none(), "a block has no mark");
        write_all(shell);
        act(shell, Action::Commit(0));
        let expected = Unfinished {
            id: id(41),
            session: ShortText::EMPTY,
            extent: Extent {
                start: 6400,
                blocks: 4096,
            },
            epoch: 1,
            is_named: false,
            bytes: BLOCKS * 512,
            first_us: NOW_US - 4 * SECOND_US,
            last_us: NOW_US + u64::from(BLOCKS) * PUSH_US + END_US,
            samples: (4_000 + 800) / 8,
            gaps: 0,
            lost: 0,
        };
        assert_eq!(published(0), Some((0, expected)));
        // Its name is reported when it is in the directory.
        let other = Unfinished {
            id: id(40),
            ..expected
        };
        outside.desk.publish(3, Some(other));
        shell.take_done(Done::Named(id(41)));
        let named = Unfinished {
            is_named: true,
            ..expected
        };
        assert_eq!(published(0), Some((0, named)));
        assert_eq!(published(1), Some((3, other)));
        shell.unpublish(0);
        assert_eq!(published(0), Some((3, other)));
    });
}

#[test]
fn a_file_that_is_left_is_published_with_its_name() {
    for (name, is_named) in [(NameState::Wanted, false), (NameState::Given, true)] {
        with(&NEW_FILE, Config::default(), |shell, outside, _| {
            write_all(shell);
            act(shell, Action::Commit(0));
            outside.desk.publish(0, None);
            shell.tracks[0].file.as_mut().unwrap().name = name;
            shell.publish_durable(0);
            let published = || outside.desk.next_unfinished(0, |_| true).unwrap().1;
            assert_eq!(published().is_named, is_named);
            outside.desk.publish(0, None);
            act(shell, Action::Leave(0));
            assert_eq!(published().is_named, is_named);
            assert_eq!(published().bytes, BLOCKS * 512);
        });
    }
}

#[test]
fn a_new_file_has_the_first_samples_of_its_own_streams() {
    let case = Case {
        is_shared: false,
        ..NEW_FILE
    };
    with(&case, Config::default(), |shell, outside, _| {
        write_all(shell);
        act(shell, Action::Commit(0));
        act(shell, Action::Leave(0));
        shell.state.tracks[0].ahead = 1;
        act(shell, Action::Begin(0));
        let number = shell.tracks[0].file.unwrap().number;
        assert_eq!(outside.desk.file_of(0, 500), Some((id(number), 500)));
        assert_eq!(outside.desk.file_of(1, 500), None);
    });
}

/// Numbers of the fullest ring, relative to its capacity.
#[test]
fn figures_show_the_fullest_ring() {
    for (levels, fullest) in [
        ([16_000, 4_000], 0),
        ([16_000, 10_000], 1),
        ([4_000, 1_000], 0),
        ([1_000, 16_000], 1),
    ] {
        let mut case = CASE;
        for (of, level) in case.streams.iter_mut().zip(levels) {
            of.level = level;
        }
        with(&case, Config::default(), |shell, outside, _| {
            shell.streams[fullest].consumer.release(80);
            shell.publish_figures(NOW_US);
            let figures = outside.desk.figures();
            assert_eq!(figures.ring_bytes as usize, levels[fullest] - 80);
            assert_eq!(figures.ring_bytes_max as usize, levels[fullest]);
            let capacity = case.streams[fullest].capacity;
            assert_eq!(figures.ring_capacity_bytes as usize, capacity);
        });
    }
}

#[test]
fn figures_are_the_sums_of_all_streams() {
    with(&NEW_FILE, Config::default(), |shell, outside, case| {
        // 5 and 7 samples too many are lost, and everything else becomes durable.
        for (at, lost) in [(0, 5), (1, 7)] {
            let room = (case.streams[at].capacity - case.streams[at].level) / SAMPLE_BYTES;
            outside.push(at, room);
            for _ in 0..lost {
                assert!(outside.producers[at].push(&[7; 8], NOW_US).is_err());
            }
        }
        write_all(shell);
        outside.push(0, 1);
        outside.push(1, 1);
        write_all(shell);
        act(shell, Action::Commit(0));
        let durable = [4096 + 5 + 1, 2048 + 7 + 1];
        // Then the card fails before 30 and 40 further samples are durable, and 3 remain in a ring.
        outside.push(0, 30);
        outside.push(1, 40);
        write_all(shell);
        for stream in &mut shell.streams {
            let gap = stream.lose_card(NOW_US, Cause::NoCard);
            assert!(gap.is_some());
        }
        outside.push(0, 3);
        (
            shell.streams[0].summary.window_breaches,
            shell.streams[1].summary.window_breaches,
        ) = (3, 4);
        let now_us = NOW_US + 2 * SECOND_US;
        (
            shell.streams[0].durable_before_us,
            shell.streams[1].durable_before_us,
        ) = (now_us - 300_000, now_us - 100_000);
        shell.publish_figures(now_us);
        let figures = outside.desk.figures();
        assert_eq!(figures.streams, 2);
        assert_eq!(figures.samples, durable[0] + durable[1] + 30 + 40);
        assert_eq!(figures.lost, 5 + 7 + 30 + 40);
        let rates = shell
            .streams
            .each_ref()
            .map(|it| it.rate.bytes_in(1_000_000));
        assert_eq!(u64::from(figures.rate_bytes_per_s), rates[0] + rates[1]);
        assert_eq!(figures.windows_exceeded, 3 + 4);
        assert_eq!(figures.window_us, SECOND_US);
        assert_eq!(figures.unsaved_us, 300_000);
    });
}

/// Every 50 ms, and at once when the recording begins or ends.
#[test]
fn figures_are_updated_when_due() {
    with(&CASE, Config::default(), |shell, outside, _| {
        let mut level = CASE.streams[0].level as u32;
        let mut recorded = |shell: &mut Tested, outside: &mut Outside, after_us| {
            outside.push(0, 1);
            level += 8;
            shell.publish_figures(NOW_US + after_us);
            let figures = outside.desk.figures();
            (figures.ring_bytes == level, figures.is_recording)
        };
        let (is_old, is_new) = ((false, false), (true, false));
        assert_eq!(recorded(shell, outside, 0), is_new);
        assert_eq!(recorded(shell, outside, 1), is_old);
        assert_eq!(recorded(shell, outside, 49_999), is_old);
        assert_eq!(recorded(shell, outside, 50_000), is_new);
        assert_eq!(recorded(shell, outside, 120_000), is_new);
        assert_eq!(recorded(shell, outside, 169_999), is_old);
        shell.is_started = true;
        assert_eq!(recorded(shell, outside, 169_999), (true, true));
        shell.state.phase = Phase::Ending;
        assert_eq!(recorded(shell, outside, 180_000), (false, true));
        shell.state.phase = Phase::Ended;
        assert_eq!(recorded(shell, outside, 180_001), is_new);
        assert_eq!(recorded(shell, outside, 180_002), is_old);
    });
}

/// The file of a slot is gone once it is closed.
#[test]
fn a_closed_file_is_in_progress_no_more() {
    with(&NEW_FILE, Config::default(), |shell, outside, _| {
        write_all(shell);
        act(shell, Action::Commit(0));
        act(shell, Action::Leave(0));
        let is_known = |outside: &Outside| outside.desk.unfinished(|_| true).is_some();
        assert!(is_known(outside));
        shell.take_done(Done::Reserved(
            0,
            Reserved {
                slot: 5,
                ..prepared()
            },
        ));
        assert!(is_known(outside));
        shell.take_done(Done::Closed(0));
        assert!(!is_known(outside));
    });
}

fn prepared() -> Reserved {
    reserved(0, 200_000, 1024)
}
