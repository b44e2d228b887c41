//! Recordings in a directory of this computer, in real time.

use super::args::Record;
use super::exit;
use super::samples::Source;
use super::served::{Served, while_served};
use super::simulated::{config, progress_text, window};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::outputs::is_standard_output;
use crate::progress::Progress;
use cardiograph_compare::{Figures, RunInfo};
use cardiograph_record::{
    LiveProgress, LiveSetup, LiveStreaming, Monitor, RecordingResult, StreamError,
    input_in_directory, stream_in_directory,
};
use std::num::NonZeroU32;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Interval of progress updates.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Source of samples in real time.
pub enum Live {
    /// Samples that each have a due time.
    Timed(Source),
    /// Lines of standard input, recorded as they arrive.
    Input,
}

impl Live {
    /// Returns the source that the arguments select.
    pub fn of(args: &Record, rate_hz: NonZeroU32) -> Result<Live, Failure> {
        match args.samples.as_deref().is_some_and(is_standard_output) {
            true => Ok(Live::Input),
            false => Source::of(args, rate_hz).map(Live::Timed),
        }
    }
}

/// Records until the samples end or a signal arrives.
pub fn record(args: &Record, lines: Live, interrupt: &Interrupt) -> Result<Figures, Failure> {
    let is_input = matches!(lines, Live::Input);
    // The number of samples with due times already determines the length of the recording.
    let length = args.length.filter(|_| is_input);
    let is_stopped = || interrupt.is_raised();
    let monitor = Arc::new(Monitor::default());
    let server = match &args.serve {
        Some(listen) => {
            let bytes = match &lines {
                Live::Timed(source) => Some(source.feed().bytes() * u64::from(args.streams)),
                Live::Input => None,
            };
            Some(Served::open(args, listen, &monitor, bytes)?)
        }
        None => None,
    };
    let progress = LiveProgress::default();
    let streaming = LiveStreaming {
        buffer_bytes: args.buffer as usize,
        window: window(args),
        setup: LiveSetup {
            config: config(args),
            length,
            is_stopped: &is_stopped,
            monitor: server.is_some().then_some(&*monitor),
        },
        progress: &progress,
    };
    let streamed = while_served(server, || match &lines {
        Live::Input => input_in_directory(
            Path::new(&args.target),
            &streaming,
            Box::new(std::io::stdin()),
        ),
        Live::Timed(source) => record_with_progress(args, source, &streaming),
    })?;
    let streamed =
        streamed.map_err(|error| exit::of_error(&args.target, &error.to_string(), Some(&error)))?;
    let info = RunInfo {
        policy: "stream".to_string(),
        seed: None,
        buffer_bytes: args.buffer,
        format: args.format().name(),
        sustained_bound: None,
        interrupted: interrupt.is_raised(),
    };
    Ok(Figures::of_stream(info, &streamed))
}

/// Records in a separate thread, so that a blocked terminal does not delay samples.
fn record_with_progress(
    args: &Record,
    source: &Source,
    streaming: &LiveStreaming,
) -> Result<RecordingResult, StreamError> {
    let feed = source.feed();
    let mut bar = Progress::over_samples(feed.count() * u64::from(args.streams));
    let streamed = thread::scope(|scope| {
        let recording = scope.spawn(|| {
            let directory = Path::new(&args.target);
            match args.streams {
                1 => stream_in_directory::<1>(directory, streaming, feed),
                2 => stream_in_directory::<2>(directory, streaming, feed),
                3 => stream_in_directory::<3>(directory, streaming, feed),
                _ => stream_in_directory::<4>(directory, streaming, feed),
            }
        });
        while !recording.is_finished() {
            thread::sleep(PROGRESS_INTERVAL);
            let now = streaming.progress.now();
            bar.show_samples(now.pushed, || progress_text(&now, "recorded"));
        }
        recording
            .join()
            .unwrap_or_else(|panic| resume_unwind(panic))
    });
    bar.clear();
    streamed
}
