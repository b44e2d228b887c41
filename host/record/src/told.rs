//! What is known of a stream from what the recorder told and from its files, and whether the two agree.

use crate::gaps::merged;
use crate::read_back::ReadBack;
use crate::{StreamError, StreamResult};
use cardiograph_recorder::{Gap, StreamSummary};
use std::ops::Range;

/// What is known of a stream.
#[derive(Clone, Default)]
pub(crate) struct Told {
    pub(crate) gaps: Vec<Gap>,
    pub(crate) safe: u64,
    pub(crate) files: u64,
    pub(crate) back: ReadBack,
}

impl Told {
    /// Holds what was told against what files hold.
    pub(crate) fn compared(
        self,
        summary: StreamSummary,
        pushed: u64,
        started_us: u64,
    ) -> Result<StreamResult, StreamError> {
        let gaps = merged(self.gaps);
        let mut missing = self.back.missing;
        // What was lost in the end is in no file.
        if self.back.next < pushed {
            missing.push(self.back.next..pushed);
        }
        let lost = lost(&gaps);
        let is_told =
            lines_of(missing) == lines_of(gaps.iter().map(|gap| gap.first..gap.first + gap.count));
        if !is_told || self.back.found + lost != pushed || self.back.found != summary.written {
            return Err(StreamError::Untold {
                pushed,
                found: self.back.found,
                lost,
            });
        }
        Ok(StreamResult {
            pushed,
            gaps: from_start(gaps, started_us),
            line_bytes: self.back.line_bytes,
            files: self.files,
            summary,
        })
    }

    /// Holds what was told against what came, where files cannot be compared.
    pub(crate) fn uncompared(
        self,
        summary: StreamSummary,
        pushed: u64,
        started_us: u64,
    ) -> Result<StreamResult, StreamError> {
        let gaps = merged(self.gaps);
        let lost = lost(&gaps);
        if summary.written + lost != pushed {
            return Err(StreamError::Untold {
                pushed,
                found: summary.written,
                lost,
            });
        }
        Ok(StreamResult {
            pushed,
            gaps: from_start(gaps, started_us),
            line_bytes: summary.bytes,
            files: self.files,
            summary,
        })
    }
}

/// What the names of a stream's files begin with: REC, or REA to RED where there are several.
pub(crate) fn prefix(at: usize, streams: usize) -> [u8; 3] {
    let last = match streams {
        1 => b'C',
        _ => b'A' + at as u8,
    };
    [b'R', b'E', last]
}

fn lost(gaps: &[Gap]) -> u64 {
    gaps.iter().map(|gap| gap.count).sum()
}

/// With times from the start of sampling.
fn from_start(mut gaps: Vec<Gap>, started_us: u64) -> Vec<Gap> {
    for gap in &mut gaps {
        gap.at_us = gap.at_us.saturating_sub(started_us);
    }
    gaps
}

/// Ranges in order, those that touch put together.
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
