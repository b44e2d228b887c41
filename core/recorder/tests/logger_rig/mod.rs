//! A recorder in virtual time: producers that push whenever time passes, and a card in memory that loses data that is
//! not durable when it fails.
#![allow(dead_code, reason = "each test file uses only part of it")]

mod memory;
mod read_back;
mod readers;

pub use memory::{Costs, Faults};
pub use read_back::Files;
pub use readers::Readers;

use crate::fat_rig::{Disk, Spec};
use cardiograph_card::Block;
use cardiograph_recorder::*;
use embedded_hal_async::delay::DelayNs;
use memory::Memory;
use readers::Executor;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::AtomicU8;
use std::task::{Context, Poll, Waker};

/// Maximum number of clock readings without any operation that takes time.
const LOOKS_MAX: u32 = 100_000;

/// Returns the sample with the given index.
pub type Make = Box<dyn Fn(u64) -> Vec<u8>>;

/// A stream and its producer.
pub struct Input {
    pub format: Format,
    pub window: Window,
    pub ring_bytes: usize,
    pub period_us: u64,
    pub samples: u64,
    pub make: Make,
    /// Closes the producer after its last sample.
    pub closes: bool,
}

/// Returns a line of this length that begins with its index.
pub fn line(index: u64, bytes: usize) -> Vec<u8> {
    format!("{index:011},{}\n", "x".repeat(bytes - 13)).into_bytes()
}

/// Returns a stream of numbered lines of this length.
pub fn lines(ring_bytes: usize, line_bytes: u16, period_us: u64, samples: u64) -> Input {
    Input {
        format: Format::Lines {
            header: "",
            line_bytes_max: line_bytes,
        },
        window: Window::default(),
        ring_bytes,
        period_us,
        samples,
        make: Box::new(move |index| line(index, line_bytes.into())),
        closes: true,
    }
}

/// Observations whenever time has passed.
pub struct Moment<'a> {
    pub now_us: u64,
    /// Number of card operations so far.
    pub operations: u64,
    /// Number of samples pushed so far, per stream.
    pub pushed: &'a [u64],
    /// Contents of the card after a power cut at this moment.
    pub durable: &'a Disk,
}

type Watch<'a> = Box<dyn FnMut(&Moment) + 'a>;

/// Parameters of a recording.
pub struct Case<'a> {
    pub config: Config,
    pub control: &'a Control,
    pub card_blocks: u32,
    pub costs: Costs,
    /// Numbers of the card operations at which it fails, until it is acquired again.
    pub failures: Vec<u64>,
    /// Additional faults of the card.
    pub faults: Faults,
    /// Initial card, if it is not empty.
    pub disk: Option<Disk>,
    /// Each failed run is followed by another one with the next of these disks, or with the same for `None`.
    pub next_disks: Vec<Option<Disk>>,
    /// Reading of the recorder's clock at a true time in us.
    pub clock: fn(u64) -> u64,
    /// Sampling begins before the recorder is ready.
    pub is_early: bool,
    /// Time after which the recording counts as hung, in us.
    pub until_us: u64,
    pub readers: Readers,
    /// Sessions that producers begin: index of the stream, index of the first sample, and session.
    pub sessions: Vec<(usize, u64, Session)>,
}

impl<'a> Case<'a> {
    pub fn new(control: &'a Control) -> Self {
        Case {
            config: Config {
                file_bytes: 128 << 10,
                ..Config::default()
            },
            control,
            card_blocks: 40_000,
            costs: Costs {
                read_us: 300,
                begin_us: 200,
                push_us: 200,
                end_us: 800,
            },
            failures: Vec::new(),
            faults: Faults::default(),
            disk: None,
            next_disks: Vec::new(),
            clock: |now_us| now_us,
            is_early: false,
            until_us: 60_000_000,
            readers: Readers::default(),
            sessions: Vec::new(),
        }
    }
}

/// Result of a recording.
pub struct Outcome<const N: usize> {
    pub summaries: Result<[StreamSummary; N], String>,
    pub events: Vec<(u64, Event)>,
    pub disk: Disk,
    /// Number of samples pushed, per stream.
    pub pushed: Vec<u64>,
    /// Number of times that the recorder acquired the card.
    pub acquired: u32,
    /// Number of writes of recordings that ended within a flash page.
    pub torn: u32,
    /// Results of the reads, in order.
    pub reads: Vec<Result<Block, ReadError>>,
    /// Published figures, at each time at which they differed from those before.
    pub figures: Vec<(u64, Figures)>,
}

struct Feed<'a> {
    producer: Producer<'a>,
    period_us: u64,
    samples: u64,
    make: Make,
    closes: bool,
    /// Sessions to begin, by the index of their first sample.
    sessions: BTreeMap<u64, Session>,
}

/// State shared by card, producers and clock.
struct World<'a> {
    now_us: Cell<u64>,
    looks: Cell<u32>,
    /// Time at which the producers began.
    begun_us: Cell<Option<u64>>,
    control: &'a Control,
    feeds: RefCell<Vec<Feed<'a>>>,
    operations: Cell<u64>,
    acquired: Cell<u32>,
    torn: Cell<u32>,
    clock: fn(u64) -> u64,
    is_early: bool,
    disk: RefCell<Disk>,
    watch: RefCell<Watch<'a>>,
}

impl World<'_> {
    fn advance(&self, us: u64) {
        let now_us = self.now_us.get() + us;
        self.now_us.set(now_us);
        self.looks.set(0);
        let may_begin = self.is_early || self.control.is_ready();
        if self.begun_us.get().is_none() && may_begin {
            self.begun_us.set(Some(now_us));
        }
        if let Some(begun_us) = self.begun_us.get() {
            self.push(now_us, begun_us);
        }
        (self.watch.borrow_mut())(&Moment {
            now_us,
            operations: self.operations.get(),
            pushed: &self.pushed(),
            durable: &self.disk.borrow(),
        });
    }

    fn push(&self, now_us: u64, begun_us: u64) {
        for feed in self.feeds.borrow_mut().iter_mut() {
            let due = (now_us - begun_us) / feed.period_us + 1;
            while feed.producer.pushed() < due.min(feed.samples) {
                if let Some(session) = feed.sessions.get(&feed.producer.pushed()) {
                    feed.producer.begin_session(session).unwrap();
                }
                let sample = (feed.make)(feed.producer.pushed());
                // Lost samples are checked as gaps.
                let pushed = feed.producer.push(&sample, (self.clock)(now_us));
                if pushed == Err(PushError::Stopped) {
                    break;
                }
            }
            if feed.closes && feed.producer.pushed() == feed.samples {
                feed.producer.close();
            }
        }
    }

    fn pushed(&self) -> Vec<u64> {
        let feeds = self.feeds.borrow();
        feeds.iter().map(|feed| feed.producer.pushed()).collect()
    }

    fn look_us(&self) -> u64 {
        self.looks.set(self.looks.get() + 1);
        assert!(
            self.looks.get() < LOOKS_MAX,
            "the recorder polls without time passing"
        );
        (self.clock)(self.now_us.get())
    }
}

struct Sleep<'a, 'w>(&'a World<'w>);

impl DelayNs for Sleep<'_, '_> {
    async fn delay_ns(&mut self, ns: u32) {
        step_aside().await;
        self.0.advance(u64::from(ns.div_ceil(1000)));
    }
}

/// Yields once, so that others are polled.
async fn step_aside() {
    let mut is_second = false;
    poll_fn(|_| {
        if std::mem::replace(&mut is_second, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

/// Records, and panics if the recorder hangs. `watch` is called whenever time has passed.
pub fn record<'a, const N: usize>(
    case: Case<'a>,
    inputs: [Input; N],
    watch: impl FnMut(&Moment) + 'a,
) -> Outcome<N> {
    let mut rings = inputs.each_ref().map(|input| {
        let bytes = (0..input.ring_bytes).map(|_| AtomicU8::new(0));
        Ring::over(bytes.collect::<Box<[AtomicU8]>>())
    });
    let (mut streams, mut feeds) = (Vec::new(), Vec::new());
    for ((ring, input), letter) in rings.iter_mut().zip(inputs).zip(b'A'..) {
        let (producer, consumer) = ring.split(input.format);
        let config = StreamConfig {
            prefix: [letter; 3],
            format: input.format,
            window: input.window,
        };
        streams.push((config, consumer));
        feeds.push(Feed {
            producer,
            period_us: input.period_us,
            samples: input.samples,
            make: input.make,
            closes: input.closes,
            sessions: BTreeMap::new(),
        });
    }
    for (stream, first, session) in &case.sessions {
        feeds[*stream].sessions.insert(*first, *session);
    }
    let world = World {
        now_us: Cell::new(0),
        looks: Cell::new(0),
        begun_us: Cell::new(None),
        control: case.control,
        feeds: RefCell::new(feeds),
        operations: Cell::new(0),
        acquired: Cell::new(0),
        torn: Cell::new(0),
        clock: case.clock,
        is_early: case.is_early,
        disk: RefCell::new(
            case.disk
                .clone()
                .unwrap_or_else(|| volume(case.card_blocks)),
        ),
        watch: RefCell::new(Box::new(watch)),
    };
    let streams = streams.try_into().ok().expect("as many streams as inputs");
    let events = RefCell::new(Vec::new());
    let (reads, figures) = (RefCell::new(Vec::new()), RefCell::new(Vec::new()));
    let summaries = run(&world, case, streams, &events, &reads, &figures);
    Outcome {
        summaries,
        figures: figures.take(),
        events: events.take(),
        disk: world.disk.borrow().clone(),
        pushed: world.pushed(),
        acquired: world.acquired.get(),
        torn: world.torn.get(),
        reads: reads.take(),
    }
}

/// Returns an empty FAT16 card.
pub fn volume(blocks: u32) -> Disk {
    let spec = Spec {
        blocks,
        fat_bits: 16,
        fats: 2,
        cluster_blocks: 1,
        has_table: false,
        has_files: false,
    };
    spec.make().disk
}

fn run<const N: usize>(
    world: &World,
    case: Case,
    streams: [(StreamConfig, Consumer); N],
    events: &RefCell<Vec<(u64, Event)>>,
    reads: &RefCell<Vec<Result<Block, ReadError>>>,
    figures: &RefCell<Vec<(u64, Figures)>>,
) -> Result<[StreamSummary; N], String> {
    let mut memory = vec![[0; 512]; case.readers.memory_blocks];
    let desk = ReadDesk::new(&mut memory);
    let parts = Parts {
        medium: Memory::new(world, case.costs, case.failures, case.faults),
        volume: FatVolume::new(|| DosTime::NO_CLOCK, 7),
        clock: || world.look_us(),
        delay: Sleep(world),
        events: |event| events.borrow_mut().push((world.now_us.get(), event)),
        control: case.control,
        reads: Some(&desk),
    };
    let mut executor = Executor::new(case.readers.tasks(&desk, &world.now_us, reads));
    let mut recorder = Recorder::new(parts, case.config, streams);
    let mut next_disks = case.next_disks.into_iter();
    let note_figures = || {
        let (mut figures, now) = (figures.borrow_mut(), desk.figures());
        if figures.last().is_none_or(|(_, last)| *last != now) {
            figures.push((world.now_us.get(), now));
        }
    };
    loop {
        let result = run_once(
            world,
            recorder.run(),
            &mut executor,
            &note_figures,
            case.until_us,
        );
        match next_disks.next() {
            Some(Some(disk)) if result.is_err() => *world.disk.borrow_mut() = disk,
            Some(None) if result.is_err() => (),
            _ => return result,
        }
    }
}

fn run_once<T, E: std::fmt::Debug>(
    world: &World,
    running: impl Future<Output = Result<T, E>>,
    executor: &mut Executor,
    note_figures: &dyn Fn(),
    until_us: u64,
) -> Result<T, String> {
    let mut running = pin!(running);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = running.as_mut().poll(&mut context) {
            // Readers get their results at the end.
            executor.poll();
            note_figures();
            return result.map_err(|error| format!("{error:?}"));
        }
        executor.poll();
        note_figures();
        assert!(world.now_us.get() < until_us, "the recording does not end");
    }
}
