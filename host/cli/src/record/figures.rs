//! What came of a recording, as programs read it.

use super::args::FormatArg;
use cardiograph_compare::{Cause, Recorded};
use cardiograph_record::{Problem, StreamResult, Streamed};
use serde::Serialize;

/// What came of a recording. Fields are added at the end only.
#[derive(Serialize)]
pub struct Figures {
    /// Lines that came, with those that were lost.
    pub pushed: u64,
    /// Lines that are in files.
    pub written: u64,
    /// Lines that are missing: the sum of the gaps.
    pub lost: u64,
    /// What is missing, without overlaps.
    pub gaps: Vec<GapFigures>,
    /// Highest level of RAM; of the fullest ring where there are several.
    pub ring_peak_bytes: u64,
    /// What a plain stream bears with the same RAM on the same card and bus; null where its board has no SPI,
    /// and in a directory.
    pub sustained_bound_bytes_per_s: Option<f64>,
    /// Bytes of the files over the time from the first sample until all files were closed.
    pub file_rate_bytes_per_s: f64,
    /// How often the durability window was not kept; null for policies that have none.
    pub window_breaches: Option<u64>,
    /// How lines got to the card.
    pub policy: String,
    /// Seed of the simulated card; null in a directory.
    pub seed: Option<u64>,
    /// Streams that shared it.
    pub streams: u32,
    /// RAM of all streams.
    pub ram_bytes: u64,
    /// Greatest age of data that a power cut would have taken.
    pub at_risk_us_max: u64,
    /// The longest that the program was held by a write; 0 where it goes on meanwhile.
    pub longest_write_us: f64,
    /// Files written.
    pub files: u64,
    /// From the first line until all files were closed.
    pub duration_us: u64,
    /// Gaps, of which the policies of the studies list the first thousand.
    pub gap_count: u64,
    /// Ended by Ctrl-C.
    pub interrupted: bool,
    /// Every line that was written was read back and compared.
    pub verified: bool,
    /// Format of the files: `csv` or `binary`.
    pub format: &'static str,
    /// Bytes of the samples that were read back, without marks, heads of blocks and headers, over the same
    /// time; null where the files were not read back.
    pub payload_rate_bytes_per_s: Option<f64>,
    /// Why not, as a part of a sentence.
    #[serde(skip)]
    pub unread: Option<&'static str>,
    /// Problems that the recording survived.
    #[serde(skip)]
    pub problems: Vec<Problem>,
}

/// Lines missing in a row.
#[derive(Clone, Serialize)]
pub struct GapFigures {
    /// Number of the first, from 0.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// When the first came, from the first line on.
    pub at_us: u64,
    /// Why.
    pub cause: &'static str,
    /// Which stream, from 1, where there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<u32>,
}

/// What figures are of, besides the result.
pub struct Asked {
    pub policy: String,
    pub seed: Option<u64>,
    pub ram_bytes: u64,
    pub format: FormatArg,
    pub lossless_bound: Option<f64>,
    pub interrupted: bool,
}

impl Figures {
    /// Of our recorder.
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

    /// Of a way to record of the studies. `written_bytes` are those of the lines.
    pub fn of_policy(asked: Asked, recorded: &Recorded, written_bytes: u64) -> Figures {
        let gaps = recorded.gaps.iter().map(|gap| GapFigures {
            first: gap.first,
            count: gap.count,
            at_us: gap.at_us,
            cause: match gap.cause {
                Cause::Write => "busy",
                Cause::Recipe => "recipe",
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
            unread: recorded.stopped.then_some("it was interrupted"),
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
            sustained_bound_bytes_per_s: asked.lossless_bound,
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

/// The gaps of all streams, in order of time.
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
