//! Compares the gaps and counts reported by the recorder with the files.

use crate::gaps::merged;
use crate::verify::FoundSamples;
use crate::{StreamError, StreamResult};
use cardiograph_recorder::{Format, Gap, StreamSummary};
use std::ops::Range;

/// Reports of the recorder about one stream, and the samples found in its files.
#[derive(Clone, Default)]
pub struct StreamReport {
    /// Gaps in the order of the reports.
    pub gaps: Vec<Gap>,
    /// Number of samples that were durable at the last checkpoint.
    pub durable: u64,
    /// Number of closed files. Files shared by several streams count for the first stream only.
    pub files: u64,
    /// Total size of the closed files, in bytes.
    pub file_bytes: u64,
    /// Samples found in the files read so far.
    pub found: FoundSamples,
}

impl StreamReport {
    /// Compares the reports with the samples found in the files. In the result, gap times are counted from
    /// `started_us`.
    ///
    /// # Errors
    /// [`StreamError::Unaccounted`] if the numbers disagree.
    pub fn check_with_files(
        self,
        summary: StreamSummary,
        pushed: u64,
        started_us: u64,
    ) -> Result<StreamResult, StreamError> {
        let sample_bytes = self.found.bytes;
        let found = self.found.count;
        let mut missing = self.found.missing.clone();
        // The files do not mention samples that were lost after the last written sample.
        if self.found.next < pushed {
            missing.push(self.found.next..pushed);
        }
        let gaps = merged(self.gaps.clone());
        let lost = lost(&gaps);
        let agrees =
            lines_of(missing) == lines_of(gaps.iter().map(|gap| gap.first..gap.first + gap.count));
        if !agrees || found + lost != pushed || found != summary.written {
            return Err(StreamError::Unaccounted {
                pushed,
                found,
                lost,
            });
        }
        Ok(StreamResult {
            sample_bytes,
            ..self.unchecked(summary, pushed, started_us)
        })
    }

    /// Compares the reports with the number of pushed samples only, for files that cannot be compared.
    ///
    /// # Errors
    /// [`StreamError::Unaccounted`] if the numbers disagree.
    pub fn check_counts(
        self,
        summary: StreamSummary,
        pushed: u64,
        started_us: u64,
    ) -> Result<StreamResult, StreamError> {
        let lost = lost(&merged(self.gaps.clone()));
        if summary.written + lost != pushed {
            return Err(StreamError::Unaccounted {
                pushed,
                found: summary.written,
                lost,
            });
        }
        Ok(self.unchecked(summary, pushed, started_us))
    }

    /// Returns the reports without comparing them with anything.
    pub(crate) fn unchecked(
        self,
        summary: StreamSummary,
        pushed: u64,
        started_us: u64,
    ) -> StreamResult {
        StreamResult {
            pushed,
            gaps: from_start(merged(self.gaps), started_us),
            sample_bytes: summary.bytes,
            files: self.files,
            file_bytes: self.file_bytes,
            summary,
        }
    }
}

/// Returns the prefix of a stream's file names: REC, or REA to RED for several text streams. Binary streams
/// share their files.
pub fn prefix(at: usize, streams: usize, format: &Format) -> [u8; 3] {
    let last = match (streams, format) {
        (1, _) | (_, Format::Binary(_)) => b'C',
        _ => b'A' + at as u8,
    };
    [b'R', b'E', last]
}

fn lost(gaps: &[Gap]) -> u64 {
    gaps.iter().map(|gap| gap.count).sum()
}

/// Makes gap times relative to the start of sampling.
fn from_start(mut gaps: Vec<Gap>, started_us: u64) -> Vec<Gap> {
    for gap in &mut gaps {
        gap.at_us = gap.at_us.saturating_sub(started_us);
    }
    gaps
}

/// Joins adjacent ranges.
fn lines_of(ranges: impl IntoIterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut out: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match out.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => out.push(range),
        }
    }
    out
}
