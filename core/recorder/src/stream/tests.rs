//! Streams over rings with known contents.

use super::*;
use crate::format::{Column, Kind, Schema};
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
