//! The lines that wait in RAM.

use crate::{Cause, Gap, Recording};
use std::collections::VecDeque;

/// A ring of lines, to which they come on time whatever the writer is at.
///
/// A line takes its room from its arrival until its write has returned. One that arrives at that very
/// moment finds the room free.
pub(crate) struct Ring {
    recording: Recording,
    /// Lines there will be.
    lines: u64,
    /// The line that arrives next.
    next: u64,
    waiting: VecDeque<u64>,
    peak: u64,
    gaps: Vec<Gap>,
}

impl Ring {
    pub(crate) fn new(recording: Recording) -> Ring {
        Ring {
            recording,
            lines: recording.lines,
            next: 0,
            waiting: VecDeque::new(),
            peak: 0,
            gaps: Vec::new(),
        }
    }

    /// Lets the lines arrive that do so before this moment. Those that find no room are lost.
    pub(crate) fn arrive_before(&mut self, ns: u64, cause: Cause) {
        let room = self.recording.ram_bytes / u64::from(self.recording.line_bytes);
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

    /// The oldest line; it keeps its room until [`release`](Ring::release).
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.waiting.front().copied()
    }

    /// Gives the room of the oldest line free.
    pub(crate) fn release(&mut self) {
        self.waiting.pop_front();
    }

    /// When the next line arrives, in ns. `None` when there are no more.
    pub(crate) fn next_arrival_ns(&self) -> Option<u64> {
        (self.next < self.lines).then(|| self.recording.arrival_ns(self.next))
    }

    /// No more lines arrive.
    pub(crate) fn stop(&mut self) {
        self.lines = self.next;
    }

    /// Lines that have arrived, those lost included.
    pub(crate) fn pushed(&self) -> u64 {
        self.next
    }

    /// The most bytes that ever waited.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak * u64::from(self.recording.line_bytes)
    }

    /// Every gap, in order.
    pub(crate) fn gaps(&self) -> &[Gap] {
        &self.gaps
    }
}
