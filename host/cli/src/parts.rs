//! The parts of a workload, in words.

use cardiograph_report::units;
use cardiograph_trace::Part;
use cardiograph_workload::{OperationKind, Order, Phase, Span, Sync, Workload};

/// The phases of a workload, if there are several. Phases that do the same bear the same label.
pub fn of(workload: &Workload) -> Vec<Part> {
    if workload.phases.len() < 2 {
        return Vec::new();
    }
    let mut first_file = 0u32;
    let part = |phase: &Phase| {
        let part = Part {
            first_file,
            label: label(phase),
        };
        first_file = first_file.saturating_add(phase.files);
        part
    };
    workload.phases.iter().map(part).collect()
}

fn label(phase: &Phase) -> String {
    let payload = units::bytes(phase.bytes_per_pass() as f64);
    let call = units::bytes(f64::from(phase.bytes_per_call));
    let verb = match phase.operation {
        OperationKind::Write => "write",
        OperationKind::Read => "read",
    };
    let mut label = match phase.files {
        1 => format!("{verb} {payload}"),
        files => format!("{verb} {files} files of {payload}"),
    };
    if phase.calls_per_file > 1 {
        label.push_str(&format!(" in {call}"));
    }
    if phase.order == Order::RoundRobin {
        label.push_str(" in turn");
    }
    if phase.jump_within_bytes > 0 {
        let within = units::bytes(phase.jump_within_bytes as f64);
        label.push_str(&format!(" at random places in {within}"));
    }
    if phase.span == Span::OpenToClose {
        label.push_str(", opened and closed for each");
    }
    if phase.write_through {
        label.push_str(", through");
    }
    for (sync, when) in [(phase.sync_file, "each file"), (phase.sync_end, "the end")] {
        match sync {
            Sync::Never => {}
            Sync::Start => label.push_str(&format!(", sync begun after {when}")),
            Sync::Wait => label.push_str(&format!(", sync after {when}")),
        }
    }
    label
}
