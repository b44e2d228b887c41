//! A trace in memory.

use crate::run::{Run, Runs};
use crate::spans::{Durations, Spans};
use cardiograph_workload::Operation;

/// What was run, on what, and how well the clock could see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// The medium: `sim:CARD@BOARD`, a directory, or the file a trace was read from.
    pub target: String,
    /// Name of the workload, or of the format a trace was read from.
    pub workload: String,
    /// Smallest step of the clock in ns, where known.
    pub clock_resolution_ns: Option<u64>,
    /// Time that two clock readings in a row lie apart in ns, where known: part of every write time.
    pub clock_overhead_ns: Option<u64>,
    /// Sentences a reader of the figures must know.
    pub notes: Vec<String>,
    /// Parts of the workload, their files going up; empty if they are not known.
    pub parts: Vec<Part>,
}

/// A part of the workload: the files from `first_file` up to the next part's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Number of its first file.
    pub first_file: u32,
    /// What it is called.
    pub label: String,
}

/// An operation that starts before the one before it ended, or ends before it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backward;

/// The timed operations of one run, in order of time: 8 bytes each, and 40 bytes for each [`Run`].
///
/// One file after another and files in turn are a few runs. At random places every operation is a
/// run of its own, and takes 48 bytes.
#[derive(Default)]
pub struct Trace {
    /// What was run, on what.
    pub about: About,
    spans: Spans,
    runs: Runs,
}

impl Trace {
    /// An empty trace.
    pub fn new(about: About) -> Trace {
        Trace {
            about,
            ..Trace::default()
        }
    }

    /// Appends an operation.
    ///
    /// # Errors
    /// [`Backward`] if its times lie before those already there; the trace is unchanged.
    #[inline]
    pub fn push(&mut self, operation: &Operation) -> Result<(), Backward> {
        self.spans
            .push(operation.start_ns, operation.end_ns)
            .ok_or(Backward)?;
        self.runs.push(operation);
        Ok(())
    }

    /// Appends operations that go on through a single file, up to the first that lies before those
    /// already there.
    ///
    /// Returns how many were appended; `first` is where the first of them would lie.
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

    /// Whether there is no operation.
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

    /// Calls `take` with the runs in order of time, each with the durations of its operations in ns;
    /// a long run comes in parts. Every iterator is to be used up.
    ///
    /// Many times as quick as [`Trace::operations`].
    pub fn replay(&self, mut take: impl FnMut(&Run, Durations)) {
        let runs = self.runs.as_slice().iter().map(|run| (run, run.count));
        self.spans
            .replay(runs, |run, durations_ns| take(run, durations_ns));
    }

    /// The runs that the operations form, in order of time.
    pub fn runs(&self) -> &[Run] {
        self.runs.as_slice()
    }

    /// Every operation, in order of time.
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
