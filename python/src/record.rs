//! Recordings on simulated cards.

use crate::arguments::{real, text, whole};
use crate::error::{error, json};
use crate::progress::{Callback, Watch};
use crate::set_up::simulated_only;
use cardiograph_compare::{
    Figures, Load, LoggerConfig, Policy, RunInfo, Streaming, run_logger_on_card, stream_on_card,
    sustained_bound_bytes_per_s,
};
use cardiograph_record::{Feed, LINE_BYTES_MIN, Lines, line};
use cardiograph_recorder::{Config, LINE_BYTES_MAX, RING_BYTES_MAX, RING_BYTES_MIN, Window};
use cardiograph_sim_card::{Board, Bus, Card, Profile, Seed, Spi};
use cardiograph_workload::{Activity, Observer, Operation};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::num::NonZeroU32;
use std::ops::ControlFlow;

/// Options of the command in messages, and the arguments that replace them.
const OPTIONS: [(&str, &str); 4] = [
    (
        ", use a larger card, or add --when-full remove-oldest",
        ", or use a larger card",
    ),
    ("--rate", "rate_hz"),
    ("--sample-bytes", "sample_bytes"),
    ("--for", "run_s"),
];
const PATH: &str = "RECORD.CSV";
const NS_PER_S: f64 = 1e9;
/// Size of the recorder's files, as in `cardiograph record`.
const FILE_BYTES: u32 = 45 << 20;

/// Settings of a recording.
struct Settings {
    target: String,
    lines: Lines,
    buffer_bytes: u64,
    durability_window_us: u64,
    policy: String,
    session_ns: u64,
    seed: u64,
}

impl Settings {
    /// Parses a dict that has all settings.
    fn of(settings: &Bound<PyDict>) -> PyResult<Settings> {
        let value = |name| -> PyResult<Bound<PyAny>> {
            let value = settings.get_item(name)?;
            value.ok_or_else(|| error(format!("{name} is missing; add it to the settings")))
        };
        let number = |name, range| whole(name, &value(name)?, range);
        let time_ns = |name, range| -> PyResult<u64> {
            Ok((real(name, &value(name)?, range)? * NS_PER_S) as u64)
        };
        let line_bytes = LINE_BYTES_MIN as u64..=LINE_BYTES_MAX as u64;
        let ring_bytes = RING_BYTES_MIN as u64..=RING_BYTES_MAX as u64;
        let rate_hz = number("rate_hz", 1..=1_000_000)? as u32;
        let run_ns = time_ns("run_s", 1e-3..=3.2e8)?;
        let settings = Settings {
            target: text("target", &value("target")?)?,
            lines: Lines {
                rate_hz,
                line_bytes: number("sample_bytes", line_bytes)? as usize,
                count: LoggerConfig::samples_before(rate(rate_hz), run_ns),
            },
            buffer_bytes: number("buffer_bytes", ring_bytes)?,
            durability_window_us: number("durability_window_ms", 1..=3_600_000)? * 1000,
            policy: text("policy", &value("policy")?)?,
            session_ns: time_ns("session_s", 1e-3..=86_400.0)?,
            seed: number("seed", 0..=u64::MAX)?,
        };
        Ok(settings)
    }

    fn card(&self, profile: &Profile) -> Card {
        Card::new(profile, Seed::new(self.seed))
    }

    /// Checks that the bus carries the rate, and that the samples fit on the card.
    fn check(&self, (profile, board): (&Profile, &Board)) -> PyResult<()> {
        let bytes = self.lines.bytes();
        let load = Load {
            bytes,
            bytes_per_s: Some(
                bytes as f64 / self.lines.count as f64 * f64::from(self.lines.rate_hz),
            ),
            removes_oldest: false,
        };
        let spi = match &board.bus {
            Bus::Spi(spi) => Some(spi),
            Bus::Sd(_) => None,
        };
        load.check(profile, spi).map_err(|sentence| {
            let sentence = OPTIONS
                .iter()
                .fold(sentence, |sentence, (option, argument)| {
                    sentence.replace(option, argument)
                });
            error(format!("{}: {sentence}", self.target))
        })
    }

    /// Returns the settings that the figures repeat, and the rate that a plain stream sustains.
    fn info(&self, (profile, board): (&Profile, &Board)) -> PyResult<RunInfo> {
        let bound = match &board.bus {
            Bus::Spi(spi) => Some(self.bound_bytes_per_s(profile, spi)?),
            Bus::Sd(_) => None,
        };
        Ok(RunInfo {
            policy: self.policy.clone(),
            seed: Some(self.seed),
            buffer_bytes: self.buffer_bytes,
            format: "csv",
            sustained_bound: bound,
            interrupted: false,
        })
    }

    fn bound_bytes_per_s(&self, profile: &Profile, spi: &Spi) -> PyResult<f64> {
        let bytes = self.lines.bytes();
        let bound =
            sustained_bound_bytes_per_s(self.card(profile), spi, self.buffer_bytes, bytes, 1);
        bound.map_err(|failed| error(format!("{}: {failed}", self.target)))
    }
}

fn rate(hz: u32) -> NonZeroU32 {
    NonZeroU32::new(hz).unwrap_or(NonZeroU32::MIN)
}

/// Records on a simulated card; returns the only result of `cardiograph record --json`.
#[pyfunction]
pub fn record(
    py: Python<'_>,
    settings: &Bound<'_, PyDict>,
    progress: Callback,
) -> PyResult<String> {
    let settings = Settings::of(settings)?;
    let (profile, board) = simulated_only(&settings.target)?;
    settings.check((&profile, &board))?;
    let figures = py.detach(|| match settings.policy.as_str() {
        "stream" => stream(&settings, (&profile, &board), &progress),
        "naive" => logger(&settings, Policy::Naive, (&profile, &board), &progress),
        "keep-open" => logger(&settings, Policy::KeepOpen, (&profile, &board), &progress),
        "after-session" => {
            let session_ns = settings.session_ns;
            let policy = Policy::AfterSession { session_ns };
            logger(&settings, policy, (&profile, &board), &progress)
        }
        other => Err(error(format!(
            "policy is {other}; use stream, naive, keep-open or after-session"
        ))),
    });
    json(&figures?)
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
        window: Window::Us(settings.durability_window_us),
        config: Config {
            file_bytes: FILE_BYTES,
            ..Config::default()
        },
    };
    let mut watch = Watch::new(progress, settings.lines.count);
    let result = stream_on_card::<1>(
        settings.card(profile),
        Seed::new(settings.seed),
        &streaming,
        &settings.lines,
        &mut |now| watch.show(now.pushed),
    );
    let result = result.map_err(|failed| error(format!("{target}: {failed}")));
    let result = watch.end(result)?;
    Ok(Figures::of_stream(
        settings.info((profile, board))?,
        &result,
    ))
}

fn logger(
    settings: &Settings,
    policy: Policy,
    (profile, board): (&Profile, &Board),
    progress: &Callback,
) -> PyResult<Figures> {
    let target = &settings.target;
    let lines = &settings.lines;
    let recording = LoggerConfig {
        rate_hz: rate(lines.rate_hz),
        sample_bytes: lines.line_bytes as u32,
        samples: lines.count,
        buffer_bytes: settings.buffer_bytes,
        policy,
    };
    let mut whole = vec![0; lines.line_bytes];
    let make = |number: u64, bytes: &mut [u8]| {
        line(number, &mut whole);
        bytes.copy_from_slice(&whole[..bytes.len()]);
    };
    let mut counter = Counter {
        written: 0,
        watch: Watch::new(progress, recording.samples),
    };
    let card = settings.card(profile);
    let run = run_logger_on_card(card, board, &recording, PATH, &mut counter, make);
    let result = run
        .map_err(|failed| error(format!("{target}: {failed}")))
        .and_then(|(run, _)| {
            run.result
                .map_err(|failed| error(format!("{target}: {failed}")))
        });
    let result = counter.watch.end(result)?;
    let written_bytes = result.written * lines.line_bytes as u64;
    let info = settings.info((profile, board))?;
    Ok(Figures::of_policy(info, &result, written_bytes))
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
