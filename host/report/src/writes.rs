//! Selection of the operations that the figures describe.

use cardiograph_timing::{Pass, Replay};
use cardiograph_trace::{OperationKind, Trace};

/// The writes of a trace, or its reads if it has no writes.
pub struct Writes<'a> {
    trace: &'a Trace,
    /// Kind of the selected operations.
    pub kind: OperationKind,
    /// The only file whose operations are selected.
    file: Option<u32>,
}

impl<'a> Writes<'a> {
    /// Selects the operations of a trace.
    pub fn of(trace: &'a Trace) -> Writes<'a> {
        let has_writes = trace
            .runs()
            .iter()
            .any(|run| run.kind == OperationKind::Write);
        let kind = if has_writes {
            OperationKind::Write
        } else {
            OperationKind::Read
        };
        Writes {
            trace,
            kind,
            file: None,
        }
    }

    /// Selects the operations on one file: those of one run of a recording.
    pub fn of_file(trace: &'a Trace, file: u32) -> Writes<'a> {
        Writes {
            file: Some(file),
            ..Writes::of(trace)
        }
    }

    /// Payload per operation, if it is the same for all operations.
    pub fn uniform_bytes(&self) -> Option<u64> {
        let mut lengths = self
            .trace
            .runs()
            .iter()
            .filter(|run| run.kind == self.kind)
            .map(|run| run.length_bytes);
        let first = lengths.next()?;
        lengths.all(|length| length == first).then_some(first)
    }
}

impl Replay for Writes<'_> {
    fn replay_run(&self, pass: &mut impl Pass) {
        self.trace.replay(|run, durations_ns| match self.file {
            _ if run.kind != self.kind => durations_ns.for_each(drop),
            None => pass.take_run(run.length_bytes, durations_ns),
            Some(file) => {
                let of_file = (0..)
                    .zip(durations_ns)
                    .filter(|(index, _)| run.file_of(*index) == file);
                pass.take_run(run.length_bytes, of_file.map(|(_, ns)| ns));
            }
        });
    }
}
