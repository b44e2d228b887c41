//! A device around a card, from power on to power off.

use crate::interrupt::{Bus, Delay, Interrupt, Watch};
use crate::samples::Samples;
use cardiograph_card::Card as Driver;
use cardiograph_recorder::{
    Config, Consumer, Control, DosTime, Event, FatVolume, Parts, Producer, ReadDesk, Recorder,
    Ring, StreamConfig, StreamSummary,
};
use cardiograph_sim_card::wire::{ChipSelect, Kind, Options, SpiCard, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card, Seed};
use cardiograph_sim_world::{Clock, Handle, World};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicU8;
use std::task::Poll;

/// Cards of up to 2 GB count bytes.
const STANDARD_BYTES_MAX: u64 = 2 << 30;
/// The clock that a bus has before it is set.
const FIRST_CLOCK_HZ: u32 = 400_000;

/// What kind of card one of so many blocks is.
pub fn card_kind(blocks: u64) -> Kind {
    match blocks * BLOCK_BYTES as u64 {
        0..=STANDARD_BYTES_MAX => Kind::Standard,
        _ => Kind::High,
    }
}

/// A card in a device, with what belongs to the device.
pub struct Device {
    /// The card and its wires. Faults are injected into it.
    pub wire: Wire,
    /// Clock of the bus when the card is acquired, in Hz.
    pub clock_hz: u32,
    /// The recorder's settings.
    pub config: Config,
    /// Sets the recording apart from those of other devices.
    pub entropy: u32,
    /// Blocks that a reader beside the recorder gets at once.
    pub read_blocks: usize,
    /// Whether the processor stops when its card loses power: a power cut, not a pulled card.
    pub stops_without_power: bool,
    /// Who looks at the card after each use of the bus.
    pub watch: Option<Box<Watch>>,
    clock: Clock,
    seed: Seed,
}

/// One stream of a device.
pub struct StreamSetup<'a> {
    /// Names, format and window.
    pub config: StreamConfig,
    /// Bytes of its ring.
    pub ring_bytes: usize,
    /// What it samples.
    pub samples: Box<dyn Samples + 'a>,
}

/// How a run of a device ended.
#[derive(Clone, Debug)]
pub struct Logged<const N: usize> {
    /// What became of it.
    pub finished: Finished<N>,
    /// Samples pushed by each stream, with those that were lost.
    pub pushed: [u64; N],
    /// When sampling began, in ns of the clock.
    pub started_ns: Option<u64>,
    /// When it all ended, in ns of the clock.
    pub ended_ns: u64,
}

/// What became of a run.
#[derive(Clone, Debug)]
pub enum Finished<const N: usize> {
    /// It ended by itself.
    Done([StreamSummary; N]),
    /// It could not begin: why, in a sentence.
    Refused(String),
    /// The power was cut.
    PowerCut,
    /// Nothing went on any more, or it went round in circles: a fault of the recorder.
    Stuck(String),
}

/// Something that goes on beside the recorder: reads, recipes, a supply that fails.
pub type Beside<'b> = Pin<Box<dyn Future<Output = ()> + 'b>>;

impl Device {
    /// A device that is put together at time 0.
    ///
    /// # Panics
    /// If NCR is not 0 to 8.
    pub fn new(card: Card, ncr_bytes: u8, clock_hz: u32, seed: Seed) -> Device {
        Device::on_clock(card, ncr_bytes, clock_hz, seed, Clock::default())
    }

    /// A device that is put together at the time the clock shows: a card after a power cut.
    ///
    /// # Panics
    /// If NCR is not 0 to 8.
    pub fn on_clock(card: Card, ncr_bytes: u8, clock_hz: u32, seed: Seed, clock: Clock) -> Device {
        let options = Options {
            kind: card_kind(card.blocks()),
            ncr_bytes,
            ..Options::default()
        };
        Device::with_options(card, options, clock_hz, seed, clock)
    }

    /// The same, with a card that says of itself what is in `options`.
    ///
    /// # Panics
    /// If no card has such options.
    pub fn with_options(
        card: Card,
        options: Options,
        clock_hz: u32,
        seed: Seed,
        clock: Clock,
    ) -> Device {
        let card = SpiCard::new(card, options, clock.clone(), FIRST_CLOCK_HZ);
        let card = card.unwrap_or_else(|error| panic!("{error:?}"));
        Device {
            wire: Wire::new(card),
            clock_hz,
            config: Config::default(),
            entropy: 0,
            read_blocks: 16,
            stops_without_power: false,
            watch: None,
            clock,
            seed,
        }
    }

    /// The clock that all of it is on.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The card, taken out.
    ///
    /// # Panics
    /// If somebody else still holds the wires.
    pub fn into_card(self) -> Card {
        let card = self.wire.into_card();
        card.unwrap_or_else(|| panic!("the wires are held"))
    }

    /// Records until all producers are done, or the power goes. `events` is told the time in us with each
    /// event. What `beside` makes goes on meanwhile, and is dropped with the recorder's end.
    pub fn log<'a, const N: usize>(
        &'a self,
        streams: [StreamSetup<'a>; N],
        mut events: impl FnMut(u64, Event),
        beside: impl for<'b> FnOnce(&'b Control, &'b ReadDesk<'b>, Handle) -> Option<Beside<'b>>,
    ) -> Logged<N> {
        let mut world = World::on_clock(self.seed, self.clock.clone());
        let (control, clock) = (Control::new(), self.clock.clone());
        let mut blocks: Vec<Block> = vec![[0; BLOCK_BYTES]; self.read_blocks];
        let desk = ReadDesk::new(&mut blocks);
        let mut rings = streams.each_ref().map(|stream| {
            let bytes: Box<[AtomicU8]> = (0..stream.ring_bytes).map(|_| AtomicU8::new(0)).collect();
            Ring::over(bytes)
        });
        let configs = streams.each_ref().map(|stream| stream.config);
        let (producers, mut consumers): (Vec<Producer>, Vec<Option<Consumer>>) = rings
            .iter_mut()
            .zip(&configs)
            .map(|(ring, config)| ring.split(config.format))
            .map(|(producer, consumer)| (producer, Some(consumer)))
            .unzip();
        let samples = streams.into_iter().map(|stream| stream.samples);
        let interrupt = Interrupt::new(
            self.clock.clone(),
            &control,
            producers.into_iter().zip(samples),
            self.stops_without_power,
        );
        let now = self.clock.clone();
        let parts = Parts {
            medium: self.driver(&interrupt, world.handle()),
            volume: FatVolume::new(|| DosTime::NO_CLOCK, self.entropy),
            clock: move || now.now_ns() / 1000,
            delay: Delay {
                world: world.handle(),
                interrupt: &interrupt,
            },
            events: |event| events(clock.now_ns() / 1000, event),
            control: &control,
            reads: Some(&desk),
        };
        let streams = core::array::from_fn(|at| {
            let consumer = consumers[at].take();
            (
                configs[at],
                consumer.unwrap_or_else(|| unreachable!("one for each stream")),
            )
        });
        let mut recorder = Recorder::new(parts, self.config, streams);
        let beside = beside(&control, &desk, world.handle());
        let result = world.block_on(run(recorder.run(), beside, &interrupt));
        let finished = match result {
            Ok(Some(Ok(summaries))) => Finished::Done(summaries),
            Ok(Some(Err(error))) => Finished::Refused(error.to_string()),
            Ok(None) => Finished::PowerCut,
            Err(_) if interrupt.is_stopped() => Finished::PowerCut,
            Err(stuck) => Finished::Stuck(stuck.to_string()),
        };
        let pushed = interrupt.pushed();
        Logged {
            finished,
            pushed: core::array::from_fn(|at| pushed[at]),
            started_ns: interrupt.started_ns(),
            ended_ns: self.clock.now_ns(),
        }
    }

    fn driver<'a, 'b>(
        &'a self,
        interrupt: &'b Interrupt<'a>,
        world: Handle,
    ) -> Driver<
        Bus<'a, 'b>,
        ChipSelect,
        Delay<'a, 'b>,
        impl FnMut(&mut Bus<'a, 'b>, u32) + use<'a, 'b>,
    > {
        let (bus, pin) = Bus::new(&self.wire, interrupt, self.watch.as_deref());
        let wire = self.wire.clone();
        // A clock that the bus does not have is left as it is: the board was checked.
        let set_clock = move |_: &mut Bus<'a, 'b>, hz| {
            let _ = wire.card().set_clock_hz(hz);
        };
        Driver::new(
            bus,
            pin,
            Delay { world, interrupt },
            set_clock,
            self.clock_hz,
        )
    }
}

/// Runs a recorder, and something beside it, until the recorder is done or the power is gone.
async fn run<T>(
    recorder: impl Future<Output = T>,
    mut beside: Option<Beside<'_>>,
    interrupt: &Interrupt<'_>,
) -> Option<T> {
    let mut recorder = pin!(recorder);
    poll_fn(|context| {
        // Delays of the recorder pass at once unless a timer is in their way: those of the other come first.
        if !interrupt.is_stopped()
            && let Some(future) = &mut beside
            && future.as_mut().poll(context).is_ready()
        {
            beside = None;
        }
        match recorder.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if interrupt.is_stopped() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
