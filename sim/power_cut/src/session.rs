//! A session: a device from power-on to power-off, with the events that it reported.

use crate::changes::{Changer, FileChange, Step};
use crate::disk::Image;
use crate::plan::{Plan, SESSIONS};
use cardiograph_recorder::{Config, Control, Event, FileId, FlushState, Format, ReadDesk};
use cardiograph_sim_card::wire::{FaultCounts, FaultSchedule, InterruptedCard, Options, Wire};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile};
use cardiograph_sim_device::{
    BackgroundTask, Device, Outcome, RunResult, StreamSetup, Watch, card_kind,
};
use cardiograph_sim_world::{Clock, Handle, Seed};
use std::cell::RefCell;
use std::collections::HashSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

/// Longest bus transfer in bytes: a block with its framing, and a margin.
const USE_BYTES_MAX: u64 = 600;

/// A request to the recorder.
#[derive(Clone, Copy, Debug)]
pub enum Request {
    /// Continues the recording in new files.
    Rotate,
    /// Makes all samples durable.
    Flush,
    /// Reads a number of blocks (second value), starting at a block address (first value).
    Read(u32, usize),
}

/// Configuration of a session.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Clock of the bus, in Hz.
    pub clock_hz: u32,
    /// The recorder's settings.
    pub config: Config,
    /// Plans of the streams, one per stream.
    pub plans: Vec<Plan>,
    /// Requests to the recorder, each with its delay after the previous one in ns.
    pub requests: Vec<(u64, Request)>,
    /// Changes of files by another task, each with its delay after the previous one in ns.
    pub changes: Vec<(u64, FileChange)>,
    /// Faults injected into the card.
    pub faults: FaultSchedule,
    /// Replacement of the card by another one during the session.
    pub exchange: Option<Exchange>,
    /// True if the card reports that it is write-protected.
    pub write_protected: bool,
    /// True if the device loses its power together with the card.
    pub stops_without_power: bool,
    /// True to copy the card at every point where a power cut would leave different contents on it.
    pub copies_each: bool,
    /// Seed for everything random in the session, except the samples.
    pub seed: Seed,
}

/// Exchange of the card for another one.
#[derive(Clone, Debug)]
pub struct Exchange {
    /// Time of the exchange, in ns after sampling can begin.
    pub after_ns: u64,
    /// Time without a card, in ns.
    pub out_ns: u64,
    /// Profile of the other card.
    pub profile: Profile,
    /// Contents of the other card.
    pub image: Image,
}

/// An event with its time.
#[derive(Clone, Copy, Debug)]
pub struct TimedEvent {
    /// Number of bytes that had been exchanged with the card before the event.
    pub byte: u64,
    /// Time of the event on the recorder's clock, in us.
    pub at_us: u64,
    /// Event that the recorder reported.
    pub event: Event,
}

/// A flush: the time of the request, and the time of the report that the samples are durable, in ns.
pub type Flush = (u64, Option<u64>);

/// Result of running a [`Setup`].
#[derive(Clone, Debug)]
pub struct Session {
    /// Plans of the streams, one per stream.
    pub plans: Vec<Plan>,
    /// Maximum length of its files, in blocks.
    pub file_blocks: u64,
    /// Events that the recorder reported.
    pub events: Vec<TimedEvent>,
    /// End of the session.
    pub end: End,
    /// Number of samples pushed to each stream, including lost ones.
    pub pushed: Vec<u64>,
    /// Start of sampling, in ns.
    pub started_ns: Option<u64>,
    /// End of sampling, in ns; after a power cut, a lower bound.
    pub ended_ns: u64,
    /// Flushes that were requested.
    pub flushes: Vec<Flush>,
    /// Requested changes of files.
    pub steps: Vec<Step>,
    /// Bytes exchanged with the card.
    pub bytes: u64,
    /// Numbers of the bytes before which a busy phase began or ended. Between two such bytes, the contents
    /// of the card do not change.
    pub busy_edges: Vec<u64>,
    /// Start and end of each busy phase of the card, in ns.
    pub busies: Vec<(u64, u64)>,
    /// True if blocks were read during the recording.
    pub has_reads: bool,
    /// True if faults or an exchange were scheduled.
    pub has_faults: bool,
    /// Number of faults of each kind that took effect.
    pub effects: FaultCounts,
    /// Number of the card at the start of the session; a card that replaces it has the next number.
    pub card: usize,
    /// Contents of the card that was taken out in an exchange, and the number of bytes transferred to and
    /// from it before.
    pub taken_out: Option<(u64, Image)>,
}

/// End of a session, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Normal end; contains the numbers of written and lost samples of each stream.
    Done(Vec<(u64, u64)>),
    /// The recorder could not start.
    Refused(String),
    /// The power was cut.
    PowerCut,
    /// The session made no progress.
    Stuck(String),
}

impl Session {
    /// Returns the session as it would be if power were cut before the given byte, at `at_ns`.
    #[must_use]
    pub fn until(&self, byte: u64, at_ns: u64) -> Session {
        let events = self.events.iter().filter(|timed| timed.byte <= byte);
        let started_ns = self.started_ns.filter(|started_ns| *started_ns <= at_ns);
        let pushed = |plan: &Plan| started_ns.map_or(0, |ns| plan.due_before(at_ns + 1 - ns));
        let flushes = self
            .flushes
            .iter()
            .filter(|(requested_ns, _)| *requested_ns <= at_ns);
        let flushes = flushes.map(|(requested_ns, durable_ns)| {
            (
                *requested_ns,
                durable_ns.filter(|durable_ns| *durable_ns <= at_ns),
            )
        });
        Session {
            plans: self.plans.clone(),
            file_blocks: self.file_blocks,
            events: events.copied().collect(),
            end: End::PowerCut,
            pushed: self.plans.iter().map(pushed).collect(),
            started_ns,
            ended_ns: at_ns,
            flushes: flushes.collect(),
            steps: self.steps.iter().map(|step| step.until(byte)).collect(),
            bytes: byte,
            busy_edges: Vec::new(),
            busies: Vec::new(),
            has_reads: self.has_reads,
            has_faults: self.has_faults,
            effects: self.effects,
            card: self.card,
            taken_out: None,
        }
    }

    /// Creates the session of a recovery without a recording, from its events.
    pub fn of_recovery(events: impl IntoIterator<Item = Event>) -> Session {
        let events = events.into_iter().map(|event| TimedEvent {
            byte: 0,
            at_us: 0,
            event,
        });
        Session {
            plans: Vec::new(),
            file_blocks: 0,
            events: events.collect(),
            end: End::Done(Vec::new()),
            pushed: Vec::new(),
            started_ns: None,
            ended_ns: 0,
            flushes: Vec::new(),
            steps: Vec::new(),
            bytes: 0,
            busy_edges: Vec::new(),
            busies: Vec::new(),
            has_reads: false,
            has_faults: false,
            effects: FaultCounts::default(),
            card: 0,
            taken_out: None,
        }
    }

    /// Returns the track of a stream, and the number of streams in it: binary streams with the same prefix
    /// share files.
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

    /// Returns the files of a stream in order, each with the number of its card. A file number that was
    /// reused appears once, at its last position.
    pub fn files(&self, of: usize) -> Vec<(usize, FileId)> {
        if of >= self.plans.len() {
            return Vec::new();
        }
        let (of, _) = self.track_of(of);
        let taken_out = self.taken_out.as_ref();
        let card = |byte| self.card + usize::from(taken_out.is_some_and(|out| byte >= out.0));
        let mut files: Vec<(usize, FileId)> = Vec::new();
        for timed in &self.events {
            if let Event::Opened { track, id, .. } = timed.event
                && usize::from(track) == of
            {
                let file = (card(timed.byte), id);
                files.retain(|other| *other != file);
                files.push(file);
            }
        }
        files
    }

    /// Returns the number of the card whose files the session changed: changes begin after an exchange.
    pub fn card_of_changes(&self) -> usize {
        self.card + usize::from(self.taken_out.is_some())
    }

    /// Returns true if the session may have left an upload that is neither committed nor discarded.
    pub fn may_leave_upload(&self) -> bool {
        self.steps.iter().fold(false, |is_left, step| {
            let abandons = step.change.abandons_upload();
            let is_upload = matches!(step.change, FileChange::Upload(_) | FileChange::Discard(_));
            match step.done {
                // A change waits until abandoned uploads are discarded.
                Some((_, Ok(()))) => abandons,
                _ => is_left || is_upload,
            }
        })
    }

    /// Returns the byte at which the first file was opened: samples begin there or later.
    pub fn first_file_byte(&self) -> u64 {
        let mut events = self.events.iter();
        let opened = events.find(|timed| matches!(timed.event, Event::Opened { .. }));
        opened.map_or(0, |timed| timed.byte)
    }

    /// Returns true if the card failed or was removed.
    pub fn lost_card(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|timed| timed.event == Event::CardLost)
    }

    /// Returns true if the card became full.
    pub fn is_full(&self) -> bool {
        let mut events = self.events.iter();
        events.any(|timed| matches!(timed.event, Event::Full { .. }))
    }

    /// Returns the indices of a stream's samples that were reported as lost.
    pub fn lost_samples(&self, of: usize) -> HashSet<u64> {
        let lost = self.events.iter().filter_map(|timed| match timed.event {
            Event::Lost { stream, gap } if usize::from(stream) == of => Some(gap),
            _ => None,
        });
        lost.flat_map(|gap| gap.first..gap.first + gap.count)
            .collect()
    }

    /// Returns the checkpoints of a stream.
    pub fn checkpoints(&self, of: usize) -> impl Iterator<Item = CheckpointReport> {
        self.events
            .iter()
            .filter_map(move |timed| match timed.event {
                Event::Checkpoint {
                    stream,
                    samples,
                    pushed_before_us,
                    is_late,
                } if usize::from(stream) == of => Some(CheckpointReport {
                    done_us: timed.at_us,
                    samples,
                    pushed_before_us,
                    is_late,
                }),
                _ => None,
            })
    }
}

/// Report of a checkpoint.
#[derive(Clone, Copy, Debug)]
pub struct CheckpointReport {
    /// Time at which the checkpoint was complete, in us.
    pub done_us: u64,
    /// Index below which all samples are durable, or in a durable gap.
    pub samples: u64,
    /// Time in us: the checkpoint covers all samples that were pushed earlier.
    pub pushed_before_us: u64,
    /// True if the durability window was exceeded.
    pub is_late: bool,
}

impl Setup {
    /// Creates a setup without requests, changes or faults. The device loses its power together with the card;
    /// its files have 64 KiB.
    pub fn new(clock_hz: u32, plans: Vec<Plan>, seed: Seed) -> Setup {
        Setup {
            clock_hz,
            config: Config {
                file_bytes: 64 << 10,
                ..Config::default()
            },
            plans,
            requests: Vec::new(),
            changes: Vec::new(),
            faults: FaultSchedule::default(),
            exchange: None,
            write_protected: false,
            stops_without_power: true,
            copies_each: false,
            seed,
        }
    }

    /// Inserts the card into a device, runs it, and removes the card again.
    ///
    /// # Panics
    /// If there are no streams, or more than four.
    pub fn run(&self, card: Card, clock: &Clock) -> (Card, Session) {
        let (card, session, _) = self.run_with_copies(card, clock);
        (card, session)
    }

    /// Runs like [`Setup::run`], and also returns the copies of the card that faults or `copies_each`
    /// request.
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
        if !self.changes.is_empty() {
            device.read_buffers = 3;
        }
        device.wire.card().schedule(&self.faults);
        let busy_edges = Rc::new(RefCell::new(BusyEdges::default()));
        device.watch = Some(busy_edge_watch(busy_edges.clone(), self.copies_each));
        let mut session = match self.plans.len() {
            1 => self.log::<1>(&device),
            2 => self.log::<2>(&device),
            3 => self.log::<3>(&device),
            4 => self.log::<4>(&device),
            other => panic!("{other} streams; a device has one to four"),
        };
        let busy_edges = busy_edges.take();
        (session.busy_edges, session.busies) = (busy_edges.bytes, busy_edges.busies);
        // The returned card has been powered off and on again.
        device.wire.card().power_on();
        let mut copies = busy_edges.copies;
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
        let mut events = Vec::new();
        let wire: Wire = device.wire.clone();
        let on_event = |at_us, event| {
            events.push(TimedEvent {
                byte: wire.card().count().bytes,
                at_us,
                event,
            });
        };
        let flushes = Rc::new(RefCell::new(Vec::new()));
        let (noted_flushes, requests, clock) = (
            flushes.clone(),
            self.requests.clone(),
            device.clock().clone(),
        );
        let steps = Rc::new(RefCell::new(Vec::new()));
        let (changes, noted_steps, changed) = (self.changes.clone(), steps.clone(), wire.clone());
        let taken_out = Rc::new(RefCell::new(None));
        let (exchange, seed) = (self.exchange.clone(), self.seed);
        let (slot, out) = (wire.clone(), taken_out.clone());
        let logged: RunResult<N> = device.log(streams, on_event, move |control, desk, handle| {
            let requesting = background(
                control,
                desk,
                handle.clone(),
                requests,
                clock,
                noted_flushes,
            );
            let changer = Changer {
                desk,
                handle: handle.clone(),
                wire: changed,
                steps: noted_steps,
            };
            let changing = change_when_ready(control, changer, changes);
            let requesting = both(requesting, changing);
            Some(match exchange {
                None => requesting,
                Some(exchange) => Box::pin(async move {
                    swap_card(exchange, slot, seed, control, handle, out).await;
                    requesting.await;
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
            // Maximum time until the device noticed the power cut.
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
            file_blocks: u64::from(self.config.file_bytes) / BLOCK_BYTES as u64,
            events,
            end,
            pushed: logged.pushed.to_vec(),
            started_ns: logged.started_ns,
            ended_ns: logged.ended_ns.saturating_sub(after_ns),
            flushes,
            steps: steps.take(),
            bytes: count.bytes,
            busy_edges: Vec::new(),
            busies: Vec::new(),
            has_reads: self
                .requests
                .iter()
                .any(|(_, request)| matches!(request, Request::Read(..))),
            has_faults: self.faults.next_byte() != u64::MAX || self.exchange.is_some(),
            effects,
            card: 0,
            taken_out: taken_out.take(),
        }
    }
}

/// Collects the beginnings and ends of busy phases.
#[derive(Default)]
struct BusyEdges {
    bytes: Vec<u64>,
    busies: Vec<(u64, u64)>,
    /// End of the most recent busy phase, and true if this phase had not ended when last observed.
    seen: (u64, bool),
    copies: Vec<InterruptedCard>,
}

fn busy_edge_watch(busy_edges: Rc<RefCell<BusyEdges>>, copies_each: bool) -> Box<Watch> {
    Box::new(move |card| {
        let (now_ns, until_ns) = (card.clock().now_ns(), card.busy_until_ns());
        let now = (until_ns, now_ns < until_ns);
        let mut busy_edges = busy_edges.borrow_mut();
        if busy_edges.seen == now {
            return;
        }
        busy_edges.bytes.push(card.count().bytes);
        if busy_edges.seen.0 != until_ns && now.1 {
            busy_edges.busies.push((now_ns, until_ns));
        }
        busy_edges.seen = now;
        if copies_each {
            let copied = card.interrupted_copy();
            // Of several copies with the same contents, only the latest is kept, because the recorder had
            // made the most promises by that time.
            busy_edges
                .copies
                .pop_if(|last| last.card.holds_same(&copied.card));
            busy_edges.copies.push(copied);
        }
    })
}

/// Removes the card, and inserts another one.
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

fn background<'b>(
    control: &'b Control,
    desk: &'b ReadDesk<'b>,
    handle: Handle,
    requests: Vec<(u64, Request)>,
    clock: Clock,
    flushes: Rc<RefCell<Vec<Flush>>>,
) -> BackgroundTask<'b> {
    Box::pin(async move {
        while !control.is_ready() {
            handle.sleep_ns(1_000_000).await;
        }
        for (after_ns, request) in requests {
            handle.sleep_ns(after_ns).await;
            match request {
                Request::Rotate => control.rotate(),
                Request::Read(start, count) => {
                    // The result of the read is irrelevant, and the card may be missing.
                    let _ = desk.read(start, &mut vec![[0; 512]; count]).await;
                }
                Request::Flush => {
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

fn change_when_ready<'b>(
    control: &'b Control,
    changer: Changer<'b>,
    changes: Vec<(u64, FileChange)>,
) -> BackgroundTask<'b> {
    Box::pin(async move {
        if changes.is_empty() {
            return;
        }
        while !control.is_ready() {
            changer.handle.sleep_ns(1_000_000).await;
        }
        changer.run(changes).await;
    })
}

/// Runs two tasks concurrently.
fn both<'b>(one: BackgroundTask<'b>, other: BackgroundTask<'b>) -> BackgroundTask<'b> {
    let mut tasks = [Some(one), Some(other)];
    Box::pin(poll_fn(move |context| {
        for task in &mut tasks {
            if task
                .as_mut()
                .is_some_and(|task| task.as_mut().poll(context).is_ready())
            {
                *task = None;
            }
        }
        match tasks.iter().all(Option::is_none) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    }))
}
