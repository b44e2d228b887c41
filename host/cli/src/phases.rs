//! Labels of the phases of a workload.

use cardiograph_report::units;
use cardiograph_trace::PhaseLabel;
use cardiograph_workload::{OperationKind, Order, Phase, Span, Sync, Workload};

/// Labels the phases of a workload if there are several. Phases that do the same have the same label.
pub fn of(workload: &Workload) -> Vec<PhaseLabel> {
    if workload.phases.len() < 2 {
        return Vec::new();
    }
    let mut first_file = 0u32;
    let labelled = |phase: &Phase| {
        let labelled = PhaseLabel {
            first_file,
            label: label(phase),
        };
        first_file = first_file.saturating_add(phase.files);
        labelled
    };
    workload.phases.iter().map(labelled).collect()
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
        label.push_str(&format!(" in calls of {call}"));
    }
    if phase.order == Order::RoundRobin {
        label.push_str(" round-robin");
    }
    if phase.jump_within_bytes > 0 {
        let within = units::bytes(phase.jump_within_bytes as f64);
        label.push_str(&format!(" at random offsets within {within}"));
    }
    if phase.span == Span::OpenToClose {
        label.push_str(", opened and closed each time");
    }
    if phase.write_through {
        label.push_str(", write-through");
    }
    for (sync, when) in [
        (phase.sync_file, "after each file"),
        (phase.sync_end, "at the end"),
    ] {
        match sync {
            Sync::Never => {}
            Sync::Start => label.push_str(&format!(", sync started {when}")),
            Sync::Wait => label.push_str(&format!(", sync {when}")),
        }
    }
    label
}
