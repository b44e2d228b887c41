//! blkparse's text: an operation lasts from its issue to the device (`D`) to its completion (`C`).
//!
//! `8,0  1  5  0.001234567  1234  D  W 2048 + 8 [dd]`: device, CPU, sequence, time in s, process, action, RWBS,
//! sector, sectors.

use super::blocks::{Completed, Device};
use super::columns::cells;
use super::error::Fault;
use super::lines::Lines;
use super::number::{Field, decimal, whole};
use crate::trace::{About, Trace};
use cardiograph_workload::OperationKind;
use std::collections::HashMap;
use std::io::Read;

const S: i32 = 9;

/// Returns true if the line is an event.
pub(super) fn is_row(line: &[u8]) -> bool {
    let texts: Vec<&[u8]> = cells(line, b' ').collect();
    texts.len() >= 7
        && matches!(
            texts[0]
                .split(|byte| *byte == b',')
                .map(whole)
                .collect::<Vec<_>>()[..],
            [Ok(_), Ok(_)]
        )
        && whole(texts[1]).is_ok()
        && whole(texts[2]).is_ok()
        && texts[3].contains(&b'.')
        && decimal(texts[3], S).is_ok()
        && texts[5].iter().all(u8::is_ascii_alphabetic)
}

pub(super) fn read<R: Read>(lines: &mut Lines<R>, about: About) -> Result<Trace, Fault> {
    const SECTOR_BYTES: u64 = 512;
    let mut device = Device::new(about);
    let mut issued = HashMap::new();
    let mut unpaired = 0_u64;
    // A summary follows the events.
    while let Some(line) = lines.next_row()?.filter(|line| is_row(line.text)) {
        let texts: Vec<&[u8]> = cells(line.text, b' ').collect();
        let is_data = texts.get(8) == Some(&&b"+"[..]) && texts.len() >= 10;
        let kind = match texts[6] {
            rwbs if rwbs.contains(&b'D') => None,
            rwbs if rwbs.contains(&b'W') => Some(OperationKind::Write),
            rwbs if rwbs.contains(&b'R') => Some(OperationKind::Read),
            _ => None,
        };
        let (Some(kind), true, b"D" | b"C") = (kind, is_data && line.ended, texts[5]) else {
            continue;
        };
        device.check(&super::error::shown(texts[0]), &line)?;
        let field = |column, index: usize| Field {
            column,
            text: texts[index],
            line: &line,
        };
        let at_ns = field("the time", 3).decimal(S)?;
        let sector_bytes = field("the sector", 7).whole_times(SECTOR_BYTES)?;
        if texts[5] == b"D" {
            issued.insert(sector_bytes, at_ns);
            continue;
        }
        let Some(latency_ns) = issued
            .remove(&sector_bytes)
            .and_then(|start_ns| at_ns.checked_sub(start_ns))
        else {
            unpaired += 1;
            continue;
        };
        let completed = Completed {
            kind,
            offset_bytes: sector_bytes,
            length_bytes: field("the sectors", 9).whole_times(SECTOR_BYTES)?,
            latency_ns,
            end_ns: at_ns,
        };
        device.push(&completed, &line)?;
    }
    unpaired += issued.len() as u64;
    let mut trace = device.finish();
    if unpaired > 0 {
        trace.about.notes.push(format!(
            "Skipped {unpaired} operations of which only the issue or only the completion was recorded."
        ));
    }
    Ok(trace)
}
