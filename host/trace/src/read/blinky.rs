//! One latency per line and nothing else, such as the `times-N.csv` of study 5, in ms.

use super::ReadOptions;
use super::columns::{Top, is_number};
use super::doubt::{Order, Rise, Totals, is_underflow, refuse_misread};
use super::error::{Fault, Problem, shown};
use super::guess::{self, Numbers};
use super::lines::Lines;
use super::number::{Bad, Field, NUMBER_MAX};
use super::numeral::Points;
use super::recording::{SAMPLE_ROWS, is_note, rows_in};
use super::remedy::awk;
use super::scale::Scale;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

/// Separator of rows with a single field: a comma in them is a decimal comma.
const NONE: u8 = 0;

/// Returns true if a line is a latency, with or without a unit.
pub(super) fn is_row(line: &[u8]) -> bool {
    !line.contains(&b',') && is_number(line)
        || Scale::of(line) == Some(Scale::InTexts) && Top::of(line, b"").names().len() <= 2
}

pub(super) fn read<R: Read>(
    lines: &mut Lines<R>,
    mut about: About,
    options: &ReadOptions,
) -> Result<Trace, Fault> {
    let scale = scale(lines.in_memory(), options, &mut about)?;
    let mut trace = Trace::new(about);
    let (mut points, mut totals, mut rise) =
        (Points::default(), Totals::default(), Rise::default());
    let mut offset_bytes = 0_u64;
    while let Some(line) = lines.next_row_but(is_note)? {
        if line.is_cut(NONE, 1) {
            trace.about.notes.push(line.cut_note());
            break;
        }
        if totals.take(line.text, line.number, NONE) {
            continue;
        }
        let fields = line.text.split(|&byte| byte == b',').count();
        if fields != 1 && !matches!(scale, Scale::Grouped(_, b',')) {
            return Err(line.wrong_fields(1, fields));
        }
        let field = Field {
            column: "the latency",
            text: line.text,
            line: &line,
        };
        let ns = scale.ns(line.text).map_err(|bad| match bad {
            Bad::Negative => {
                let (column, text) = (field.column.to_owned(), shown(line.text.trim_ascii()));
                Problem::NegativeLatency { column, text }.at_line(line.number)
            }
            bad => field.fault(bad),
        })?;
        if is_underflow(ns) {
            let text = shown(line.text.trim_ascii());
            return Err(Problem::Underflow { text }.at_line(line.number));
        }
        rise.push(ns);
        if matches!(scale, Scale::Unit(_)) {
            points.push(line.text.trim_ascii(), line.number);
        }
        let start_ns = trace.last_end_ns();
        let end_ns = start_ns.checked_add(ns);
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes,
            length_bytes: options.block_bytes,
            start_ns,
            end_ns: end_ns
                .filter(|&end_ns| end_ns <= NUMBER_MAX)
                .ok_or_else(|| field.fault(Bad::TooLarge))?,
        };
        trace
            .push(&operation)
            .map_err(|_| Problem::TotalTooLarge.at_line(line.number))?;
        offset_bytes = offset_bytes.wrapping_add(options.block_bytes);
    }
    refuse_misread(points)?;
    trace.about.notes.extend(totals.note());
    let order = rise.order();
    trace.about.notes.extend(order.note());
    match order {
        Order::Total => Err(Problem::LastIsTotal.in_file()),
        Order::Rising | Order::Clock => {
            let difference = awk(b' ', "{ print $1 - p; p = $1 }");
            let is_strict = matches!(order, Order::Rising);
            let problem = Problem::RisingList {
                difference,
                is_strict,
            };
            Err(problem.in_file())
        }
        _ => Ok(trace),
    }
}

fn scale(head: &[u8], options: &ReadOptions, about: &mut About) -> Result<Scale, Fault> {
    let rows = || rows_in(head).filter(|row| !is_note(row));
    let stated = rows().next().and_then(Scale::of);
    match (stated, options.time_unit) {
        (Some(_), Some(_)) => {
            let names = "after each number".to_owned();
            Err(Problem::UnitNamed { names }.in_file())
        }
        (Some(scale), None) => Ok(scale),
        (None, unit) => {
            let mut points = Points::default();
            rows().take(SAMPLE_ROWS).for_each(|row| points.push(row, 0));
            let (numerals, doubt) = points.decide();
            let unit = match unit {
                Some(unit) => unit,
                None => {
                    let mut numbers = Numbers::default();
                    let plain = rows()
                        .take(SAMPLE_ROWS)
                        .filter_map(|row| numerals.plain(row));
                    plain.for_each(|plain| numbers.push(&plain));
                    let guess = guess::of_latencies("the latencies", &numbers)?;
                    about.notes.push(guess.reason);
                    guess.unit
                }
            };
            about.notes.extend(doubt);
            Ok(Scale::of_numbers(unit, numerals))
        }
    }
}
