//! Figures of a recording: the JSON output.

use crate::{Cause, LoggerResult};
use cardiograph_record::{Problem, RecordingResult, StreamResult};
use serde::Serialize;

/// Figures of a recording. New fields are appended at the end.
#[derive(Serialize)]
pub struct Figures {
    /// Samples pushed, including lost ones.
    pub samples_pushed: u64,
    /// Samples written to files.
    pub samples_written: u64,
    /// Lost samples: the sum of all gaps.
    pub samples_lost: u64,
    /// Gaps, without overlaps. Policies of the studies list only the first thousand.
    pub gaps: Vec<GapFigures>,
    /// Highest fill level of the buffer; with several streams, the highest of any stream's ring buffer.
    pub buffer_peak_bytes: u64,
    /// Rate that a plain stream sustains with the same buffer on the same card and bus; null for boards without
    /// SPI and for directories.
    pub sustained_bound_bytes_per_s: Option<f64>,
    /// Total size of the files divided by `duration_us`, the time from the first sample until all files were
    /// closed.
    pub file_rate_bytes_per_s: f64,
    /// Number of times that the durability window was exceeded; null for policies without a durability
    /// window.
    pub durability_window_exceeded: Option<u64>,
    /// Name of the policy.
    pub policy: String,
    /// Seed of the simulated card; null for directories.
    pub seed: Option<u64>,
    /// Number of streams.
    pub streams: u32,
    /// Buffer size of all streams together.
    pub buffer_bytes: u64,
    /// Maximum age of data that a power cut would have lost.
    pub at_risk_max_us: u64,
    /// Worst-case latency of a write; 0 if writes do not block the program.
    pub worst_case_write_us: f64,
    /// Number of files written.
    pub files: u64,
    /// Time from the first sample until all files were closed.
    pub duration_us: u64,
    /// Number of all gaps, including those not listed.
    pub gaps_total: u64,
    /// Interrupted by a signal.
    pub interrupted: bool,
    /// All written samples were read back and compared.
    pub verified: bool,
    /// Format of the files: `csv` or `binary`.
    pub format: &'static str,
    /// Bytes of the samples read back, without checkpoint marks, block headers and stream headers, divided
    /// by `duration_us`; null if the files were not read back.
    pub payload_rate_bytes_per_s: Option<f64>,
    /// Reason why the files were not verified, as a clause; null if they were.
    #[serde(skip)]
    pub unverified: Option<&'static str>,
    /// Problems that did not end the recording.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// A range of consecutive lost samples.
#[derive(Clone, Serialize)]
pub struct GapFigures {
    /// Index of the first lost sample, from 0.
    pub first_sample: u64,
    /// Number of lost samples.
    pub samples: u64,
    /// Arrival of the first lost sample, counted from the start of sampling.
    pub at_us: u64,
    /// Cause of the loss.
    pub cause: &'static str,
    /// Number of the stream, from 1; absent with a single stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
}

/// Settings of a recording that are repeated in its figures.
pub struct RunInfo {
    /// Name of the policy.
    pub policy: String,
    /// Seed of the simulated card; `None` for directories.
    pub seed: Option<u64>,
    /// Buffer size of all streams together.
    pub buffer_bytes: u64,
    /// Format of the files: `csv` or `binary`.
    pub format: &'static str,
    /// Rate that a plain stream sustains with the same buffer, in bytes per second.
    pub sustained_bound: Option<f64>,
    /// True if a signal ended the recording.
    pub interrupted: bool,
}

impl Figures {
    /// Returns the figures of a recording by the recorder.
    pub fn of_stream(info: RunInfo, streamed: &RecordingResult) -> Figures {
        let streams = &streamed.streams;
        let sum = |of: fn(&StreamResult) -> u64| streams.iter().map(of).sum::<u64>();
        let most = |of: fn(&StreamResult) -> u64| streams.iter().map(of).max().unwrap_or(0);
        let gaps = gaps_of(streams);
        Figures {
            samples_pushed: sum(|one| one.pushed),
            samples_written: sum(|one| one.summary.written),
            samples_lost: gaps.iter().map(|gap| gap.samples).sum(),
            gaps_total: gaps.len() as u64,
            gaps,
            buffer_peak_bytes: most(|one| one.summary.ring_peak_bytes as u64),
            durability_window_exceeded: Some(sum(|one| one.summary.window_breaches.into())),
            streams: streams.len() as u32,
            at_risk_max_us: most(|one| one.summary.at_risk_us_max),
            worst_case_write_us: 0.0,
            files: sum(|one| one.files),
            verified: streamed.unverified.is_none(),
            unverified: streamed.unverified,
            problems: streamed.problems.clone(),
            payload_rate_bytes_per_s: streamed
                .unverified
                .is_none()
                .then(|| per_s(sum(|one| one.sample_bytes), streamed.duration_us)),
            ..Figures::new(info, sum(|one| one.file_bytes), streamed.duration_us)
        }
    }

    /// Returns the figures of a recording by one of the studies' policies. `written_bytes` is the total size
    /// of the written samples.
    pub fn of_policy(info: RunInfo, recorded: &LoggerResult, written_bytes: u64) -> Figures {
        let gaps = recorded.gaps.iter().map(|gap| GapFigures {
            first_sample: gap.first,
            samples: gap.count,
            at_us: gap.at_us,
            cause: match gap.cause {
                Cause::Write => "busy",
                Cause::Session => "session",
            },
            stream: None,
        });
        let duration_us = recorded.duration_ns / 1000;
        Figures {
            samples_pushed: recorded.pushed,
            samples_written: recorded.written,
            samples_lost: recorded.lost,
            gaps: gaps.collect(),
            gaps_total: recorded.gaps_total,
            buffer_peak_bytes: recorded.buffer_peak_bytes,
            at_risk_max_us: recorded.at_risk_max_us,
            worst_case_write_us: recorded.worst_case_write_ns as f64 / 1e3,
            files: u64::from(recorded.written > 0),
            verified: !recorded.stopped,
            unverified: recorded.stopped.then_some("the recording was interrupted"),
            payload_rate_bytes_per_s: Some(per_s(written_bytes, duration_us)),
            ..Figures::new(info, written_bytes, duration_us)
        }
    }

    fn new(info: RunInfo, file_bytes: u64, duration_us: u64) -> Figures {
        Figures {
            samples_pushed: 0,
            samples_written: 0,
            samples_lost: 0,
            gaps: Vec::new(),
            buffer_peak_bytes: 0,
            sustained_bound_bytes_per_s: info.sustained_bound,
            file_rate_bytes_per_s: per_s(file_bytes, duration_us),
            payload_rate_bytes_per_s: None,
            format: info.format,
            durability_window_exceeded: None,
            policy: info.policy,
            seed: info.seed,
            streams: 1,
            buffer_bytes: info.buffer_bytes,
            at_risk_max_us: 0,
            worst_case_write_us: 0.0,
            files: 0,
            duration_us,
            gaps_total: 0,
            interrupted: info.interrupted,
            verified: false,
            unverified: None,
            problems: Vec::new(),
        }
    }
}

fn per_s(bytes: u64, duration_us: u64) -> f64 {
    bytes as f64 * 1e6 / duration_us.max(1) as f64
}

/// Returns the gaps of all streams, in order of time.
fn gaps_of(streams: &[StreamResult]) -> Vec<GapFigures> {
    let mut gaps = Vec::new();
    for (stream, number) in streams.iter().zip(1..) {
        gaps.extend(stream.gaps.iter().map(|gap| GapFigures {
            first_sample: gap.first,
            samples: gap.count,
            at_us: gap.at_us,
            cause: gap.cause.word(),
            stream: (streams.len() > 1).then_some(number),
        }));
    }
    gaps.sort_by_key(|gap| gap.at_us);
    gaps
}
