//! ioping: one request per line, `4 KiB >>> DIR (ext4 /dev/sda1 99 GiB): request=1 time=235.6 us (warmup)`.

use super::error::{Fault, Problem, shown};
use super::lines::{Line, Lines};
use super::number::{Bad, NUMBER_MAX, decimal};
use super::scale::Scale;
use crate::trace::{About, Trace};
use cardiograph_workload::{Operation, OperationKind};
use std::io::Read;

/// Returns true if the line is a request.
pub(super) fn is_row(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    (text.contains(" >>> ") || text.contains(" <<< "))
        && text.contains(": request=")
        && text.contains(" time=")
}

pub(super) fn read<R: Read>(lines: &mut Lines<R>, about: About) -> Result<Trace, Fault> {
    let mut trace = Trace::new(about);
    let (mut offset_bytes, mut warmups, mut reads) = (0_u64, 0, 0_u64);
    // Statistics follow the requests.
    while let Some(line) = lines
        .next_row()?
        .filter(|line| !line.text.starts_with(b"---"))
    {
        let text = String::from_utf8_lossy(line.text);
        if !line.ended {
            trace.about.notes.push(line.cut_note());
            break;
        }
        if text.ends_with("(warmup)") {
            warmups += 1;
            continue;
        }
        let (kind, length_bytes, latency_ns) = request(&text, &line)?;
        reads += u64::from(kind == OperationKind::Read);
        let start_ns = trace.last_end_ns();
        let operation = Operation {
            kind,
            file: 0,
            offset_bytes,
            length_bytes,
            start_ns,
            end_ns: start_ns.saturating_add(latency_ns),
        };
        if operation.end_ns > NUMBER_MAX || trace.push(&operation).is_err() {
            return Err(Problem::TotalTooLarge.at_line(line.number));
        }
        offset_bytes = offset_bytes.wrapping_add(length_bytes);
    }
    let notes = &mut trace.about.notes;
    notes.push("ioping prints no timestamps, so each request is assumed to begin when the previous one ends.".to_owned());
    if warmups > 0 {
        notes.push(format!(
            "Skipped {warmups} warm-up {}, as ioping does.",
            if warmups == 1 { "request" } else { "requests" }
        ));
    }
    if reads > 0 && reads < trace.len() as u64 {
        let note = super::left_out(reads);
        trace.about.notes.push(note);
    }
    Ok(trace)
}

fn request(text: &str, line: &Line<'_>) -> Result<(OperationKind, u64, u64), Fault> {
    let unknown = || {
        let text = shown(line.text);
        Problem::Operation { text }.at_line(line.number)
    };
    let (size, kind) = match (text.split_once(" >>> "), text.split_once(" <<< ")) {
        (Some((size, _)), _) => (size, OperationKind::Write),
        (None, Some((size, _))) => (size, OperationKind::Read),
        (None, None) => return Err(unknown()),
    };
    let (_, time) = text.rsplit_once(" time=").ok_or_else(unknown)?;
    // A slow request is marked at the end.
    let time = time.split(" (").next().unwrap_or(time);
    let fault = |column: &str, text: &str, bad: Bad| bad.in_column(column, text.as_bytes(), line);
    let latency_ns = Scale::InTexts.ns(time.as_bytes());
    let length_bytes = bytes(size).map_err(|bad| fault("the size", size, bad))?;
    let latency_ns = latency_ns.map_err(|bad| fault("the time", time, bad))?;
    Ok((kind, length_bytes, latency_ns))
}

/// Parses a size such as `4 KiB` or `512 B`.
fn bytes(text: &str) -> Result<u64, Bad> {
    let (number, unit) = text.trim().split_once(' ').ok_or(Bad::NotANumber)?;
    let factor = match unit.trim() {
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        _ => return Err(Bad::NotANumber),
    };
    let thousandths = u128::from(decimal(number.as_bytes(), 3)?);
    u64::try_from(thousandths * factor / 1000).map_err(|_| Bad::TooLarge)
}
