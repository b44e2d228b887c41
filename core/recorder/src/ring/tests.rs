//! The ring compared with a simple model, and across threads.

mod model;
mod threads;

use super::{Consumer, Next, Producer, PushError, Ring, Start};
use crate::format::{Column, Format, Kind, Schema};
use crate::gap::{Cause, Gap};
use crate::session::{Session, SessionError};
use core::sync::atomic::AtomicU8;
use std::vec::Vec;

/// Later than 2^32 us, which is 72 minutes.
const LATE_US: u64 = 3 << 32 | 0xFFFF_FFF0;

const fn schema(columns: &'static [Column]) -> Schema {
    Schema::new(columns)
}

const fn column(kind: Kind) -> Column {
    Column { name: "c", kind }
}

const THREE: Schema = schema(&[column(Kind::U8), column(Kind::U16)]);
const FIVE: Schema = schema(&[column(Kind::U32), column(Kind::U8)]);
const ONE: Schema = schema(&[column(Kind::U8)]);
const ROWS: Format = Format::Csv(&[THREE, FIVE, ONE]);
const BYTES: Format = Format::Binary(&[ONE]);
const LINES: Format = Format::Lines {
    header: "",
    line_bytes_max: 9,
};

fn memory(bytes: usize) -> Vec<AtomicU8> {
    (0..bytes).map(|_| AtomicU8::new(0)).collect()
}

fn session(name: &str, schema: &Schema) -> Session {
    Session::new(name, Some(schema), "", &ROWS).unwrap()
}

fn samples(consumer: &mut Consumer) -> Vec<u8> {
    let Next::Samples(bytes) = consumer.next() else {
        panic!("expected samples, found {:?}", consumer.next());
    };
    let mut taken = Vec::from_iter(core::iter::repeat_n(0, bytes));
    consumer.peek(0, &mut taken);
    consumer.release(bytes);
    taken
}

/// Pushes a sample and expects its loss.
fn lose(producer: &mut Producer, sample: &[u8], now_us: u64, cause: Cause) {
    assert_eq!(producer.push(sample, now_us), Err(PushError::Lost(cause)));
}

#[test]
fn a_gap_at_the_very_end_is_seen_without_a_close() {
    let mut ring = Ring::over(memory(4));
    let (mut producer, mut consumer) = ring.split(BYTES);
    producer.push(b"a", 1).unwrap();
    lose(&mut producer, b"bad", LATE_US, Cause::BadSample);
    lose(&mut producer, b"bad", LATE_US + 100, Cause::BadSample);
    assert_eq!(samples(&mut consumer), b"a");
    let gap = Gap {
        first: 1,
        count: 2,
        at_us: LATE_US,
        last_us: LATE_US + 100,
        cause: Cause::BadSample,
    };
    assert_eq!(consumer.next(), Next::Gap(gap));
    assert_eq!(consumer.take_gap(), Some(gap));
    assert_eq!(consumer.next(), Next::Empty);
    assert_eq!(consumer.take_gap(), None);
    assert_eq!(consumer.lost(), 2);
}

/// The rest of a gap is another gap with its own times, even if its slot is published afterwards.
#[test]
fn samples_lost_after_an_open_gap_was_taken_form_another_gap() {
    let mut ring = Ring::over(memory(4));
    let (mut producer, mut consumer) = ring.split(BYTES);
    for round in 0..50 {
        let first = 4 * round;
        lose(&mut producer, b"", 10, Cause::BadSample);
        let taken = consumer.take_gap().unwrap();
        assert_eq!((taken.first, taken.count), (first, 1));
        lose(&mut producer, b"", 20, Cause::BadSample);
        lose(&mut producer, b"", 30, Cause::BadSample);
        if round % 2 == 0 {
            producer.push(b"x", 40).unwrap();
        }
        let rest = consumer.take_gap().unwrap();
        assert_eq!((rest.first, rest.count), (first + 1, 2));
        assert_eq!((rest.at_us, rest.last_us), (20, 30));
        if round % 2 == 1 {
            producer.push(b"x", 40).unwrap();
        }
        assert_eq!(samples(&mut consumer), b"x");
        assert_eq!(consumer.next(), Next::Empty);
    }
}

#[test]
fn each_cause_is_the_one_that_was_set_and_a_change_ends_the_gap() {
    let causes = [
        Cause::Busy,
        Cause::NoCard,
        Cause::CardFailed,
        Cause::CardFull,
        Cause::FileNotReady,
        Cause::Read,
    ];
    let mut ring = Ring::over(memory(2));
    let (mut producer, mut consumer) = ring.split(BYTES);
    producer.push(b"a", 0).unwrap();
    producer.push(b"a", 0).unwrap();
    for (at, cause) in (0..).zip(causes.into_iter().chain(causes)) {
        consumer.set_cause(cause);
        lose(&mut producer, b"a", at, cause);
        lose(&mut producer, b"aa", at, Cause::BadSample);
        lose(&mut producer, b"a", at, cause);
    }
    // Changes of the cause do not use up the slots for samples that follow gaps: the last gap grows.
    assert_eq!(samples(&mut consumer), b"aa");
    let gaps: Vec<Gap> = core::iter::from_fn(|| consumer.take_gap()).collect();
    let reported: Vec<_> = gaps.iter().map(|gap| (gap.cause, gap.count)).collect();
    let [busy, bad] = [Cause::Busy, Cause::BadSample];
    assert_eq!(
        reported,
        [(busy, 1), (bad, 1), (busy, 1), (Cause::NoCard, 33)]
    );
    for cause in causes {
        consumer.set_cause(cause);
        producer.push(b"a", 0).unwrap();
        producer.push(b"a", 0).unwrap();
        lose(&mut producer, b"a", 5, cause);
        assert_eq!(samples(&mut consumer), b"aa");
        assert_eq!(consumer.take_gap().map(|gap| gap.cause), Some(cause));
    }
}

#[test]
fn a_sample_of_another_form_is_refused_and_nothing_is_shifted() {
    let mut ring = Ring::over(memory(64));
    let (mut producer, mut consumer) = ring.split(LINES);
    for bad in [&b""[..], b"a", b"a\nb\n", b"\n\n", b"123456789\n", b"a\nb"] {
        producer.push(b"good\n", 0).unwrap();
        lose(&mut producer, bad, 7, Cause::BadSample);
        assert_eq!(samples(&mut consumer), b"good\n");
        assert_eq!(consumer.take_gap().map(|gap| gap.count), Some(1));
    }
    for good in [&b"\n"[..], b"a\n", b"12345678\n", b"\r\n"] {
        producer.push(good, 0).unwrap();
        assert_eq!(samples(&mut consumer), good);
    }
    let mut ring = Ring::over(memory(64));
    let (mut producer, mut consumer) = ring.split(ROWS);
    for bad in [&b""[..], b"12", b"1234"] {
        lose(&mut producer, bad, 7, Cause::BadSample);
    }
    producer.push(b"\n\n\n", 0).unwrap();
    assert_eq!(consumer.take_gap().map(|gap| gap.count), Some(3));
    assert_eq!(samples(&mut consumer), b"\n\n\n");
    assert_eq!(producer.pushed(), 4);
}

/// Lines that wrap around the end of the ring are checked, too.
#[test]
fn lines_go_around_the_end_of_a_ring_of_any_size() {
    for bytes in 1..30 {
        let mut ring = Ring::over(memory(bytes));
        let (mut producer, mut consumer) = ring.split(LINES);
        for index in 0..200 {
            let line = &b"12345678\n"[index % 9..];
            let two = [&b"1\n2345678\n"[index % 2..9], b"\n"].concat();
            assert!(producer.push(&two, 0).is_err());
            let fits = line.len() <= bytes;
            assert_eq!(producer.push(line, 0).is_ok(), fits);
            while consumer.take_gap().is_some() {}
            if fits {
                assert_eq!(samples(&mut consumer), line);
            }
        }
    }
}

#[test]
fn no_sample_crosses_a_session() {
    let mut ring = Ring::over(memory(16));
    let (mut producer, mut consumer) = ring.split(ROWS);
    let (one, five) = (session("one", &ONE), session("five", &FIVE));
    producer.push(b"123", 0).unwrap();
    lose(&mut producer, b"1", 1, Cause::BadSample);
    producer.begin_session(&five).unwrap();
    lose(&mut producer, b"123", 2, Cause::BadSample);
    producer.push(b"12345", 0).unwrap();
    consumer.request_session(&one).unwrap();
    let again = consumer.request_session(&one);
    assert_eq!(again, Err(SessionError::QueueFull));
    producer.push(b"1", 0).unwrap();
    assert_eq!(samples(&mut consumer), b"123");
    assert_eq!(consumer.take_session(), None);
    assert_eq!(consumer.take_gap().map(|gap| gap.at_us), Some(1));
    assert_eq!(consumer.next(), Next::Session);
    assert_eq!(consumer.take_session(), Some(five));
    assert_eq!(consumer.take_gap().map(|gap| gap.at_us), Some(2));
    // `release` frees no more than lies before the next boundary.
    consumer.release(100);
    assert_eq!(consumer.take_session(), Some(one));
    consumer.request_session(&five).unwrap();
    assert_eq!(samples(&mut consumer), b"1");
    assert_eq!(consumer.next(), Next::Empty);
}

#[test]
fn a_full_queue_of_sessions_is_an_error_and_changes_nothing() {
    let mut ring = Ring::over(memory(16));
    let (mut producer, mut consumer) = ring.split(ROWS);
    producer.begin_session(&session("a", &ONE)).unwrap();
    producer.begin_session(&session("b", &FIVE)).unwrap();
    let full = producer.begin_session(&session("c", &ONE));
    assert_eq!(full, Err(SessionError::QueueFull));
    producer.push(b"12345", 0).unwrap();
    assert!(consumer.take_session().is_some());
    producer.begin_session(&session("c", &ONE)).unwrap();
    producer.push(b"1", 0).unwrap();
    assert!(consumer.take_session().is_some());
    assert_eq!(samples(&mut consumer), b"12345");
    assert_eq!(consumer.take_session().unwrap().name().as_str(), "c");
    assert_eq!(samples(&mut consumer), b"1");
}

/// A session may come from the producer or the consumer; the next one is known before it is taken.
#[test]
fn the_schema_of_the_next_session_is_known() {
    let mut ring = Ring::over(memory(64));
    let (mut producer, mut consumer) = ring.split(ROWS);
    assert_eq!(consumer.next_session(), None);
    let sessions = [("one", &ONE, 2), ("five", &FIVE, 1), ("three", &THREE, 0)];
    for round in 0..12 {
        let (first, second) = (sessions[round % 3], sessions[(round + 1) % 3]);
        let is_requested = round % 4 == 3;
        match is_requested {
            true => consumer
                .request_session(&session(first.0, first.1))
                .unwrap(),
            false => producer.begin_session(&session(first.0, first.1)).unwrap(),
        }
        let sample = &b"12345"[..first.1.sample_bytes()];
        producer.push(sample, 0).unwrap();
        producer
            .begin_session(&session(second.0, second.1))
            .unwrap();
        assert_eq!(consumer.next_session(), Some((0, first.2)), "round {round}");
        assert_eq!(consumer.take_session(), Some(session(first.0, first.1)));
        assert_eq!(consumer.next_session(), Some((sample.len(), second.2)));
        assert_eq!(samples(&mut consumer), sample);
        assert_eq!(consumer.next_session(), Some((0, second.2)));
        assert_eq!(consumer.take_session(), Some(session(second.0, second.1)));
        assert_eq!(consumer.next_session(), None);
    }
}

#[test]
fn the_peak_is_the_highest_level() {
    let mut ring = Ring::over(memory(20));
    let (mut producer, mut consumer) = ring.split(ROWS);
    let (mut level, mut peak) = (0, 0);
    for (pushes, taken) in [
        (1, 3),
        (2, 3),
        (1, 6),
        (3, 0),
        (2, 15),
        (6, 18),
        (1, 3),
        (9, 18),
    ] {
        for _ in 0..pushes {
            let is_full = level + 3 > 20;
            assert_eq!(producer.push(b"123", 0).is_err(), is_full);
            level += if is_full { 0 } else { 3 };
            peak = peak.max(level);
            assert_eq!(
                (producer.level_bytes(), consumer.peak_bytes()),
                (level, peak)
            );
        }
        consumer.release(taken);
        while consumer.take_gap().is_some() {}
        level -= taken;
    }
    assert_eq!(peak, 18);
}

#[cfg(feature = "serving")]
#[test]
fn accepted_samples_are_shown_with_their_numbers_and_schemas() {
    use crate::newest::{NewestMemory, Shown};
    let memory_of_newest = NewestMemory::<4, 8>::new();
    let newest = memory_of_newest.handle();
    let mut ring = Ring::over(memory(64));
    let (mut producer, _) = ring.split(ROWS);
    producer.show(newest);
    producer.push(b"123", 0).unwrap();
    lose(&mut producer, b"1", 0, Cause::BadSample);
    producer.begin_session(&session("five", &FIVE)).unwrap();
    producer.push(b"45678", 0).unwrap();
    let shown = |number| {
        let mut out = [0; 8];
        match newest.look(number, &mut out) {
            Shown::Sample { bytes, schema } => Some((out[..bytes].to_vec(), schema)),
            _ => None,
        }
    };
    assert_eq!(shown(0), Some((b"123".to_vec(), 0)));
    assert_eq!(shown(1), None);
    assert_eq!(shown(2), Some((b"45678".to_vec(), 1)));
    assert_eq!(shown(3), None);
}

/// If all slots are used, a requested session begins as soon as one is free.
#[test]
fn a_request_waits_for_a_slot() {
    let mut ring = Ring::over(memory(64));
    let (mut producer, mut consumer) = ring.split(ROWS);
    for _ in 0..7 {
        lose(&mut producer, b"", 0, Cause::BadSample);
        producer.push(b"123", 0).unwrap();
    }
    consumer.request_session(&session("one", &ONE)).unwrap();
    producer.push(b"123", 0).unwrap();
    consumer.take_gap().unwrap();
    producer.push(b"1", 0).unwrap();
    for _ in 0..6 {
        assert_eq!(samples(&mut consumer), b"123");
        consumer.take_gap().unwrap();
    }
    assert_eq!(samples(&mut consumer), b"123123");
    consumer.take_session().unwrap();
    assert_eq!(samples(&mut consumer), b"1");
}

#[test]
fn nothing_is_counted_after_the_end() {
    let mut ring = Ring::over(memory(8));
    let (mut producer, mut consumer) = ring.split(ROWS);
    producer.push(b"123", 0).unwrap();
    lose(&mut producer, b"", 0, Cause::BadSample);
    consumer.stop();
    consumer.stop();
    assert!(!consumer.is_closed());
    for sample in [&b"123"[..], b""] {
        assert_eq!(producer.push(sample, 0), Err(PushError::Stopped));
    }
    assert!(consumer.is_closed());
    let one = session("one", &ONE);
    assert_eq!(producer.begin_session(&one), Err(SessionError::Stopped));
    assert_eq!(consumer.request_session(&one), Err(SessionError::Stopped));
    assert_eq!((producer.pushed(), consumer.lost()), (2, 1));
    assert_eq!(samples(&mut consumer), b"123");
    assert_eq!(consumer.take_gap().map(|gap| gap.count), Some(1));
    assert_eq!(consumer.next(), Next::Empty);

    let (mut producer, consumer) = ring.split(ROWS);
    producer.close();
    assert_eq!(producer.push(b"123", 0), Err(PushError::Stopped));
    assert_eq!(producer.begin_session(&one), Err(SessionError::Stopped));
    assert_eq!(consumer.request_session(&one), Err(SessionError::Stopped));
    assert_eq!((producer.pushed(), consumer.next()), (0, Next::Empty));
}

#[test]
fn sessions_are_validated() {
    let new = |name: &str, settings: &str| Session::new(name, None, settings, &ROWS).map(|_| ());
    let (long, longest) = ("n".repeat(33), "n".repeat(32));
    for name in ["", &long, "a b", "a.b", "ä", "a/b"] {
        assert_eq!(new(name, ""), Err(SessionError::Name), "{name}");
    }
    for name in ["a", "A-b_9", &longest] {
        assert_eq!(new(name, ""), Ok(()), "{name}");
    }
    let (long, longest) = ("s".repeat(97), "~ ".repeat(48));
    for settings in [&long, "a\"b", "a\nb", "\u{7f}", "µ"] {
        assert_eq!(
            new("a", settings),
            Err(SessionError::Settings),
            "{settings}"
        );
    }
    for settings in ["", &longest] {
        assert_eq!(new("a", settings), Ok(()), "{settings}");
    }
    let with = |schema, format| Session::new("a", schema, "gain=3", &format);
    assert_eq!(with(Some(&ONE), ROWS).unwrap().schema(), 2);
    assert_eq!(with(None, ROWS).unwrap().schema(), 0);
    assert_eq!(with(None, LINES).unwrap().settings().as_str(), "gain=3");
    assert_eq!(with(Some(&FIVE), BYTES), Err(SessionError::Schema));
    assert_eq!(with(Some(&ONE), LINES), Err(SessionError::Schema));

    let mut ring = Ring::over(memory(8));
    let (mut producer, consumer) = ring.split(BYTES);
    let other = session("one", &ONE);
    assert_eq!(producer.begin_session(&other), Err(SessionError::Schema));
    assert_eq!(consumer.request_session(&other), Err(SessionError::Schema));
    // A format without any schema accepts nothing.
    let (mut producer, _) = ring.split(Format::Csv(&[]));
    lose(&mut producer, b"", 0, Cause::BadSample);
}
