//! A simulated device with its card, from power-on to power-off.

use crate::interrupt::{Bus, Delay, Interrupt, Watch};
use crate::samples::Samples;
use cardiograph_card::Card as Driver;
use cardiograph_recorder::{
    Config, Consumer, Control, DosTime, Event, FatVolume, Newest, Parts, Producer, ReadDesk,
    Recorder, Ring, StreamConfig, StreamSummary,
};
use cardiograph_sim_card::wire::{ChipSelect, Kind, Options, SpiCard, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Block, Card, Seed};
use cardiograph_sim_world::{Clock, Handle, Stuck, World};
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicU8;
use std::task::Poll;

/// Capacity of the largest card with byte addresses.
const STANDARD_BYTES_MAX: u64 = 2 << 30;
/// Bus clock during initialisation of the card, in Hz.
const FIRST_CLOCK_HZ: u32 = 400_000;

/// Returns the kind of a card that has the given number of blocks.
pub fn card_kind(blocks: u64) -> Kind {
    match blocks * BLOCK_BYTES as u64 {
        0..=STANDARD_BYTES_MAX => Kind::Standard,
        _ => Kind::High,
    }
}

/// A device with a card, and its settings.
pub struct Device {
    /// The card and the wires to it. Faults are injected through this handle.
    pub wire: Wire,
    /// Clock of the bus after initialisation of the card, in Hz.
    pub clock_hz: u32,
    /// Settings of the recorder.
    pub config: Config,
    /// Seed of file epochs, to distinguish the recordings of different devices.
    pub entropy: u32,
    /// The device's date and time.
    pub date: fn() -> DosTime,
    /// Maximum number of blocks per read by another task.
    pub read_blocks: usize,
    /// Number of buffers for reads by other tasks.
    pub read_buffers: usize,
    /// Time for which other tasks are served after the recording has ended, in ns.
    pub serves_after_ns: u64,
    /// Memory for the newest samples: entry n is for stream n. Later streams have none.
    pub shown: Vec<Newest<'static>>,
    /// If true, the processor stops when the card loses power: a power cut instead of a pulled card.
    pub stops_without_power: bool,
    /// Callback that receives the card after each bus transfer.
    pub watch: Option<Box<Watch>>,
    clock: Clock,
    seed: Seed,
}

/// One stream of a device.
pub struct StreamSetup<'a> {
    /// Name prefix, format and durability window.
    pub config: StreamConfig,
    /// Size of the ring buffer, in bytes.
    pub ring_bytes: usize,
    /// Samples to record.
    pub samples: Box<dyn Samples + 'a>,
}

/// Result of a run of a device.
#[derive(Clone, Debug)]
pub struct RunResult<const N: usize> {
    /// Outcome of the run.
    pub outcome: Outcome<N>,
    /// Samples pushed by each stream, including lost ones.
    pub pushed: [u64; N],
    /// Time at which sampling started, in ns of the clock; `None` if it did not start.
    pub started_ns: Option<u64>,
    /// End of the run, in ns of the clock.
    pub ended_ns: u64,
}

/// Outcome of a run.
#[derive(Clone, Debug)]
pub enum Outcome<const N: usize> {
    /// The recorder ended normally, with these statistics of each stream.
    Done([StreamSummary; N]),
    /// The recorder did not start; contains the reason as a sentence.
    Refused(String),
    /// The power was cut.
    PowerCut,
    /// The device stopped making progress (deadlock or livelock), which is a bug in the recorder. The string
    /// describes it.
    Stuck(String),
}

/// A task that runs concurrently with the recorder, such as reads, session changes or a failing supply.
pub type BackgroundTask<'b> = Pin<Box<dyn Future<Output = ()> + 'b>>;

/// Future of a running device: the recorder, the sampling interrupt and the background task.
pub type DeviceFuture<'b, const N: usize> = Pin<Box<dyn Future<Output = Ended<N>> + 'b>>;

/// End of a run: the recorder's result, or the reason why it did not start; `None` after a power cut.
pub type Ended<const N: usize> = Option<Result<[StreamSummary; N], String>>;

impl Device {
    /// Creates a device at time 0.
    ///
    /// # Panics
    /// If `ncr_bytes` is more than 8.
    pub fn new(card: Card, ncr_bytes: u8, clock_hz: u32, seed: Seed) -> Device {
        Device::on_clock(card, ncr_bytes, clock_hz, seed, Clock::default())
    }

    /// Creates a device at the current time of a clock, for example around a card after a power cut.
    ///
    /// # Panics
    /// If `ncr_bytes` is more than 8.
    pub fn on_clock(card: Card, ncr_bytes: u8, clock_hz: u32, seed: Seed, clock: Clock) -> Device {
        let options = Options {
            kind: card_kind(card.blocks()),
            ncr_bytes,
            ..Options::default()
        };
        Device::with_options(card, options, clock_hz, seed, clock)
    }

    /// Creates a device whose card has the given options, at the current time of a clock.
    ///
    /// # Panics
    /// If the options are invalid.
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
            date: || DosTime::NO_CLOCK,
            read_blocks: 16,
            read_buffers: 1,
            serves_after_ns: 0,
            shown: Vec::new(),
            stops_without_power: false,
            watch: None,
            clock,
            seed,
        }
    }

    /// Returns the clock of the device.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Removes the card from the device.
    ///
    /// # Panics
    /// If the card's wires are still in use.
    pub fn into_card(self) -> Card {
        let card = self.wire.into_card();
        card.unwrap_or_else(|| panic!("the card's wires are still in use"))
    }

    /// Records until all producers have ended, or the power is cut. Calls `events` with each event and its
    /// time in us. The task that `background` returns runs concurrently, and is dropped when the recorder
    /// ends.
    pub fn log<'a, const N: usize>(
        &'a self,
        streams: [StreamSetup<'a>; N],
        events: impl FnMut(u64, Event),
        background: impl for<'b> FnOnce(
            &'b Control,
            &'b ReadDesk<'b>,
            Handle,
        ) -> Option<BackgroundTask<'b>>,
    ) -> RunResult<N> {
        self.log_with(streams, events, background, |world, device, _, _| {
            world.block_on(device)
        })
    }

    /// Records as [`log`](Device::log) does, but lets `drive` run the device in its world, for example in real time.
    pub fn log_with<'a, const N: usize>(
        &'a self,
        streams: [StreamSetup<'a>; N],
        mut events: impl FnMut(u64, Event),
        background: impl for<'b> FnOnce(
            &'b Control,
            &'b ReadDesk<'b>,
            Handle,
        ) -> Option<BackgroundTask<'b>>,
        drive: impl for<'b> FnOnce(
            &mut World,
            DeviceFuture<'b, N>,
            &'b Control,
            &'b ReadDesk<'b>,
        ) -> Result<Ended<N>, Stuck>,
    ) -> RunResult<N> {
        let mut world = World::on_clock(self.seed, self.clock.clone());
        let (control, clock) = (Control::new(), self.clock.clone());
        let blocks = self.read_blocks * self.read_buffers;
        let mut blocks: Vec<Block> = vec![[0; BLOCK_BYTES]; blocks];
        let desk = ReadDesk::with_buffers(&mut blocks, self.read_buffers);
        let mut rings = streams.each_ref().map(|stream| {
            let bytes: Box<[AtomicU8]> = (0..stream.ring_bytes).map(|_| AtomicU8::new(0)).collect();
            Ring::over(bytes)
        });
        let configs = streams.each_ref().map(|stream| stream.config);
        let (mut producers, mut consumers): (Vec<Producer>, Vec<Option<Consumer>>) = rings
            .iter_mut()
            .zip(&configs)
            .map(|(ring, config)| ring.split(config.format))
            .map(|(producer, consumer)| (producer, Some(consumer)))
            .unzip();
        for (producer, newest) in producers.iter_mut().zip(&self.shown) {
            producer.show(*newest);
        }
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
            volume: FatVolume::new(self.date, self.entropy),
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
        let config = Config {
            serves_after_end: self.serves_after_ns > 0,
            ..self.config
        };
        let mut recorder = Recorder::new(parts, config, streams);
        let background = background(&control, &desk, world.handle());
        let world_handle = world.handle();
        let recording = async {
            let result = recorder.run().await;
            if result.is_ok() && self.serves_after_ns > 0 {
                let end_ns = self.clock.now_ns() + self.serves_after_ns;
                // With a timer pending, delays of the recorder wait, and the background task runs.
                let ticks = world_handle.clone();
                world_handle.spawn("ticks while serving", async move {
                    while ticks.now_ns() < end_ns {
                        ticks.sleep_ns(1_000_000).await;
                    }
                });
                recorder.serve(|| self.clock.now_ns() >= end_ns).await?;
            }
            result
        };
        let recording = async { recording.await.map_err(|error| error.to_string()) };
        let running = Box::pin(run(recording, background, &interrupt));
        let outcome = match drive(&mut world, running, &control, &desk) {
            Ok(Some(Ok(summaries))) => Outcome::Done(summaries),
            Ok(Some(Err(error))) => Outcome::Refused(error),
            Ok(None) => Outcome::PowerCut,
            Err(_) if interrupt.is_stopped() => Outcome::PowerCut,
            Err(stuck) => Outcome::Stuck(stuck.to_string()),
        };
        let pushed = interrupt.pushed();
        RunResult {
            outcome,
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
        // An unsupported clock changes nothing; the clocks of boards have been checked before.
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

/// Runs a recorder and a concurrent task, until the recorder ends or the power is cut.
async fn run<T>(
    recorder: impl Future<Output = T>,
    mut background: Option<BackgroundTask<'_>>,
    interrupt: &Interrupt<'_>,
) -> Option<T> {
    let mut recorder = pin!(recorder);
    poll_fn(|context| {
        // A timer of another task may have advanced the clock past samples that are due.
        interrupt.fire();
        // The background task is polled first: the recorder's delays advance the clock at once unless a timer is
        // pending.
        if !interrupt.is_stopped()
            && let Some(future) = &mut background
            && future.as_mut().poll(context).is_ready()
        {
            background = None;
        }
        match recorder.as_mut().poll(context) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            Poll::Pending if interrupt.is_stopped() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    })
    .await
}
