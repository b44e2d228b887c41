//! The result of a check as a table.

use super::Checked;
use cardiograph_disk::{Capacity, Speed, Verdict};
use cardiograph_report::units;
use std::fmt::Write;

/// Number of failing blocks that the table shows; the JSON has more.
const SHOWN_MAX: usize = 5;

/// Returns the table.
pub fn of(checked: &Checked) -> String {
    let mut out = format!("check · {}\n", checked.target.escape_debug());
    place_text(&mut out, checked);
    if let Some(capacity) = &checked.capacity {
        capacity_text(&mut out, capacity, checked.disk.is_none());
    }
    speed_text(&mut out, &checked.speed);
    for (name, wanted) in [
        ("reaches the figures of", true),
        ("does not reach those of", false),
    ] {
        let of = checked
            .classes
            .iter()
            .filter(|class| class.is_reached == Some(wanted));
        let names: Vec<&str> = of.map(|class| class.name).collect();
        if !names.is_empty() {
            let _ = writeln!(out, "    {name:<24}{}", names.join(", "));
        }
    }
    for note in &checked.notes {
        let _ = writeln!(out, "\n  note: {note}");
    }
    let _ = write!(out, "\n{}", answer(checked));
    out
}

/// Writes file system and device, which show what was tested.
fn place_text(out: &mut String, checked: &Checked) {
    let mut row = |name: &str, value: String| {
        let _ = writeln!(out, "    {name:<24}{value}");
    };
    if let Some(disk) = &checked.disk {
        let size = size(disk.capacity_bytes);
        row(
            "device",
            format!("{}: {size}, bus {}", disk.device, disk.bus),
        );
    }
    if let Some(place) = &checked.place {
        let point = place.mount_point.escape_debug();
        let source = place.source.escape_debug();
        row(
            "file system",
            format!("{} on {source}, mounted on {point}", place.file_system),
        );
        let device = match (&place.device, place.device_bytes) {
            (Some(device), Some(bytes)) => format!("{device}: {}", size(bytes)),
            _ => String::from("unknown size: not a single disk of this computer"),
        };
        row("device", device);
    }
    if let Some(free_bytes) = checked.free_bytes {
        let device_bytes = checked.place.as_ref().and_then(|place| place.device_bytes);
        let share = device_bytes.map_or(String::new(), |bytes| {
            format!(
                ", {} of the device",
                units::percent(free_bytes as f64 / bytes as f64)
            )
        });
        row("free space", format!("{}{share}", size(free_bytes)));
    }
}

fn size(bytes: u64) -> String {
    format!("{} ({bytes} B)", units::bytes(bytes as f64))
}

/// Returns the answer; its last line begins with the verdict.
fn answer(checked: &Checked) -> String {
    let tested_bytes = checked
        .capacity
        .as_ref()
        .map_or(0, |capacity| capacity.tested_bytes);
    let tested = units::bytes(tested_bytes as f64);
    let share = checked.tested_ratio.map(percent_down);
    match checked.verdict {
        Verdict::Genuine => format!(
            "{tested}, {} of the capacity, were written and read back without a fault.\ngenuine\n",
            share.unwrap_or_default()
        ),
        Verdict::Fake => String::from("Blocks failed: the device does not keep its data.\nfake\n"),
        Verdict::NotTested => {
            let rest = match checked.tested_ratio {
                Some(ratio) => format!("{} of the capacity", percent_up(1.0 - ratio)),
                None => String::from("an unknown share of the capacity"),
            };
            let next = match &checked.next_command {
                Some(command) if command.contains("--destroy") => {
                    format!("; unmount it and test the rest (all files are lost): {command}")
                }
                Some(command) => format!("; test the rest: {command}"),
                None => String::from("; name the whole disk to test it"),
            };
            let done = match tested_bytes {
                0 => String::from("Nothing was written."),
                _ => format!("{tested} were written and read back without a fault."),
            };
            format!("{done}\nnot tested: {rest}{next}\n")
        }
    }
}

/// Formats a share that is not rounded up to a whole.
fn percent_down(ratio: f64) -> String {
    units::percent((ratio * 1000.0).floor() / 1000.0)
}

/// Formats a share that is not rounded down to nothing.
fn percent_up(ratio: f64) -> String {
    units::percent((ratio * 1000.0).ceil() / 1000.0)
}

fn speed_text(out: &mut String, speed: &Speed) {
    let _ = writeln!(out, "\n  Speed");
    let rate = |rate: Option<f64>| rate.map(units::rate);
    let per_s = |per_s: Option<f64>| {
        per_s.map(|per_s| format!("{} per second", units::count(per_s.round() as u64)))
    };
    let rows = [
        ("sequential writes", rate(speed.write_bytes_per_s)),
        (
            "slowest 4 MiB of them",
            rate(speed.slowest_write_bytes_per_s),
        ),
        ("sequential reads", rate(speed.read_bytes_per_s)),
        ("random reads of 4 KiB", per_s(speed.random_reads_per_s)),
        ("random writes of 4 KiB", per_s(speed.random_writes_per_s)),
    ];
    for (name, value) in rows {
        let value = value.unwrap_or(String::from("not measured"));
        let _ = writeln!(out, "    {name:<24}{value}");
    }
    if speed.failed_calls > 0 {
        let count = units::count(speed.failed_calls);
        let _ = writeln!(out, "    {:<24}{count}", "failed calls");
        let lines = speed.failed.iter();
        let lines = lines.map(|block| format!("byte {}: {}", block.offset_bytes, block.error));
        list(out, lines, speed.failed_calls);
    }
}

/// Writes the first lines, and the number of the others, of which the JSON has some.
fn list(out: &mut String, lines: impl ExactSizeIterator<Item = String>, total: u64) {
    let in_json = lines.len();
    for line in lines.take(SHOWN_MAX) {
        let _ = writeln!(out, "    {line}");
    }
    let more = total.saturating_sub(SHOWN_MAX as u64);
    if more > 0 {
        let more = units::count(more);
        let _ = writeln!(
            out,
            "    and {more} more; the JSON has the first {in_json} addresses"
        );
    }
}

fn capacity_text(out: &mut String, capacity: &Capacity, is_directory: bool) {
    let claimed = if is_directory {
        "to be tested"
    } else {
        "claimed"
    };
    let rows = [
        (claimed, capacity.claimed_bytes),
        ("tested", capacity.tested_bytes),
        ("keeps data up to", capacity.kept_bytes),
    ];
    let _ = writeln!(out, "\n  Capacity");
    // Only a fault shows where the device ends.
    let is_known = capacity.tested_bytes > 0 && !capacity.is_honest();
    for (name, bytes) in &rows[..if is_known { 3 } else { 2 }] {
        let _ = writeln!(out, "    {name:<24}{}", size(*bytes));
    }
    if capacity.is_honest() {
        return;
    }
    let counts = [
        ("wrong blocks", capacity.wrong_blocks),
        ("failed blocks", capacity.failed_blocks),
    ];
    for (name, count) in counts {
        let _ = writeln!(out, "    {name:<24}{}", units::count(count));
    }
    let lines = capacity.findings.iter().map(|finding| {
        let found = finding.found_offset_bytes;
        let found = found.map_or(String::new(), |at| format!(", holds the data of byte {at}"));
        format!("byte {}: {}{found}", finding.offset_bytes, finding.fault)
    });
    list(out, lines, capacity.wrong_blocks + capacity.failed_blocks);
}
