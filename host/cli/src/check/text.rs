//! The result of a check as a table.

use super::Checked;
use cardiograph_disk::{Capacity, Speed};
use cardiograph_report::units;
use std::fmt::Write;

/// Number of failing blocks that the table shows; the JSON has more.
const SHOWN_MAX: usize = 5;

/// Returns the table.
pub fn of(checked: &Checked) -> String {
    let mut out = format!("check · {}\n", checked.target.escape_debug());
    if let Some(capacity) = &checked.capacity {
        capacity_text(&mut out, capacity);
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
    out
}

fn speed_text(out: &mut String, speed: &Speed) {
    let _ = writeln!(out, "\n  Speed");
    let rates = [
        ("sequential writes", speed.write_bytes_per_s),
        ("slowest 4 MiB of them", speed.slowest_write_bytes_per_s),
        ("sequential reads", speed.read_bytes_per_s),
    ];
    for (name, rate) in rates {
        let rate = rate.map_or(String::from("not measured"), units::rate);
        let _ = writeln!(out, "    {name:<24}{rate}");
    }
    let randoms = [
        ("random reads of 4 KiB", speed.random_reads_per_s),
        ("random writes of 4 KiB", speed.random_writes_per_s),
    ];
    for (name, per_s) in randoms {
        let per_s = per_s.map_or(String::from("not measured"), |per_s| {
            format!("{} per second", units::count(per_s.round() as u64))
        });
        let _ = writeln!(out, "    {name:<24}{per_s}");
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

fn capacity_text(out: &mut String, capacity: &Capacity) {
    let rows = [
        ("claimed", capacity.claimed_bytes),
        ("tested", capacity.tested_bytes),
        ("keeps data up to", capacity.kept_bytes),
    ];
    let _ = writeln!(out, "\n  Capacity");
    // If nothing was tested, nothing is known of what is kept.
    let known = if capacity.tested_bytes > 0 { 3 } else { 2 };
    for (name, amount) in &rows[..known] {
        let shown = units::bytes(*amount as f64);
        let _ = writeln!(out, "    {name:<24}{shown} ({amount} B)");
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
