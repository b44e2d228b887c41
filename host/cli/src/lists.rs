//! `cardiograph workloads` and `cardiograph cards`.

use crate::failure::{Failure, print};
use cardiograph_report::units;
use cardiograph_sim_card::{BOARDS, Board, CARDS, Profile};
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

/// Lists the simulated cards and boards.
pub fn cards() -> Result<(), Failure> {
    let mut out = String::from("Cards\n");
    for (name, _) in CARDS {
        let profile = Profile::named(name).map_err(Failure::new)?;
        let _ = writeln!(out, "  {name:<14} {}", profile.about);
    }
    out.push_str("\nBoards\n");
    for (name, _) in BOARDS {
        let board = Board::named(name).map_err(Failure::new)?;
        let _ = writeln!(out, "  {name:<14} {}", board.about);
    }
    out.push_str("\nA target is a card on a board: sim:class10-16g@esp32\n");
    print(&out)
}
