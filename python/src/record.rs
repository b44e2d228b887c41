//! Recordings on simulated cards.

use crate::error::{error, json};
use crate::progress::{Callback, Watch};
use crate::set_up::simulated_only;
use cardiograph_compare::{
    Cause, LoggerConfig, LoggerResult, Policy, Streaming, run_logger_on_card, stream_on_card,
};
use cardiograph_record::{LINE_BYTES_MIN, Lines, RecordingResult, line};
use cardiograph_recorder::{Config, LINE_BYTES_MAX, RING_BYTES_MAX, RING_BYTES_MIN, Window};
use cardiograph_sim_card::{Board, Bus, Card, Profile, Seed};
use cardiograph_workload::{Activity, Observer, Operation};
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::ops::{ControlFlow, RangeInclusive};

const PATH: &str = "RECORD.CSV";
const NS_PER_S: f64 = 1e9;
/// Size of the recorder's files, as in `cardiograph record`.
const FILE_BYTES: u32 = 45 << 20;

/// Settings of a recording.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Settings {
    target: String,
    rate_hz: u32,
    sample_bytes: usize,
    run_s: f64,
    buffer_bytes: u64,
    durability_window_ms: u64,
    policy: String,
    session_s: f64,
    seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            target: "sim:generic-16g-class10@esp32".to_string(),
            rate_hz: 860,
            sample_bytes: 100,
            run_s: 60.0,
            buffer_bytes: 65_536,
            durability_window_ms: 1000,
            policy: "stream".to_string(),
            session_s: 10.0,
            seed: 1,
        }
    }
}

/// A range of consecutive lost samples, as in the JSON of the command.
#[derive(Serialize)]
struct GapFigures {
    first_sample: u64,
    samples: u64,
    at_us: u64,
    cause: &'static str,
}

/// Figures of a recording: keys of the JSON of `cardiograph record`.
#[derive(Serialize)]
struct Figures {
    samples_pushed: u64,
    samples_written: u64,
    samples_lost: u64,
    gaps: Vec<GapFigures>,
    gaps_total: u64,
    buffer_peak_bytes: u64,
    durability_window_exceeded: Option<u64>,
    policy: String,
    seed: u64,
    buffer_bytes: u64,
    at_risk_max_us: u64,
    worst_case_write_us: f64,
    files: u64,
    duration_us: u64,
    verified: bool,
}

fn within<T: PartialOrd + std::fmt::Display>(
    field: &str,
    value: T,
    range: RangeInclusive<T>,
) -> PyResult<()> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(error(format!(
            "{field} is {value}; it must be {} to {}",
            range.start(),
            range.end()
        ))),
    }
}

/// Records on a simulated card; `settings` is JSON, and so are the figures.
#[pyfunction]
pub fn record(py: Python<'_>, settings: &str, progress: Callback) -> PyResult<String> {
    let settings: Settings = serde_json::from_str(settings).map_err(|failed| {
        error(format!(
            "the settings of record: {}",
            without_place(&failed)
        ))
    })?;
    within("rate_hz", settings.rate_hz, 1..=1_000_000)?;
    within(
        "sample_bytes",
        settings.sample_bytes,
        LINE_BYTES_MIN..=LINE_BYTES_MAX,
    )?;
    within("run_s", settings.run_s, 1e-3..=3.2e8)?;
    let sizes = RING_BYTES_MIN as u64..=RING_BYTES_MAX as u64;
    within("buffer_bytes", settings.buffer_bytes, sizes)?;
    within(
        "durability_window_ms",
        settings.durability_window_ms,
        1..=3_600_000,
    )?;
    within("session_s", settings.session_s, 1e-3..=86_400.0)?;
    let (profile, board) = simulated_only(&settings.target)?;
    let figures = py.detach(|| match settings.policy.as_str() {
        "stream" => stream(&settings, (&profile, &board), &progress),
        "naive" => logger(&settings, Policy::Naive, (&profile, &board), &progress),
        "keep-open" => logger(&settings, Policy::KeepOpen, (&profile, &board), &progress),
        "after-session" => {
            let session_ns = (settings.session_s * NS_PER_S) as u64;
            let policy = Policy::AfterSession { session_ns };
            logger(&settings, policy, (&profile, &board), &progress)
        }
        other => Err(error(format!(
            "policy is {other}; use stream, naive, keep-open or after-session"
        ))),
    });
    json(&figures?)
}

/// Removes the line and column, which Python code does not see.
fn without_place(failed: &serde_json::Error) -> String {
    let text = failed.to_string();
    text.split(" at line ").next().unwrap_or(&text).to_string()
}

fn samples(settings: &Settings) -> u64 {
    let rate_hz = NonZeroU32::new(settings.rate_hz).unwrap_or(NonZeroU32::MIN);
    LoggerConfig::samples_before(rate_hz, (settings.run_s * NS_PER_S) as u64)
}

fn stream(
    settings: &Settings,
    (profile, board): (&Profile, &Board),
    progress: &Callback,
) -> PyResult<Figures> {
    let target = &settings.target;
    let Bus::Spi(spi) = board.bus else {
        return Err(error(format!(
            "{target}: the board has an SD bus, but the policy stream drives cards over SPI; use a board with SPI, such \
             as esp32"
        )));
    };
    let streaming = Streaming {
        spi,
        cluster_bytes: board.library.cluster_bytes,
        buffer_bytes: settings.buffer_bytes as usize,
        window: Window::Us(settings.durability_window_ms * 1000),
        config: Config {
            file_bytes: FILE_BYTES,
            ..Config::default()
        },
    };
    let feed = Lines {
        rate_hz: settings.rate_hz,
        line_bytes: settings.sample_bytes,
        count: samples(settings),
    };
    let seed = Seed::new(settings.seed);
    let mut watch = Watch::new(progress, feed.count);
    let result = stream_on_card::<1>(
        Card::new(profile, seed),
        seed,
        &streaming,
        &feed,
        &mut |now| watch.show(now.pushed),
    );
    watch.finish()?;
    let result = result.map_err(|failed| error(format!("{target}: {failed}")))?;
    Ok(of_stream(settings, &result))
}

fn of_stream(settings: &Settings, result: &RecordingResult) -> Figures {
    let streams = &result.streams;
    let gaps = streams.iter().flat_map(|stream| &stream.gaps);
    let gaps: Vec<GapFigures> = gaps
        .map(|gap| GapFigures {
            first_sample: gap.first,
            samples: gap.count,
            at_us: gap.at_us,
            cause: gap.cause.word(),
        })
        .collect();
    let summaries = || streams.iter().map(|stream| &stream.summary);
    Figures {
        samples_pushed: streams.iter().map(|stream| stream.pushed).sum(),
        samples_written: summaries().map(|summary| summary.written).sum(),
        samples_lost: gaps.iter().map(|gap| gap.samples).sum(),
        gaps_total: gaps.len() as u64,
        gaps,
        buffer_peak_bytes: summaries()
            .map(|summary| summary.ring_peak_bytes as u64)
            .sum(),
        durability_window_exceeded: Some(
            summaries()
                .map(|summary| u64::from(summary.window_breaches))
                .sum(),
        ),
        policy: settings.policy.clone(),
        seed: settings.seed,
        buffer_bytes: settings.buffer_bytes,
        at_risk_max_us: summaries()
            .map(|summary| summary.at_risk_us_max)
            .max()
            .unwrap_or(0),
        worst_case_write_us: 0.0,
        files: streams.iter().map(|stream| stream.files).sum(),
        duration_us: result.duration_us,
        verified: result.unverified.is_none(),
    }
}

fn logger(
    settings: &Settings,
    policy: Policy,
    (profile, board): (&Profile, &Board),
    progress: &Callback,
) -> PyResult<Figures> {
    let target = &settings.target;
    let recording = LoggerConfig {
        rate_hz: NonZeroU32::new(settings.rate_hz).unwrap_or(NonZeroU32::MIN),
        sample_bytes: settings.sample_bytes as u32,
        samples: samples(settings),
        buffer_bytes: settings.buffer_bytes,
        policy,
    };
    let mut whole = vec![0; settings.sample_bytes];
    let make = |number: u64, bytes: &mut [u8]| {
        line(number, &mut whole);
        bytes.copy_from_slice(&whole[..bytes.len()]);
    };
    let mut counter = Counter {
        written: 0,
        watch: Watch::new(progress, recording.samples),
    };
    let card = Card::new(profile, Seed::new(settings.seed));
    let run = run_logger_on_card(card, board, &recording, PATH, &mut counter, make);
    counter.watch.finish()?;
    let (run, _) = run.map_err(|failed| error(format!("{target}: {failed}")))?;
    let result = run
        .result
        .map_err(|failed| error(format!("{target}: {failed}")))?;
    Ok(of_policy(settings, &result))
}

fn of_policy(settings: &Settings, result: &LoggerResult) -> Figures {
    let gaps = result.gaps.iter().map(|gap| GapFigures {
        first_sample: gap.first,
        samples: gap.count,
        at_us: gap.at_us,
        cause: match gap.cause {
            Cause::Write => "busy",
            Cause::Session => "session",
        },
    });
    Figures {
        samples_pushed: result.pushed,
        samples_written: result.written,
        samples_lost: result.lost,
        gaps: gaps.collect(),
        gaps_total: result.gaps_total,
        buffer_peak_bytes: result.buffer_peak_bytes,
        durability_window_exceeded: None,
        policy: settings.policy.clone(),
        seed: settings.seed,
        buffer_bytes: settings.buffer_bytes,
        at_risk_max_us: result.at_risk_max_us,
        worst_case_write_us: result.worst_case_write_ns as f64 / 1e3,
        files: u64::from(result.written > 0),
        duration_us: result.duration_ns / 1000,
        verified: !result.stopped,
    }
}

/// Counts written samples.
struct Counter<'a> {
    written: u64,
    watch: Watch<'a>,
}

impl Observer for Counter<'_> {
    fn observe(&mut self, _: &Operation) -> ControlFlow<()> {
        self.written += 1;
        self.watch.show(self.written)
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        self.watch.show(self.written)
    }
}
