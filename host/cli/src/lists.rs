//! `cardiograph workloads`: lists the workloads.

use crate::failure::{Failure, print};
use cardiograph_report::units;
use cardiograph_workload::{DEFAULT, WORKLOADS};
use std::fmt::Write;

/// Lists the workloads by study.
pub fn workloads() -> Result<(), Failure> {
    let mut out = String::new();
    for study in WORKLOADS {
        if let Some(first) = study.first() {
            let _ = writeln!(out, "{}", first.study);
        }
        for workload in *study {
            let mark = if workload.name == DEFAULT {
                " (default)"
            } else {
                ""
            };
            let size = units::bytes(workload.bytes() as f64);
            let _ = writeln!(
                out,
                "  {:<20} {size:>8}  {}{mark}",
                workload.name, workload.about
            );
        }
        out.push('\n');
    }
    print(&out)
}
