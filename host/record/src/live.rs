//! The recorder in real time, on this computer.
//!
//! ```text
//!   thread of each stream: clock or input ──> Producer ── ring ──> Recorder ──> DirectoryCard
//! ```
//!
//! The producer's thread takes the place of an interrupt handler on a board: it continues while the recorder
//! waits for the storage device.

use crate::directory::{Access, DirectoryError, Failure, Startup, open_directory};
use crate::feed::next_line;
use crate::{Feed, Monitor};
use cardiograph_recorder::{
    Config, Consumer, Control, Event, LINE_BYTES_MAX, Parts, Producer, PushError, RESERVED_MAX,
    Recorder, Ring, StartError, StreamConfig, StreamSummary, WhenFull,
};
use embedded_hal_async::delay::DelayNs;
use std::cell::RefCell;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

/// Longest time until a producer notices a stop request.
const STOP_POLL: Duration = Duration::from_millis(20);
/// Maximum number of lines that have been read from an input but not pushed yet.
const LINES_AHEAD: usize = 1024;

/// One stream of a recording on this computer.
pub struct DirectoryStream<'a> {
    /// Name prefix, format and durability window.
    pub config: StreamConfig,
    /// Size of the ring buffer, in bytes.
    pub ring_bytes: usize,
    /// Source of the samples.
    pub feed: LiveFeed<'a>,
}

/// Source of the samples of a stream.
pub enum LiveFeed<'a> {
    /// Samples that are generated when they are due by the computer's clock.
    Clock(Box<dyn Feed + Send + 'a>),
    /// Lines of text, recorded as they arrive, for [`Format::Lines`](cardiograph_recorder::Format::Lines).
    /// If they arrive faster than the storage device accepts them, lines are dropped once the ring buffer is
    /// full, and the recorder writes a note about the gap.
    Lines(Box<dyn Read + Send>),
}

/// Settings of a recording on this computer.
pub struct LiveSetup<'a> {
    /// The recorder's settings.
    pub config: Config,
    /// Maximum length of the recording, counted from the start of sampling; `None` for no limit.
    pub length: Option<Duration>,
    /// Returns true if the recording should end. Several threads call this function, at least every 20 ms.
    pub is_stopped: &'a (dyn Fn() -> bool + Sync),
    /// Receives the state of the recording, for readers in other threads.
    pub monitor: Option<&'a Monitor>,
}

/// Reason why a recording in a directory did not start.
pub type LiveError = StartError<DirectoryError, DirectoryError>;

/// Result of a recording in a directory.
#[derive(Clone, Debug)]
pub struct LiveResult<const N: usize> {
    /// Statistics of the streams.
    pub summaries: [StreamSummary; N],
    /// Samples pushed by each stream, including lost ones.
    pub pushed: [u64; N],
    /// Start of sampling, in ns from the call of `record_in_directory`; `None` if no stream started.
    pub started_ns: Option<u64>,
    /// End of the recording, in ns from the call of `record_in_directory`.
    pub ended_ns: u64,
    /// True if a block did not fit on the storage device.
    pub is_full: bool,
    /// First failure of the storage device, as a sentence.
    pub failure: Option<String>,
    /// Error of an input that could not be read to its end.
    pub input_error: Option<String>,
}

/// Records in a directory until all feeds end, the caller stops the recording, or samples are lost because
/// the storage device is full. All samples pushed before the end are written.
///
/// Repairs interrupted recordings in the directory first. Calls `events` with each event and its time in us,
/// counted from the start of this call.
///
/// # Errors
/// [`LiveError`] if the recording could not start.
pub fn record_in_directory<const N: usize>(
    directory: &Path,
    setup: &LiveSetup,
    streams: [DirectoryStream; N],
    mut events: impl FnMut(u64, Event),
) -> Result<LiveResult<N>, LiveError> {
    let origin = Instant::now();
    let opened = open_directory(directory, Access::Record);
    let (card, mut volume) = opened.map_err(StartError::Volume)?;
    let is_sampling = Arc::new(AtomicBool::new(false));
    let removed = Rc::new(RefCell::new(Vec::new()));
    volume.set_startup(Startup {
        files: prepared_files(&streams.each_ref().map(|stream| stream.config)),
        may_remove: setup.config.when_full == WhenFull::RemoveOldest,
        is_sampling: Arc::clone(&is_sampling),
        removed: Rc::clone(&removed),
    });
    let failure = card.failure();
    let own_control = Control::new();
    let monitor = setup.monitor;
    let control = monitor.map_or(&own_control, |monitor| &monitor.control);
    let is_full = AtomicBool::new(false);
    let mut rings = streams.each_ref().map(|stream| {
        let bytes: Box<[AtomicU8]> = (0..stream.ring_bytes).map(|_| AtomicU8::new(0)).collect();
        Ring::over(bytes)
    });
    let configs = streams.each_ref().map(|stream| stream.config);
    if let Some(monitor) = monitor {
        let rings = streams.each_ref();
        let rings = rings.map(|stream| (stream.config, stream.ring_bytes));
        monitor.start(origin, rings.to_vec());
        card.report_to(monitor, configs.map(|config| config.prefix).to_vec());
    }
    let (producers, mut consumers): (Vec<Producer>, Vec<Option<Consumer>>) = rings
        .iter_mut()
        .zip(&configs)
        .map(|(ring, config)| ring.split(config.format))
        .map(|(producer, consumer)| (producer, Some(consumer)))
        .unzip();
    let parts = Parts {
        medium: card,
        volume,
        clock: move || origin.elapsed().as_micros() as u64,
        delay: Sleep,
        events: |event| {
            if let Event::Full { .. } = event {
                is_full.store(true, Ordering::Relaxed);
            }
            if let Some(monitor) = monitor {
                monitor.handle(&event);
            }
            let now_us = origin.elapsed().as_micros() as u64;
            for id in removed.borrow_mut().drain(..) {
                events(now_us, Event::Removed { id });
            }
            events(now_us, event);
        },
        control,
        reads: None,
    };
    let of_streams = core::array::from_fn(|at| {
        let consumer = consumers[at].take();
        (
            configs[at],
            consumer.unwrap_or_else(|| unreachable!("one for each stream")),
        )
    });
    let mut recorder = Recorder::new(parts, setup.config, of_streams);
    let run = Run {
        origin,
        control,
        monitor,
        length: setup.length,
        is_stopped: setup.is_stopped,
        is_sampling: &is_sampling,
        is_full: &is_full,
        failure: &failure,
        is_over: AtomicBool::new(false),
        started_ns: AtomicU64::new(u64::MAX),
        input_error: Mutex::new(None),
    };
    let (result, pushed) = thread::scope(|scope| {
        let threads: Vec<_> = producers
            .into_iter()
            .zip(streams)
            .enumerate()
            .map(|(at, (producer, stream))| {
                let run = &run;
                scope.spawn(move || run.sample(at, producer, stream.feed))
            })
            .collect();
        let result = block_on(recorder.run());
        run.is_over.store(true, Ordering::Release);
        let pushed: Vec<u64> = threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
            .collect();
        (result, pushed)
    });
    if let Some(monitor) = monitor {
        monitor.end();
    }
    let started_ns = run.started_ns.load(Ordering::Relaxed);
    let input_error = run.input_error.into_inner().unwrap_or_default();
    Ok(LiveResult {
        summaries: result?,
        pushed: core::array::from_fn(|at| pushed[at]),
        started_ns: (started_ns != u64::MAX).then_some(started_ns),
        ended_ns: origin.elapsed().as_nanos() as u64,
        is_full: failure.is_full(),
        failure: failure.first(),
        input_error,
    })
}

/// Returns the number of files that are reserved before sampling begins, if there are several streams with files
/// of their own; 1 otherwise.
fn prepared_files(configs: &[StreamConfig]) -> u32 {
    let mut prefixes = Vec::from_iter(configs.iter().map(|config| config.prefix));
    prefixes.sort_unstable();
    prefixes.dedup();
    match prefixes.len() {
        0 | 1 => 1,
        tracks => (RESERVED_MAX / tracks * tracks) as u32,
    }
}

/// State shared by the threads of the producers.
struct Run<'a> {
    origin: Instant,
    control: &'a Control,
    monitor: Option<&'a Monitor>,
    length: Option<Duration>,
    is_stopped: &'a (dyn Fn() -> bool + Sync),
    is_sampling: &'a AtomicBool,
    /// True once the recorder has reported that no further file fits on the storage device.
    is_full: &'a AtomicBool,
    /// First failure of the storage device, and whether a block did not fit.
    failure: &'a Failure,
    /// True once the recorder has ended, or samples are lost because the storage device is full.
    is_over: AtomicBool,
    /// Start of the first producer, in ns from the call; `u64::MAX` before that.
    started_ns: AtomicU64,
    input_error: Mutex<Option<String>>,
}

impl Run<'_> {
    /// Pushes the samples of a feed once the recorder is ready; returns the number of samples pushed.
    fn sample(&self, stream: usize, mut producer: Producer, feed: LiveFeed) -> u64 {
        while !self.control.is_ready() && !self.is_ending() {
            thread::sleep(Duration::from_millis(1));
        }
        self.is_sampling.store(true, Ordering::Relaxed);
        let started_ns = self.now_ns();
        self.started_ns.fetch_min(started_ns, Ordering::Relaxed);
        match feed {
            LiveFeed::Clock(samples) => {
                self.push_when_due(stream, &mut producer, samples, started_ns);
            }
            LiveFeed::Lines(lines) => {
                self.push_on_arrival(stream, &mut producer, &read_lines(lines));
            }
        }
        producer.close();
        producer.pushed()
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }

    fn is_ending(&self) -> bool {
        let started_ns = self.started_ns.load(Ordering::Relaxed);
        let elapsed_ns = self.now_ns().saturating_sub(started_ns);
        let is_long = |length: Duration| u128::from(elapsed_ns) >= length.as_nanos();
        // Before the start no time has elapsed, so even a length of 0 has not been reached.
        started_ns != u64::MAX && self.length.is_some_and(is_long)
            || self.is_over.load(Ordering::Acquire)
            || (self.is_stopped)()
    }

    fn push_when_due(
        &self,
        stream: usize,
        producer: &mut Producer,
        samples: Box<dyn Feed + Send + '_>,
        started_ns: u64,
    ) {
        let mut sample = [0; LINE_BYTES_MAX];
        for index in 0..samples.count() {
            let due_ns = started_ns.saturating_add(samples.due_ns(index));
            let mut now_ns = self.now_ns();
            while now_ns < due_ns {
                if self.is_ending() {
                    return;
                }
                self.note_level(stream, producer);
                thread::sleep(Duration::from_nanos(due_ns - now_ns).min(STOP_POLL));
                now_ns = self.now_ns();
            }
            if index % 64 == 0 && self.is_ending() {
                return;
            }
            let len = samples.make(index, &mut sample);
            self.push(stream, producer, &sample[..len], now_ns);
        }
    }

    /// Pushes a sample. If it does not fit in the ring buffer, the producer counts it as lost and adds it to
    /// a gap.
    fn push(&self, stream: usize, producer: &mut Producer, sample: &[u8], now_ns: u64) {
        let index = producer.pushed();
        let pushed = producer.push(sample, now_ns / 1000);
        if let Some(monitor) = self.monitor
            && pushed != Err(PushError::Stopped)
        {
            let kept = pushed.is_ok().then_some(sample);
            monitor.take(stream, index, kept, producer.level_bytes());
        }
        if pushed.is_err() && self.is_full() {
            self.is_over.store(true, Ordering::Release);
        }
    }

    /// Returns true if the storage device has no room, so that the recorder may leave gaps in the ring buffer.
    fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.failure.is_full()
    }

    /// Publishes the fill level of the ring buffer for readers in other threads.
    fn note_level(&self, stream: usize, producer: &Producer) {
        if let Some(monitor) = self.monitor {
            monitor.note_level(stream, producer.level_bytes());
        }
    }

    /// Waits while the recorder takes gaps from the ring buffer, so that lines after a refused one are not lost as well.
    fn wait_for_slot(&self, producer: &Producer) {
        while producer.waits_for_slot() && !self.is_ending() && !self.is_full() {
            thread::sleep(Duration::from_micros(100));
        }
    }

    fn push_on_arrival(
        &self,
        stream: usize,
        producer: &mut Producer,
        lines: &Receiver<io::Result<Vec<u8>>>,
    ) {
        while !self.is_ending() {
            match lines.recv_timeout(STOP_POLL) {
                Ok(Ok(line)) => {
                    self.wait_for_slot(producer);
                    self.push(stream, producer, &line, self.now_ns());
                }
                Ok(Err(error)) => {
                    let mut first = self
                        .input_error
                        .lock()
                        .unwrap_or_else(|held| held.into_inner());
                    first.get_or_insert(error.to_string());
                    return;
                }
                Err(RecvTimeoutError::Timeout) => self.note_level(stream, producer),
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
    }
}

/// Reads lines in a detached thread, which may still block in a read when the recording has been stopped.
fn read_lines(lines: Box<dyn Read + Send>) -> Receiver<io::Result<Vec<u8>>> {
    let (sender, receiver) = sync_channel(LINES_AHEAD);
    thread::spawn(move || {
        let mut lines = BufReader::new(lines);
        while let Some(line) = next_line(&mut lines).transpose() {
            let is_last = line.is_err();
            if sender.send(line).is_err() || is_last {
                break;
            }
        }
    });
    receiver
}

/// Delay provider that blocks the calling thread.
struct Sleep;

impl DelayNs for Sleep {
    async fn delay_ns(&mut self, ns: u32) {
        thread::sleep(Duration::from_nanos(ns.into()));
    }
}

/// Runs a future to completion on this thread, polling it in a loop. For futures that block instead of
/// returning `Pending`.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = future.as_mut().poll(&mut context) {
            return result;
        }
        thread::yield_now();
    }
}
