//! Runs a recording by a policy of the studies.
//!
//! ```text
//!   naive          wait for a sample ─> open ─> write ─> close ─┐
//!                     ^─────────────────────────────────────────┘
//!   keep-open      open ─> wait for a sample ─> write ─┐ ... close
//!                             ^────────────────────────┘
//!   after-session  wait for the end of the session ─> open ─> write its samples ─> close ─┐
//!                     ^───────────────────────────────────────────────────────────────────┘
//! ```
//!
//! The clock starts before the first call, with the first sample. Library calls block; samples arrive
//! meanwhile, as if by interrupt.

use crate::ring::Ring;
use crate::verify::{self, Line};
use crate::{Cause, GAPS_MAX, Gap, LoggerConfig, LoggerError, Policy};
use cardiograph_workload::{Activity, Clock, Observer, Operation, OperationKind, Store};
use std::ops::ControlFlow;

/// Result of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggerResult {
    /// Samples that arrived, including lost ones.
    pub pushed: u64,
    /// Samples in the file: `pushed` - `lost`.
    pub written: u64,
    /// Samples that did not fit in the buffer.
    pub lost: u64,
    /// Gaps in order of time; at most the first [`GAPS_MAX`].
    pub gaps: Vec<Gap>,
    /// Number of all gaps.
    pub gaps_total: u64,
    /// Highest fill level of the buffer in bytes, including the sample being written.
    pub buffer_peak_bytes: u64,
    /// Worst-case latency of one sample in ns: open, write and close with [`Policy::Naive`], and only the
    /// write with the other policies.
    pub worst_case_write_ns: u64,
    /// Total time in library calls, in ns.
    pub card_ns: u64,
    /// Time from the arrival of the first sample to the return of the last close, in ns.
    pub duration_ns: u64,
    /// Maximum age of data that a power cut would have lost, in us, rounded down.
    ///
    /// A sample is durable when a close after its write has returned, because only then does the directory
    /// entry include it. Its age is the time since its arrival. Samples lost from the buffer do not count.
    /// If the store caches data even after a close, nothing is durable, and the maximum age is
    /// `duration_ns`.
    pub at_risk_max_us: u64,
    /// True if the observer stopped the recording. No sample arrived after the stop; samples in the buffer
    /// were still written.
    pub stopped: bool,
    /// Bytes read back and found identical to those written; 0 after a stop.
    pub verified_bytes: u64,
}

/// Runs `recording` to a new file and verifies the file.
///
/// `line` fills a sample, except for its CR LF, from its index, always with the same bytes.
/// `is_safe_when_closed` is true if closing a file makes all of its data durable. The observer receives one
/// operation per sample.
///
/// # Errors
/// [`LoggerError`]; the data written before the error stays in the file.
pub fn run_logger<S: Store>(
    recording: &LoggerConfig,
    path: &str,
    is_safe_when_closed: bool,
    store: &mut S,
    clock: &mut impl Clock,
    observer: &mut impl Observer,
    line: impl FnMut(u64, &mut [u8]),
) -> Result<LoggerResult, LoggerError<S::Error>> {
    recording.check().map_err(LoggerError::Invalid)?;
    let mut run = Run {
        recording,
        path,
        is_safe_when_closed,
        start_ns: clock.now_ns(),
        store,
        clock,
        observer,
        line: Line::new(recording.sample_bytes, line),
        ring: Ring::new(*recording),
        stopped: false,
        is_made: false,
        written: 0,
        worst_case_write_ns: 0,
        card_ns: 0,
        oldest_at_risk_ns: None,
        at_risk_max_ns: 0,
    };
    match recording.policy {
        Policy::Naive => run.naive()?,
        Policy::KeepOpen => run.keep_open()?,
        Policy::AfterSession { session_ns } => run.after_session(session_ns)?,
    }
    run.finish()
}

type Step<S, T = ()> = Result<T, LoggerError<<S as Store>::Error>>;

struct Run<'a, S: Store, C, O, L> {
    recording: &'a LoggerConfig,
    path: &'a str,
    is_safe_when_closed: bool,
    /// Arrival of the first sample, by the store's clock.
    start_ns: u64,
    store: &'a mut S,
    clock: &'a mut C,
    observer: &'a mut O,
    line: Line<L>,
    ring: Ring,
    stopped: bool,
    /// True once the file has been created.
    is_made: bool,
    written: u64,
    worst_case_write_ns: u64,
    card_ns: u64,
    /// Arrival of the oldest sample that is written but not yet durable.
    oldest_at_risk_ns: Option<u64>,
    at_risk_max_ns: u64,
}

impl<S: Store, C: Clock, O: Observer, L: FnMut(u64, &mut [u8])> Run<'_, S, C, O, L> {
    fn naive(&mut self) -> Step<S> {
        while let Some(line) = self.wait_for_line() {
            let start_ns = self.now_ns();
            let mut file = self.open()?;
            self.write(&mut file, line)?;
            self.close(file)?;
            self.done(start_ns);
        }
        Ok(())
    }

    fn keep_open(&mut self) -> Step<S> {
        let mut file = self.open()?;
        while let Some(line) = self.wait_for_line() {
            let start_ns = self.now_ns();
            self.write(&mut file, line)?;
            self.done(start_ns);
        }
        self.close(file)
    }

    fn after_session(&mut self, session_ns: u64) -> Step<S> {
        while let Some(first_ns) = self.first_waiting_ns() {
            let session_end_ns = (first_ns / session_ns + 1).saturating_mul(session_ns);
            self.wait_for_end(session_end_ns);
            let lines = LoggerConfig::samples_before(self.recording.rate_hz, session_end_ns);
            if self.ring.oldest().is_none() {
                break;
            }
            let mut file = self.open()?;
            while let Some(line) = self.ring.oldest().filter(|&line| line < lines) {
                let start_ns = self.now_ns();
                self.write(&mut file, line)?;
                self.done(start_ns);
            }
            self.close(file)?;
        }
        Ok(())
    }

    /// Returns the arrival time, past or future, of the next sample to write.
    fn first_waiting_ns(&self) -> Option<u64> {
        let oldest = self.ring.oldest();
        let arrived_ns = oldest.map(|line| self.recording.arrival_ns(line));
        arrived_ns.or_else(|| self.ring.next_arrival_ns())
    }

    /// Returns the time since the first sample, in ns.
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns() - self.start_ns
    }

    /// Waits for the next sample to write. Returns `None` after the last one.
    fn wait_for_line(&mut self) -> Option<u64> {
        loop {
            // A sample that arrives at this very moment counts as arrived.
            let now_ns = self.now_ns();
            self.ring.arrive_before(now_ns + 1, Cause::Write);
            if let Some(line) = self.ring.oldest() {
                return Some(line);
            }
            let next_ns = self.ring.next_arrival_ns()?;
            self.pause_until(next_ns);
        }
    }

    /// Waits until the session or the recording ends.
    fn wait_for_end(&mut self, session_end_ns: u64) {
        while let Some(next_ns) = self.ring.next_arrival_ns() {
            let now_ns = self.now_ns();
            self.ring
                .arrive_before(session_end_ns.min(now_ns + 1), Cause::Session);
            if now_ns >= session_end_ns {
                return;
            }
            self.pause_until(next_ns.min(session_end_ns));
        }
    }

    fn pause_until(&mut self, ns: u64) {
        let now_ns = self.now_ns();
        self.clock.pause_ns(ns.saturating_sub(now_ns));
        let now_ns = self.clock.now_ns();
        let observed = self.observer.poll(Activity::Measuring, now_ns);
        self.stop_if(observed);
    }

    fn stop_if(&mut self, observed: ControlFlow<()>) {
        if observed.is_break() {
            self.stopped = true;
            self.ring.stop();
        }
    }

    /// Makes a library call, during which samples arrive.
    fn call<T>(
        &mut self,
        doing: &'static str,
        act: impl FnOnce(&mut S, &mut Line<L>) -> Result<T, S::Error>,
    ) -> Step<S, T> {
        let start_ns = self.now_ns();
        let result = act(self.store, &mut self.line);
        let end_ns = self.now_ns();
        self.card_ns += end_ns - start_ns;
        self.ring.arrive_before(end_ns, Cause::Write);
        result.map_err(|source| LoggerError::Store { doing, source })
    }

    fn open(&mut self) -> Step<S, S::File> {
        let path = self.path;
        if self.is_made {
            return self.call("opening", |store, _| store.append(path));
        }
        // Creating fails if the file exists, so an existing file is never overwritten.
        let file = self.call("creating", |store, _| store.create(path))?;
        self.is_made = true;
        Ok(file)
    }

    fn write(&mut self, file: &mut S::File, line: u64) -> Step<S> {
        let at = self.written * u64::from(self.recording.sample_bytes);
        let arrival_ns = self.recording.arrival_ns(line);
        self.oldest_at_risk_ns.get_or_insert(arrival_ns);
        self.call("writing to", |store, made| {
            store.write(file, at, made.of(line))
        })
    }

    fn close(&mut self, file: S::File) -> Step<S> {
        self.call("closing", |store, _| store.close(file))?;
        let now_ns = self.now_ns();
        if let Some(arrival_ns) = self.oldest_at_risk_ns {
            self.at_risk_max_ns = self.at_risk_max_ns.max(now_ns - arrival_ns);
        }
        if self.is_safe_when_closed {
            self.oldest_at_risk_ns = None;
        }
        Ok(())
    }

    /// Frees the buffer space of a written sample and reports the operation.
    fn done(&mut self, start_ns: u64) {
        let end_ns = self.now_ns();
        self.ring.release();
        self.worst_case_write_ns = self.worst_case_write_ns.max(end_ns - start_ns);
        let length_bytes = u64::from(self.recording.sample_bytes);
        let observed = self.observer.observe(&Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: self.written * length_bytes,
            length_bytes,
            start_ns: self.start_ns + start_ns,
            end_ns: self.start_ns + end_ns,
        });
        self.written += 1;
        self.stop_if(observed);
    }

    fn finish(mut self) -> Step<S, LoggerResult> {
        let duration_ns = self.now_ns();
        let (pushed, gaps) = (self.ring.pushed(), self.ring.gaps());
        let verified_bytes = match self.is_made && !self.stopped {
            true => verify::compare(self.store, self.path, pushed, gaps, &mut self.line)?,
            false => 0,
        };
        Ok(LoggerResult {
            pushed,
            written: self.written,
            lost: gaps.iter().map(|gap| gap.count).sum(),
            gaps: gaps[..gaps.len().min(GAPS_MAX)].to_vec(),
            gaps_total: gaps.len() as u64,
            buffer_peak_bytes: self.ring.peak_bytes(),
            worst_case_write_ns: self.worst_case_write_ns,
            card_ns: self.card_ns,
            duration_ns,
            at_risk_max_us: self.at_risk_max_ns / 1000,
            stopped: self.stopped,
            verified_bytes,
        })
    }
}
