//! Operations of a block device, in the order of their completion: biosnoop, blkparse.

use super::error::{Fault, Problem};
use super::lines::Line;
use super::number::NUMBER_MAX;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};

/// One completed operation.
pub(super) struct Completed {
    pub kind: OperationKind,
    pub offset_bytes: u64,
    pub length_bytes: u64,
    pub latency_ns: u64,
    pub end_ns: u64,
}

/// A trace of a single device.
pub(super) struct Device {
    pub trace: Trace,
    name: Option<String>,
    reads: u64,
    moved: u64,
}

impl Device {
    pub(super) fn new(about: About) -> Device {
        Device {
            trace: Trace::new(about),
            name: None,
            reads: 0,
            moved: 0,
        }
    }

    /// Refuses a second device, because operations of different devices overlap.
    pub(super) fn check(&mut self, name: &str, line: &Line<'_>) -> Result<(), Fault> {
        let first = self.name.get_or_insert_with(|| name.to_owned());
        if first == name {
            return Ok(());
        }
        let names = format!("{first} and {name}");
        let first = first.clone();
        Err(Problem::SeveralDevices { names, first }.at_line(line.number))
    }

    /// Appends an operation. If it overlaps the previous one, it is placed directly after that one.
    pub(super) fn push(&mut self, completed: &Completed, line: &Line<'_>) -> Result<(), Fault> {
        let earliest_ns = completed.end_ns.saturating_sub(completed.latency_ns);
        let start_ns = earliest_ns.max(self.trace.last_end_ns());
        self.moved += u64::from(start_ns > earliest_ns);
        self.reads += u64::from(completed.kind == OperationKind::Read);
        let end_ns = start_ns.saturating_add(completed.latency_ns);
        let operation = Operation {
            kind: completed.kind,
            file: 0,
            offset_bytes: completed.offset_bytes,
            length_bytes: completed.length_bytes,
            start_ns,
            end_ns,
        };
        if end_ns > NUMBER_MAX || self.trace.push(&operation).is_err() {
            return Err(Problem::TotalTooLarge.at_line(line.number));
        }
        Ok(())
    }

    /// Returns the trace, with notes.
    pub(super) fn finish(self) -> Trace {
        let mut trace = self.trace;
        let writes = trace.len() as u64 - self.reads;
        if self.reads > 0 && writes > 0 {
            trace.about.notes.push(super::left_out(self.reads));
        }
        if self.moved > 0 {
            trace.about.notes.push(format!(
                "{} operations overlapped the previous one; each is placed after it, with its own latency.",
                self.moved
            ));
        }
        trace
    }
}
