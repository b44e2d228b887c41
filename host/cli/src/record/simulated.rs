//! Recordings on simulated cards.

use super::args::{DurabilityWindow, PolicyArg, Record, WhenFullArg};
use super::checks;
use super::exit;
use super::samples::Source;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::progress::Progress;
use cardiograph_compare::{
    CardStreamError, Figures, LoggerConfig, Policy, RunInfo, Streaming, run_logger_on_card,
    stream_on_card, sustained_bound_bytes_per_s,
};
use cardiograph_record::{Feed, Lines, RecordingResult, line};
use cardiograph_recorder::{Config, Format, WhenFull, Window};
use cardiograph_report::units;
use cardiograph_sim_card::{Board, Bus, Card, Profile, Seed, Spi};
use cardiograph_workload::{Activity, Observer, Operation};
use clap::ValueEnum;
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

/// Default length of a session.
const SESSION: Duration = Duration::from_secs(10);

/// A simulated card on a board.
pub struct Simulated {
    pub profile: Profile,
    pub board: Board,
}

impl Simulated {
    fn card(&self, args: &Record) -> Card {
        Card::new(&self.profile, Seed::new(args.seed))
    }

    fn spi(&self) -> Option<&Spi> {
        match &self.board.bus {
            Bus::Spi(spi) => Some(spi),
            Bus::Sd(_) => None,
        }
    }

    /// Records with one policy on a new card.
    pub fn record(
        &self,
        args: &Record,
        policy: PolicyArg,
        source: &Source,
        interrupt: &Interrupt,
    ) -> Result<Figures, Failure> {
        let feed = source.feed();
        checks::load(args, feed, &self.profile, self.spi())?;
        match (policy, source) {
            (PolicyArg::Stream, _) => self.stream(args, feed, interrupt),
            (policy, Source::Generated(lines)) => self.by_policy(args, policy, lines, interrupt),
            (_, Source::Binary(_) | Source::Input(_)) => Err(Failure::new(
                "--samples and --format binary work only with --policy stream; remove them, or use that policy",
            )),
        }
    }

    fn info(&self, args: &Record, policy: PolicyArg, feed: &dyn Feed) -> Result<RunInfo, Failure> {
        let bytes = feed.bytes() * u64::from(args.streams);
        let tracks = match feed.format() {
            Format::Binary(_) => 1,
            Format::Lines { .. } | Format::Csv(_) => args.streams,
        };
        let bound = self.spi().map(|spi| {
            sustained_bound_bytes_per_s(self.card(args), spi, args.buffer, bytes, tracks)
        });
        let policy = policy.to_possible_value();
        let policy = policy.as_ref().map_or("", |value| value.get_name());
        Ok(RunInfo {
            policy: policy.to_string(),
            seed: Some(args.seed),
            buffer_bytes: args.buffer,
            format: args.format().name(),
            sustained_bound: bound
                .transpose()
                .map_err(|error| self.failed(args, error))?,
            interrupted: false,
        })
    }

    fn failed(&self, args: &Record, why: impl std::fmt::Display) -> Failure {
        Failure::new(format!("{}: {why}", args.target))
    }

    /// Records with Cardiograph's recorder.
    fn stream(
        &self,
        args: &Record,
        feed: &dyn Feed,
        interrupt: &Interrupt,
    ) -> Result<Figures, Failure> {
        let streaming = Streaming {
            spi: *checks::spi(args, &self.board)?,
            cluster_bytes: self.board.library.cluster_bytes,
            buffer_bytes: args.buffer as usize,
            window: window(args),
            config: config(args),
        };
        let mut progress = Progress::over_samples(feed.count() * u64::from(args.streams));
        let mut watch = |now: cardiograph_record::Progress| {
            progress.show_samples(now.pushed, || progress_text(&now, "on the card"));
            match interrupt.is_raised() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        };
        let streamed = self.streams(args, &streaming, feed, &mut watch);
        progress.clear();
        let streamed = streamed.map_err(|error| {
            let cause = match &error {
                CardStreamError::Stream(cause) => Some(cause),
                _ => None,
            };
            exit::of_error(&args.target, &error.to_string(), cause)
        })?;
        let mut info = self.info(args, PolicyArg::Stream, feed)?;
        info.interrupted = interrupt.is_raised();
        Ok(Figures::of_stream(info, &streamed))
    }

    fn streams(
        &self,
        args: &Record,
        streaming: &Streaming,
        feed: &dyn Feed,
        watch: &mut dyn FnMut(cardiograph_record::Progress) -> ControlFlow<()>,
    ) -> Result<RecordingResult, CardStreamError> {
        let (card, seed) = (self.card(args), Seed::new(args.seed));
        match args.streams {
            1 => stream_on_card::<1>(card, seed, streaming, feed, watch),
            2 => stream_on_card::<2>(card, seed, streaming, feed, watch),
            3 => stream_on_card::<3>(card, seed, streaming, feed, watch),
            _ => stream_on_card::<4>(card, seed, streaming, feed, watch),
        }
    }

    /// Records with one of the studies' policies.
    fn by_policy(
        &self,
        args: &Record,
        policy: PolicyArg,
        lines: &Lines,
        interrupt: &Interrupt,
    ) -> Result<Figures, Failure> {
        let recording = LoggerConfig {
            rate_hz: NonZeroU32::new(lines.rate_hz).unwrap_or(checks::RATE_HZ),
            sample_bytes: lines.line_bytes as u32,
            samples: lines.count,
            buffer_bytes: args.buffer,
            policy: match policy {
                PolicyArg::KeepOpen => Policy::KeepOpen,
                PolicyArg::AfterSession => Policy::AfterSession {
                    session_ns: args.rotate_every.unwrap_or(SESSION).as_nanos() as u64,
                },
                PolicyArg::Naive | PolicyArg::Stream => Policy::Naive,
            },
        };
        let mut watch = Watch {
            progress: Progress::over_samples(lines.count),
            written: 0,
            interrupt,
        };
        let mut whole = vec![0; lines.line_bytes];
        let make = |number: u64, bytes: &mut [u8]| {
            line(number, &mut whole);
            bytes.copy_from_slice(&whole[..bytes.len()]);
        };
        let card = self.card(args);
        let run = run_logger_on_card(card, &self.board, &recording, PATH, &mut watch, make);
        watch.progress.clear();
        let (run, _) = run.map_err(|error| self.failed(args, error))?;
        let recorded = run.result.map_err(|error| self.failed(args, error))?;
        let mut info = self.info(args, policy, lines)?;
        info.interrupted = recorded.stopped;
        let written_bytes = recorded.written * lines.line_bytes as u64;
        Ok(Figures::of_policy(info, &recorded, written_bytes))
    }
}

/// Name of the file that the studies' policies write.
const PATH: &str = "RECORD.CSV";

/// Returns the durability window that the arguments select.
pub fn window(args: &Record) -> Window {
    match args.durability_window {
        DurabilityWindow::Time(time) => Window::Us(time.as_micros() as u64),
        DurabilityWindow::Sample => Window::Sample,
    }
}

/// Returns the recorder's configuration: file settings, and the behaviour when the card is full.
pub fn config(args: &Record) -> Config {
    Config {
        file_bytes: args.file_size as u32,
        rotate_us: args.rotate_every.map(|time| time.as_micros() as u64),
        when_full: match args.when_full {
            WhenFullArg::Stop => WhenFull::Wait,
            WhenFullArg::RemoveOldest => WhenFull::RemoveOldest,
        },
        ..Config::default()
    }
}

/// Formats the progress line; `clock` names the clock whose time is shown, such as `on the card`.
pub fn progress_text(now: &cardiograph_record::Progress, clock: &str) -> String {
    format!(
        "{} {clock}, {} samples not durable yet, {} lost",
        units::time(now.at_us as f64),
        units::count(now.pushed - (now.durable + now.lost).min(now.pushed)),
        units::count(now.lost)
    )
}

/// Shows the number of written samples, and stops the recording on a signal.
struct Watch<'a> {
    progress: Progress,
    written: u64,
    interrupt: &'a Interrupt,
}

impl Watch<'_> {
    fn go_on(&self) -> ControlFlow<()> {
        match self.interrupt.is_raised() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

/// Number of samples between two progress updates.
const SAMPLES_PER_UPDATE: u64 = 256;

impl Observer for Watch<'_> {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.written += 1;
        if self.written.is_multiple_of(SAMPLES_PER_UPDATE) {
            let (lines, end_ns) = (self.written, operation.end_ns);
            self.progress.show_samples(lines, || {
                let time = units::time(end_ns as f64 / 1e3);
                format!(
                    "{time} on the card, {} samples written",
                    units::count(lines)
                )
            });
        }
        self.go_on()
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        self.go_on()
    }
}
