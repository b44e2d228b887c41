//! Complete recordings in virtual time, on a card with injected failures. Each test reproduces a former bug.

use crate::fat_rig;
use crate::logger_rig;

use cardiograph_recorder::*;
use fat_rig::{Disk, Rig, done};
use logger_rig::{Case, Costs, Files, Input, Outcome, Readers, line, lines, record};
use std::cell::{Cell, RefCell};

const LINE_BYTES: u16 = 60;

/// A card whose operations take longer than the time that a fast stream leaves.
const SLOW: Costs = Costs {
    read_us: 2_000,
    begin_us: 1_000,
    push_us: 300,
    end_us: 3_000,
};

/// Checks that every sample of a stream is in its files or in a gap in them.
fn assert_all_known<const N: usize>(outcome: &Outcome<N>, stream: usize) {
    let files = Files::read(&outcome.disk, stream, LINE_BYTES.into());
    let pushed = outcome.pushed[stream];
    files.assert_sound(pushed);
    assert_eq!(files.missing(pushed), None);
    let summary = outcome.summaries.as_ref().unwrap()[stream];
    assert_eq!(summary.written + summary.lost, pushed);
    assert!(summary.written <= files.samples.len() as u64);
}

/// Returns the number of card operations until sampling may begin.
fn operations_until_ready<const N: usize>(inputs: fn() -> [Input; N]) -> u64 {
    let (control, operations) = (Control::new(), Cell::new(0));
    record(Case::new(&control), inputs(), |moment| {
        if control.is_ready() && operations.get() == 0 {
            operations.set(moment.operations);
            control.stop();
        }
    });
    operations.get()
}

#[test]
fn a_stop_writes_exactly_the_samples_pushed_before_it() {
    for stop_us in (1_000_000..3_000_000).step_by(300_100) {
        println!("stop at {stop_us} us");
        let (control, before) = (Control::new(), RefCell::new(Vec::new()));
        let inputs = [
            lines(16_384, LINE_BYTES, 500, u64::MAX),
            lines(16_384, LINE_BYTES, 700, u64::MAX),
        ];
        let outcome = record(Case::new(&control), inputs, |moment| {
            if moment.now_us > stop_us && before.borrow().is_empty() {
                before.replace(moment.pushed.to_vec());
                control.stop();
            }
        });
        for (stream, summary) in outcome.summaries.as_ref().unwrap().iter().enumerate() {
            let files = Files::read(&outcome.disk, stream, LINE_BYTES.into());
            files.assert_sound(outcome.pushed[stream]);
            assert!((0..summary.written).eq(files.samples.iter().copied()));
            assert_eq!((summary.bytes, summary.lost), (files.bytes, 0));
            // The card may finish its current operation: less than 20 ms.
            let before = before.borrow()[stream];
            assert!((before..before + 40).contains(&summary.written));
            // Pushes after the stop are refused, and not counted.
            assert_eq!(summary.written, outcome.pushed[stream]);
        }
    }
}

/// Returns the card as the next mount leaves it after a power cut.
fn after_cut(durable: &Disk) -> Disk {
    let mut rig = Rig::new(durable.powered_up());
    done(recover(&mut rig.volume, &mut rig.disk, |_, _| ())).unwrap();
    rig.disk
}

#[test]
fn a_flush_during_which_the_card_fails_is_done_when_all_is_durable() {
    let inputs = || {
        let window = Window::Us(10_000_000);
        let input = lines(65_536, LINE_BYTES, 300, 8_000);
        [Input { window, ..input }]
    };
    let ready = operations_until_ready(inputs);
    for failure in (ready + 60..ready + 300).step_by(3) {
        println!("failure at {failure}");
        let control = Control::new();
        let case = Case {
            failures: vec![failure],
            ..Case::new(&control)
        };
        let (mut asked, mut left) = (None, None);
        let outcome = record(case, inputs(), |moment| match asked {
            None if control.is_ready() && moment.operations + 4 >= failure => {
                asked = Some((control.flush(), moment.pushed[0]));
            }
            Some((number, _)) if left.is_none() => match control.flush_state(number) {
                FlushState::Pending => (),
                // The caller requests the flush again once it knows that the card failed.
                FlushState::Failed => asked = Some((control.flush(), moment.pushed[0])),
                FlushState::Durable => {
                    left = Some(moment.durable.clone());
                    control.stop();
                }
            },
            _ => (),
        });
        let (_, pushed) = asked.unwrap();
        let left = left.expect("the flush was done before the end");
        let files = Files::read(&after_cut(&left), 0, LINE_BYTES.into());
        assert_eq!(files.missing(pushed), None);
        let has_failed = |(_, event): &(u64, Event)| *event == Event::CardLost;
        assert!(outcome.events.iter().any(has_failed));
    }
}

#[test]
fn files_are_closed_before_a_card_is_given_up_as_full() {
    for ring_bytes in [4_096, 16_384, 65_536] {
        println!("ring of {ring_bytes} bytes");
        let control = Control::new();
        let case = Case {
            card_blocks: 7_200,
            config: Config {
                file_bytes: 1 << 20,
                when_full: WhenFull::RemoveOldest,
                ..Config::default()
            },
            ..Case::new(&control)
        };
        let inputs = [lines(ring_bytes, LINE_BYTES, 300, 100_000)];
        let outcome = record(case, inputs, |_| ());
        let [summary] = outcome.summaries.as_ref().unwrap();
        assert_eq!((summary.written, summary.lost), (100_000, 0));
        let is = |wanted: fn(&Event) -> bool| outcome.events.iter().any(|(_, event)| wanted(event));
        assert!(is(|event| matches!(event, Event::Removed { .. })));
        assert!(!is(|event| matches!(event, Event::Full { .. })));
        // The newest samples are in the files, up to the last.
        let files = Files::read(&outcome.disk, 0, LINE_BYTES.into());
        files.assert_sound(100_000);
        let first = files.samples[0];
        assert!(first > 0 && (first..100_000).eq(files.samples));
    }
}

#[test]
fn a_flush_takes_no_longer_than_stated_while_files_change() {
    for (file_bytes, rotate_us) in [(128 << 10, None), (1 << 20, None), (1 << 20, Some(500_000))] {
        for phase_us in (0..300_000).step_by(50_021) {
            println!("files of {file_bytes} bytes and {rotate_us:?} us, phase {phase_us} us");
            let control = Control::new();
            let case = Case {
                config: Config {
                    file_bytes,
                    rotate_us,
                    ..Config::default()
                },
                costs: SLOW,
                ..Case::new(&control)
            };
            let (mut next_us, mut asked, mut flushes) = (1_000_000 + phase_us, None, 0);
            let inputs = [lines(65_536, LINE_BYTES, 1_000, 12_000)];
            let outcome = record(case, inputs, |moment| match asked {
                None if moment.now_us > next_us && control.is_ready() => {
                    let until_us = moment.now_us + u64::from(control.flush_us_max());
                    asked = Some((control.flush(), until_us));
                }
                Some((number, until_us)) if control.flush_state(number) != FlushState::Pending => {
                    assert!(moment.now_us <= until_us);
                    (asked, flushes) = (None, flushes + 1);
                    next_us = moment.now_us + 301_007;
                }
                _ => (),
            });
            assert!(flushes >= 30, "{flushes}");
            assert!(outcome.summaries.unwrap()[0].files > 1 || file_bytes > 128 << 10);
        }
    }
}

#[test]
fn two_readers_take_turns_and_none_waits_for_a_desk_without_memory() {
    for memory_blocks in [4, 0] {
        println!("a desk of {memory_blocks} blocks");
        let control = Control::new();
        let case = Case {
            readers: Readers {
                count: 2,
                reads: 50,
                memory_blocks,
                ..Readers::default()
            },
            ..Case::new(&control)
        };
        let inputs = [lines(65_536, LINE_BYTES, 2_000, 1_000)];
        let outcome = record(case, inputs, |_| ());
        assert_all_known(&outcome, 0);
        assert_eq!(outcome.summaries.unwrap()[0].lost, 0);
        // The boot sector is unchanged.
        let expected = match memory_blocks {
            0 => Err(ReadError::NoMemory),
            _ => Ok(*outcome.disk.block(0)),
        };
        assert_eq!(outcome.reads, vec![expected; 100]);
    }
}

#[test]
fn a_header_that_is_too_long_is_refused() {
    for (header_bytes, fits) in [(LINE_BYTES_MAX - 2, true), (LINE_BYTES_MAX - 1, false)] {
        println!("header of {header_bytes} bytes");
        let control = Control::new();
        let format = Format::Lines {
            header: "h".repeat(header_bytes).leak(),
            line_bytes_max: LINE_BYTES,
        };
        let input = lines(16_384, LINE_BYTES, 1_000, 500);
        let outcome = record(Case::new(&control), [Input { format, ..input }], |_| ());
        match outcome.summaries {
            Ok([summary]) => assert!(fits && summary.written == 500),
            Err(error) => assert!(!fits && error == "LineTooLong", "{error}"),
        }
    }
}

#[test]
fn a_sample_of_a_wrong_length_does_not_hang_a_stream_of_a_schema() {
    for format in [Format::Csv(&[MAGOD2]), Format::Binary(&[MAGOD2])] {
        println!("{}", String::from_utf8_lossy(&format.extension()));
        let control = Control::new();
        let input = Input {
            format,
            make: Box::new(|index| vec![1; if index == 100 { 99 } else { 100 }]),
            ..lines(16_384, LINE_BYTES, 5_000, 300)
        };
        let outcome = record(Case::new(&control), [input], |_| ());
        // The sample is refused, and all others stay in place.
        let [summary] = outcome.summaries.unwrap();
        assert_eq!((summary.written, summary.lost), (299, 1));
    }
}

#[test]
fn empty_samples_become_gaps() {
    let control = Control::new();
    let make = |index: u64| match index % 10 {
        0 => Vec::new(),
        _ => line(index, LINE_BYTES.into()),
    };
    let input = Input {
        make: Box::new(make),
        ..lines(16_384, LINE_BYTES, 300, 3_000)
    };
    let outcome = record(Case::new(&control), [input], |_| ());
    assert_all_known(&outcome, 0);
    let files = Files::read(&outcome.disk, 0, LINE_BYTES.into());
    let expected = (0..3_000).step_by(10).map(|first| (first, 1));
    assert!(expected.eq(files.gaps));
    assert_eq!(files.samples.len(), 2_700);
}

#[test]
fn a_slow_stream_gets_its_files_next_to_one_that_saturates_the_card() {
    let control = Control::new();
    let case = Case {
        config: Config {
            file_bytes: 64 << 10,
            ..Config::default()
        },
        costs: Costs {
            read_us: 300,
            begin_us: 200,
            push_us: 1_000,
            end_us: 3_000,
        },
        ..Case::new(&control)
    };
    let inputs = [
        lines(8_192, 400, 700, 20_000),
        lines(16_384, LINE_BYTES, 2_000, 7_000),
    ];
    let outcome = record(case, inputs, |_| ());
    assert_all_known(&outcome, 1);
    let [fast, slow] = outcome.summaries.unwrap();
    assert!(fast.lost > 0, "the card was not saturated");
    assert_eq!((slow.written, slow.lost), (7_000, 0));
    // More files than were prepared before sampling began.
    assert!(slow.files > 4, "{} files", slow.files);
}

#[test]
fn two_failures_lose_no_sample_without_a_gap() {
    let inputs = || {
        [
            lines(16_384, LINE_BYTES, 1_000, 2_000),
            lines(16_384, LINE_BYTES, 800, 2_000),
        ]
    };
    let first = operations_until_ready(inputs) + 140;
    for apart in (1..760).step_by(13) {
        println!("failures at {first} and {apart} later");
        let control = Control::new();
        let case = Case {
            failures: vec![first, first + apart],
            ..Case::new(&control)
        };
        let outcome = record(case, inputs(), |_| ());
        (0..2).for_each(|stream| assert_all_known(&outcome, stream));
    }
}
