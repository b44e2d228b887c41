//! Cardiograph CSV.

use crate::read::COLUMNS;
use crate::trace::Trace;
use cardiograph_workload::OperationKind;
use std::io::{self, Write};

pub(super) fn write(trace: &Trace, mut out: impl Write) -> io::Result<()> {
    writeln!(out, "{}", COLUMNS.join(","))?;
    for operation in trace.operations() {
        let kind = match operation.kind {
            OperationKind::Write => "write",
            OperationKind::Read => "read",
        };
        writeln!(
            out,
            "{kind},{},{},{},{},{}",
            operation.file,
            operation.offset_bytes,
            operation.length_bytes,
            operation.start_ns,
            operation.end_ns
        )?;
    }
    out.flush()
}
