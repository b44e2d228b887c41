//! Carries a recording out.
//!
//! ```text
//!   naive          wait for a line ─> open ─> write ─> close ─┐
//!                     ^───────────────────────────────────────┘
//!   keep-open      open ─> wait for a line ─> write ─┐ ... close
//!                             ^──────────────────────┘
//!   after-recipe   wait for the recipe's end ─> open ─> write its lines ─> close ─┐
//!                     ^──────────────────────────────────────────────────────────┘
//! ```
//!
//! The clock starts before the first call, with the first line. A library call blocks; lines arrive in the
//! meantime as if by interrupt.

use crate::ring::Ring;
use crate::verify::{self, Line};
use crate::{Cause, GAPS_MAX, Gap, Policy, RecordError, Recording};
use cardiograph_workload::{Activity, Clock, Observer, Operation, OperationKind, Store};
use std::ops::ControlFlow;

/// What came of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Lines that arrived.
    pub pushed: u64,
    /// Lines that are in the file: `pushed` - `lost`.
    pub written: u64,
    /// Lines that found no room.
    pub lost: u64,
    /// The first [`GAPS_MAX`] gaps.
    pub gaps: Vec<Gap>,
    /// All of them.
    pub gap_count: u64,
    /// The most bytes that ever waited in RAM, the line being written included.
    pub ring_peak_bytes: u64,
    /// Longest time that the writer was held by one line, in ns: open, write and close with
    /// [`Policy::Naive`], the write alone with the others.
    pub longest_write_ns: u64,
    /// Time in library calls, in ns.
    pub card_ns: u64,
    /// From the first line's arrival to the return of the last close, in ns.
    pub duration_ns: u64,
    /// The greatest age that data reached which a power cut would have taken, in us, rounded down.
    ///
    /// A line is safe when a close after its write has returned: only then does the directory entry count it.
    /// Its age is the time since it arrived. Lines that were lost count no more. Where the store keeps data
    /// in the computer even after a close, nothing is safe, and this is `duration_ns`.
    pub at_risk_max_us: u64,
    /// The observer stopped it. No line arrived from then on, and those waiting were written.
    pub stopped: bool,
    /// Bytes read back and found to be what was written; 0 after a stop.
    pub verified_bytes: u64,
}

/// Carries `recording` out to a file that is not there yet, and reads it back.
///
/// `line` makes a line, all but its CR LF, from its number; the same each time. `is_safe_when_closed` is
/// whether the store brings all of a file to the medium when it is closed. Each line is an operation to the
/// observer.
///
/// # Errors
/// [`RecordError`]; the file is left as it is.
pub fn record<S: Store>(
    recording: &Recording,
    path: &str,
    is_safe_when_closed: bool,
    store: &mut S,
    clock: &mut impl Clock,
    observer: &mut impl Observer,
    line: impl FnMut(u64, &mut [u8]),
) -> Result<Recorded, RecordError<S::Error>> {
    recording.check().map_err(RecordError::Invalid)?;
    let mut run = Run {
        recording,
        path,
        is_safe_when_closed,
        start_ns: clock.now_ns(),
        store,
        clock,
        observer,
        line: Line::new(recording.line_bytes, line),
        ring: Ring::new(*recording),
        stopped: false,
        is_made: false,
        written: 0,
        longest_write_ns: 0,
        card_ns: 0,
        oldest_at_risk_ns: None,
        at_risk_max_ns: 0,
    };
    match recording.policy {
        Policy::Naive => run.naive()?,
        Policy::KeepOpen => run.keep_open()?,
        Policy::AfterRecipe { recipe_ns } => run.after_recipe(recipe_ns)?,
    }
    run.finish()
}

type Step<S, T = ()> = Result<T, RecordError<<S as Store>::Error>>;

struct Run<'a, S: Store, C, O, L> {
    recording: &'a Recording,
    path: &'a str,
    is_safe_when_closed: bool,
    /// When the first line arrives, by the store's clock.
    start_ns: u64,
    store: &'a mut S,
    clock: &'a mut C,
    observer: &'a mut O,
    line: Line<L>,
    ring: Ring,
    stopped: bool,
    /// The file is there.
    is_made: bool,
    written: u64,
    longest_write_ns: u64,
    card_ns: u64,
    /// Arrival of the oldest line that is written and not safe.
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

    fn after_recipe(&mut self, recipe_ns: u64) -> Step<S> {
        while let Some(first_ns) = self.first_waiting_ns() {
            let recipe_end_ns = (first_ns / recipe_ns + 1).saturating_mul(recipe_ns);
            self.wait_for_end(recipe_end_ns);
            let lines = Recording::lines_before(self.recording.rate_hz, recipe_end_ns);
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

    /// When the line arrived, or will, that is the next to be written.
    fn first_waiting_ns(&self) -> Option<u64> {
        let oldest = self.ring.oldest();
        let arrived_ns = oldest.map(|line| self.recording.arrival_ns(line));
        arrived_ns.or_else(|| self.ring.next_arrival_ns())
    }

    /// Time since the first line, in ns.
    fn now_ns(&mut self) -> u64 {
        self.clock.now_ns() - self.start_ns
    }

    /// The line to write next, once it is there. `None` when there are no more.
    fn wait_for_line(&mut self) -> Option<u64> {
        loop {
            // A line that arrives at this moment is there.
            let now_ns = self.now_ns();
            self.ring.arrive_before(now_ns + 1, Cause::Write);
            if let Some(line) = self.ring.oldest() {
                return Some(line);
            }
            let next_ns = self.ring.next_arrival_ns()?;
            self.pause_until(next_ns);
        }
    }

    /// Waits until the recipe is over, or the recording.
    fn wait_for_end(&mut self, recipe_end_ns: u64) {
        while let Some(next_ns) = self.ring.next_arrival_ns() {
            let now_ns = self.now_ns();
            self.ring
                .arrive_before(recipe_end_ns.min(now_ns + 1), Cause::Recipe);
            if now_ns >= recipe_end_ns {
                return;
            }
            self.pause_until(next_ns.min(recipe_end_ns));
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

    /// A library call: lines arrive while it lasts.
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
        result.map_err(|source| RecordError::Store { doing, source })
    }

    fn open(&mut self) -> Step<S, S::File> {
        let path = self.path;
        if self.is_made {
            return self.call("opening", |store, _| store.append(path));
        }
        // What is there already is not to be written over.
        let file = self.call("creating", |store, _| store.create(path))?;
        self.is_made = true;
        Ok(file)
    }

    fn write(&mut self, file: &mut S::File, line: u64) -> Step<S> {
        let at = self.written * u64::from(self.recording.line_bytes);
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

    /// A line is written, and its room free.
    fn done(&mut self, start_ns: u64) {
        let end_ns = self.now_ns();
        self.ring.release();
        self.longest_write_ns = self.longest_write_ns.max(end_ns - start_ns);
        let length_bytes = u64::from(self.recording.line_bytes);
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

    fn finish(mut self) -> Step<S, Recorded> {
        let duration_ns = self.now_ns();
        let (pushed, gaps) = (self.ring.pushed(), self.ring.gaps());
        let verified_bytes = match self.is_made && !self.stopped {
            true => verify::compare(self.store, self.path, pushed, gaps, &mut self.line)?,
            false => 0,
        };
        Ok(Recorded {
            pushed,
            written: self.written,
            lost: gaps.iter().map(|gap| gap.count).sum(),
            gaps: gaps[..gaps.len().min(GAPS_MAX)].to_vec(),
            gap_count: gaps.len() as u64,
            ring_peak_bytes: self.ring.peak_bytes(),
            longest_write_ns: self.longest_write_ns,
            card_ns: self.card_ns,
            duration_ns,
            at_risk_max_us: self.at_risk_max_ns / 1000,
            stopped: self.stopped,
            verified_bytes,
        })
    }
}
