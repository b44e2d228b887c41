//! The recorder on a simulated card: a whole device, whose files are verified as they are closed.
//!
//! ```text
//!   Feed ──> producers ──> rings ──> recorder ──> card ── file closed ──> independent FAT library
//!     └────────────────────── every sample generated again ── compared ───────────┘
//! ```
//!
//! Verified data are removed from the memory of the simulated card, so that a day of samples requires no more
//! memory than the open files. This does not affect the behaviour of the card.

use crate::card_files::with_file;
use crate::{CardStreamError, Course};
use cardiograph_record::{
    Feed, Problem, Progress, RecordingResult, StreamError, StreamReport, StreamResult, prefix,
    verify_file,
};
use cardiograph_recorder::{Config, Event, FileId, LINE_BYTES_MAX, StreamConfig, Window};
use cardiograph_sim_card::{Card, Seed, Spi};
use cardiograph_sim_device::{Device, Outcome, RunResult, Samples, StreamSetup};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::rc::Rc;

/// Settings of the device.
#[derive(Clone, Debug)]
pub struct Streaming {
    /// SPI bus between processor and card.
    pub spi: Spi,
    /// Cluster size that the card is formatted with, in bytes.
    pub cluster_bytes: u32,
    /// Total size of the ring buffers in bytes, divided equally among the streams.
    pub buffer_bytes: usize,
    /// Durability window: the newest data that a power cut may lose.
    pub window: Window,
    /// File settings, and behaviour when the card is full.
    pub config: Config,
}

/// Samples between two calls of `watch`.
const SAMPLES_PER_UPDATE: u64 = 256;

/// Formats a card, records the samples of `feed` on it in `N` streams, and compares each file with the
/// samples once it is closed. Calls `watch` with the progress every 256 samples; if it returns `Break`,
/// sampling stops.
///
/// # Errors
/// [`CardStreamError`], including the case that the contents of a file differ from the samples.
///
/// # Panics
/// If the response delay (NCR) of the bus exceeds the specification, which is not the case on any board.
pub fn stream_on_card<const N: usize>(
    card: Card,
    seed: Seed,
    streaming: &Streaming,
    feed: &dyn Feed,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<RecordingResult, CardStreamError> {
    record::<N>(card, seed, streaming, feed, watch, None)
}

/// Like [`stream_on_card`] with one stream; also returns the course of the recording in spans of `span_us`.
///
/// # Errors
/// As [`stream_on_card`].
///
/// # Panics
/// As [`stream_on_card`].
pub fn stream_with_course(
    card: Card,
    seed: Seed,
    streaming: &Streaming,
    feed: &dyn Feed,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    span_us: u64,
) -> Result<(RecordingResult, Course), CardStreamError> {
    let course = Rc::new(RefCell::new(Course::of_spans(span_us)));
    let result = record::<1>(card, seed, streaming, feed, watch, Some(Rc::clone(&course)))?;
    Ok((result, course.take()))
}

fn record<const N: usize>(
    mut card: Card,
    seed: Seed,
    streaming: &Streaming,
    feed: &dyn Feed,
    watch: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    course: Option<Rc<RefCell<Course>>>,
) -> Result<RecordingResult, CardStreamError> {
    cardiograph_store::format(&mut card, streaming.cluster_bytes)
        .map_err(CardStreamError::Format)?;
    let shared = Shared {
        progress: Cell::default(),
        watch: RefCell::new(watch),
        is_stopped: Cell::new(false),
    };
    let spi = &streaming.spi;
    let mut device = Device::new(card, spi.ncr_bytes as u8, spi.clock_hz, seed);
    device.config = streaming.config;
    device.wire.set_gaps(spi.send_gap_ns, spi.receive_gap_ns);
    if let Some(course) = course.clone() {
        device.watch = Some(Box::new(move |card| {
            let (now_ns, until_ns) = (card.clock().now_ns(), card.busy_until_ns());
            course.borrow_mut().note_busy(now_ns, until_ns);
        }));
    }
    let mut files = Files {
        device: &device,
        feed,
        shared: &shared,
        streams: (0..N).map(|_| StreamReport::default()).collect(),
        is_full: false,
        error: None,
    };
    let setups = core::array::from_fn::<_, N, _>(|at| StreamSetup {
        config: StreamConfig {
            prefix: prefix(at, N, &feed.format()),
            format: feed.format(),
            window: streaming.window,
        },
        ring_bytes: streaming.buffer_bytes / N,
        samples: Box::new(CountingSamples {
            feed,
            shared: &shared,
            course: course.clone(),
        }),
    });
    let run = device.log(setups, |_, event| files.handle(event), |_, _, _| None);
    if let (Some(course), Some(started_ns)) = (course, run.started_ns) {
        course.borrow_mut().begin_at(started_ns);
    }
    files.finish(run)
}

/// State shared by producers and the event handler.
struct Shared<'a> {
    progress: Cell<Progress>,
    watch: RefCell<&'a mut dyn FnMut(Progress) -> ControlFlow<()>>,
    is_stopped: Cell<bool>,
}

impl Shared<'_> {
    fn change(&self, change: impl FnOnce(&mut Progress)) {
        let mut progress = self.progress.get();
        change(&mut progress);
        self.progress.set(progress);
    }

    /// Shows the progress, and takes note of a request to stop.
    fn update(&self) {
        let mut watch = self.watch.borrow_mut();
        if watch(self.progress.get()).is_break() {
            self.is_stopped.set(true);
        }
    }
}

/// Samples of one stream, counted as the producer takes them.
struct CountingSamples<'a> {
    feed: &'a dyn Feed,
    shared: &'a Shared<'a>,
    course: Option<Rc<RefCell<Course>>>,
}

impl Samples for CountingSamples<'_> {
    fn due_ns(&mut self, index: u64) -> Option<u64> {
        let is_over = self.shared.is_stopped.get() || index >= self.feed.count();
        (!is_over).then(|| self.feed.due_ns(index))
    }

    fn make(&mut self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let at_us = self.feed.due_ns(index) / 1000;
        self.shared.change(|progress| {
            progress.pushed += 1;
            progress.at_us = at_us;
        });
        if index.is_multiple_of(SAMPLES_PER_UPDATE) {
            self.shared.update();
        }
        self.feed.make(index, sample)
    }

    fn is_over(&mut self) -> bool {
        self.shared.update();
        self.shared.is_stopped.get()
    }

    fn note_push(&mut self, index: u64, is_lost: bool, level_bytes: usize) {
        if let Some(course) = &self.course {
            let at_us = self.feed.due_ns(index) / 1000;
            course
                .borrow_mut()
                .note_sample(at_us, level_bytes as u64, is_lost);
        }
    }
}

/// Event handler that verifies files as they are closed.
struct Files<'a> {
    device: &'a Device,
    feed: &'a dyn Feed,
    shared: &'a Shared<'a>,
    streams: Vec<StreamReport>,
    /// True once the recorder has reported that no further file fits on the card.
    is_full: bool,
    /// First error that verification found.
    error: Option<CardStreamError>,
}

impl Files<'_> {
    fn handle(&mut self, event: Event) {
        match event {
            Event::Lost { stream, gap } => {
                self.streams[stream as usize].gaps.push(gap);
                self.shared.change(|progress| progress.lost += gap.count);
            }
            Event::Checkpoint {
                stream, samples, ..
            } => {
                let before = std::mem::replace(&mut self.streams[stream as usize].durable, samples);
                self.shared
                    .change(|progress| progress.durable += samples - before);
            }
            Event::Closed { track, record } => {
                let report = &mut self.streams[usize::from(track)];
                report.files += 1;
                report.file_bytes += record.bytes;
                if let Err(error) = self.verify(track, &record.id) {
                    self.fail(error.into());
                }
            }
            Event::Full { .. } => self.is_full = true,
            Event::CardLost => self.fail(CardStreamError::CardFailed),
            _ => (),
        }
    }

    fn fail(&mut self, error: CardStreamError) {
        self.error.get_or_insert(error);
        self.shared.is_stopped.set(true);
    }

    /// Compares a file with its samples and removes its data from memory.
    fn verify(&mut self, track: u8, name: &FileId) -> Result<(), StreamError> {
        let file = name.to_string();
        let mut wire = self.device.wire.card();
        let read = with_file(wire.card(), &file, |reader| {
            verify_file(reader, &mut self.streams, track, self.feed)
        });
        let (compared, blocks) = match read {
            Ok((Ok(compared), blocks)) => (compared, blocks),
            Ok((Err(source), _)) | Err(source) => return Err(StreamError::Read { file, source }),
        };
        compared.map_err(|mismatch| StreamError::Differs { file, mismatch })?;
        for run in blocks {
            wire.release_memory(run.start, run.end - run.start);
        }
        Ok(())
    }

    fn finish<const N: usize>(self, run: RunResult<N>) -> Result<RecordingResult, CardStreamError> {
        if let Some(error) = self.error {
            return Err(error);
        }
        let summaries = match run.outcome {
            Outcome::Done(summaries) => summaries,
            Outcome::Refused(why) => return Err(StreamError::Refused(why).into()),
            Outcome::PowerCut => return Err(CardStreamError::CardFailed),
            Outcome::Stuck(why) => return Err(CardStreamError::Stuck(why)),
        };
        let started_ns = run.started_ns.unwrap_or(run.ended_ns);
        let rest = self.streams.into_iter().zip(summaries).zip(run.pushed);
        let streams = rest
            .map(|((report, summary), pushed)| {
                report.check_with_files(summary, pushed, started_ns / 1000)
            })
            .collect::<Result<Vec<StreamResult>, StreamError>>()?;
        let lost = streams.iter().map(StreamResult::lost).sum::<u64>();
        Ok(RecordingResult {
            streams,
            duration_us: (run.ended_ns - started_ns) / 1000,
            unverified: None,
            problems: match self.is_full && lost > 0 {
                true => vec![Problem::Full],
                false => Vec::new(),
            },
        })
    }
}
