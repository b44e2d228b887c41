//! Traces: the timed operations of one run, in memory and on disk.

mod spans;
mod trace;

pub use cardiograph_workload::{Operation, OperationKind};
pub use trace::{About, Backward, Run, Trace};
