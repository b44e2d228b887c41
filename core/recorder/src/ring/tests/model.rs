//! A model of the ring: a queue of bytes, gaps and sessions, with all of its rules written out.

use super::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed};
use std::collections::VecDeque;
use std::{format, vec};

/// Maximum number of published boundaries that are waiting.
const BOUNDARIES_MAX: usize = 7;
/// Number of waiting boundaries from which a gap is no longer split.
const SPLIT_MAX: usize = 3;
/// Maximum number of waiting sessions of the producer.
const SESSIONS_MAX: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Item {
    Byte(u8),
    Gap(Gap),
    Session(Session, Side),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Side {
    Producer,
    Consumer,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Recording,
    /// The producer has not seen the stop yet.
    Stopped,
    Closed,
}

struct Model {
    format: Format,
    capacity: usize,
    schema: usize,
    cause: Cause,
    state: State,
    queue: VecDeque<Item>,
    /// The open gap at the end of the queue, and the number of its samples that were taken.
    open: Option<(Gap, u64)>,
    requested: Option<Session>,
    is_request_waiting: bool,
    index: u64,
    lost: u64,
    peak: usize,
}

impl Model {
    fn boundaries(&self) -> usize {
        let bytes = self.queue.iter();
        bytes.filter(|item| !matches!(item, Item::Byte(_))).count()
    }

    fn level(&self) -> usize {
        self.queue.len() - self.boundaries()
    }

    /// Returns the part of the open gap that was not taken.
    fn rest(&self) -> Option<Gap> {
        let (gap, taken) = self.open?;
        (taken < gap.count).then(|| Gap {
            first: gap.first + taken,
            count: gap.count - taken,
            ..gap
        })
    }

    fn publish(&mut self) {
        self.queue.extend(self.rest().map(Item::Gap));
        self.open = None;
    }

    fn lose(&mut self, cause: Cause, now_us: u64) -> Result<(), PushError> {
        let is_same = |(gap, taken): (Gap, u64)| gap.cause == cause && taken == 0;
        if self.open.is_some_and(|open| !is_same(open)) && self.boundaries() < SPLIT_MAX {
            self.publish();
        }
        let new = Gap {
            first: self.index,
            count: 0,
            at_us: now_us,
            last_us: now_us,
            cause,
        };
        let (gap, _) = self.open.get_or_insert((new, 0));
        gap.count += 1;
        gap.last_us = now_us;
        self.index += 1;
        self.lost += 1;
        Err(PushError::Lost(cause))
    }

    /// Carries out the consumer's orders.
    fn carry_out_orders(&mut self) -> bool {
        if self.state == State::Stopped {
            self.state = State::Closed;
        }
        if self.state == State::Closed {
            return false;
        }
        if let Some(session) = self.requested
            && self.place(session, Side::Consumer)
        {
            self.requested = None;
        }
        true
    }

    fn place(&mut self, session: Session, side: Side) -> bool {
        if self.boundaries() + 1 + usize::from(self.open.is_some()) > BOUNDARIES_MAX {
            return false;
        }
        self.publish();
        self.queue.push_back(Item::Session(session, side));
        self.schema = session.schema().into();
        true
    }

    fn push(&mut self, sample: &[u8], now_us: u64) -> Result<(), PushError> {
        if !self.carry_out_orders() {
            return Err(PushError::Stopped);
        }
        let is_good_length = match self.format {
            Format::Lines { line_bytes_max, .. } => {
                sample.ends_with(b"\n") && sample.len() <= line_bytes_max.into()
            }
            _ => sample.len() == self.format.schemas()[self.schema].sample_bytes(),
        };
        if !is_good_length {
            return self.lose(Cause::BadSample, now_us);
        }
        let has_slot = self.open.is_none() || self.boundaries() < BOUNDARIES_MAX;
        if self.level() + sample.len() > self.capacity || !has_slot {
            return self.lose(self.cause, now_us);
        }
        let ends = sample.iter().filter(|byte| **byte == b'\n').count();
        if matches!(self.format, Format::Lines { .. }) && ends > 1 {
            return self.lose(Cause::BadSample, now_us);
        }
        self.publish();
        self.queue
            .extend(sample.iter().map(|byte| Item::Byte(*byte)));
        self.peak = self.peak.max(self.level());
        self.index += 1;
        Ok(())
    }

    fn begin(&mut self, session: Session) -> Result<(), SessionError> {
        if !self.carry_out_orders() {
            return Err(SessionError::Stopped);
        }
        let is_own = |item: &&Item| matches!(item, Item::Session(_, Side::Producer));
        if self.queue.iter().filter(is_own).count() >= SESSIONS_MAX {
            return Err(SessionError::QueueFull);
        }
        match self.place(session, Side::Producer) {
            true => Ok(()),
            false => Err(SessionError::QueueFull),
        }
    }

    fn request(&mut self, session: Session) -> Result<(), SessionError> {
        if self.state != State::Recording {
            return Err(SessionError::Stopped);
        }
        if self.is_request_waiting {
            return Err(SessionError::QueueFull);
        }
        self.is_request_waiting = true;
        self.requested = Some(session);
        Ok(())
    }

    fn next(&self) -> Next {
        let is_byte = |item: &&Item| matches!(item, Item::Byte(_));
        let bytes = self.queue.iter().take_while(is_byte).count();
        match (bytes, self.queue.front(), self.rest()) {
            (1.., ..) => Next::Samples(bytes),
            (_, Some(Item::Gap(gap)), _) => Next::Gap(*gap),
            (_, Some(_), _) => Next::Session,
            (_, None, Some(gap)) => Next::Gap(gap),
            (_, None, None) => Next::Empty,
        }
    }

    fn take_gap(&mut self) -> Option<Gap> {
        let Next::Gap(gap) = self.next() else {
            return None;
        };
        match self.queue.front() {
            Some(_) => drop(self.queue.pop_front()),
            None => {
                let (open, taken) = self.open.as_mut().unwrap();
                *taken = open.count;
            }
        }
        Some(gap)
    }

    fn take_session(&mut self) -> Option<Session> {
        let Some(Item::Session(session, side)) = self.queue.front().copied() else {
            return None;
        };
        self.queue.pop_front();
        if side == Side::Consumer {
            self.is_request_waiting = false;
        }
        Some(session)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Good(u8),
    Any(Vec<u8>),
    Take(usize),
    TakeGap,
    TakeSession,
    Begin(usize),
    Request(usize),
    SetCause(u8),
    Stop,
    Close,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![3 => any::<u8>(), 1 => Just(b'\n')];
    let step = prop_oneof![
        400 => any::<u8>().prop_map(Step::Good),
        100 => prop::collection::vec(bytes, 0..12).prop_map(Step::Any),
        150 => (0_usize..60).prop_map(Step::Take),
        150 => Just(Step::TakeGap),
        80 => Just(Step::TakeSession),
        40 => (0_usize..3).prop_map(Step::Begin),
        40 => (0_usize..3).prop_map(Step::Request),
        60 => (0_u8..6).prop_map(Step::SetCause),
        1 => Just(Step::Stop),
        1 => Just(Step::Close),
    ];
    prop::collection::vec(step, 1..400)
}

fn starts() -> impl Strategy<Value = Start> {
    let counter = prop_oneof![Just(0), u32::MAX - 200..=u32::MAX, any::<u32>()];
    let below = u64::from(u32::MAX);
    let index = prop_oneof![Just(0), below - 200..=below, 7 * below..8 * below];
    (counter, index).prop_map(|(counter, index)| Start { counter, index })
}

fn sessions(format: Format) -> Vec<Session> {
    let session = |at: usize| {
        let schema = format.schemas().get(at);
        Session::new(&format!("s{at}"), schema, &format!("at={at}"), &format).unwrap()
    };
    (0..3).map(session).collect()
}

/// Returns a valid sample whose bytes show its number.
fn good(model: &Model, seed: u8) -> Vec<u8> {
    match model.format {
        Format::Lines { .. } => {
            let mut line = vec![b'a' + seed % 26; usize::from(seed % 9)];
            line.push(b'\n');
            line
        }
        _ => vec![seed; model.format.schemas()[model.schema].sample_bytes()],
    }
}

fn check(model: &Model, producer: &Producer, consumer: &Consumer) {
    assert_eq!(consumer.next(), model.next());
    assert_eq!(consumer.level_bytes(), model.level());
    assert_eq!(consumer.peak_bytes(), model.peak);
    assert_eq!(u64::from(consumer.lost()), model.lost);
    assert_eq!(producer.pushed(), model.index);
    assert_eq!(consumer.is_closed(), model.state == State::Closed);
}

fn apply(
    step: &Step,
    now_us: u64,
    model: &mut Model,
    producer: &mut Producer,
    consumer: &mut Consumer,
) {
    let sessions = sessions(model.format);
    match step {
        Step::Good(seed) => {
            let sample = good(model, *seed);
            assert_eq!(producer.push(&sample, now_us), model.push(&sample, now_us));
        }
        Step::Any(sample) => {
            assert_eq!(producer.push(sample, now_us), model.push(sample, now_us));
        }
        Step::Take(bytes) => {
            let Next::Samples(waiting) = model.next() else {
                return;
            };
            let bytes = *bytes.min(&waiting);
            let mut peeked = vec![0; bytes - bytes / 2];
            consumer.peek(bytes / 2, &mut peeked);
            consumer.release(bytes);
            let taken = model.queue.drain(..bytes).skip(bytes / 2);
            assert!(taken.eq(peeked.into_iter().map(Item::Byte)));
        }
        Step::TakeGap => assert_eq!(consumer.take_gap(), model.take_gap()),
        Step::TakeSession => assert_eq!(consumer.take_session(), model.take_session()),
        Step::Begin(at) => {
            let session = sessions[*at];
            assert_eq!(producer.begin_session(&session), model.begin(session));
        }
        Step::Request(at) => {
            let session = sessions[*at];
            assert_eq!(consumer.request_session(&session), model.request(session));
        }
        Step::SetCause(number) => {
            model.cause = Cause::of(*number);
            consumer.set_cause(model.cause);
        }
        Step::Stop => {
            if model.state == State::Recording {
                model.state = State::Stopped;
            }
            consumer.stop();
        }
        Step::Close => {
            model.state = State::Closed;
            producer.close();
        }
    }
}

/// Drains the ring; returns the number of samples in gaps.
fn drain(model: &mut Model, consumer: &mut Consumer) -> u64 {
    let mut lost = 0;
    loop {
        assert_eq!(consumer.next(), model.next());
        match model.next() {
            Next::Samples(bytes) => {
                consumer.release(bytes);
                model.queue.drain(..bytes);
            }
            Next::Gap(_) => {
                let gap = consumer.take_gap();
                assert_eq!(gap, model.take_gap());
                lost += gap.map_or(0, |gap| gap.count);
            }
            Next::Session => assert_eq!(consumer.take_session(), model.take_session()),
            Next::Empty => return lost,
        }
    }
}

proptest! {
    #![proptest_config(Config {
        cases: 600,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..Config::default()
    })]

    #[test]
    fn a_ring_does_what_the_model_does(
        capacity in 1_usize..40,
        format in prop_oneof![Just(ROWS), Just(BYTES_AND_MORE), Just(LINES)],
        start in starts(),
        steps in steps(),
    ) {
        let mut ring = Ring::over(memory(capacity));
        let (mut producer, mut consumer) = ring.split_at(format, start);
        let mut model = Model {
            format,
            capacity,
            schema: 0,
            cause: Cause::Busy,
            state: State::Recording,
            queue: VecDeque::new(),
            open: None,
            requested: None,
            is_request_waiting: false,
            index: start.index,
            lost: 0,
            peak: 0,
        };
        let (mut now_us, mut taken) = (LATE_US, 0);
        for (at, step) in (0..).zip(&steps) {
            now_us += at % 7;
            if let (Step::TakeGap, Next::Gap(gap)) = (step, model.next()) {
                taken += gap.count;
            }
            apply(step, now_us, &mut model, &mut producer, &mut consumer);
            check(&model, &producer, &consumer);
        }
        prop_assert_eq!(taken + drain(&mut model, &mut consumer), u64::from(consumer.lost()));
    }
}

const BYTES_AND_MORE: Format = Format::Binary(&[ONE, THREE, FIVE]);
