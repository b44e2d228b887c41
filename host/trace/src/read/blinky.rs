//! One latency per line and nothing else, such as the `times-N.csv` of study 5, in ms.

use super::ReadOptions;
use super::error::{Fault, Problem};
use super::guess::{self, Numbers};
use super::lines::Lines;
use super::number::{Bad, Field};
use super::recording::{SAMPLE_ROWS, is_note, rows_in};
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    let block_bytes = options.block_bytes;
    let unit = match options.time_unit {
        Some(unit) => unit,
        None => {
            let mut numbers = Numbers::default();
            rows_in(lines.in_memory())
                .take(SAMPLE_ROWS)
                .for_each(|row| numbers.push(row));
            let guess = guess::of_latencies("the latencies", &numbers)?;
            about.notes.push(guess.reason);
            guess.unit
        }
    };
    let mut trace = Trace::new(about);
    let mut offset_bytes = 0_u64;
    while let Some(line) = lines.next_row_but(is_note)? {
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
                .checked_add(field.decimal(unit.power)?)
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
