//! Shells with given rings, rates, costs and files, and a card that notes its commands.

use super::{Shell, ShellParts};
use crate::Clock;
use crate::admission::Rate;
use crate::control::Control;
use crate::event::Event;
use crate::format::{Column, Format, Kind, Schema};
use crate::limits::Limits;
use crate::plan::{self, Action, Card, File, Outcome};
use crate::reads::ReadDesk;
use crate::recorder::Config;
use crate::ring::{Producer, Ring};
use crate::stream::{Stream, StreamConfig, Window};
use crate::volume::{Extent, Reserved};
use cardiograph_card::{BLOCK_BYTES, Block, BlockDevice, WriteError};
use core::pin::{Pin, pin};
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, Waker};
use embedded_hal_async::delay::DelayNs;
use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::vec;
use std::vec::Vec;

pub(super) const SAMPLE_BYTES: usize = 8;
/// 64 MiB.
pub(super) const CARD_BLOCKS: u32 = 1 << 17;
static SCHEMAS: [Schema; 1] = [Schema::new(&[Column {
    name: "time_us",
    kind: Kind::U64,
}])];
pub(super) const FORMAT: Format = Format::Binary(&SCHEMAS);
pub(super) const SECOND_US: u64 = 1_000_000;
pub(super) const NOW_US: u64 = 60 * SECOND_US;

/// Time of a block's write, of its end, and of a read, in us.
pub(super) const PUSH_US: u64 = 500;
pub(super) const END_US: u64 = 8_000;
pub(super) const READ_US: u64 = 3_000;

/// A clock that the card advances.
pub(super) struct TestClock<'a>(&'a Cell<u64>);

impl Clock for TestClock<'_> {
    fn now_us(&self) -> u64 {
        self.0.get()
    }
}

/// A command to the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Begin(u32, u32),
    Push,
    End,
    Read(u32, usize),
}

/// A card that notes its commands, and advances the clock by their times.
pub(super) struct TestCard<'a> {
    now_us: &'a Cell<u64>,
    commands: Vec<Command>,
}

impl TestCard<'_> {
    fn note(&mut self, command: Command, us: u64) {
        self.commands.push(command);
        self.now_us.set(self.now_us.get() + us);
    }

    /// Returns the commands since the last call.
    pub(super) fn take(&mut self) -> Vec<Command> {
        core::mem::take(&mut self.commands)
    }
}

impl BlockDevice for TestCard<'_> {
    type Error = ();

    async fn acquire(&mut self) -> Result<(), ()> {
        Err(())
    }

    fn blocks(&self) -> u32 {
        CARD_BLOCKS
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), ()> {
        self.note(Command::Read(start, blocks.len()), READ_US);
        Ok(())
    }

    async fn write(&mut self, _: u32, _: &[Block]) -> Result<(), WriteError<()>> {
        unreachable!("a shell pushes blocks")
    }

    async fn begin(&mut self, start: u32, hint: u32) -> Result<(), WriteError<()>> {
        self.note(Command::Begin(start, hint), 0);
        Ok(())
    }

    async fn push(&mut self, _: &Block) -> Result<(), WriteError<()>> {
        self.note(Command::Push, PUSH_US);
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<()>> {
        self.note(Command::End, END_US);
        Ok(())
    }
}

/// A delay that ends at once; it holds the last duration, in us.
pub(super) struct Delay(pub(super) u32);

impl DelayNs for Delay {
    async fn delay_ns(&mut self, ns: u32) {
        self.0 = ns / 1000;
    }
}

/// One stream, in numbers.
#[derive(Clone, Copy)]
pub(super) struct Of {
    pub(super) capacity: usize,
    pub(super) level: usize,
    pub(super) rate: u64,
    pub(super) window_us: u64,
    pub(super) durable_us: u64,
}

/// Measured costs, in us.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) commit: u64,
    pub(super) read: u64,
    pub(super) step: u64,
    pub(super) longest: u64,
    /// Mean time per block.
    pub(super) block: u64,
}

#[derive(Clone, Copy)]
pub(super) struct Case {
    pub(super) streams: [Of; 2],
    pub(super) measured: Measured,
    /// First block, length, and index in the file of track 0.
    pub(super) file: (u32, u32, u32),
    /// Length of the prepared file.
    pub(super) ahead: u32,
    pub(super) is_reading: bool,
    /// Both streams are in one track.
    pub(super) is_shared: bool,
}

pub(super) const CASE: Case = Case {
    streams: [
        Of {
            capacity: 32_768,
            level: 4_000,
            rate: 60_000,
            window_us: SECOND_US,
            durable_us: NOW_US - 300_000,
        },
        Of {
            capacity: 16_384,
            level: 800,
            rate: 9_000,
            window_us: 3 * SECOND_US,
            durable_us: NOW_US - 100_000,
        },
    ],
    measured: Measured {
        commit: 7_000,
        read: 3_000,
        step: 12_000,
        longest: 90_000,
        block: 400,
    },
    file: (6400, 4096, 640),
    ahead: 2048,
    is_reading: false,
    is_shared: true,
};

pub(super) type Tested<'a> =
    Shell<'a, TestCard<'a>, TestClock<'a>, Delay, Box<dyn FnMut(Event) + 'a>, 2>;

/// Everything outside a shell.
pub(super) struct Outside<'a> {
    pub(super) control: &'a Control,
    pub(super) producers: Vec<Producer<'a>>,
    pub(super) events: &'a RefCell<Vec<Event>>,
    pub(super) desk: &'a ReadDesk<'a>,
}

/// Builds the shell of a case, and calls `test` with it. Measured costs may differ from those of `case` by what rounding
/// leaves.
pub(super) fn with(
    case: &Case,
    config: Config,
    test: impl FnOnce(&mut Tested, &mut Outside, &Case),
) {
    let (control, events) = (Control::new(), RefCell::new(Vec::new()));
    let (now_us, mut memory) = (Cell::new(NOW_US), vec![[0; BLOCK_BYTES]; 16]);
    let desk = ReadDesk::with_buffers(&mut memory, 2);
    let mut rings = case.streams.each_ref().map(|of| {
        let bytes: Vec<AtomicU8> = (0..of.capacity).map(|_| AtomicU8::new(0)).collect();
        Ring::over(bytes)
    });
    let mut producers = Vec::new();
    let streams = rings.each_mut().map(|ring| {
        let (producer, consumer) = ring.split(FORMAT);
        let at = producers.len();
        producers.push(producer);
        let of = case.streams[at];
        let config = StreamConfig {
            prefix: *b"LOG",
            format: FORMAT,
            window: Window::Us(of.window_us),
        };
        let track = if case.is_shared { 0 } else { at as u8 };
        let mut stream = Stream::new(config, consumer, at as u8, track);
        let head = of.level / SAMPLE_BYTES * SAMPLE_BYTES;
        stream.rate = Rate::of(of.rate as u32, NOW_US, head as u32);
        stream.durable_before_us = of.durable_us;
        stream
    });
    let parts = ShellParts {
        medium: TestCard {
            now_us: &now_us,
            commands: Vec::new(),
        },
        clock: TestClock(&now_us),
        delay: Delay(0),
        events: Box::new(|event| events.borrow_mut().push(event)) as Box<dyn FnMut(Event)>,
        control: &control,
        reads: Some(&desk),
    };
    let mut shell: Tested = Shell::new(parts, config, Limits::PRODUCT, streams);
    let mut outside = Outside {
        control: &control,
        producers,
        events: &events,
        desk: &desk,
    };
    for (at, of) in case.streams.iter().enumerate() {
        outside.push(at, of.level / SAMPLE_BYTES);
    }
    open_file(&mut shell, case);
    shell.now = shell.conditions(NOW_US);
    shell.now.is_reading = case.is_reading;
    let case = measure(&mut shell, case);
    test(&mut shell, &mut outside, &case);
}

/// Returns the output of a future that waits for nothing.
pub(super) fn done<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => unreachable!("nothing waits here"),
    }
}

pub(super) fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Carries out an action.
pub(super) fn act(shell: &mut Tested, action: Action) {
    done(shell.carry_out(action)).unwrap();
    shell.apply(action, Outcome::Done);
}

/// Fills blocks, and writes all that are full.
pub(super) fn write_full_blocks(shell: &mut Tested) {
    loop {
        shell.fill(shell.now_us());
        let mut blocks = shell.streams.iter().map(|stream| stream.conditions().block);
        let Some(full) = blocks.position(|block| block == plan::Block::Full) else {
            return;
        };
        act(shell, Action::Write(full as u8));
    }
}

/// Writes everything in the rings, with marks.
pub(super) fn write_all(shell: &mut Tested) {
    write_full_blocks(shell);
    for track in 0..shell.state.track_count {
        act(shell, Action::Mark(track));
    }
    write_full_blocks(shell);
}

impl Outside<'_> {
    /// Returns the events since the last call.
    pub(super) fn take_events(&self) -> Vec<Event> {
        self.events.take()
    }

    pub(super) fn push(&mut self, stream: usize, samples: usize) {
        for _ in 0..samples {
            let pushed = self.producers[stream].push(&[7; SAMPLE_BYTES], NOW_US);
            assert!(pushed.is_ok(), "the ring has room");
        }
    }
}

/// Opens the file of track 0, 4 s ago, and prepares the next one.
fn open_file(shell: &mut Tested, case: &Case) {
    let (start, blocks, index) = case.file;
    shell.state.card = Card::Idle;
    shell.state.tracks[0].file = Some(File {
        blocks,
        index,
        durable: 0,
    });
    shell.files.put(&reserved(0, start, blocks));
    shell.files.put(&reserved(1, 90_000, case.ahead));
    let track = &mut shell.tracks[0];
    assert!(track.ahead.push(0).is_ok() && track.ahead.push(1).is_ok());
    assert!(track.begin(NOW_US - 4 * SECOND_US).is_some());
}

pub(super) fn reserved(slot: u8, start: u32, blocks: u32) -> Reserved {
    Reserved {
        slot,
        prefix: *b"LOG",
        extension: *b"BIN",
        id: None,
        is_version_0_1: false,
        extent: Extent { start, blocks },
        epoch: 1,
        note: 1,
    }
}

/// Observes the costs of a case; returns the case with the costs that are assumed then.
fn measure(shell: &mut Tested, case: &Case) -> Case {
    let mut case = *case;
    let measured = &mut case.measured;
    for (cost, us) in [
        (&mut shell.costs.commit, &mut measured.commit),
        (&mut shell.costs.read, &mut measured.read),
    ] {
        // A cost at most doubles, and falls by a quarter of the difference.
        (0..100).for_each(|_| cost.observe(*us as u32));
        assert!(u64::from(cost.us()).abs_diff(*us) <= 3, "{}", cost.us());
        *us = cost.us().into();
    }
    shell.costs.observe_step(measured.step as u32);
    shell.costs.observe_block(measured.block as u32 * 100, 100);
    shell.costs.longest_us = measured.longest as u32;
    case
}
