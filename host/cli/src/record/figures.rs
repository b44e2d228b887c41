//! Figures of a recording: the JSON output.

use crate::args::FormatArg;
use cardiograph_compare::{Cause, Recorded};
use cardiograph_record::{Problem, StreamResult, Streamed};
use serde::Serialize;

/// Figures of a recording. New fields are appended at the end.
#[derive(Serialize)]
pub struct Figures {
    /// Samples pushed, including lost ones.
    pub pushed: u64,
    /// Samples in files.
    pub written: u64,
    /// Lost samples: the sum of all gaps.
    pub lost: u64,
    /// Gaps, without overlaps. Policies of the studies list only the first thousand.
    pub gaps: Vec<GapFigures>,
    /// Highest fill level of the buffer; with several streams, of the fullest ring.
    pub ring_peak_bytes: u64,
    /// Rate that a plain stream sustains with the same buffer on the same card and bus; null for boards without
    /// SPI and for directories.
    pub sustained_bound_bytes_per_s: Option<f64>,
    /// Bytes of the files divided by the time from the first sample until all files were closed.
    pub file_rate_bytes_per_s: f64,
    /// Number of times that the durability window was exceeded; null for policies without one.
    pub window_breaches: Option<u64>,
    /// Name of the policy.
    pub policy: String,
    /// Seed of the simulated card; null for directories.
    pub seed: Option<u64>,
    /// Number of streams.
    pub streams: u32,
    /// Buffer size of all streams together.
    pub ram_bytes: u64,
    /// Maximum age of data that a power cut would have lost.
    pub at_risk_us_max: u64,
    /// Worst-case latency of a write; 0 if writes do not block the program.
    pub longest_write_us: f64,
    /// Number of files written.
    pub files: u64,
    /// Time from the first sample until all files were closed.
    pub duration_us: u64,
    /// Number of all gaps, including those not listed.
    pub gap_count: u64,
    /// Interrupted by a signal.
    pub interrupted: bool,
    /// All written samples were read back and compared.
    pub verified: bool,
    /// Format of the files: `csv` or `binary`.
    pub format: &'static str,
    /// Bytes of the samples read back, without marks, block headers and stream headers, divided by the same
    /// time; null if the files were not read back.
    pub payload_rate_bytes_per_s: Option<f64>,
    /// Reason why the files were not verified, as a clause.
    #[serde(skip)]
    pub unread: Option<&'static str>,
    /// Problems that did not end the recording.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// A run of lost samples.
#[derive(Clone, Serialize)]
pub struct GapFigures {
    /// Index of the first lost sample, from 0.
    pub first: u64,
    /// Number of lost samples.
    pub count: u64,
    /// Arrival of the first lost sample, counted from the start of sampling.
    pub at_us: u64,
    /// Cause of the loss.
    pub cause: &'static str,
    /// Number of the stream, from 1; absent with a single stream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
}

/// Settings of a recording that its figures contain.
pub struct Asked {
    pub policy: String,
    pub seed: Option<u64>,
    pub ram_bytes: u64,
    pub format: FormatArg,
    pub sustained_bound: Option<f64>,
    pub interrupted: bool,
}

impl Figures {
    /// Returns the figures of the recorder.
    pub fn of_stream(asked: Asked, streamed: &Streamed) -> Figures {
        let streams = &streamed.streams;
        let sum = |of: fn(&StreamResult) -> u64| streams.iter().map(of).sum::<u64>();
        let most = |of: fn(&StreamResult) -> u64| streams.iter().map(of).max().unwrap_or(0);
        let gaps = gaps_of(streams);
        Figures {
            pushed: sum(|one| one.pushed),
            written: sum(|one| one.summary.written),
            lost: gaps.iter().map(|gap| gap.count).sum(),
            gap_count: gaps.len() as u64,
            gaps,
            ring_peak_bytes: most(|one| one.summary.ring_peak_bytes as u64),
            window_breaches: Some(sum(|one| one.summary.window_breaches.into())),
            streams: streams.len() as u32,
            at_risk_us_max: most(|one| one.summary.at_risk_us_max),
            longest_write_us: 0.0,
            files: sum(|one| one.files),
            verified: streamed.unread.is_none(),
            unread: streamed.unread,
            problems: streamed.problems.clone(),
            payload_rate_bytes_per_s: streamed
                .unread
                .is_none()
                .then(|| per_s(sum(|one| one.line_bytes), streamed.duration_us)),
            ..Figures::new(asked, sum(|one| one.file_bytes), streamed.duration_us)
        }
    }

    /// Returns the figures of a policy of the studies. `written_bytes` are the bytes of the written samples.
    pub fn of_policy(asked: Asked, recorded: &Recorded, written_bytes: u64) -> Figures {
        let gaps = recorded.gaps.iter().map(|gap| GapFigures {
            first: gap.first,
            count: gap.count,
            at_us: gap.at_us,
            cause: match gap.cause {
                Cause::Write => "busy",
                Cause::Recipe => "session",
            },
            stream: None,
        });
        let duration_us = recorded.duration_ns / 1000;
        Figures {
            pushed: recorded.pushed,
            written: recorded.written,
            lost: recorded.lost,
            gaps: gaps.collect(),
            gap_count: recorded.gap_count,
            ring_peak_bytes: recorded.ring_peak_bytes,
            at_risk_us_max: recorded.at_risk_max_us,
            longest_write_us: recorded.longest_write_ns as f64 / 1e3,
            files: u64::from(recorded.written > 0),
            verified: !recorded.stopped,
            unread: recorded.stopped.then_some("the recording was interrupted"),
            payload_rate_bytes_per_s: Some(per_s(written_bytes, duration_us)),
            ..Figures::new(asked, written_bytes, duration_us)
        }
    }

    fn new(asked: Asked, file_bytes: u64, duration_us: u64) -> Figures {
        Figures {
            pushed: 0,
            written: 0,
            lost: 0,
            gaps: Vec::new(),
            ring_peak_bytes: 0,
            sustained_bound_bytes_per_s: asked.sustained_bound,
            file_rate_bytes_per_s: per_s(file_bytes, duration_us),
            payload_rate_bytes_per_s: None,
            format: match asked.format {
                FormatArg::Binary => "binary",
                FormatArg::Csv => "csv",
            },
            window_breaches: None,
            policy: asked.policy,
            seed: asked.seed,
            streams: 1,
            ram_bytes: asked.ram_bytes,
            at_risk_us_max: 0,
            longest_write_us: 0.0,
            files: 0,
            duration_us,
            gap_count: 0,
            interrupted: asked.interrupted,
            verified: false,
            unread: None,
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
            first: gap.first,
            count: gap.count,
            at_us: gap.at_us,
            cause: gap.cause.word(),
            stream: (streams.len() > 1).then_some(number),
        }));
    }
    gaps.sort_by_key(|gap| gap.at_us);
    gaps
}
