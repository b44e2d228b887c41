//! `record`: the recorder on a simulated card, in virtual time.

use super::Progress;
use super::value::{of, optional, or};
use cardiograph_compare::{
    Course, Figures, Load, LoggerConfig, RunInfo, Streaming, stream_with_course,
    sustained_bound_bytes_per_s,
};
use cardiograph_record::{BINARY_SAMPLE_BYTES_MIN, Feed, LINE_BYTES_MIN, Lines};
use cardiograph_recorder::{Config, LINE_BYTES_MAX, RING_BYTES_MAX, RING_BYTES_MIN, Window};
use cardiograph_report::{json, units, values};
use cardiograph_sim_card::{Board, Bus, Card, Profile, Seed};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::time::Duration;

/// Defaults of the command.
const RATE_HZ: NonZeroU32 = NonZeroU32::new(860).unwrap();
const SAMPLE_BYTES: usize = 100;
const LENGTH: Duration = Duration::from_secs(60);
const BUFFER_BYTES: u64 = 64 << 10;
const SEED: u64 = 1;
/// Durability window and file size, likewise.
const WINDOW_US: u64 = 1_000_000;
const FILE_BYTES: u32 = 45 << 20;

/// Longest recording: a page has to keep its course.
const LENGTH_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Number of spans of the course.
const SPANS: u64 = 1200;
/// Share of the work that recording takes; the rest is the sustained rate.
const SHARE: f64 = 0.6;

/// A request.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Request {
    target: String,
    rate: String,
    sample_bytes: String,
    #[serde(rename = "for")]
    length: String,
    buffer: String,
    seed: String,
}

/// A recording.
#[derive(Serialize)]
pub struct Response {
    /// Output of `--json`.
    json: String,
    course: Course,
}

/// Values of a request, checked.
struct Setup {
    profile: Profile,
    board: Board,
    rate_hz: NonZeroU32,
    lines: Lines,
    length: Duration,
    buffer_bytes: u64,
    seed: u64,
}

impl Request {
    /// Records, and computes the highest rate that the card sustains with this buffer.
    pub fn run(&self, progress: Progress) -> Result<Response, String> {
        let setup = self.setup()?;
        let failed = |why: String| format!("{}: {why}", self.target);
        let Bus::Spi(spi) = &setup.board.bus else {
            return Err(failed(String::from(
                "the board has an SD bus, but --policy stream drives cards over SPI; use a board with SPI, such \
                 as esp32",
            )));
        };
        let (lines, bytes) = (&setup.lines, setup.lines.bytes());
        let load = Load {
            bytes,
            bytes_per_s: Some(bytes as f64 / lines.count as f64 * f64::from(setup.rate_hz.get())),
            removes_oldest: false,
        };
        load.check(&setup.profile, Some(spi)).map_err(failed)?;
        let streaming = Streaming {
            spi: *spi,
            cluster_bytes: setup.board.library.cluster_bytes,
            buffer_bytes: setup.buffer_bytes as usize,
            window: Window::Us(WINDOW_US),
            config: Config {
                file_bytes: FILE_BYTES,
                ..Config::default()
            },
        };
        let mut watch = |now: cardiograph_record::Progress| {
            progress(SHARE * now.pushed as f64 / lines.count as f64);
            ControlFlow::Continue(())
        };
        let seed = Seed::new(setup.seed);
        let card = || Card::new(&setup.profile, seed);
        let span_us = (setup.length.as_micros() as u64).div_ceil(SPANS);
        let (recorded, course) =
            stream_with_course(card(), seed, &streaming, lines, &mut watch, span_us)
                .map_err(|error| failed(error.to_string()))?;
        let bound = sustained_bound_bytes_per_s(card(), spi, setup.buffer_bytes, bytes, 1);
        let info = RunInfo {
            policy: String::from("stream"),
            seed: Some(setup.seed),
            buffer_bytes: setup.buffer_bytes,
            format: "csv",
            sustained_bound: Some(bound.map_err(|error| failed(error.to_string()))?),
            interrupted: false,
        };
        let figures = Figures::of_stream(info, &recorded);
        Ok(Response {
            json: json("record", &[figures]).map_err(|error| error.to_string())?,
            course,
        })
    }

    fn setup(&self) -> Result<Setup, String> {
        let parse = values::whole(values::RECORD_RATES_HZ);
        let rate_hz = of("--rate", or(&self.rate, RATE_HZ, parse))?;
        // The range of the command, which also records in binary.
        let parse = values::whole(BINARY_SAMPLE_BYTES_MIN..=LINE_BYTES_MAX);
        let line_bytes = of(
            "--sample-bytes",
            or(&self.sample_bytes, SAMPLE_BYTES, parse),
        )?;
        if line_bytes < LINE_BYTES_MIN {
            return Err(format!(
                "--sample-bytes is {line_bytes}, but generated samples are {LINE_BYTES_MIN} to {LINE_BYTES_MAX} B long \
                 in this format; use a length in this range"
            ));
        }
        let buffer_bytes = of("--buffer", or(&self.buffer, BUFFER_BYTES, values::bytes))?;
        if !(RING_BYTES_MIN as u64..=RING_BYTES_MAX as u64).contains(&buffer_bytes) {
            return Err(format!(
                "--buffer gives each stream {}; the permitted range per stream is {RING_BYTES_MIN} B (two blocks) to 2 GiB - 1 B",
                units::binary_bytes(buffer_bytes)
            ));
        }
        let length = of("--for", optional(&self.length, values::duration))?.unwrap_or(LENGTH);
        if length > LENGTH_MAX {
            return Err(String::from(
                "--for: a page records at most 24h; use the command for longer recordings",
            ));
        }
        let count = LoggerConfig::samples_before(rate_hz, length.as_nanos() as u64);
        if count == 0 {
            return Err(String::from("no samples to record; increase --for"));
        }
        let (profile, board) = set_up(&self.target)?;
        Ok(Setup {
            profile,
            board,
            rate_hz,
            lines: Lines {
                rate_hz: rate_hz.get(),
                line_bytes,
                count,
            },
            length,
            buffer_bytes,
            seed: of("--seed", or(&self.seed, SEED, values::whole(0..=u64::MAX)))?,
        })
    }
}

/// Returns card and board of `sim:CARD@BOARD`.
pub fn set_up(target: &str) -> Result<(Profile, Board), String> {
    let named = target
        .strip_prefix("sim:")
        .and_then(|name| name.split_once('@'));
    let (card, board) = named
        .ok_or_else(|| format!("{target}: not a simulated card; name one as sim:CARD@BOARD"))?;
    let profile = Profile::named(card).map_err(|error| error.to_string())?;
    let board = Board::named(board).map_err(|error| error.to_string())?;
    Ok((profile, board))
}
