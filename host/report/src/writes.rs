//! The operations of a trace that its figures are about.

use cardiograph_timing::{Pass, Replay};
use cardiograph_trace::{OperationKind, Trace};

/// The writes of a trace; its reads where it has no writes.
pub struct Writes<'a> {
    trace: &'a Trace,
    /// Which of the two they are.
    pub kind: OperationKind,
}

impl<'a> Writes<'a> {
    /// Those of this trace.
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
        Writes { trace, kind }
    }

    /// Payload of every write, if all are alike.
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
    fn replay_alike(&self, pass: &mut impl Pass) {
        self.trace.replay(|run, durations_ns| {
            if run.kind == self.kind {
                pass.take_alike(run.length_bytes, durations_ns);
            } else {
                durations_ns.for_each(drop);
            }
        });
    }
}
