//! Recordings to files of this computer, in real time, with verification.
//!
//! ```text
//!   Feed ──> record_in_directory ──> files ── after the end ──> every sample compared with the feed
//!   input ─────────┘                              └───────────> counts compared with the reports
//! ```
//!
//! Files are read after the recording has ended, because reads would delay the recorder's writes.

use crate::directory::{is_recording_there, path_of};
use crate::feed::text_format;
use crate::{
    DirectoryStream, Feed, LiveFeed, LiveResult, LiveSetup, Problem, Progress, RecordingResult,
    StreamError, StreamReport, StreamResult, prefix, record_in_directory, verify_file,
};
use cardiograph_recorder::{
    Event, FileId, FileRecord, Format, LINE_BYTES_MAX, StreamConfig, StreamSummary, Window,
};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

/// Settings of a verified recording in a directory.
pub struct LiveStreaming<'a> {
    /// Total size of the ring buffers in bytes, divided equally among the streams.
    pub buffer_bytes: usize,
    /// Durability window: the newest data that a power cut may lose.
    pub window: Window,
    /// Settings of the recorder, and its stop condition.
    pub setup: LiveSetup<'a>,
    /// Receives the progress.
    pub progress: &'a LiveProgress,
}

/// Progress of a recording, readable from other threads.
#[derive(Debug, Default)]
pub struct LiveProgress {
    pushed: AtomicU64,
    durable: AtomicU64,
    lost: AtomicU64,
    at_us: AtomicU64,
}

impl LiveProgress {
    /// Returns the current progress. Lines from an input are not counted as pushed, and their times are
    /// unknown.
    pub fn now(&self) -> Progress {
        Progress {
            pushed: self.pushed.load(Ordering::Relaxed),
            durable: self.durable.load(Ordering::Relaxed),
            lost: self.lost.load(Ordering::Relaxed),
            at_us: self.at_us.load(Ordering::Relaxed),
        }
    }
}

/// Records the samples of `feed` in a directory, each when it is due, in `N` streams; then compares the files
/// with the samples.
///
/// # Errors
/// [`StreamError::Refused`]. If the contents of a file differ from the samples, the result contains a
/// [`Problem`].
pub fn stream_in_directory<const N: usize>(
    directory: &Path,
    streaming: &LiveStreaming,
    feed: &(dyn Feed + Sync),
) -> Result<RecordingResult, StreamError> {
    let progress = streaming.progress;
    let feeds =
        core::array::from_fn(|_| LiveFeed::Clock(Box::new(CountingFeed { feed, progress })));
    let run: FinishedRun<N> = FinishedRun::new(directory, streaming, feeds, feed.format())?;
    Ok(run.finish(directory, |streams, file| {
        file.verify(directory, streams, feed)
    }))
}

/// Records lines of text in a directory as they arrive, until they end. The files cannot be compared, because
/// the input cannot be read twice.
///
/// # Errors
/// [`StreamError::Refused`].
pub fn input_in_directory(
    directory: &Path,
    streaming: &LiveStreaming,
    input: Box<dyn Read + Send>,
) -> Result<RecordingResult, StreamError> {
    let feeds = [LiveFeed::Lines(input)];
    let mut run = FinishedRun::new(directory, streaming, feeds, text_format(LINE_BYTES_MAX))?;
    run.events.unverified = Some("the input cannot be read twice");
    let mut result = run.finish(directory, |_, _| Ok(()));
    let is_without_lines = result.streams.iter().all(|stream| stream.pushed == 0);
    // A signal, a failed input or a failed device explains the missing lines.
    if is_without_lines && result.problems.is_empty() && !(streaming.setup.is_stopped)() {
        result.problems.push(Problem::NoLines);
    }
    Ok(result)
}

/// Samples of one stream, counted as the producer takes them.
struct CountingFeed<'a> {
    feed: &'a (dyn Feed + Sync),
    progress: &'a LiveProgress,
}

impl Feed for CountingFeed<'_> {
    fn count(&self) -> u64 {
        self.feed.count()
    }

    fn due_ns(&self, index: u64) -> u64 {
        self.feed.due_ns(index)
    }

    fn bytes(&self) -> u64 {
        self.feed.bytes()
    }

    fn format(&self) -> Format {
        self.feed.format()
    }

    fn make(&self, index: u64, sample: &mut [u8; LINE_BYTES_MAX]) -> usize {
        let at_us = self.feed.due_ns(index) / 1000;
        self.progress.pushed.fetch_add(1, Ordering::Relaxed);
        self.progress.at_us.fetch_max(at_us, Ordering::Relaxed);
        self.feed.make(index, sample)
    }
}

/// State derived from the events of the recorder.
struct Events<'a> {
    progress: &'a LiveProgress,
    streams: Vec<StreamReport>,
    /// Closed files, in the order in which they were closed.
    files: Vec<ClosedFile>,
    /// File name prefix of each track (a sequence of files).
    prefixes: Vec<[u8; 3]>,
    /// Files that have been opened but not yet closed or recovered.
    opened: Vec<FileId>,
    /// Number of samples in closed or recovered files, for each track.
    in_files: Vec<u64>,
    unverified: Option<&'static str>,
    /// True if the storage device failed or was full. Samples that were reported as lost after the failure may
    /// nevertheless be in a file.
    is_card_lost: bool,
    is_full: bool,
}

impl Events<'_> {
    /// Returns the names of closed files that are missing, or whose length has changed.
    fn gone(&self, directory: &Path) -> Vec<String> {
        let gone = self.files.iter().filter(|file| {
            let metadata = directory.join(&file.path).symlink_metadata();
            !metadata.is_ok_and(|metadata| metadata.is_file() && metadata.len() == file.bytes)
        });
        gone.map(|file| file.path.clone()).collect()
    }

    /// Returns, for each track, the number of durable samples that are no longer in any file: those of `gone`
    /// files, and those in no closed or recovered file, unless an unfinished file remains.
    fn missing(
        &self,
        directory: &Path,
        gone: &[String],
        written: impl Fn(usize) -> u64,
    ) -> Vec<u64> {
        let is_left = |id: &FileId| is_recording_there(directory, id);
        let tracks = self.prefixes.iter().enumerate();
        let missing = tracks.map(|(track, prefix)| {
            let own = self
                .files
                .iter()
                .filter(|file| file.track as usize == track);
            let of_gone = own.filter(|file| gone.contains(&file.path));
            let mut missing: u64 = of_gone.map(|file| file.samples).sum();
            let mut opened = self.opened.iter().filter(|id| id.prefix == *prefix);
            if !opened.any(is_left) {
                missing += written(track).saturating_sub(self.in_files[track]);
            }
            missing
        });
        missing.collect()
    }

    /// Counts the samples of a file that has been closed or recovered.
    fn account(&mut self, record: &FileRecord) {
        self.opened.retain(|id| *id != record.id);
        let track = self.prefixes.iter().position(|it| *it == record.id.prefix);
        if let Some(track) = track {
            self.in_files[track] += record.samples;
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Opened { id, .. } => {
                self.opened.retain(|other| *other != id);
                self.opened.push(id);
            }
            // The first mount recovers earlier recordings, before any file is opened.
            Event::Recovered { record } if self.is_card_lost => self.account(&record),
            Event::Lost { stream, gap } => {
                self.streams[stream as usize].gaps.push(gap);
                let lost = &self.progress.lost;
                lost.fetch_add(gap.count, Ordering::Relaxed);
            }
            Event::Checkpoint {
                stream, samples, ..
            } => {
                let report = &mut self.streams[stream as usize];
                let before = std::mem::replace(&mut report.durable, samples);
                let durable = &self.progress.durable;
                durable.fetch_add(samples.saturating_sub(before), Ordering::Relaxed);
            }
            Event::Closed { track, record } => {
                self.account(&record);
                let report = &mut self.streams[track as usize];
                report.files += 1;
                report.file_bytes += record.bytes;
                self.files.push(ClosedFile {
                    track,
                    id: record.id,
                    path: path_of(&record.id, record.session.as_str()),
                    bytes: record.bytes,
                    samples: record.samples,
                });
            }
            // The removed file may also belong to an earlier recording; removing its identifier then has no
            // effect.
            Event::Removed { id } => {
                let before = self.files.len();
                self.files.retain(|file| file.id != id);
                if self.files.len() < before {
                    self.unverified = Some("the oldest files were removed during the recording");
                }
            }
            Event::CardLost => self.is_card_lost = true,
            Event::Full { .. } => self.is_full = true,
            _ => (),
        }
    }
}

/// A finished recording with the reports of its recorder.
struct FinishedRun<'a, const N: usize> {
    result: LiveResult<N>,
    events: Events<'a>,
}

impl<'a, const N: usize> FinishedRun<'a, N> {
    fn new(
        directory: &Path,
        streaming: &LiveStreaming<'a>,
        feeds: [LiveFeed; N],
        format: Format,
    ) -> Result<FinishedRun<'a, N>, StreamError> {
        let mut prefixes = Vec::from_iter((0..N).map(|at| prefix(at, N, &format)));
        prefixes.dedup();
        let mut at = 0;
        let streams = feeds.map(|feed| {
            let prefix = prefix(at, N, &format);
            at += 1;
            DirectoryStream {
                config: StreamConfig {
                    prefix,
                    format,
                    window: streaming.window,
                },
                ring_bytes: streaming.buffer_bytes / N,
                feed,
            }
        });
        let mut events = Events {
            progress: streaming.progress,
            streams: vec![StreamReport::default(); N],
            files: Vec::new(),
            opened: Vec::new(),
            in_files: vec![0; prefixes.len()],
            prefixes,
            unverified: None,
            is_card_lost: false,
            is_full: false,
        };
        let handle = |_, event| events.handle(event);
        let result = record_in_directory(directory, &streaming.setup, streams, handle)
            .map_err(|error| StreamError::Refused(error.to_string()))?;
        Ok(FinishedRun { result, events })
    }

    /// Reads the files back if they can be compared, and checks the reports against the samples.
    fn finish(
        self,
        directory: &Path,
        mut verify: impl FnMut(&mut [StreamReport], &ClosedFile) -> Result<(), StreamError>,
    ) -> RecordingResult {
        let FinishedRun { result, events } = self;
        let mut unverified = events.unverified;
        let mut problems = Vec::new();
        let gone = events.gone(directory);
        let tracks = events.prefixes.len();
        // Each text stream has a track of its own; binary streams share one.
        let written_in = |track: usize| match tracks {
            1 => result.summaries.iter().map(|one| one.written).sum(),
            _ => result.summaries[track].written,
        };
        let missing = events.missing(directory, &gone, written_in);
        let is_gone = !gone.is_empty() || missing.iter().any(|samples| *samples > 0);
        if is_gone {
            unverified = Some("another program removed or changed files of the recording");
            problems.push(Problem::FilesGone(gone));
        }
        let is_full = events.is_full || result.is_full;
        let is_card_lost = events.is_card_lost;
        let started_ns = result.started_ns.unwrap_or(result.ended_ns);
        let checked = |streams: Vec<StreamReport>, check: Check| -> Result<Vec<_>, StreamError> {
            let rest = streams.into_iter().zip(result.summaries).zip(result.pushed);
            rest.map(|((report, summary), pushed)| {
                check(report, summary, pushed, started_ns / 1000)
            })
            .collect()
        };
        let mut compared = None;
        if unverified.is_none() {
            let mut streams = events.streams.clone();
            let mut files = events.files.iter();
            let read = files.try_for_each(|file| verify(&mut streams, file));
            match read.and_then(|()| checked(streams, StreamReport::check_with_files)) {
                Ok(streams) => compared = Some(streams),
                Err(_) if is_card_lost => {
                    unverified = Some("the storage device failed during the recording");
                }
                Err(error) => {
                    unverified = Some("the files and the reports disagree");
                    problems.push(problem_of(&error));
                }
            }
        }
        let mut streams = compared.unwrap_or_else(|| {
            let counted = checked(events.streams.clone(), StreamReport::check_counts);
            counted.unwrap_or_else(|error| {
                problems.push(problem_of(&error));
                let rest = events.streams.into_iter().zip(result.summaries);
                let rest = rest.zip(result.pushed);
                rest.map(|((report, summary), pushed)| {
                    report.unchecked(summary, pushed, started_ns / 1000)
                })
                .collect()
            })
        });
        for (at, missing) in missing.into_iter().enumerate() {
            let mut missing = missing;
            let own = streams.iter_mut().skip(at);
            for stream in own.take(if tracks == 1 { N } else { 1 }) {
                let taken = missing.min(stream.summary.written);
                stream.summary.written -= taken;
                missing -= taken;
            }
        }
        // A storage device that is only full has not failed.
        if is_card_lost && !(result.is_full && result.failure.is_none()) {
            let why = result
                .failure
                .unwrap_or_else(|| "unknown error".to_string());
            problems.push(Problem::Device(why));
        }
        problems.extend(result.input_error.map(Problem::Input));
        if is_full && streams.iter().any(|one| one.lost() > 0) {
            problems.push(Problem::Full);
        }
        RecordingResult {
            streams,
            duration_us: (result.ended_ns - started_ns) / 1000,
            unverified,
            problems,
        }
    }
}

/// Converts an error from reading files back to a problem.
fn problem_of(error: &StreamError) -> Problem {
    match error {
        StreamError::Unaccounted { .. } => Problem::Unaccounted(error.to_string()),
        _ => Problem::Differs(error.to_string()),
    }
}

/// A check of the reports: [`StreamReport::check_with_files`] or [`StreamReport::check_counts`].
type Check = fn(StreamReport, StreamSummary, u64, u64) -> Result<StreamResult, StreamError>;

/// A closed file, to be verified at the end.
struct ClosedFile {
    track: u8,
    id: FileId,
    /// Path below the directory.
    path: String,
    bytes: u64,
    samples: u64,
}

impl ClosedFile {
    /// Compares the closed file with the samples of its streams.
    fn verify(
        &self,
        directory: &Path,
        streams: &mut [StreamReport],
        feed: &dyn Feed,
    ) -> Result<(), StreamError> {
        let file = self.path.clone();
        let compared = open_uncached(&directory.join(&file))
            .and_then(|mut reader| verify_file(&mut reader, streams, self.track, feed));
        match compared {
            Ok(Ok(())) => Ok(()),
            Ok(Err(mismatch)) => Err(StreamError::Differs { file, mismatch }),
            Err(source) => Err(StreamError::Read { file, source }),
        }
    }
}

/// Opens a file and drops it from the page cache, so that it is read from the storage device if the system
/// permits.
fn open_uncached(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    let _ = cardiograph_system::drop_from_cache(&file);
    Ok(file)
}
