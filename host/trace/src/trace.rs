//! A trace in memory.

use crate::run::{Run, Runs};
use crate::spans::{Durations, Spans};
use crate::spill::Spill;
use crate::stop::StopFlag;
use cardiograph_workload::Operation;
use std::path::Path;

/// Description of a run: target, workload, clock and notes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Measured target: `sim:CARD@BOARD`, a directory, or the file that the trace was read from.
    pub target: String,
    /// Name of the workload, or of the format that the trace was read from.
    pub workload: String,
    /// Resolution of the clock that timed the operations, in ns, if known.
    pub clock_resolution_ns: Option<u64>,
    /// Median latency of an operation that does nothing in ns, if known. It is part of every latency.
    pub clock_overhead_ns: Option<u64>,
    /// Remarks that readers of the figures need to know.
    pub notes: Vec<String>,
    /// Phases of the workload by ascending file number; empty if unknown.
    pub phases: Vec<PhaseLabel>,
}

/// A phase of the workload: the files from `first_file` up to the first file of the next phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhaseLabel {
    /// Number of the first file of the phase.
    pub first_file: u32,
    /// Description of the phase for reports.
    pub label: String,
}

/// Error: an operation starts before the previous one ended, or ends before it starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backward;

/// The timed operations of a run in chronological order: 8 bytes each, and 40 bytes per [`Run`]. With
/// [`Trace::spill_beside`], the 8 bytes are in a file.
///
/// Operations on files that are written one after another or round-robin form a few runs, and so do operations at random
/// offsets, which take 4 bytes more.
#[derive(Default)]
pub struct Trace {
    /// Description of the run.
    pub about: About,
    spans: Spans,
    runs: Runs,
}

impl Trace {
    /// Creates an empty trace.
    pub fn new(about: About) -> Trace {
        Trace {
            about,
            ..Trace::default()
        }
    }

    /// Moves times and offsets of the operations to temporary files as they arrive, so that memory does not grow with
    /// them. The files have no name, and are on the file system of `path`. If a file cannot be written, the rest stays in
    /// memory.
    ///
    /// # Errors
    /// If the files cannot be created; then everything stays in memory.
    pub fn spill_beside(&mut self, path: &Path) -> std::io::Result<()> {
        let spill = || Spill::beside(path);
        let (idle, duration, offsets) = (spill()?, spill()?, spill()?);
        self.spans.spill_to(idle, duration);
        self.runs.spill_to(offsets);
        Ok(())
    }

    /// Returns the first error when a temporary file was read: what was computed from the trace is then wrong.
    pub fn spill_error(&self) -> Option<&std::io::Error> {
        self.spans.spill_error().or(self.runs.spill_error())
    }

    /// Makes every pass over the operations unwind soon after the flag is raised (see [`StopFlag`]).
    pub fn stop_with(&mut self, stop: StopFlag) {
        self.spans.stop_with(stop);
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// [`Backward`] if the operation starts before the previous one ended, or ends before it starts; the
    /// trace is then unchanged.
    #[inline]
    pub fn push(&mut self, operation: &Operation) -> Result<(), Backward> {
        self.spans
            .push(operation.start_ns, operation.end_ns)
            .ok_or(Backward)?;
        self.runs.push(operation);
        Ok(())
    }

    /// Appends sequential operations of a single file, up to the first operation that starts before the
    /// previous one ended.
    ///
    /// Returns the number of operations appended; `first` gives the position of the first operation.
    pub(crate) fn push_run(
        &mut self,
        first: &Operation,
        starts_and_ends_ns: impl Iterator<Item = (u64, u64)>,
    ) -> u64 {
        let mut count = 0;
        for (start_ns, end_ns) in starts_and_ends_ns {
            if self.spans.push(start_ns, end_ns).is_none() {
                break;
            }
            count += 1;
        }
        self.runs.push_sequence(first, count);
        count
    }

    /// Number of operations.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Returns true if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Start of the first operation in ns; 0 if there is none.
    pub fn first_start_ns(&self) -> u64 {
        self.spans.first_start_ns()
    }

    /// End of the last operation in ns; 0 if there is none.
    pub fn last_end_ns(&self) -> u64 {
        self.spans.last_end_ns()
    }

    /// Calls `take` with the runs in chronological order, each with the durations of its operations in ns;
    /// a long run is split over several calls. `take` must exhaust every iterator.
    ///
    /// Many times faster than [`Trace::operations`].
    pub fn replay(&self, mut take: impl FnMut(&Run, Durations)) {
        let runs = self.runs.as_slice().iter().map(|run| (run, run.count));
        self.spans
            .replay(runs, |run, durations_ns| take(run, durations_ns));
    }

    /// The runs of operations, in chronological order.
    pub fn runs(&self) -> &[Run] {
        self.runs.as_slice()
    }

    /// The offsets of the operations of all scattered runs, in chronological order, in units of the run's length.
    pub fn scattered_offsets(&self) -> impl Iterator<Item = u32> + Clone + '_ {
        self.runs.scattered()
    }

    /// Calls `take` with the start and end of every operation in ns, in chronological order. With
    /// [`runs`](Self::runs), several times as fast as [`operations`](Self::operations).
    pub fn times(&self, take: impl FnMut(u64, u64)) {
        self.spans.each_start_and_end_ns(take);
    }

    /// All operations in chronological order.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + Clone + '_ {
        let times_ns = self.spans.starts_and_ends_ns();
        times_ns
            .zip(self.runs.operations())
            .map(|((start_ns, end_ns), operation)| Operation {
                start_ns,
                end_ns,
                ..operation
            })
    }
}
