//! Runs a path.

use super::card::{Disk, Driver, Sleep, Slot};
use super::judge::{Demand, Fed, Judge, judge};
use super::path::{Event, Path, Pause, Setup, Shape};
use super::volume::Rooms;
use super::watch::WATCH;
use crate::limits::Limits;
use crate::recorder::{Config, Parts, Recorder};
use crate::{
    CardFiles, Change, Column, Consumer, Control, FileError, FlushState, Format, Kind, Producer,
    PushError, ReadDesk, Ring, Schema, Session, StreamConfig, StreamSummary, Window,
};
use cardiograph_sim_world::Random;
use core::cell::RefCell;
use core::pin::{Pin, pin};
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, Waker};
use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

/// Maximum number of polls per path, and of those after its last event.
const POLLS_MAX: u32 = 100_000;
const POLLS_AFTER_MAX: u32 = 20_000;
/// Time after which everything is durable on a working card, in us.
const QUIET_US: u64 = 600_000;
/// Allowed excess of a window on a healthy card, for operations in progress, in us.
const SLACK_US: u64 = 5_000;

/// Totals of all paths.
#[derive(Debug, Default)]
pub(super) struct Totals {
    recorders: u64,
    refused: u64,
    cuts: u64,
    flushes_durable: u64,
    flushes_failed: u64,
    pushed: u64,
    lost: u64,
    given_up: u64,
    polls: u64,
    judged: u64,
    too_full: u64,
    calm_cuts: u64,
    checkpoints: u64,
    late: u64,
}

const WORD: Column = Column {
    name: "w",
    kind: Kind::U64,
};
const SMALL: Schema = Schema::new(&[WORD; 5]);
const LARGE: Schema = Schema::new(&[WORD; 19]);

impl Setup {
    fn format(&self, stream: u8) -> Format {
        let is_text = self.shape == Shape::Lines || self.shape == Shape::Apart && stream == 0;
        match (is_text, self.is_large) {
            (true, _) => Format::Lines {
                header: "",
                line_bytes_max: self.sample_bytes(stream) as u16,
            },
            (false, true) => Format::Binary(&[LARGE]),
            (false, false) => Format::Binary(&[SMALL]),
        }
    }

    fn sample_bytes(&self, stream: u8) -> usize {
        let is_text = self.shape == Shape::Lines || self.shape == Shape::Apart && stream == 0;
        match (is_text, self.is_large) {
            (true, true) => 380,
            (false, true) => 152,
            (_, false) => 40,
        }
    }

    fn prefix(&self, run: u8, stream: u8) -> [u8; 3] {
        let track = if self.shape == Shape::Shared {
            0
        } else {
            stream
        };
        [b'A' + 2 * run + track; 3]
    }

    fn tracks(&self) -> u8 {
        if self.shape == Shape::Apart { 2 } else { 1 }
    }

    fn window(&self) -> Window {
        self.window_us.map_or(Window::Sample, Window::Us)
    }
}

/// A path that is being replayed.
struct Replay<'p> {
    path: &'p Path,
    /// Index of the next event.
    next: usize,
    /// Streams of recorders that lost power.
    before: Vec<Fed>,
    totals: &'p mut Totals,
    /// True as long as the only events were samples, flushes and requests.
    is_calm: bool,
}

/// End of a recorder's run.
enum End {
    Over,
    PowerCut,
}

pub(super) fn replay(
    path: &Path,
    cards: &[Disk],
    random: Random,
    totals: &mut Totals,
) -> Result<(), String> {
    let disks = path.setup.cards.map(|card| cards[card].clone());
    let slot = Slot::new(disks, path.setup.keeps_some, random);
    let mut replay = Replay {
        path,
        next: 0,
        before: Vec::new(),
        totals,
        is_calm: path.setup.cards == [0, 0] && !path.is_early,
    };
    for run in 0.. {
        replay.totals.recorders += 1;
        let end = match path.setup.shape {
            Shape::Lines | Shape::Binary => replay.record::<1>(&slot, run)?,
            Shape::Shared | Shape::Apart => replay.record::<2>(&slot, run)?,
        };
        if let End::Over = end {
            break;
        }
    }
    Ok(())
}

/// A flush request.
#[derive(Clone, Copy)]
struct Asked {
    number: u32,
    pushed: [u64; 2],
}

/// The environment of a running recorder.
struct Outside<'a> {
    control: &'a Control,
    producers: Vec<Producer<'a>>,
    fed: Vec<Fed>,
    ring_bytes: usize,
    asked: Vec<Asked>,
    /// End of the quiet time, and the numbers of samples pushed before it.
    quiet: Option<(u64, Vec<u64>)>,
    was_taken: bool,
    /// Number of files begun per track.
    begun: [u32; 2],
    /// Number of files that must have begun by the end of a quiet time.
    wanted: [u32; 2],
    /// Earliest time of the next event: after a number of polls, or at a time.
    polls_left: u32,
    until_us: u64,
    is_stopped: bool,
}

type Log = RefCell<Vec<(u64, bool, crate::Event)>>;

impl Replay<'_> {
    fn record<const N: usize>(&mut self, slot: &Slot, run: u8) -> Result<End, String> {
        let setup = self.path.setup;
        let mut rings: [_; N] = core::array::from_fn(|_| {
            let bytes = (0..setup.ring_bytes).map(|_| AtomicU8::new(0));
            Ring::over(bytes.collect::<Box<[AtomicU8]>>())
        });
        let (mut streams, mut producers, mut fed) = (Vec::new(), Vec::new(), Vec::new());
        for (ring, at) in rings.iter_mut().zip(0..) {
            let format = setup.format(at);
            let (producer, consumer): (_, Consumer) = ring.split(format);
            let config = StreamConfig {
                prefix: setup.prefix(run, at),
                format,
                window: setup.window(),
            };
            streams.push((config, consumer));
            producers.push(producer);
            fed.push(Fed {
                prefix: config.prefix,
                stream: at,
                is_text: format.schemas().is_empty(),
                bytes: setup.sample_bytes(at),
                pushed_us: Vec::new(),
                sessions: Vec::new(),
                session: 0,
                claimed: 0,
                given_up: None,
                unsure: Vec::new(),
                may_lack_oldest: false,
            });
        }
        let control = Control::new();
        let mut memory = [[0; 512]; 4];
        let desk = ReadDesk::with_buffers(&mut memory, 2);
        let log = Log::default();
        let outside = Outside {
            control: &control,
            producers,
            fed,
            ring_bytes: setup.ring_bytes,
            asked: Vec::new(),
            quiet: None,
            was_taken: false,
            begun: [0; 2],
            wanted: [0; 2],
            polls_left: 0,
            until_us: 0,
            is_stopped: false,
        };
        let streams: [_; N] = streams.try_into().ok().expect("as many streams as rings");
        self.run(slot, &desk, &log, outside, streams)
    }

    fn run<'a, const N: usize>(
        &mut self,
        slot: &'a Slot,
        desk: &'a ReadDesk<'a>,
        log: &'a Log,
        mut outside: Outside<'a>,
        streams: [(StreamConfig, Consumer<'a>); N],
    ) -> Result<End, String> {
        let setup = self.path.setup;
        let parts = Parts {
            medium: Driver(slot),
            volume: Rooms::new(slot),
            clock: || slot.look_us(),
            delay: Sleep(slot),
            events: |event| {
                let is_last = WATCH.with_borrow(|watch| watch.is_giving_up);
                log.borrow_mut().push((slot.now_us.get(), is_last, event));
            },
            control: outside.control,
            reads: Some(desk),
        };
        let config = Config {
            file_bytes: setup.file_blocks * 512,
            rotate_us: setup.rotate_us,
            when_full: setup.when_full,
            ..Config::default()
        };
        let limits = Limits {
            file_blocks_min: setup.file_blocks.min(5),
            files_max: setup.slots * setup.tracks(),
            page_blocks: 2,
        };
        let mut recorder = Recorder::with_limits(parts, config, streams, limits);
        let mut running = pin!(recorder.run());
        let mut context = Context::from_waker(Waker::noop());
        let mut reader: Option<Pin<Box<dyn Future<Output = ()> + 'a>>> = None;
        WATCH.with_borrow_mut(|watch| watch.begin());
        outside.plan(self, slot);
        let (mut polls, mut polls_after) = (0, 0);
        loop {
            WATCH.with_borrow_mut(|watch| {
                watch.pushed.clear();
                let pushed = outside.fed.iter().map(|fed| (fed.pushed(), fed.bytes));
                watch.pushed.extend(pushed);
            });
            let polled = running.as_mut().poll(&mut context);
            polls += 1;
            self.totals.polls += 1;
            if let Some(violation) = WATCH.with_borrow_mut(|watch| watch.violation.take()) {
                return Err(violation.into());
            }
            self.note_events(&mut outside, log)?;
            let is_read = reader
                .as_mut()
                .is_some_and(|reader| reader.as_mut().poll(&mut context).is_ready());
            if is_read {
                reader = None;
            }
            self.note_flushes(&mut outside, slot)?;
            if let Poll::Ready(result) = polled {
                if reader.is_some() {
                    return Err("a read was never answered".into());
                }
                return match result {
                    Ok(summaries) => self.judge_end(&outside, slot, &summaries),
                    Err(_) if outside.control.is_ready() => {
                        Err("the recording ended with an error".into())
                    }
                    Err(_) if !outside.asked.is_empty() => {
                        Err("a flush was not answered when the recorder could not start".into())
                    }
                    Err(_) => {
                        self.totals.refused += 1;
                        Ok(End::Over)
                    }
                };
            }
            if polls > POLLS_MAX {
                return Err("the path does not end".into());
            }
            if self.next == self.path.events.len() {
                if !self.path.stays_gone && slot.card().is_none() {
                    slot.insert(Some(0));
                }
                polls_after += 1;
                if polls_after > POLLS_AFTER_MAX {
                    return Err("the recorder does not end after the stop".into());
                }
                continue;
            }
            if !outside.control.is_ready() && !self.path.is_early {
                continue;
            }
            while let Some(event) = outside.due(self, slot)? {
                self.next += 1;
                match event {
                    Event::PowerCut => {
                        self.totals.cuts += 1;
                        slot.cut();
                        self.judge_cut(&outside, slot)?;
                        self.before.append(&mut outside.fed);
                        if slot.card().is_none() {
                            slot.insert(Some(0));
                        }
                        if self.next == self.path.events.len() {
                            return Ok(End::Over);
                        }
                        return Ok(End::PowerCut);
                    }
                    Event::Change if reader.is_none() => {
                        reader = Some(Box::pin(async move {
                            if let Err(error) = upload_and_remove(desk).await {
                                let is_expected = matches!(
                                    error,
                                    FileError::Read(_) | FileError::Full | FileError::Changed
                                );
                                assert!(is_expected, "{error:?}");
                            }
                        }));
                    }
                    Event::Read if reader.is_none() => {
                        reader = Some(Box::pin(async move {
                            let mut blocks = [[0; 512]; 3];
                            if desk.read(0, &mut blocks).await.is_ok() {
                                assert_eq!(
                                    blocks[0][510..],
                                    [0x55, 0xAA],
                                    "the read returned wrong data"
                                );
                            }
                        }));
                    }
                    event => outside.take(event, slot, &mut self.is_calm),
                }
                outside.plan(self, slot);
            }
        }
    }

    /// Processes the recorder's events.
    fn note_events(&mut self, outside: &mut Outside, log: &Log) -> Result<(), String> {
        for (now_us, is_last, event) in log.borrow_mut().drain(..) {
            match event {
                crate::Event::Checkpoint {
                    stream,
                    samples,
                    pushed_before_us,
                    is_late,
                } => {
                    let fed = &mut outside.fed[usize::from(stream)];
                    self.totals.checkpoints += 1;
                    self.totals.late += u64::from(is_late);
                    if samples < fed.claimed || samples > fed.pushed() {
                        return Err(format!(
                            "a checkpoint of {samples} samples follows one of {}",
                            fed.claimed
                        ));
                    }
                    // The window applies only once the recorder is ready.
                    let oldest = fed.pushed_us.get(fed.claimed as usize);
                    if let (Some(us), Some(window_us)) = (oldest, self.path.setup.window_us)
                        && samples > fed.claimed
                        && now_us > us + window_us
                        && !self.path.is_early
                        && !is_late
                    {
                        return Err(format!(
                            "an exceeded window was not reported: {} to {samples} at {now_us} us, \
                             pushed at {us} us",
                            fed.claimed
                        ));
                    }
                    let newer = fed.pushed_us.get(samples as usize);
                    if newer.is_some_and(|us| *us < pushed_before_us) {
                        return Err("a checkpoint reports samples as durable that are not".into());
                    }
                    fed.claimed = samples;
                }
                crate::Event::Lost { stream, gap } if is_last => {
                    let fed = &mut outside.fed[usize::from(stream)];
                    fed.given_up = Some((gap.first, gap.count));
                    self.totals.given_up += gap.count;
                }
                crate::Event::Opened { track, .. } => outside.begun[usize::from(track)] += 1,
                crate::Event::Removed { id } => {
                    for fed in &mut outside.fed {
                        fed.may_lack_oldest |= fed.prefix == id.prefix;
                    }
                }
                _ => (),
            }
        }
        Ok(())
    }

    fn note_flushes(&mut self, outside: &mut Outside, slot: &Slot) -> Result<(), String> {
        while let Some(asked) = outside.asked.first().copied() {
            match outside.control.flush_state(asked.number) {
                FlushState::Pending => return Ok(()),
                FlushState::Failed if self.is_calm => {
                    return Err("a flush failed without reason".into());
                }
                FlushState::Failed => self.totals.flushes_failed += 1,
                FlushState::Durable => {
                    self.totals.flushes_durable += 1;
                    for (fed, pushed) in outside.fed.iter_mut().zip(asked.pushed) {
                        fed.claimed = fed.claimed.max(pushed);
                    }
                    self.judge_cut(outside, slot)?;
                }
            }
            outside.asked.remove(0);
        }
        Ok(())
    }

    /// Recovers copies of all cards. Returns `None` if one has no room for that.
    fn cards(&mut self, slot: &Slot) -> Result<Option<Vec<Judge>>, String> {
        let cards = slot.cards.iter().zip(&slot.was_in);
        let cards = cards.filter(|(_, was_in)| was_in.get());
        let judges = cards.map(|(disk, _)| Judge::new(&disk.borrow()));
        let judges: Option<Vec<Judge>> = judges.collect::<Result<_, _>>()?;
        match judges {
            Some(_) => self.totals.judged += 1,
            None => self.totals.too_full += 1,
        }
        Ok(judges)
    }

    /// Checks the contents of the cards after a power cut at this moment.
    fn judge_cut(&mut self, outside: &Outside, slot: &Slot) -> Result<(), String> {
        let Some(cards) = self.cards(slot)? else {
            return Ok(());
        };
        let kept_us = match self.path.setup.window_us {
            Some(window_us) if self.is_calm => {
                self.totals.calm_cuts += 1;
                slot.now_us.get().saturating_sub(window_us + SLACK_US)
            }
            _ => 0,
        };
        for fed in &self.before {
            self.judge_one(&cards, fed, false, 0)?;
        }
        for fed in &outside.fed {
            self.judge_one(&cards, fed, false, kept_us)?;
        }
        Ok(())
    }

    fn judge_one(
        &self,
        cards: &[Judge],
        fed: &Fed,
        everything: bool,
        before_us: u64,
    ) -> Result<(u64, u64), String> {
        let demand = Demand {
            everything,
            before_us,
        };
        judge(cards, fed, demand)
    }

    /// Checks a recording that has ended.
    fn judge_end<const N: usize>(
        &mut self,
        outside: &Outside,
        slot: &Slot,
        summaries: &[StreamSummary; N],
    ) -> Result<End, String> {
        if !outside.asked.is_empty() {
            return Err("a flush was never answered".into());
        }
        let Some(cards) = self.cards(slot)? else {
            return Ok(End::Over);
        };
        for fed in &self.before {
            self.judge_one(&cards, fed, false, 0)?;
        }
        for (fed, summary) in outside.fed.iter().zip(summaries) {
            let (written, _) = self.judge_one(&cards, fed, true, 0)?;
            self.totals.pushed += fed.pushed();
            self.totals.lost += summary.lost;
            if summary.written + summary.lost != fed.pushed() {
                return Err(format!("pushed {}, {summary:?}", fed.pushed()));
            }
            let is_exact = fed.unsure.is_empty() && !fed.may_lack_oldest;
            if is_exact && written != summary.written {
                return Err(format!("the files contain {written} samples, {summary:?}"));
            }
        }
        Ok(End::Over)
    }
}

impl Outside<'_> {
    /// Schedules the next event.
    fn plan(&mut self, replay: &Replay, slot: &Slot) {
        if let Some((pause, _)) = replay.path.events.get(replay.next) {
            (self.polls_left, self.until_us) = match pause {
                Pause::Polls(polls) => (*polls, 0),
                Pause::Us(us) => (0, slot.now_us.get() + us),
            };
        }
    }

    /// Returns the next event once it is due.
    fn due(&mut self, replay: &Replay, slot: &Slot) -> Result<Option<Event>, String> {
        if let Some((until_us, _)) = self.quiet {
            if slot.now_us.get() < until_us {
                return Ok(None);
            }
            self.end_quiet(replay, slot)?;
        }
        if self.polls_left > 0 || slot.now_us.get() < self.until_us {
            self.polls_left = self.polls_left.saturating_sub(1);
            return Ok(None);
        }
        Ok(replay.path.events.get(replay.next).map(|(_, event)| *event))
    }

    /// Checks everything that must have happened by the end of a quiet time.
    fn end_quiet(&mut self, replay: &Replay, slot: &Slot) -> Result<(), String> {
        let Some((_, pushed)) = self.quiet.take() else {
            return Ok(());
        };
        let is_roomy = replay.path.setup.cards == [0, 0] && !slot.is_taken.get();
        if slot.card().is_none() || self.is_stopped || !is_roomy {
            return Ok(());
        }
        if !self.asked.is_empty() {
            return Err("a flush was not answered in a quiet time".into());
        }
        let mut begun = self.begun.iter().zip(&self.wanted);
        if begun.any(|(begun, wanted)| begun < wanted) {
            return Err("a new file was never begun".into());
        }
        WATCH.with_borrow(|watch| {
            if !watch.is_mounted {
                return Err("the card did not come back".into());
            }
            let is_durable = watch
                .seen
                .iter()
                .zip(&pushed)
                .all(|(seen, pushed)| seen.durable >= *pushed);
            if is_durable {
                Ok(())
            } else {
                Err("samples did not become durable in a quiet time".into())
            }
        })
    }

    fn push(&mut self, stream: u8, slot: &Slot) {
        let at = usize::from(stream);
        let fed = &mut self.fed[at];
        let sample = fed.sample(fed.pushed());
        let now_us = slot.now_us.get();
        if self.producers[at].push(&sample, now_us) != Err(PushError::Stopped) {
            fed.pushed_us.push(now_us);
            fed.sessions.push(fed.session);
        }
    }

    /// Notes that a failing card may keep written blocks that are not known to be durable.
    fn note_fault(&mut self) {
        WATCH.with_borrow(|watch| {
            for (fed, seen) in self.fed.iter_mut().zip(&watch.seen) {
                let pushed = fed.pushed();
                fed.unsure.push((seen.durable, pushed));
            }
        });
    }

    fn take(&mut self, event: Event, slot: &Slot, is_calm: &mut bool) {
        if let Event::CardFails | Event::CardGone | Event::OtherCard = event {
            self.note_fault();
        }
        match event {
            Event::Sample(at) => self.push(at, slot),
            Event::Burst(at) => {
                let fed = &self.fed[usize::from(at)];
                (0..self.ring_bytes / fed.bytes + 2).for_each(|_| self.push(at, slot));
                *is_calm = false;
            }
            Event::Session(at) => {
                let fed = &mut self.fed[usize::from(at)];
                let name = format!("s{}", fed.session + 1);
                let format = if fed.is_text {
                    Format::Lines {
                        header: "",
                        line_bytes_max: 40,
                    }
                } else {
                    Format::Binary(&[SMALL])
                };
                let session = Session::new(&name, None, "", &format).expect("the session is valid");
                if self.producers[usize::from(at)]
                    .begin_session(&session)
                    .is_ok()
                {
                    fed.session += 1;
                }
            }
            Event::Flush => {
                let mut pushed = [0; 2];
                for (pushed, fed) in pushed.iter_mut().zip(&self.fed) {
                    *pushed = fed.pushed();
                }
                let number = self.control.flush();
                self.asked.push(Asked { number, pushed });
            }
            Event::Rotate => {
                self.control.rotate();
                let blocks = WATCH.with_borrow(|watch| watch.blocks);
                for (at, _) in blocks.iter().enumerate().filter(|(_, blocks)| **blocks > 0) {
                    self.wanted[at] = self.begun[at] + 1;
                }
            }
            Event::Stop => {
                self.control.stop();
                self.is_stopped = true;
            }
            Event::CardSlow(operations, us) => slot.slow_down(operations, us),
            Event::CardFails => slot.fail_next(),
            Event::CardGone => slot.insert(None),
            Event::CardBack if slot.card().is_none() => slot.insert(Some(0)),
            Event::OtherCard => slot.insert(Some(1)),
            Event::RoomTaken => {
                slot.is_taken.set(true);
                self.was_taken = true;
            }
            Event::RoomFreed => slot.is_taken.set(false),
            Event::Quiet => {
                let pushed = self.fed.iter().map(Fed::pushed).collect();
                // The recorder retries a full card only once per second.
                let quiet_us = if self.was_taken {
                    2 * QUIET_US
                } else {
                    QUIET_US
                };
                self.quiet = Some((slot.now_us.get() + quiet_us, pushed));
            }
            Event::CardBack | Event::Read | Event::Change | Event::PowerCut => (),
        }
        *is_calm &= matches!(
            event,
            Event::Sample(_) | Event::Flush | Event::Rotate | Event::Stop | Event::Quiet
        );
    }
}

/// Uploads a file of 700 B, reads it back, and removes it.
async fn upload_and_remove(desk: &ReadDesk<'_>) -> Result<(), FileError> {
    let path = "/Uploaded by a test.txt";
    let begin = Change::BeginUpload { bytes: 700 };
    let upload = desk.change(begin, None).await?;
    let mut buffer = desk.write_buffer().await?;
    buffer.bytes()[..700].fill(b'u');
    let write = Change::WriteUpload {
        upload,
        block: 0,
        blocks: 2,
    };
    desk.change(write, Some(buffer)).await?;
    let commit = Change::CommitUpload {
        upload,
        path,
        bytes: 700,
    };
    desk.change(commit, None).await?;
    let files = CardFiles::new(desk);
    let file = files.open(path).await?;
    let bytes = files.read(&file, 0, 1000).await?;
    assert!(bytes.len() == 700 && bytes.iter().all(|byte| *byte == b'u'));
    drop(bytes);
    desk.change(Change::Remove { path }, None).await.map(|_| ())
}
