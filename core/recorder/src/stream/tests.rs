//! Streams over rings with known contents.

use super::*;
use crate::format::{Column, FilePosition, Kind, Schema};
use crate::ring::{Producer, Ring};
use crate::session::Session;
use core::sync::atomic::AtomicU8;
use std::vec::Vec;

const fn of_kind(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

static SCHEMAS: [Schema; 2] = [
    Schema::new(&[of_kind("time_us", Kind::U64)]),
    Schema::new(&[of_kind("time_us", Kind::U64), of_kind("x", Kind::U32)]),
];
const BINARY: Format = Format::Binary(&SCHEMAS);
const LINES: Format = Format::Lines {
    header: "",
    line_bytes_max: 80,
};

/// Calls `test` with a stream over a ring of this size.
fn with(bytes: usize, format: Format, window: Window, test: impl FnOnce(&mut Stream, Producer)) {
    let cells: Vec<AtomicU8> = (0..bytes).map(|_| AtomicU8::new(0)).collect();
    let mut ring = Ring::over(cells);
    let (producer, consumer) = ring.split(format);
    let config = StreamConfig {
        prefix: *b"LOG",
        format,
        window,
    };
    test(&mut Stream::new(config, consumer, 0, 0), producer);
}

#[test]
fn a_turn_is_a_power_of_two_of_at_most_half_of_the_ring_and_16_kib() {
    for (ring_bytes, turn_bytes) in [
        (1_024, 512),
        (3_000, 1_024),
        (16_384, 8_192),
        (32_767, 8_192),
        (32_768, 16_384),
        (1 << 20, 16_384),
    ] {
        with(ring_bytes, BINARY, Window::Sample, |stream, _| {
            assert_eq!(stream.turn_bytes(), turn_bytes, "{ring_bytes} bytes");
        });
    }
}

#[test]
fn the_level_is_in_thousandths_of_the_ring() {
    with(4_000, BINARY, Window::Sample, |stream, mut producer| {
        for pushed in 0..=500 {
            let conditions = stream.conditions();
            assert_eq!(conditions.level, pushed * 2);
            assert_eq!(conditions.has_turn, pushed * 8 >= 1_024);
            assert_eq!(conditions.is_waiting, pushed > 0);
            assert_eq!(usize::from(pushed) * 8, producer.level_bytes());
            assert_eq!(producer.push(&[0; 8], 0).is_ok(), pushed < 500);
        }
    });
}

#[test]
fn a_checkpoint_is_due_before_the_end_of_the_window_by_at_most_half_of_it() {
    for (window_us, lead_us, due_us) in [
        (1_000_000, 0, 6_000_000),
        (1_000_000, 300_000, 5_700_000),
        (1_000_000, 499_999, 5_500_001),
        (1_000_000, 500_001, 5_500_000),
        (1_000_000, u64::MAX, 5_500_000),
        (1, 7, 5_000_001),
    ] {
        with(4_000, BINARY, Window::Us(window_us), |stream, _| {
            stream.durable_before_us = 5_000_000;
            assert_eq!(stream.due_us(lead_us), due_us);
        });
    }
    with(4_000, BINARY, Window::Sample, |stream, _| {
        stream.durable_before_us = 5_000_000;
        assert_eq!(stream.due_us(300_000), 5_000_000);
    });
}

#[test]
fn what_is_given_up_counts_each_sample_once() {
    with(200, BINARY, Window::Us(1_000), |stream, mut producer| {
        let mut pushed = 0;
        for _ in 0..30 {
            pushed += u64::from(producer.push(&[0; 8], 10).is_ok());
        }
        assert_eq!((pushed, stream.consumer.lost()), (25, 5));
        stream.durable_before_us = 500;
        let gap = stream.lose_rest(4_500, Cause::NoCard).unwrap();
        assert_eq!((gap.first, gap.count), (0, 30));
        let summary = stream.summary;
        assert_eq!((summary.written, summary.lost), (0, 30));
        // The oldest data is four windows old: the fourth has not been exceeded.
        assert_eq!(
            (summary.at_risk_us_max, summary.window_breaches),
            (4_000, 3)
        );
        assert!(!stream.is_waiting());
    });
}

#[test]
fn samples_of_two_sessions_are_counted_by_their_lengths() {
    for (before, after) in [(0, 3), (4, 0), (5, 7)] {
        with(1_000, BINARY, Window::Sample, |stream, mut producer| {
            (0..before).for_each(|_| producer.push(&[0; 8], 0).unwrap());
            let session = Session::new("s", Some(&SCHEMAS[1]), "", &BINARY).unwrap();
            producer.begin_session(&session).unwrap();
            (0..after).for_each(|_| producer.push(&[0; 12], 0).unwrap());
            assert_eq!(stream.waiting_samples(), before + after);
            assert_eq!(
                stream.consumer.level_bytes() as u64,
                before * 8 + after * 12
            );
            assert_eq!(stream.drain(), before + after);
            assert_eq!(stream.drain(), 0);
        });
    }
}

#[test]
fn lines_are_counted_by_their_ends() {
    with(1_000, LINES, Window::Sample, |stream, mut producer| {
        for line in ["a\n", "\n", "a longer line\r\n", "b,c\n"] {
            producer.push(line.as_bytes(), 0).unwrap();
        }
        assert_eq!(stream.waiting_samples(), 4);
        assert_eq!(stream.drain(), 4);
    });
}

#[test]
fn a_checkpoint_covers_what_was_in_the_ring_when_it_was_requested() {
    with(80, BINARY, Window::Sample, |stream, mut producer| {
        assert_eq!(stream.checkpoint_bytes(), 0);
        (0..3).for_each(|_| producer.push(&[0; 8], 0).unwrap());
        assert_eq!(stream.checkpoint_bytes(), 0, "nothing was requested");
        stream.request_checkpoint();
        assert_eq!(stream.checkpoint_bytes(), 24);
        (0..7).for_each(|_| producer.push(&[0; 8], 0).unwrap());
        assert_eq!(stream.checkpoint_bytes(), 24);
        assert!(producer.push(&[0; 8], 0).is_err());
        stream.consumer.release(24);
        assert_eq!(stream.checkpoint_bytes(), 0);
        assert!(!stream.is_behind(), "the gap came after the request");
        stream.request_checkpoint();
        assert!(stream.is_behind());
        stream.consumer.release(56);
        assert_eq!(stream.checkpoint_bytes(), 0);
        assert!(stream.is_behind(), "of the gap");
        stream.consumer.take_gap().unwrap();
        assert!(!stream.is_behind());
    });
}

/// Writes the samples of the ring to blocks, the last one with its mark.
fn write(stream: &mut Stream, position: &mut FilePosition) {
    loop {
        let consumer = &mut stream.consumer;
        stream.encoder.fill(position, consumer, usize::MAX);
        if !stream.encoder.is_full() {
            stream.encoder.mark(position, consumer);
        }
        if !stream.encoder.is_full() {
            return;
        }
        stream.encoder.block(position);
        stream.encoder.advance(position);
        position.index += 1;
    }
}

#[test]
fn an_age_of_just_over_n_windows_exceeds_the_window_n_times() {
    for (age_us, breaches) in [
        (0, 0),
        (1, 0),
        (1_000, 0),
        (1_001, 1),
        (2_000, 1),
        (2_001, 2),
        (10_000, 9),
        (10_001, 10),
    ] {
        with(4_000, BINARY, Window::Us(1_000), |stream, mut producer| {
            let mut position = FilePosition::new(1, 1, 100, 1, 0);
            stream.encoder.start(None);
            (0..3).for_each(|_| producer.push(&[0; 8], 0).unwrap());
            write(stream, &mut position);
            stream.durable_before_us = 5_000;
            let now_us = 5_000 + age_us;
            let committed = stream.commit(now_us, Some(5_500)).unwrap();
            assert_eq!((committed.samples, committed.pushed_before_us), (3, 5_500));
            assert_eq!(committed.is_late, breaches > 0, "{age_us} us");
            let summary = stream.summary;
            assert_eq!(u64::from(summary.window_breaches), breaches, "{age_us} us");
            assert_eq!((summary.at_risk_us_max, summary.checkpoints), (age_us, 1));
            assert_eq!((summary.written, stream.durable_before_us), (3, 5_500));
        });
    }
}

#[test]
fn a_commit_without_a_checkpoint_counts_if_it_leaves_nothing_unsaved() {
    with(4_000, BINARY, Window::Us(1_000), |stream, mut producer| {
        let mut position = FilePosition::new(1, 1, 100, 1, 0);
        stream.encoder.start(None);
        assert!(
            stream.commit(10, None).is_none(),
            "nothing has become durable"
        );
        producer.push(&[0; 8], 0).unwrap();
        write(stream, &mut position);
        producer.push(&[0; 8], 0).unwrap();
        assert!(stream.commit(20, None).is_none(), "a sample is in the ring");
        write(stream, &mut position);
        let committed = stream.commit(30, None).unwrap();
        assert_eq!((committed.samples, committed.pushed_before_us), (2, 30));
        assert!(stream.commit(40, None).is_none());
        assert_eq!(stream.summary.checkpoints, 1);
    });
}

#[test]
fn only_the_newest_sample_may_be_at_risk_if_the_window_is_a_sample() {
    for (written, waiting, is_late) in [
        (0, 0, false),
        (0, 1, false),
        (0, 2, true),
        (1, 0, false),
        (1, 1, true),
        (2, 0, true),
        (5, 5, true),
    ] {
        with(4_000, BINARY, Window::Sample, |stream, mut producer| {
            let mut position = FilePosition::new(1, 1, 100, 1, 0);
            stream.encoder.start(None);
            for count in [5, written] {
                (0..count).for_each(|_| producer.push(&[0; 8], 0).unwrap());
                write(stream, &mut position);
                if count == 5 && position.index < 3 {
                    stream.commit(1, Some(1));
                }
            }
            let breaches = stream.summary.window_breaches;
            (0..waiting).for_each(|_| producer.push(&[0; 8], 0).unwrap());
            let committed = stream.commit(2, Some(2)).unwrap();
            assert_eq!(
                committed.is_late, is_late,
                "{written} written, {waiting} waiting"
            );
            let more = stream.summary.window_breaches - breaches;
            assert_eq!(more, u32::from(is_late));
        });
    }
}

#[test]
fn what_is_observed_is_the_rate_and_whether_all_is_durable() {
    with(4_000, BINARY, Window::Us(1_000), |stream, mut producer| {
        let mut position = FilePosition::new(1, 1, 100, 1, 0);
        stream.encoder.start(None);
        stream.observe(1_000_000);
        assert_eq!(stream.durable_before_us, 1_000_000);
        (0..100).for_each(|_| producer.push(&[0; 8], 0).unwrap());
        stream.observe(1_100_000);
        assert_eq!(stream.durable_before_us, 1_000_000);
        // 800 bytes in 100 ms.
        assert_eq!(stream.rate.bytes_in(1_000_000), 8_000);
        assert_eq!(stream.unfinished_blocks(), 0);
        let consumer = &mut stream.consumer;
        stream.encoder.fill(&position, consumer, usize::MAX);
        assert_eq!(stream.unfinished_blocks(), 1);
        write(stream, &mut position);
        assert_eq!(stream.unfinished_blocks(), 0);
        stream.observe(1_200_000);
        assert_eq!(stream.durable_before_us, 1_000_000);
        stream.commit(1_250_000, Some(1_240_000));
        stream.observe(1_300_000);
        assert_eq!(stream.durable_before_us, 1_300_000);
    });
}
