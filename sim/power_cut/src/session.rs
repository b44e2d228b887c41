//! A device from power on to power off, and what it said meanwhile.

use crate::disk::Image;
use crate::plan::{Plan, SESSIONS};
use cardiograph_recorder::{Config, Control, Event, FileId, FlushState, Format, ReadDesk};
use cardiograph_sim_card::wire::{FaultCounts, FaultSchedule, InterruptedCard, Options, Wire};
use cardiograph_sim_card::{Card, Profile};
use cardiograph_sim_device::{
    BackgroundTask, Device, Outcome, RunResult, StreamSetup, Watch, card_kind,
};
use cardiograph_sim_world::{Clock, Handle, Seed};
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

/// Longest use of the bus: a block with what goes around it, and some more.
const USE_BYTES_MAX: u64 = 600;

/// Something that is asked of the recorder.
#[derive(Clone, Copy, Debug)]
pub enum Ask {
    /// To go on in new files.
    Roll,
    /// To make all durable.
    Flush,
    /// To read so many blocks from a place on.
    Read(u32, usize),
}

/// What a device does from power on to power off.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Clock of the bus, in Hz.
    pub clock_hz: u32,
    /// The recorder's settings.
    pub config: Config,
    /// Its streams.
    pub plans: Vec<Plan>,
    /// What is asked of it, so many ns after the one before.
    pub asks: Vec<(u64, Ask)>,
    /// What happens to the card.
    pub strikes: FaultSchedule,
    /// Another card that is put in.
    pub exchange: Option<Exchange>,
    /// Whether the card says that it must not be written to.
    pub write_protected: bool,
    /// Whether the device loses its power with the card.
    pub stops_without_power: bool,
    /// Whether the card is copied wherever a power cut would leave something else on it.
    pub copies_each: bool,
    /// Decides what else is random.
    pub seed: Seed,
}

/// A card that is taken out for another one.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// After so many ns of sampling.
    pub after_ns: u64,
    /// There is no card for so long.
    pub out_ns: u64,
    /// What the other is, and holds.
    pub profile: Profile,
    /// What it holds.
    pub image: Image,
}

/// An event, and when it was.
#[derive(Clone, Copy, Debug)]
pub struct Said {
    /// Bytes that had been exchanged with the card.
    pub byte: u64,
    /// Time of the recorder's clock, in us.
    pub at_us: u64,
    /// What happened.
    pub event: Event,
}

/// A flush: when it was requested, and when it was reported durable, in ns.
pub type Flush = (u64, Option<u64>);

/// What became of a [`Setup`].
#[derive(Clone, Debug)]
pub struct Session {
    /// Its streams.
    pub plans: Vec<Plan>,
    /// What the recorder said.
    pub said: Vec<Said>,
    /// How it ended.
    pub end: End,
    /// Samples pushed by each stream, with those that were lost.
    pub pushed: Vec<u64>,
    /// When sampling began, in ns.
    pub started_ns: Option<u64>,
    /// When it ended; if the power was cut, no later than that. In ns.
    pub ended_ns: u64,
    /// Flushes that were asked for.
    pub flushes: Vec<Flush>,
    /// Bytes exchanged with the card.
    pub bytes: u64,
    /// Bytes before which a busy time began or was over: between two of them what the card holds stays
    /// the same.
    pub borders: Vec<u64>,
    /// Times in which the card was busy, in ns.
    pub busies: Vec<(u64, u64)>,
    /// Blocks were read beside the recording.
    pub has_reads: bool,
    /// FaultSchedule were to come.
    pub was_struck: bool,
    /// How often they had an effect.
    pub effects: FaultCounts,
    /// Number of the card that it began with; another one that is put in is the next.
    pub card: usize,
    /// What a card held that was exchanged, and bytes until then.
    pub taken_out: Option<(u64, Image)>,
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself. Samples written and lost, of each stream.
    Done(Vec<(u64, u64)>),
    /// It could not begin.
    Refused(String),
    /// The power was cut.
    PowerCut,
    /// It hung.
    Stuck(String),
}

impl Session {
    /// The same session if its power is cut before this byte, at this time.
    #[must_use]
    pub fn until(&self, byte: u64, at_ns: u64) -> Session {
        let said = self.said.iter().filter(|said| said.byte <= byte);
        let started_ns = self.started_ns.filter(|started_ns| *started_ns <= at_ns);
        let pushed = |plan: &Plan| started_ns.map_or(0, |ns| plan.due_before(at_ns + 1 - ns));
        let flushes = self.flushes.iter().filter(|(asked, _)| *asked <= at_ns);
        let flushes = flushes.map(|(asked, done)| (*asked, done.filter(|done| *done <= at_ns)));
        Session {
            plans: self.plans.clone(),
            said: said.copied().collect(),
            end: End::PowerCut,
            pushed: self.plans.iter().map(pushed).collect(),
            started_ns,
            ended_ns: at_ns,
            flushes: flushes.collect(),
            bytes: byte,
            borders: Vec::new(),
            busies: Vec::new(),
            has_reads: self.has_reads,
            was_struck: self.was_struck,
            effects: self.effects,
            card: self.card,
            taken_out: None,
        }
    }

    /// A recovery without a recording, and what it said.
    pub fn of_recovery(events: impl IntoIterator<Item = Event>) -> Session {
        let said = events.into_iter().map(|event| Said {
            byte: 0,
            at_us: 0,
            event,
        });
        Session {
            plans: Vec::new(),
            said: said.collect(),
            end: End::Done(Vec::new()),
            pushed: Vec::new(),
            started_ns: None,
            ended_ns: 0,
            flushes: Vec::new(),
            bytes: 0,
            borders: Vec::new(),
            busies: Vec::new(),
            has_reads: false,
            was_struck: false,
            effects: FaultCounts::default(),
            card: 0,
            taken_out: None,
        }
    }

    /// Track of a stream, and the number of streams in it: binary ones with the same prefix share files.
    pub fn track_of(&self, stream: usize) -> (usize, u64) {
        let shares = |one: &Plan, other: &Plan| {
            let are_binary =
                [one, other].map(|plan| matches!(plan.config.format, Format::Binary(_)));
            are_binary == [true; 2] && one.config.prefix == other.config.prefix
        };
        let own = &self.plans[stream];
        let is_first = |at: &usize| {
            !self.plans[..*at]
                .iter()
                .any(|other| shares(other, &self.plans[*at]))
        };
        let first = self
            .plans
            .iter()
            .position(|other| shares(own, other))
            .unwrap_or(stream);
        let track = (0..first).filter(is_first).count();
        let streams = self.plans.iter().filter(|other| shares(own, other)).count();
        (track, streams.max(1) as u64)
    }

    /// Files of a stream, in order, each with the number of its card. A number that was given again is here
    /// once, at its last place.
    pub fn files(&self, of: usize) -> Vec<(usize, FileId)> {
        if of >= self.plans.len() {
            return Vec::new();
        }
        let (of, _) = self.track_of(of);
        let taken_out = self.taken_out.as_ref();
        let card = |byte| self.card + usize::from(taken_out.is_some_and(|out| byte >= out.0));
        let mut files: Vec<(usize, FileId)> = Vec::new();
        for said in &self.said {
            if let Event::Opened { track, id, .. } = said.event
                && usize::from(track) == of
            {
                let file = (card(said.byte), id);
                files.retain(|other| *other != file);
                files.push(file);
            }
        }
        files
    }

    /// Byte from which on samples come, as far as events tell: that of the first file.
    pub fn first_file_byte(&self) -> u64 {
        let mut said = self.said.iter();
        let opened = said.find(|said| matches!(said.event, Event::Opened { .. }));
        opened.map_or(0, |said| said.byte)
    }

    /// Whether the card failed or was away.
    pub fn lost_card(&self) -> bool {
        let mut said = self.said.iter();
        said.any(|said| said.event == Event::CardLost)
    }

    /// Whether the card had no room for more.
    pub fn is_full(&self) -> bool {
        let mut said = self.said.iter();
        said.any(|said| matches!(said.event, Event::Full { .. }))
    }

    /// Samples of a stream that were told to be missing.
    pub fn lost_samples(&self, of: usize) -> HashSet<u64> {
        let lost = self.said.iter().filter_map(|said| match said.event {
            Event::Lost { stream, gap } if usize::from(stream) == of => Some(gap),
            _ => None,
        });
        lost.flat_map(|gap| gap.first..gap.first + gap.count)
            .collect()
    }

    /// Checkpoints of a stream: when they were done, and what they covered: samples, and those pushed
    /// before a time. Both times in us.
    pub fn checkpoints(&self, of: usize) -> impl Iterator<Item = Covered> {
        self.said.iter().filter_map(move |said| match said.event {
            Event::Checkpoint {
                stream,
                samples,
                pushed_before_us,
                is_late,
            } if usize::from(stream) == of => Some(Covered {
                done_us: said.at_us,
                samples,
                pushed_before_us,
                is_late,
            }),
            _ => None,
        })
    }
}

/// What a checkpoint covers.
#[derive(Clone, Copy, Debug)]
pub struct Covered {
    /// When it was done, in us.
    pub done_us: u64,
    /// Samples below are durable, or in a gap that is.
    pub samples: u64,
    /// All that were pushed before are among them, in us.
    pub pushed_before_us: u64,
    /// Whether it took longer than the window.
    pub is_late: bool,
}

impl Setup {
    /// Puts the card into a device, runs it, and takes the card out again.
    ///
    /// # Panics
    /// If there are no streams, or more than four.
    pub fn run(&self, card: Card, clock: &Clock) -> (Card, Session) {
        let (card, session, _) = self.run_with_copies(card, clock);
        (card, session)
    }

    /// The same, with the copies that strikes ask for.
    ///
    /// # Panics
    /// If there are no streams, or more than four.
    pub fn run_with_copies(
        &self,
        card: Card,
        clock: &Clock,
    ) -> (Card, Session, Vec<InterruptedCard>) {
        let mut device = self.device(card, clock);
        device.config = self.config;
        device.entropy = 7;
        device.stops_without_power = self.stops_without_power;
        device.wire.card().schedule(&self.strikes);
        let borders = Rc::new(RefCell::new(Borders::default()));
        device.watch = Some(border_watch(borders.clone(), self.copies_each));
        let mut session = match self.plans.len() {
            1 => self.log::<1>(&device),
            2 => self.log::<2>(&device),
            3 => self.log::<3>(&device),
            4 => self.log::<4>(&device),
            other => panic!("{other} streams"),
        };
        let borders = borders.take();
        (session.borders, session.busies) = (borders.bytes, borders.busies);
        // A card that comes back has had its power cut and given back.
        device.wire.card().power_on();
        let mut copies = borders.copies;
        copies.extend(device.wire.card().take_copies());
        (device.into_card(), session, copies)
    }

    fn device(&self, card: Card, clock: &Clock) -> Device {
        let options = Options {
            kind: card_kind(card.blocks()),
            write_protected: self.write_protected,
            ..Options::default()
        };
        Device::with_options(card, options, self.clock_hz, self.seed, clock.clone())
    }

    fn log<const N: usize>(&self, device: &Device) -> Session {
        let begun: [_; N] = std::array::from_fn(|_| Rc::new(RefCell::new([None; SESSIONS])));
        let streams = std::array::from_fn(|at| StreamSetup {
            config: self.plans[at].config,
            ring_bytes: self.plans[at].ring_bytes,
            samples: Box::new(self.plans[at].source(Rc::clone(&begun[at]))),
        });
        let mut said = Vec::new();
        let wire: Wire = device.wire.clone();
        let events = |at_us, event| {
            said.push(Said {
                byte: wire.card().count().bytes,
                at_us,
                event,
            });
        };
        let flushes = Rc::new(RefCell::new(Vec::new()));
        let (noted, asks, clock) = (flushes.clone(), self.asks.clone(), device.clock().clone());
        let taken_out = Rc::new(RefCell::new(None));
        let (exchange, seed) = (self.exchange.clone(), self.seed);
        let (slot, out) = (wire.clone(), taken_out.clone());
        let logged: RunResult<N> = device.log(streams, events, move |control, desk, handle| {
            let asking = beside(control, desk, handle.clone(), asks, clock, noted);
            Some(match exchange {
                None => asking,
                Some(exchange) => Box::pin(async move {
                    swap_card(exchange, slot, seed, control, handle, out).await;
                    asking.await;
                }),
            })
        });
        let end = match logged.outcome {
            Outcome::Done(streams) => {
                End::Done(streams.map(|stream| (stream.written, stream.lost)).to_vec())
            }
            Outcome::Refused(why) => End::Refused(why),
            Outcome::PowerCut => End::PowerCut,
            Outcome::Stuck(why) => End::Stuck(why),
        };
        let after_ns = match end {
            // What went on until the device noticed.
            End::PowerCut => USE_BYTES_MAX * 8 * 1_000_000_000 / u64::from(self.clock_hz),
            _ => 0,
        };
        let flushes = flushes.borrow().clone();
        let count = wire.card().count();
        let effects = wire.card().fault_counts();
        let plans = self.plans.iter().zip(&begun);
        Session {
            plans: plans
                .map(|(plan, begun)| plan.with_begun(*begun.borrow()))
                .collect(),
            said,
            end,
            pushed: logged.pushed.to_vec(),
            started_ns: logged.started_ns,
            ended_ns: logged.ended_ns.saturating_sub(after_ns),
            flushes,
            bytes: count.bytes,
            borders: Vec::new(),
            busies: Vec::new(),
            has_reads: self
                .asks
                .iter()
                .any(|(_, ask)| matches!(ask, Ask::Read(..))),
            was_struck: self.strikes.next_byte() != u64::MAX || self.exchange.is_some(),
            effects,
            card: 0,
            taken_out: taken_out.take(),
        }
    }
}

/// Where busy times begin and end.
#[derive(Default)]
struct Borders {
    bytes: Vec<u64>,
    busies: Vec<(u64, u64)>,
    /// The busy time seen last, and whether it was not over.
    seen: (u64, bool),
    copies: Vec<InterruptedCard>,
}

fn border_watch(borders: Rc<RefCell<Borders>>, copies_each: bool) -> Box<Watch> {
    Box::new(move |card| {
        let (now_ns, until_ns) = (card.clock().now_ns(), card.busy_until_ns());
        let now = (until_ns, now_ns < until_ns);
        let mut borders = borders.borrow_mut();
        if borders.seen == now {
            return;
        }
        borders.bytes.push(card.count().bytes);
        if borders.seen.0 != until_ns && now.1 {
            borders.busies.push((now_ns, until_ns));
        }
        borders.seen = now;
        if copies_each {
            let copied = card.interrupted_copy();
            // Of those that hold the same the latest counts: most was promised by then.
            borders
                .copies
                .pop_if(|last| last.card.holds_same(&copied.card));
            borders.copies.push(copied);
        }
    })
}

/// Takes the card out, and puts another one in.
async fn swap_card(
    exchange: Exchange,
    wire: Wire,
    seed: Seed,
    control: &Control,
    handle: Handle,
    taken_out: Rc<RefCell<Option<(u64, Image)>>>,
) {
    while !control.is_ready() {
        handle.sleep_ns(1_000_000).await;
    }
    handle.sleep_ns(exchange.after_ns).await;
    let mut other = Card::new(&exchange.profile, seed.child("another card"));
    exchange.image.store(&mut other);
    let card = wire.card().swap_card(other);
    let bytes = wire.card().count().bytes;
    taken_out.replace(Some((bytes, Image::of(&card))));
    handle.sleep_ns(exchange.out_ns).await;
    wire.card().power_on();
}

fn beside<'b>(
    control: &'b Control,
    desk: &'b ReadDesk<'b>,
    handle: Handle,
    asks: Vec<(u64, Ask)>,
    clock: Clock,
    flushes: Rc<RefCell<Vec<Flush>>>,
) -> BackgroundTask<'b> {
    Box::pin(async move {
        while !control.is_ready() {
            handle.sleep_ns(1_000_000).await;
        }
        for (after_ns, ask) in asks {
            handle.sleep_ns(after_ns).await;
            match ask {
                Ask::Roll => control.rotate(),
                Ask::Read(start, count) => {
                    // What it reads is nobody's: the card may be gone as well.
                    let _ = desk.read(start, &mut vec![[0; 512]; count]).await;
                }
                Ask::Flush => {
                    let at = flushes.borrow().len();
                    flushes.borrow_mut().push((clock.now_ns(), None));
                    let number = control.flush();
                    while control.flush_state(number) == FlushState::Pending {
                        handle.sleep_ns(200_000).await;
                    }
                    if control.flush_state(number) == FlushState::Durable {
                        flushes.borrow_mut()[at].1 = Some(clock.now_ns());
                    }
                }
            }
        }
    })
}
