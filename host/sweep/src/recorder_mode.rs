//! The mode `recorder`: the whole device, whose files are read back and compared with the samples.

use crate::SweepError;
use crate::spec::PolicyName;
use crate::task::{Row, Task};
use cardiograph_compare::{LoggerConfig, Policy, Streaming, run_logger_on_card, stream_on_card};
use cardiograph_record::{Lines, line};
use cardiograph_recorder::{Config, WhenFull, Window};
use cardiograph_sim_card::{Bus, Card, Profile, Seed};
use cardiograph_workload::{Activity, Observer, Operation};
use std::num::NonZeroU32;
use std::ops::ControlFlow;

/// Name of the file that the studies' policies write.
const PATH: &str = "RECORD.CSV";
const NS_PER_S: u64 = 1_000_000_000;
/// Size of the recorder's files, as in `cardiograph record`.
const FILE_BYTES: u32 = 45 << 20;

/// Losses of one recording.
pub(crate) struct Losses {
    pub(crate) lost_samples: u64,
    pub(crate) peak_bytes: u64,
}

/// Runs a task in recorder mode.
pub(crate) fn run(
    task: &Task,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Vec<Row>>, SweepError> {
    let mut rows = Vec::new();
    for (member, profile) in task.numbered() {
        for &buffer_bytes in task.buffers_bytes {
            for seed in task.seeds.clone() {
                let run = (buffer_bytes, seed);
                let Some(losses) = recorded(task, profile, run, is_stopped)? else {
                    return Ok(None);
                };
                let mut row = task.row(member, buffer_bytes, seed);
                row.lost = losses.lost_samples > 0;
                row.lost_samples = Some(losses.lost_samples);
                row.peak_backlog_bytes = losses.peak_bytes;
                rows.push(row);
            }
        }
    }
    Ok(Some(rows))
}

/// Makes one recording with a buffer size and a seed, on a member of the card's ensemble; `None` if it was stopped.
pub(crate) fn recorded(
    task: &Task,
    profile: &Profile,
    (buffer_bytes, seed): (u64, u64),
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Losses>, SweepError> {
    let card = (profile, Seed::new(seed));
    match task.policy {
        PolicyName::Stream => stream(task, card, buffer_bytes, is_stopped),
        PolicyName::Naive => logger(task, card, Policy::Naive, buffer_bytes, is_stopped),
        PolicyName::KeepOpen => logger(task, card, Policy::KeepOpen, buffer_bytes, is_stopped),
        PolicyName::AfterSession => {
            let session_ns = task.spec.session_s * NS_PER_S;
            let policy = Policy::AfterSession { session_ns };
            logger(task, card, policy, buffer_bytes, is_stopped)
        }
    }
}

fn go_on(is_stopped: &dyn Fn() -> bool) -> ControlFlow<()> {
    match is_stopped() {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

fn samples(task: &Task) -> u64 {
    u64::from(task.rate_hz) * task.spec.run_s
}

fn stream(
    task: &Task,
    (profile, seed): (&Profile, Seed),
    buffer_bytes: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Losses>, SweepError> {
    let failed = |why: &dyn std::fmt::Display| SweepError::new(format!("{}: {why}", task.target()));
    let Bus::Spi(spi) = task.board.bus else {
        return Err(failed(
            &"the board has an SD bus, but the policy stream drives cards over SPI; use a board with SPI, such as esp32",
        ));
    };
    let streaming = Streaming {
        spi,
        cluster_bytes: task.board.library.cluster_bytes,
        buffer_bytes: buffer_bytes as usize,
        window: Window::Us(task.spec.durability_window_ms * 1000),
        config: Config {
            file_bytes: FILE_BYTES,
            when_full: WhenFull::RemoveOldest,
            ..Config::default()
        },
    };
    let feed = Lines {
        rate_hz: task.rate_hz,
        line_bytes: task.spec.sample_bytes as usize,
        count: samples(task),
    };
    let card = Card::new(profile, seed);
    let mut watch = |_| go_on(is_stopped);
    let result = stream_on_card::<1>(card, seed, &streaming, &feed, &mut watch);
    let result = result.map_err(|error| failed(&error))?;
    if is_stopped() {
        return Ok(None);
    }
    let streams = &result.streams;
    Ok(Some(Losses {
        lost_samples: streams.iter().map(|stream| stream.lost()).sum(),
        peak_bytes: streams
            .iter()
            .map(|stream| stream.summary.ring_peak_bytes as u64)
            .sum(),
    }))
}

fn logger(
    task: &Task,
    (profile, seed): (&Profile, Seed),
    policy: Policy,
    buffer_bytes: u64,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Losses>, SweepError> {
    let failed = |why: &dyn std::fmt::Display| SweepError::new(format!("{}: {why}", task.target()));
    let recording = LoggerConfig {
        rate_hz: NonZeroU32::new(task.rate_hz).unwrap_or(NonZeroU32::MIN),
        sample_bytes: task.spec.sample_bytes,
        samples: samples(task),
        buffer_bytes,
        policy,
    };
    let mut whole = vec![0; task.spec.sample_bytes as usize];
    let make = |number: u64, bytes: &mut [u8]| {
        line(number, &mut whole);
        bytes.copy_from_slice(&whole[..bytes.len()]);
    };
    let card = Card::new(profile, seed);
    let mut watch = Watch(is_stopped);
    let run = run_logger_on_card(card, task.board, &recording, PATH, &mut watch, make);
    let (run, _) = run.map_err(|error| failed(&error))?;
    let result = run.result.map_err(|error| failed(&error))?;
    if result.stopped {
        return Ok(None);
    }
    Ok(Some(Losses {
        lost_samples: result.lost,
        peak_bytes: result.buffer_peak_bytes,
    }))
}

/// Ends a recording on request.
struct Watch<'a>(&'a dyn Fn() -> bool);

impl Observer for Watch<'_> {
    fn observe(&mut self, _: &Operation) -> ControlFlow<()> {
        go_on(self.0)
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        go_on(self.0)
    }
}
