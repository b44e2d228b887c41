//! Reader of Cardiograph CSV, described in docs/formats.md.

use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::Field;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

pub(crate) const COLUMNS: &[&str] = &[
    "operation",
    "file",
    "offset",
    "length",
    "start_ns",
    "end_ns",
];

pub(super) fn read<R: Read>(lines: &mut Lines<R>, about: About) -> Result<Trace, Fault> {
    lines.next_row()?;
    let mut trace = Trace::new(about);
    while let Some(line) = lines.next_row()? {
        if line.is_cut(b',', COLUMNS.len()) {
            trace.about.notes.push(line.cut_note());
            break;
        }
        let operation = operation(&line)?;
        if operation.end_ns < operation.start_ns {
            return Err(Problem::EndBeforeStart {
                start: operation.start_ns.to_string(),
                end: operation.end_ns.to_string(),
            }
            .at_line(line.number));
        }
        trace.push(&operation).map_err(|_| {
            Problem::Backward {
                time: operation.start_ns.to_string(),
                before: trace.last_end_ns().to_string(),
            }
            .at_line(line.number)
        })?;
    }
    Ok(trace)
}

fn operation(line: &Line<'_>) -> Result<Operation, Fault> {
    let mut texts = [&[][..]; 6];
    let mut found = 0;
    for text in line.text.split(|&byte| byte == b',') {
        if let Some(slot) = texts.get_mut(found) {
            *slot = text;
        }
        found += 1;
    }
    if found != texts.len() {
        return Err(line.wrong_fields(texts.len(), found));
    }
    let field = |index: usize| Field {
        column: COLUMNS[index],
        text: texts[index],
        line,
    };
    let kind = match texts[0].trim_ascii() {
        b"write" => OperationKind::Write,
        b"read" => OperationKind::Read,
        other => {
            let text = shown(other);
            return Err(Problem::Operation { text }.at_line(line.number));
        }
    };
    Ok(Operation {
        kind,
        file: field(1).whole_u32()?,
        offset_bytes: field(2).whole()?,
        length_bytes: field(3).whole()?,
        start_ns: field(4).whole()?,
        end_ns: field(5).whole()?,
    })
}
