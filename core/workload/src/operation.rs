//! A timed operation, which becomes one row of a trace.

/// Direction of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Writes to the storage device.
    Write,
    /// Reads from the storage device.
    Read,
}

/// A timed operation, from call to return.
///
/// The workload's [`Span`](crate::Span) states what the time covers: the call alone, open to close, or a
/// whole file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Write or read.
    pub kind: OperationKind,
    /// Number of the file, counted from 0 over the whole workload.
    pub file: u32,
    /// Offset of the payload in the file, in bytes.
    pub offset_bytes: u64,
    /// Length of the payload, in bytes.
    pub length_bytes: u64,
    /// Clock reading before the operation, in ns.
    pub start_ns: u64,
    /// Clock reading after the operation, in ns; never before `start_ns`.
    pub end_ns: u64,
}

impl Operation {
    /// Returns the latency of the operation, in ns.
    pub fn duration_ns(&self) -> u64 {
        self.end_ns - self.start_ns
    }
}
