//! A sketch that logs line by line with the blocking calls of a file library, as most sketches do.
//!
//! ```text
//!   samples, by interrupt ──> ring ──> open ──> write ──> close      open and close
//!                              │                write                keep open
//!                              └── full: lost
//! ```

use crate::RING_BYTES;
use crate::magnetometer::Magnetometer;
use cardiograph_recorder::LINE_BYTES_MAX;
use cardiograph_sim_device::Samples;
use cardiograph_workload::{Clock, Store};
use std::collections::VecDeque;

/// Path of the log.
pub(super) const PATH: &str = "LOG.CSV";

/// Way to log: use of the file for each line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Opens the file, writes the line, and closes the file.
    OpenAndClose,
    /// Writes the line to a file that stays open.
    KeepOpen,
}

/// Samples of a sketch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Samples taken since the first start.
    pub(super) samples: u64,
    /// Samples that did not fit in the ring.
    pub(super) lost: u64,
    /// Bytes in the ring.
    pub(super) ring_bytes: usize,
    /// Highest level of the ring, in bytes.
    pub(super) ring_bytes_max: usize,
    /// Bytes written to the file.
    pub(super) written_bytes: u64,
    /// Bytes of samples taken since the last start.
    pub(super) taken_bytes: u64,
    /// Time since the last start, in ms.
    pub(super) running_ms: u64,
    /// Longest time for a line, in us.
    pub(super) line_us_max: u32,
    /// Age of the oldest sample that a power cut would destroy, in ms.
    pub(super) unsaved_ms: u64,
}

/// The sketch's surroundings.
pub(super) trait Host {
    /// Waits until a time of the card's clock, in ns. Returns false if the power was cut before.
    fn pass_until(&mut self, ns: u64) -> bool;

    /// Receives the samples after each line, with the end of the line in ms and its duration in us.
    fn line_done(&mut self, tally: &Tally, at_ms: u64, us: u32);
}

/// A running sketch, from power-on to power-off.
pub(super) struct Sketch<'a, H> {
    pub(super) way: Way,
    pub(super) tally: &'a mut Tally,
    pub(super) host: &'a mut H,
    /// Length of the file, in bytes.
    length_bytes: u64,
    /// Start of sampling, in ns.
    start_ns: u64,
    /// Number of the next sample since then.
    next: u64,
    waiting: VecDeque<Vec<u8>>,
}

impl<'a, H: Host> Sketch<'a, H> {
    /// Prepares a sketch whose file has the given length.
    pub(super) fn new(way: Way, length_bytes: u64, tally: &'a mut Tally, host: &'a mut H) -> Self {
        (tally.ring_bytes, tally.taken_bytes) = (0, 0);
        Sketch {
            way,
            tally,
            host,
            length_bytes,
            start_ns: 0,
            next: 0,
            waiting: VecDeque::new(),
        }
    }

    /// Logs until the power is cut. It can be cut between any two calls of the library.
    pub(super) fn run<S: Store>(
        &mut self,
        store: &mut S,
        clock: &mut impl Clock,
    ) -> Result<(), S::Error> {
        self.start_ns = clock.now_ns();
        let mut open = None;
        while let Some(row) = self.next_row(clock) {
            let begin_ns = clock.now_ns();
            let mut file = match open.take() {
                Some(file) => file,
                None => store.append(PATH)?,
            };
            if !self.passes(clock) {
                break;
            }
            store.write(&mut file, self.length_bytes, &row)?;
            if !self.passes(clock) {
                break;
            }
            match self.way {
                Way::OpenAndClose => store.close(file)?,
                Way::KeepOpen => open = Some(file),
            }
            if !self.passes(clock) {
                break;
            }
            self.done(row.len(), begin_ns, clock.now_ns());
        }
        Ok(())
    }

    /// Waits for a line. Returns `None` after a power cut.
    fn next_row(&mut self, clock: &mut impl Clock) -> Option<Vec<u8>> {
        loop {
            self.take_due(clock.now_ns());
            if let Some(row) = self.waiting.front() {
                return Some(row.clone());
            }
            let wait_ns = self.due_ns().saturating_sub(clock.now_ns());
            clock.pause_ns(wait_ns);
            if !self.passes(clock) {
                return None;
            }
        }
    }

    fn passes(&mut self, clock: &mut impl Clock) -> bool {
        let now_ns = clock.now_ns();
        self.take_due(now_ns);
        self.host.pass_until(now_ns)
    }

    /// Returns the time of the next sample.
    fn due_ns(&self) -> u64 {
        let due_ns = Magnetometer { session: None }.due_ns(self.next);
        self.start_ns.saturating_add(due_ns.unwrap_or(u64::MAX))
    }

    /// Takes the samples that are due: the ring holds them, or they are lost.
    fn take_due(&mut self, now_ns: u64) {
        while self.due_ns() <= now_ns {
            let mut row = [0; LINE_BYTES_MAX];
            let len = Magnetometer { session: None }.make(self.next, &mut row);
            self.next += 1;
            self.tally.samples += 1;
            self.tally.taken_bytes += len as u64;
            match self.tally.ring_bytes + len <= RING_BYTES {
                true => {
                    self.tally.ring_bytes += len;
                    self.waiting.push_back(row[..len].to_vec());
                }
                false => self.tally.lost += 1,
            }
            self.tally.ring_bytes_max = self.tally.ring_bytes_max.max(self.tally.ring_bytes);
        }
    }

    /// Counts a line that has been written, and frees its space.
    fn done(&mut self, len: usize, begin_ns: u64, end_ns: u64) {
        self.waiting.pop_front();
        self.length_bytes += len as u64;
        self.tally.ring_bytes -= len;
        self.tally.written_bytes += len as u64;
        let us = u32::try_from((end_ns - begin_ns) / 1000).unwrap_or(u32::MAX);
        self.tally.line_us_max = self.tally.line_us_max.max(us);
        let oldest_ns = match self.way {
            Way::OpenAndClose => self.oldest_waiting_ns(end_ns),
            Way::KeepOpen => self.start_ns,
        };
        self.tally.running_ms = (end_ns - self.start_ns) / 1_000_000;
        self.tally.unsaved_ms = (end_ns - oldest_ns) / 1_000_000;
        self.host.line_done(self.tally, end_ns / 1_000_000, us);
    }

    /// Returns the approximate time of the oldest sample in the ring; lost samples are newer.
    fn oldest_waiting_ns(&self, now_ns: u64) -> u64 {
        let first = self.next.saturating_sub(self.waiting.len() as u64);
        let due_ns = Magnetometer { session: None }.due_ns(first);
        (self.start_ns + due_ns.unwrap_or(0)).min(now_ns)
    }
}
