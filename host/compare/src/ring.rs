//! The ring buffer of a recording.

use crate::{Cause, Gap, LoggerConfig};
use std::collections::VecDeque;

/// A ring buffer of samples, which arrive on time regardless of the writer.
///
/// A sample occupies its space from its arrival until its write has returned. A sample that arrives at the
/// moment when a write returns finds the space free.
pub(crate) struct Ring {
    recording: LoggerConfig,
    /// Total number of samples.
    lines: u64,
    /// Index of the next sample to arrive.
    next: u64,
    waiting: VecDeque<u64>,
    peak: u64,
    gaps: Vec<Gap>,
}

impl Ring {
    pub(crate) fn new(recording: LoggerConfig) -> Ring {
        Ring {
            recording,
            lines: recording.samples,
            next: 0,
            waiting: VecDeque::new(),
            peak: 0,
            gaps: Vec::new(),
        }
    }

    /// Adds the samples that arrive before time `ns`. Those that do not fit are lost.
    pub(crate) fn arrive_before(&mut self, ns: u64, cause: Cause) {
        let room = self.recording.buffer_bytes / u64::from(self.recording.sample_bytes);
        while let Some(at_ns) = self.next_arrival_ns().filter(|&at_ns| at_ns < ns) {
            if (self.waiting.len() as u64) < room {
                self.waiting.push_back(self.next);
                self.peak = self.peak.max(self.waiting.len() as u64);
            } else {
                self.lose(at_ns, cause);
            }
            self.next += 1;
        }
    }

    fn lose(&mut self, at_ns: u64, cause: Cause) {
        let line = self.next;
        match self.gaps.last_mut() {
            Some(gap) if gap.first + gap.count == line => gap.count += 1,
            _ => self.gaps.push(Gap {
                first: line,
                count: 1,
                at_us: at_ns / 1000,
                cause,
            }),
        }
    }

    /// Returns the oldest sample, which occupies its space until [`release`](Ring::release).
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.waiting.front().copied()
    }

    /// Frees the space of the oldest sample.
    pub(crate) fn release(&mut self) {
        self.waiting.pop_front();
    }

    /// Returns the arrival time of the next sample in ns, `None` after the last one.
    pub(crate) fn next_arrival_ns(&self) -> Option<u64> {
        (self.next < self.lines).then(|| self.recording.arrival_ns(self.next))
    }

    /// Ends the arrival of samples.
    pub(crate) fn stop(&mut self) {
        self.lines = self.next;
    }

    /// Returns the number of arrived samples, including lost ones.
    pub(crate) fn pushed(&self) -> u64 {
        self.next
    }

    /// Returns the highest fill level, in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak * u64::from(self.recording.sample_bytes)
    }

    /// Returns all gaps, in order.
    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}
