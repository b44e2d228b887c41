//! A device with a sketch and a card of its own, in a thread. It keeps pace with the clock of this computer.

use super::sketch::{Host, PATH, Sketch, Tally, Way};
use super::supply::{Period, Supply};
use crate::RING_BYTES;
use crate::history::History;
use cardiograph_server::{Status, WriteLatency};
use cardiograph_sim_card::{Board, Card};
use cardiograph_sim_world::Clock;
use cardiograph_store::{CachedCard, StoreError};
use cardiograph_workload::Store;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum time between two checks for power.
const NAP: Duration = Duration::from_millis(20);
/// A device that is later than this falls behind instead of catching up.
const LAG: Duration = Duration::from_millis(500);
/// Newest latencies from which percentiles are computed.
const LATENCIES: usize = 4096;

/// The card of a lane, and the board that it is on.
#[derive(Clone)]
pub(super) struct Place {
    pub(super) board: Board,
    /// Blocks of the volume.
    pub(super) volume: Range<u64>,
}

/// A device in its thread.
pub(super) struct Lane {
    shown: Arc<Mutex<Shown>>,
    thread: Option<JoinHandle<()>>,
}

/// Figures for the page.
#[derive(Default)]
struct Shown {
    tally: Tally,
    history: History,
    /// Samples that power cuts have destroyed: taken, not lost to a full ring, and not in the file afterwards.
    gone: u64,
    /// Reason why the device has stopped.
    failure: Option<String>,
}

impl Lane {
    /// Starts a device.
    pub(super) fn start(way: Way, card: Card, place: Place, supply: Arc<Supply>) -> Lane {
        let shown = Arc::new(Mutex::new(Shown::default()));
        let device = SketchDevice {
            way,
            place,
            supply,
            shown: Arc::clone(&shown),
        };
        Lane {
            thread: Some(std::thread::spawn(move || device.run(card))),
            shown,
        }
    }

    /// Waits until the thread has ended; the supply must have ended before.
    pub(super) fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    /// Returns the samples, those gone in power cuts, and the reason why the device has stopped.
    pub(super) fn result(&self) -> (Tally, u64, Option<String>) {
        let shown = locked(&self.shown);
        (shown.tally, shown.gone, shown.failure.clone())
    }

    /// Returns the duration of a line.
    pub(super) fn latency(&self, number: u64) -> Option<WriteLatency> {
        locked(&self.shown).history.get(number)
    }

    /// Returns the state of the device, as that of a recorder. Its writes are lines, with all calls for a line.
    pub(super) fn status(&self) -> Status {
        let shown = locked(&self.shown);
        let Tally {
            samples,
            lost,
            ring_bytes,
            ring_bytes_max,
            written_bytes,
            taken_bytes,
            running_ms,
            line_us_max,
            unsaved_ms,
        } = shown.tally;
        let mut newest = shown.history.newest(LATENCIES);
        newest.sort_unstable();
        let part = |share: usize| newest.get(newest.len() * share / 100).copied();
        let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Status {
            is_recording: shown.failure.is_none(),
            streams: 1,
            ring_bytes: small(ring_bytes as u64),
            ring_capacity_bytes: small(RING_BYTES as u64),
            ring_bytes_max: small(ring_bytes_max as u64),
            samples,
            lost: lost + shown.gone,
            written_bytes,
            rate_bytes_per_s: small(taken_bytes * 1000 / running_ms.max(1)),
            writes: shown.history.len(),
            write_us_median: part(50).unwrap_or(0),
            write_us_p99: part(99).unwrap_or(0),
            write_us_max: line_us_max,
            unsaved_ms: small(unsaved_ms),
            has_clock: true,
            ..Status::default()
        }
    }
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The device, inside its thread.
struct SketchDevice {
    way: Way,
    place: Place,
    supply: Arc<Supply>,
    shown: Arc<Mutex<Shown>>,
}

impl SketchDevice {
    fn run(&self, mut card: Card) {
        let clock = Clock::default();
        let mut tally = Tally::default();
        while let Some(period) = self.supply.wait() {
            match self.log(card, &clock, period, &mut tally) {
                Ok(Some(copy)) => card = copy,
                Ok(None) => return,
                Err(failure) => {
                    locked(&self.shown).failure = Some(failure);
                    return;
                }
            }
        }
    }

    /// Logs from power-on to power-off; returns the card as the cut leaves it.
    fn log(
        &self,
        card: Card,
        clock: &Clock,
        period: Period,
        tally: &mut Tally,
    ) -> Result<Option<Card>, String> {
        let (_, length_bytes) = self.contents(&card, clock)?;
        let mounted = self.insert(card, clock.clone())?;
        let mut host = Thread {
            device: self,
            card: &mounted,
            period,
            origin: (clock.now_ns(), Instant::now()),
            copy: None,
        };
        let mut sketch = Sketch::new(self.way, length_bytes, tally, &mut host);
        let logged = sketch.run(&mut mounted.store(), &mut mounted.clock());
        logged.map_err(|error| error.to_string())?;
        let Some(copy) = host.copy else {
            return Ok(None);
        };
        let (lines, _) = self.contents(&copy, clock)?;
        let mut shown = locked(&self.shown);
        shown.tally = *tally;
        shown.gone = (tally.samples - tally.lost).saturating_sub(lines);
        Ok(Some(copy))
    }

    fn insert(&self, card: Card, clock: Clock) -> Result<CachedCard, String> {
        let Place { board, volume } = &self.place;
        CachedCard::insert(card, volume, board, clock).map_err(|error| error.to_string())
    }

    /// Returns the number of lines in the file, and its length in bytes. Takes no time of the device.
    fn contents(&self, card: &Card, clock: &Clock) -> Result<(u64, u64), String> {
        let other = Clock::default();
        other.advance_to_ns(clock.now_ns());
        let mounted = self.insert(card.clone(), other)?;
        let mut store = mounted.store();
        let mut file = match store.open(PATH, false) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok((0, 0)),
            Err(error) => return Err(error.to_string()),
        };
        let mut piece = vec![0; 1 << 16];
        let (mut lines, mut at) = (0, 0);
        loop {
            let read = store.read(&mut file, at, &mut piece);
            match read.map_err(|error| error.to_string())? {
                0 => return Ok((lines, at)),
                len => {
                    lines += piece[..len].iter().filter(|byte| **byte == b'\n').count() as u64;
                    at += len as u64;
                }
            }
        }
    }
}

fn is_missing(error: &StoreError) -> bool {
    matches!(error, StoreError::Fatfs(error) if error.kind() == std::io::ErrorKind::NotFound)
}

/// Pace and power of a sketch.
struct Thread<'a> {
    device: &'a SketchDevice,
    card: &'a CachedCard,
    period: Period,
    /// A time of the card's clock in ns, and the same time of this computer's clock.
    origin: (u64, Instant),
    /// The card at the power cut.
    copy: Option<Card>,
}

impl Host for Thread<'_> {
    fn pass_until(&mut self, ns: u64) -> bool {
        let (origin_ns, since) = self.origin;
        let due = since + Duration::from_nanos(ns - origin_ns);
        if since.elapsed() > Duration::from_nanos(ns - origin_ns) + LAG {
            self.origin = (ns, Instant::now());
        }
        while self.device.supply.is_on(self.period) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(NAP));
        }
        self.copy = self.card.interrupted_copy();
        false
    }

    fn line_done(&mut self, tally: &Tally, at_ms: u64, us: u32) {
        let mut shown = locked(&self.device.shown);
        shown.tally = *tally;
        shown.history.push(at_ms, us);
    }
}
