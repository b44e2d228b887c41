//! The ring between two threads, for a fixed number of samples.

use super::*;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use std::{format, println};

const SAMPLES: u64 = 200_000;
/// More samples than are ever pushed before a stop.
const FOREVER: u64 = 50_000_000;
/// Interval at which a run of samples that are too short begins.
const BAD_EVERY: u64 = 97;
const BAD_RUN: u64 = 32;
/// Interval at which a session begins.
const SESSION_EVERY: u64 = 1009;

const WIDE: Schema = schema(&[column(Kind::U64)]);
const FORMAT: Format = Format::Binary(&[WIDE]);

fn is_bad(index: u64) -> bool {
    index % BAD_EVERY < BAD_RUN
}

fn time_us(index: u64) -> u64 {
    LATE_US + 3 * index
}

/// Pushes numbered samples until the end; returns the numbers of pushed and of accepted samples.
///
/// Calls `pause` after every 64 samples.
fn push_all(producer: &mut Producer, samples: u64, pause: impl Fn()) -> (u64, u64) {
    let mut accepted = 0;
    for index in 0..samples {
        if index.is_multiple_of(SESSION_EVERY) {
            let session = Session::new(&format!("s{index}"), None, "", &FORMAT).unwrap();
            // A full queue is not an error here.
            let _ = producer.begin_session(&session);
        }
        let sample = index.to_le_bytes();
        let bytes = if is_bad(index) { 7 } else { 8 };
        match producer.push(&sample[..bytes], time_us(index)) {
            Ok(()) => accepted += 1,
            Err(PushError::Lost(Cause::BadSample)) => assert_eq!(bytes, 7),
            Err(PushError::Lost(cause)) => assert_eq!(cause, Cause::CardFull),
            Err(PushError::Stopped) => break,
        }
        if index.is_multiple_of(64) {
            pause();
        }
    }
    (producer.pushed(), accepted)
}

/// Waits until the consumer has drained the ring, so that the number of gaps does not depend on the
/// scheduler. Gives up after 10 s, because the consumer must have panicked by then.
fn wait_for_a_turn(turns: &AtomicU64) {
    let (seen, began) = (turns.load(Ordering::Acquire), Instant::now());
    while turns.load(Ordering::Acquire) == seen && began.elapsed() < Duration::from_secs(10) {
        thread::yield_now();
    }
}

/// Closes the producer on drop, so that the other thread continues if this one panics.
struct Closed<'a>(Producer<'a>);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The consumer's records: each sample exactly once and in order, or in a gap.
struct Taken {
    index: u64,
    written: u64,
    lost: u64,
    gaps: u64,
    /// Number of gaps that continue a gap of which the consumer had taken a part.
    rests: u64,
    sessions: u64,
    last_session: Option<u64>,
}

impl Taken {
    fn new() -> Self {
        Taken {
            index: 0,
            written: 0,
            lost: 0,
            gaps: 0,
            rests: 0,
            sessions: 0,
            last_session: None,
        }
    }

    fn take_gap(&mut self, gap: Gap) {
        assert_eq!(gap.first, self.index, "a gap begins where samples end");
        assert!(gap.count > 0);
        // Torn values would be inconsistent.
        let end = gap.first + gap.count;
        assert_eq!(gap.last_us, time_us(end - 1));
        if gap.at_us != time_us(gap.first) {
            assert_eq!(gap.at_us, time_us(gap.first - 1), "the rest of a gap");
            self.rests += 1;
        }
        match gap.cause {
            Cause::BadSample => assert!((gap.first..end).any(is_bad)),
            cause => assert_eq!(cause, Cause::CardFull),
        }
        self.index = end;
        self.lost += gap.count;
        self.gaps += 1;
    }

    /// Drains the ring, calling `pause` after each item.
    fn drain(&mut self, consumer: &mut Consumer, pause: impl Fn()) {
        loop {
            match consumer.next() {
                Next::Samples(bytes) => {
                    assert!(bytes >= 8, "an incomplete sample");
                    let mut sample = [0; 8];
                    consumer.peek(0, &mut sample);
                    consumer.release(8);
                    assert_eq!(u64::from_le_bytes(sample), self.index);
                    self.index += 1;
                    self.written += 1;
                }
                Next::Gap(seen) => {
                    // The producer is changing the gap: retry.
                    let Some(gap) = consumer.take_gap() else {
                        continue;
                    };
                    assert!(gap.first == seen.first && gap.count >= seen.count);
                    self.take_gap(gap);
                }
                Next::Session => {
                    let session = consumer.take_session().unwrap();
                    let name = session.name().as_str();
                    assert_eq!(
                        name[1..].parse(),
                        Ok(self.index),
                        "the session is at the wrong position"
                    );
                    assert_ne!(self.last_session, Some(self.index));
                    self.last_session = Some(self.index);
                    self.sessions += 1;
                }
                Next::Empty => break,
            }
            pause();
        }
    }
}

/// A tiny ring, one of an odd size so that gaps are frequent, and two larger ones.
const RINGS: [usize; 4] = [8, 17, 203, 4001];

#[test]
fn all_is_taken_up_to_the_close() {
    for bytes in RINGS {
        let mut ring = Ring::over(memory(bytes));
        let start = Start {
            counter: u32::MAX - 1000,
            index: 0,
        };
        let (producer, mut consumer) = ring.split_at(FORMAT, start);
        let mut producer = Closed(producer);
        consumer.set_cause(Cause::CardFull);
        let mut taken = Taken::new();
        let turns = AtomicU64::new(0);
        let (pushed, accepted) = thread::scope(|scope| {
            let turns = &turns;
            let pushing =
                scope.spawn(move || push_all(&mut producer.0, SAMPLES, || wait_for_a_turn(turns)));
            loop {
                let is_closed = consumer.is_closed();
                taken.drain(&mut consumer, || ());
                turns.fetch_add(1, Ordering::Release);
                if is_closed {
                    break;
                }
                thread::yield_now();
            }
            pushing.join().unwrap()
        });
        println!(
            "{bytes} B: {} written, {} lost in {} gaps, {} of them split, {} sessions",
            taken.written, taken.lost, taken.gaps, taken.rests, taken.sessions
        );
        assert_eq!((pushed, taken.index), (SAMPLES, SAMPLES));
        assert_eq!(
            (taken.written, taken.written + taken.lost),
            (accepted, pushed)
        );
        assert_eq!(taken.lost, u64::from(consumer.lost()));
        assert!(taken.sessions > 0 && taken.gaps >= SAMPLES / BAD_EVERY / 2);
    }
}

/// The consumer stops during pushes: everything counted until then is taken, and nothing is counted
/// afterwards.
#[test]
fn all_is_taken_after_a_stop() {
    for round in 0..40 {
        let mut ring = Ring::over(memory(RINGS[round % 4]));
        let (producer, mut consumer) = ring.split(FORMAT);
        let mut producer = Closed(producer);
        consumer.set_cause(Cause::CardFull);
        let mut taken = Taken::new();
        let (pushed, accepted) = thread::scope(|scope| {
            let pushing = scope.spawn(move || {
                let result = push_all(&mut producer.0, FOREVER, thread::yield_now);
                assert_eq!(producer.0.push(&[0; 8], 0), Err(PushError::Stopped));
                assert_eq!(producer.0.pushed(), result.0);
                result
            });
            while taken.index < 50 * round as u64 && !consumer.is_closed() {
                taken.drain(&mut consumer, || ());
            }
            consumer.stop();
            taken.drain(&mut consumer, || ());
            while !consumer.is_closed() {
                thread::yield_now();
            }
            taken.drain(&mut consumer, || ());
            pushing.join().unwrap()
        });
        assert_eq!((taken.index, taken.written), (pushed, accepted));
        assert_eq!(taken.lost, u64::from(consumer.lost()));
    }
}

/// The producer falls silent during a gap, without closing.
#[test]
fn all_is_taken_when_the_producer_falls_silent() {
    for round in 0..40 {
        let mut ring = Ring::over(memory(RINGS[round % 4]));
        let (mut producer, mut consumer) = ring.split(FORMAT);
        consumer.set_cause(Cause::CardFull);
        let is_silent = AtomicBool::new(false);
        let mut taken = Taken::new();
        let samples = 6 + 97 * (round as u64 % 20);
        thread::scope(|scope| {
            scope.spawn(|| {
                push_all(&mut producer, samples, thread::yield_now);
                is_silent.store(true, Ordering::Release);
            });
            loop {
                let is_silent = is_silent.load(Ordering::Acquire);
                taken.drain(&mut consumer, thread::yield_now);
                if is_silent {
                    break;
                }
            }
        });
        assert_eq!((producer.pushed(), taken.index), (samples, samples));
        assert_eq!(taken.lost, u64::from(consumer.lost()));
    }
}
