//! The sampling interrupt, which occurs regardless of the processor's activity and takes no time.
//!
//! Time passes only on the bus and in delays. After each transfer and each delay, the interrupt pushes all
//! samples that have become due, with their own due times. This is equivalent to pushing each sample on
//! time, because no code reads the ring in between.

use crate::samples::Samples;
use cardiograph_recorder::{Control, LINE_BYTES_MAX, Producer};
use cardiograph_sim_card::wire::{ChipSelect, SpiBus, SpiCard, Wire};
use cardiograph_sim_world::{Clock, Handle};
use embedded_hal_async::delay::DelayNs;
use embedded_hal_async::spi::{self, ErrorType};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::pending;

/// All producers of a device, and the flag of a power cut.
pub(crate) struct Interrupt<'a> {
    clock: Clock,
    control: &'a Control,
    producers: RefCell<Vec<Sampling<'a>>>,
    /// Start of sampling, in ns of the clock; `None` until sampling has started.
    started_ns: Cell<Option<u64>>,
    /// True if the device stops when its card loses power.
    stops_without_power: bool,
    stopped: Cell<bool>,
}

struct Sampling<'a> {
    producer: Producer<'a>,
    samples: Box<dyn Samples + 'a>,
    next: u64,
    /// Due time of the next sample; `None` after the last sample.
    due_ns: Option<u64>,
    /// Number of interrupts at which no sample was due.
    waits: u32,
}

/// Number of such interrupts between two questions whether sampling is over.
const WAITS_PER_QUESTION: u32 = 4096;

impl<'a> Interrupt<'a> {
    pub(crate) fn new(
        clock: Clock,
        control: &'a Control,
        producers: impl Iterator<Item = (Producer<'a>, Box<dyn Samples + 'a>)>,
        stops_without_power: bool,
    ) -> Self {
        let producers = producers.map(|(producer, mut samples)| Sampling {
            producer,
            due_ns: samples.due_ns(0),
            samples,
            next: 0,
            waits: 0,
        });
        Interrupt {
            clock,
            control,
            producers: RefCell::new(producers.collect()),
            started_ns: Cell::new(None),
            stops_without_power,
            stopped: Cell::new(false),
        }
    }

    /// Pushes the samples that have become due. Starts sampling when the recorder is ready.
    pub(crate) fn fire(&self) {
        let now_ns = self.clock.now_ns();
        let started_ns = match self.started_ns.get() {
            Some(started_ns) => started_ns,
            None if self.control.is_ready() => {
                self.started_ns.set(Some(now_ns));
                now_ns
            }
            None => return,
        };
        for sampling in self.producers.borrow_mut().iter_mut() {
            sampling.push_due(started_ns, now_ns);
        }
    }

    /// Returns the start of sampling, in ns.
    pub(crate) fn started_ns(&self) -> Option<u64> {
        self.started_ns.get()
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    /// Returns the number of samples pushed by each stream, including lost ones.
    pub(crate) fn pushed(&self) -> Vec<u64> {
        let producers = self.producers.borrow();
        producers.iter().map(|one| one.producer.pushed()).collect()
    }
}

impl Sampling<'_> {
    fn push_due(&mut self, started_ns: u64, now_ns: u64) {
        while let Some(due_ns) = self.due_ns {
            let at_ns = started_ns.saturating_add(due_ns);
            if at_ns > now_ns {
                self.end_if_over();
                return;
            }
            if let Some(session) = self.samples.session(self.next) {
                let is_begun = self.producer.begin_session(&session).is_ok();
                self.samples.note_session(self.next, is_begun);
            }
            let mut sample = [0; LINE_BYTES_MAX];
            let len = self.samples.make(self.next, &mut sample);
            // The producer counts a lost sample itself, and adds it to a gap.
            let is_lost = self.producer.push(&sample[..len], at_ns / 1000).is_err();
            let level_bytes = self.producer.level_bytes();
            self.samples.note_push(self.next, is_lost, level_bytes);
            self.next += 1;
            self.due_ns = self.samples.due_ns(self.next);
            if self.due_ns.is_none() {
                self.producer.close();
            }
        }
    }
}

impl Sampling<'_> {
    /// Ends the samples during a long wait for the next one, if that was requested.
    fn end_if_over(&mut self) {
        self.waits = self.waits.wrapping_add(1);
        if self.waits.is_multiple_of(WAITS_PER_QUESTION) && self.samples.is_over() {
            self.due_ns = None;
            self.producer.close();
        }
    }
}

/// Callback that receives the card after each bus transfer.
pub type Watch = dyn Fn(&SpiCard);

/// The bus, with a sampling interrupt after each transfer.
pub(crate) struct Bus<'a, 'b> {
    bus: SpiBus,
    wire: Wire,
    interrupt: &'b Interrupt<'a>,
    watch: Option<&'a Watch>,
}

impl<'a, 'b> Bus<'a, 'b> {
    pub(crate) fn new(
        wire: &Wire,
        interrupt: &'b Interrupt<'a>,
        watch: Option<&'a Watch>,
    ) -> (Self, ChipSelect) {
        let bus = Bus {
            bus: wire.bus(),
            wire: wire.clone(),
            interrupt,
            watch,
        };
        (bus, wire.chip_select())
    }

    async fn used(&self) -> Result<(), Infallible> {
        if let Some(watch) = self.watch {
            watch(&self.wire.card());
        }
        if self.interrupt.stops_without_power && !self.wire.card().is_powered() {
            self.interrupt.stopped.set(true);
            return pending().await;
        }
        self.interrupt.fire();
        Ok(())
    }
}

impl ErrorType for Bus<'_, '_> {
    type Error = Infallible;
}

impl spi::SpiBus for Bus<'_, '_> {
    async fn read(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.bus.read(words).await?;
        self.used().await
    }

    async fn write(&mut self, words: &[u8]) -> Result<(), Infallible> {
        self.bus.write(words).await?;
        self.used().await
    }

    async fn transfer(&mut self, read: &mut [u8], write: &[u8]) -> Result<(), Infallible> {
        self.bus.transfer(read, write).await?;
        self.used().await
    }

    async fn transfer_in_place(&mut self, words: &mut [u8]) -> Result<(), Infallible> {
        self.bus.transfer_in_place(words).await?;
        self.used().await
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        self.bus.flush().await
    }
}

/// A delay in virtual time, followed by a sampling interrupt.
pub(crate) struct Delay<'a, 'b> {
    pub(crate) world: Handle,
    pub(crate) interrupt: &'b Interrupt<'a>,
}

impl Delay<'_, '_> {
    /// Lets virtual time pass, then fires the sampling interrupt.
    async fn pass_ns(&self, ns: u64) {
        if !self.world.skip_ns(ns) {
            self.world.sleep_ns(ns).await;
        }
        self.interrupt.fire();
    }
}

impl DelayNs for Delay<'_, '_> {
    async fn delay_ns(&mut self, ns: u32) {
        self.pass_ns(ns.into()).await;
    }

    async fn delay_us(&mut self, us: u32) {
        self.pass_ns(u64::from(us) * 1_000).await;
    }

    async fn delay_ms(&mut self, ms: u32) {
        self.pass_ns(u64::from(ms) * 1_000_000).await;
    }
}
