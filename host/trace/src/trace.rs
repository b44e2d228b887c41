//! A trace in memory.

use crate::spans::{Durations, Spans};
use cardiograph_workload::{Operation, OperationKind};

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
}

/// Operations in a row that differ only in their place in the file, which advances by the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// What was done.
    pub kind: OperationKind,
    /// Number of the file.
    pub file: u32,
    /// Where the first operation's payload lies, in bytes.
    pub offset_bytes: u64,
    /// Payload of each operation, in bytes.
    pub length_bytes: u64,
    /// Number of operations.
    pub count: u64,
}

/// An operation that starts before the one before it ended, or ends before it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backward;

/// The timed operations of one run, in order of time: 8 bytes each, and 40 bytes for each [`Run`].
#[derive(Default)]
pub struct Trace {
    /// What was run, on what.
    pub about: About,
    spans: Spans,
    runs: Vec<Run>,
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
        match self.runs.last_mut() {
            Some(run) if run.continues_with(operation) => run.count += 1,
            _ => self.runs.push(Run::of(operation)),
        }
        Ok(())
    }

    /// Appends operations that form a run, up to the first that lies before those already there.
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
        match self.runs.last_mut() {
            _ if count == 0 => {}
            Some(run) if run.continues_with(first) => run.count += count,
            _ => self.runs.push(Run {
                count,
                ..Run::of(first)
            }),
        }
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
        let runs = self.runs.iter().map(|run| (run, run.count));
        self.spans
            .replay(runs, |run, durations_ns| take(run, durations_ns));
    }

    /// The runs that the operations form, in order of time.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Every operation, in order of time.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + Clone + '_ {
        let places = self.runs.iter().flat_map(|run| {
            (0..run.count).map(move |i| {
                let offset_bytes = run
                    .offset_bytes
                    .wrapping_add(i.wrapping_mul(run.length_bytes));
                (run, offset_bytes)
            })
        });
        self.spans.starts_and_ends_ns().zip(places).map(
            |((start_ns, end_ns), (run, offset_bytes))| Operation {
                kind: run.kind,
                file: run.file,
                offset_bytes,
                length_bytes: run.length_bytes,
                start_ns,
                end_ns,
            },
        )
    }
}

impl Run {
    fn of(operation: &Operation) -> Run {
        Run {
            kind: operation.kind,
            file: operation.file,
            offset_bytes: operation.offset_bytes,
            length_bytes: operation.length_bytes,
            count: 1,
        }
    }

    #[inline]
    fn continues_with(&self, operation: &Operation) -> bool {
        self.kind == operation.kind
            && self.file == operation.file
            && self.length_bytes == operation.length_bytes
            // Wrapping here and in `operations` cancels out, so that no place can panic.
            && operation.offset_bytes
                == self
                    .offset_bytes
                    .wrapping_add(self.count.wrapping_mul(self.length_bytes))
    }
}
