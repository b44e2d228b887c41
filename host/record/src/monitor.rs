//! The state of a recording on this computer, for readers in other threads.
//!
//! ```text
//!   threads of the streams ── samples, ring levels ──┐
//!   thread of the recorder ── events ────────────────┼──> Monitor <── a server, in its own thread
//!                        └─── files, writes ─────────┘
//! ```
//!
//! Readers never delay samples: the producers' threads skip the history while a reader holds it.

mod history;
mod writes;

pub use writes::WriteFigures;

use crate::LiveFiles;
use cardiograph_recorder::{
    Control, Event, Format, Gap, Session, SessionError, StreamConfig, Window,
};
use history::History;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Instant;
pub(crate) use writes::Writes;

/// Maximum number of gaps kept in memory; older gaps are only in the files.
const GAPS_MAX: usize = 4096;

/// The state of one recording. Create a new monitor for each recording.
pub struct Monitor {
    files: LiveFiles,
    pub(crate) control: Control,
    pub(crate) writes: Arc<Writes>,
    running: OnceLock<Running>,
    gaps: Mutex<Gaps>,
}

impl Default for Monitor {
    /// Creates the monitor of a recording that has not begun.
    fn default() -> Monitor {
        Monitor {
            files: LiveFiles::before_recording(),
            control: Control::default(),
            writes: Arc::default(),
            running: OnceLock::new(),
            gaps: Mutex::default(),
        }
    }
}

struct Running {
    origin: Instant,
    ended: OnceLock<Instant>,
    streams: Vec<StreamMonitor>,
}

#[derive(Default)]
struct Gaps {
    /// Number of gaps reported so far, including those that are no longer kept in memory.
    count: u64,
    lost: u64,
    latest: VecDeque<(u8, Gap)>,
}

/// The state of one stream.
struct StreamMonitor {
    config: StreamConfig,
    ring_capacity_bytes: u64,
    ring_bytes: AtomicU64,
    ring_bytes_max: AtomicU64,
    /// Number of samples that the producer has taken, including lost ones.
    taken: AtomicU64,
    taken_bytes: AtomicU64,
    /// Index below which all samples are durable, or in a durable gap.
    durable: AtomicU64,
    /// Time in us: all samples pushed earlier are durable.
    durable_before_us: AtomicU64,
    windows_exceeded: AtomicU64,
    history: Mutex<History>,
}

/// Figures of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MonitorFigures {
    /// True while samples are being recorded.
    pub is_recording: bool,
    /// Number of streams.
    pub streams: u8,
    /// Fill level of the fullest ring buffer, in bytes.
    pub ring_bytes: u64,
    /// Capacity of the fullest ring buffer, in bytes.
    pub ring_capacity_bytes: u64,
    /// Highest fill level so far of the fullest ring buffer, in bytes.
    pub ring_bytes_max: u64,
    /// Number of samples taken from all streams, including lost ones.
    pub samples: u64,
    /// Number of samples in reported gaps.
    pub lost: u64,
    /// Number of reported gaps.
    pub gaps: u64,
    /// Mean rate of the samples since the start, in bytes per second.
    pub rate_bytes_per_s: u64,
    /// Shortest durability window, in us; 0 if only the newest sample may be lost.
    pub window_us: u64,
    /// Number of times that a durability window was exceeded.
    pub windows_exceeded: u64,
    /// Age of the oldest sample that is not durable, in us.
    pub unsaved_us: u64,
    /// Statistics of the writes to the storage device.
    pub writes: WriteFigures,
}

/// A sample, or the place where it can be found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Monitored {
    /// The sample as text, without line end.
    Row(Vec<u8>),
    /// The sample has not been taken yet, or is neither in memory nor in a file at this moment.
    Later,
    /// The sample is in the file at `path`, whose first sample of the stream has the index `first`.
    InFile {
        /// Path of the file, relative to the directory.
        path: String,
        /// Index of the first sample.
        first: u64,
    },
    /// The sample is lost.
    Lost(Gap),
    /// The recording has no stream with the requested number.
    None,
}

impl Monitor {
    /// Returns the files of the recording.
    pub fn files(&self) -> &LiveFiles {
        &self.files
    }

    /// Returns the current figures.
    pub fn figures(&self) -> MonitorFigures {
        let Some(running) = self.running.get() else {
            return MonitorFigures::default();
        };
        let gaps = self.gaps();
        let (count, lost) = (gaps.count, gaps.lost);
        drop(gaps);
        let mut figures = MonitorFigures {
            is_recording: self.control.is_ready() && running.ended.get().is_none(),
            streams: running.streams.len() as u8,
            lost,
            gaps: count,
            window_us: u64::MAX,
            writes: self.writes.figures(),
            ..MonitorFigures::default()
        };
        let now = running.ended.get().copied().unwrap_or_else(Instant::now);
        let now_us = now.duration_since(running.origin).as_micros() as u64;
        let mut bytes = 0;
        for stream in &running.streams {
            stream.add_to(&mut figures, now_us);
            bytes += stream.taken_bytes.load(Ordering::Relaxed);
        }
        let rate = u128::from(bytes) * 1_000_000 / u128::from(now_us.max(1));
        figures.rate_bytes_per_s = rate as u64;
        figures
    }

    /// Returns the names of a stream's columns, separated by commas; empty if the columns have no names.
    pub fn columns(&self, stream: u8) -> String {
        match self.stream(stream).map(|stream| stream.config.format) {
            Some(Format::Lines { header, .. }) => header.to_string(),
            Some(format) => {
                let columns = format.schemas().first().map_or(&[][..], |it| it.columns());
                let names: Vec<_> = columns.iter().map(|column| column.name).collect();
                names.join(",")
            }
            None => String::new(),
        }
    }

    /// Returns the number of samples of a stream taken so far, including lost ones. This is also the index
    /// of the next sample.
    pub fn taken(&self, stream: u8) -> u64 {
        self.stream(stream)
            .map_or(0, |stream| stream.taken.load(Ordering::Acquire))
    }

    /// Returns a sample by its index.
    pub fn sample(&self, stream: u8, index: u64) -> Monitored {
        let Some(own) = self.stream(stream) else {
            return Monitored::None;
        };
        if index >= own.taken.load(Ordering::Acquire) {
            return Monitored::Later;
        }
        if let Some(sample) = own.history().get(index) {
            return Monitored::Row(own.row(sample));
        }
        if let Some(gap) = self.gap_with(stream, index) {
            return Monitored::Lost(gap);
        }
        if index >= own.durable.load(Ordering::Relaxed) {
            return Monitored::Later;
        }
        let prefix = own.config.prefix;
        match self.files.with_sample(prefix, stream, index) {
            Some(file) => Monitored::InFile {
                path: file.path.clone(),
                first: file.first(stream).unwrap_or(index),
            },
            None => Monitored::Later,
        }
    }

    /// Returns the gap with the given number, counted from 0, with this number and the gap's stream. If that
    /// gap is no longer kept, returns the oldest gap kept instead; `None` after the last gap.
    pub fn gap(&self, number: u64) -> Option<(u64, u8, Gap)> {
        let gaps = self.gaps();
        let oldest = gaps.count - gaps.latest.len() as u64;
        let number = number.max(oldest);
        let (stream, gap) = gaps.latest.get((number - oldest) as usize)?;
        Some((number, *stream, *gap))
    }

    /// Ends the recording.
    pub fn stop(&self) {
        self.control.stop();
    }

    /// Makes the recording continue in new files.
    pub fn rotate(&self) {
        self.control.rotate();
    }

    /// Begins a session of every stream, in new files.
    ///
    /// # Errors
    /// [`SessionError`]; [`SessionError::Stopped`] if no recording is in progress.
    pub fn begin_session(&self, name: &str, settings: &str) -> Result<(), SessionError> {
        let stream = self.stream(0).ok_or(SessionError::Stopped)?;
        let session = Session::new(name, None, settings, &stream.config.format)?;
        self.control.begin_session(&session)
    }

    pub(crate) fn start(&self, origin: Instant, streams: Vec<(StreamConfig, usize)>) {
        let streams = streams.into_iter();
        let streams = streams.map(|(config, bytes)| StreamMonitor::new(config, bytes));
        let streams = streams.collect();
        // A second recording with the same monitor would keep the figures of the first.
        let _ = self.running.set(Running {
            origin,
            ended: OnceLock::new(),
            streams,
        });
    }

    pub(crate) fn end(&self) {
        self.files.release();
        let Some(running) = self.running.get() else {
            return;
        };
        for stream in 0..running.streams.len() {
            self.note_level(stream, 0);
        }
        let _ = running.ended.set(Instant::now());
    }

    /// Registers a sample that a producer has taken; `is_pushed` is true if the ring buffer had room for it.
    /// Never waits.
    pub(crate) fn take(&self, stream: usize, index: u64, sample: Option<&[u8]>, level: usize) {
        let Some(own) = self.running.get().and_then(|it| it.streams.get(stream)) else {
            return;
        };
        if let Some(sample) = sample {
            if let Ok(mut history) = own.history.try_lock() {
                history.push(index, sample);
            }
            let bytes = sample.len() as u64;
            own.taken_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        own.taken.store(index + 1, Ordering::Release);
        self.note_level(stream, level);
    }

    /// Stores the fill level of a stream's ring buffer.
    pub(crate) fn note_level(&self, stream: usize, level: usize) {
        if let Some(own) = self.running.get().and_then(|it| it.streams.get(stream)) {
            own.ring_bytes.store(level as u64, Ordering::Relaxed);
            own.ring_bytes_max
                .fetch_max(level as u64, Ordering::Relaxed);
        }
    }

    /// Updates the state after an event of the recorder.
    pub(crate) fn handle(&self, event: &Event) {
        match *event {
            Event::Lost { stream, gap } => {
                let mut gaps = self.gaps();
                if gaps.latest.len() == GAPS_MAX {
                    gaps.latest.pop_front();
                }
                gaps.latest.push_back((stream, gap));
                gaps.count += 1;
                gaps.lost += gap.count;
            }
            Event::Checkpoint {
                stream,
                samples,
                pushed_before_us,
                is_late,
            } => {
                if let Some(own) = self.stream(stream) {
                    own.durable.store(samples, Ordering::Relaxed);
                    let before = &own.durable_before_us;
                    before.store(pushed_before_us, Ordering::Relaxed);
                    let exceeded = &own.windows_exceeded;
                    exceeded.fetch_add(is_late.into(), Ordering::Relaxed);
                }
            }
            _ => (),
        }
    }

    fn stream(&self, stream: u8) -> Option<&StreamMonitor> {
        self.running.get()?.streams.get(usize::from(stream))
    }

    fn gap_with(&self, stream: u8, index: u64) -> Option<Gap> {
        let gaps = self.gaps();
        let mut latest_first = gaps.latest.iter().rev();
        let found = latest_first.find(|(of, gap)| {
            *of == stream && (gap.first..gap.first.saturating_add(gap.count)).contains(&index)
        });
        found.map(|(_, gap)| *gap)
    }

    fn gaps(&self) -> MutexGuard<'_, Gaps> {
        self.gaps.lock().unwrap_or_else(|held| held.into_inner())
    }
}

impl StreamMonitor {
    fn new(config: StreamConfig, ring_bytes: usize) -> StreamMonitor {
        StreamMonitor {
            config,
            ring_capacity_bytes: ring_bytes as u64,
            ring_bytes: AtomicU64::new(0),
            ring_bytes_max: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            taken_bytes: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            durable_before_us: AtomicU64::new(0),
            windows_exceeded: AtomicU64::new(0),
            history: Mutex::new(History::default()),
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(|held| held.into_inner())
    }

    fn add_to(&self, figures: &mut MonitorFigures, now_us: u64) {
        let ring_bytes = self.ring_bytes.load(Ordering::Relaxed);
        // All ring buffers have equal capacities, so the fullest is the closest to overflowing.
        if figures.ring_capacity_bytes == 0 || ring_bytes > figures.ring_bytes {
            figures.ring_bytes = ring_bytes;
            figures.ring_capacity_bytes = self.ring_capacity_bytes;
            figures.ring_bytes_max = self.ring_bytes_max.load(Ordering::Relaxed);
        }
        let taken = self.taken.load(Ordering::Relaxed);
        figures.samples += taken;
        figures.windows_exceeded += self.windows_exceeded.load(Ordering::Relaxed);
        let window_us = match self.config.window {
            Window::Us(us) => us,
            Window::Sample => 0,
        };
        figures.window_us = figures.window_us.min(window_us);
        if taken > self.durable.load(Ordering::Relaxed) && figures.is_recording {
            let before_us = self.durable_before_us.load(Ordering::Relaxed);
            let unsaved_us = now_us.saturating_sub(before_us);
            figures.unsaved_us = figures.unsaved_us.max(unsaved_us);
        }
    }

    /// Returns a sample as text, without line end.
    fn row(&self, sample: Vec<u8>) -> Vec<u8> {
        match self.config.format {
            Format::Lines { .. } => {
                let line = sample.strip_suffix(b"\n").unwrap_or(&sample);
                line.strip_suffix(b"\r").unwrap_or(line).to_vec()
            }
            format => {
                let columns = format.schemas().first().map_or(&[][..], |it| it.columns());
                let kinds = columns.iter().map(|column| column.kind);
                crate::export::row_of(kinds, &sample).into_bytes()
            }
        }
    }
}
