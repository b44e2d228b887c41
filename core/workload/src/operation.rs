//! One timed operation, the row of every trace.

/// What an operation did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Bytes went to the medium.
    Write,
    /// Bytes came from the medium.
    Read,
}

/// One timed operation, from call to return.
///
/// What the time spans (the call alone, open to close, a whole file) is part of the workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// What was done.
    pub kind: OperationKind,
    /// Number of the file, counted through the workload from 0.
    pub file: u32,
    /// Where in the file the payload lies, in bytes.
    pub offset_bytes: u64,
    /// Payload, in bytes.
    pub length_bytes: u64,
    /// Clock reading before the operation, in ns.
    pub start_ns: u64,
    /// Clock reading after the operation, in ns; never before `start_ns`.
    pub end_ns: u64,
}

impl Operation {
    /// How long it took, in ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}
