//! The `times-N.csv` of study 5: one latency in milliseconds per line and nothing else.

use super::error::{Fault, Problem};
use super::lines::Lines;
use super::number::{Bad, Field};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

/// Power of ten for conversion to ns: a millisecond is 10^6 ns.
const POWER: i32 = 6;

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    about: About,
    block_bytes: u64,
) -> Result<Trace, Fault> {
    let mut trace = Trace::new(about);
    let mut offset_bytes = 0_u64;
    while let Some(line) = lines.next_row()? {
        let fields = line.text.split(|&byte| byte == b',').count();
        if fields != 1 {
            return Err(line.wrong_fields(1, fields));
        }
        let field = Field {
            column: "the latency",
            text: line.text,
            line: &line,
        };
        let start_ns = trace.last_end_ns();
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes,
            length_bytes: block_bytes,
            start_ns,
            end_ns: start_ns
                .checked_add(field.decimal(POWER)?)
                .filter(|&end_ns| end_ns <= super::number::NUMBER_MAX)
                .ok_or_else(|| field.fault(Bad::TooLarge))?,
        };
        trace
            .push(&operation)
            .map_err(|_| Problem::TotalTooLarge.at_line(line.number))?;
        offset_bytes = offset_bytes.wrapping_add(block_bytes);
    }
    Ok(trace)
}
