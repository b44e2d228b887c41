//! The answer as a table for a terminal and as Markdown, with the comparisons.

use crate::answer::{Answer, Cell};
use crate::check::{Checked, PlanDifference};
use cardiograph_report::units;
use std::fmt::Write;

/// Returns the table: a row per rate and buffer size, a block per card, board and policy.
pub fn text(answer: &Answer, checked: Option<&Checked>, plan: Option<&[PlanDifference]>) -> String {
    let mut out = format!(
        "sweep · mode {} · {} · {} simulated · recordings of {} with samples of {} B\n",
        answer.mode,
        tasks(answer.tasks),
        duration(answer.simulated_s as f64),
        duration(answer.run_s as f64),
        answer.sample_bytes
    );
    if !answer.about.is_empty() {
        let _ = writeln!(out, "{}", answer.about);
    }
    for cells in blocks(&answer.cells) {
        let _ = writeln!(out, "\n  {}", title(&cells[0]));
        write_rows(&mut out, cells);
    }
    for note in notes(checked, plan) {
        let _ = writeln!(out, "\n  {note}");
    }
    out
}

/// Widths of the columns, unless a value needs more.
const WIDTHS: [usize; 4] = [12, 12, 10, 10];

fn write_rows(out: &mut String, cells: &[Cell]) {
    let head = ["rate", "buffer", "runs", "losses"].map(String::from);
    let head = (
        head,
        String::from("recordings that lose samples (95 % confidence)"),
    );
    let rows = cells.iter().map(|cell| {
        let runs: u64 = cell.members.iter().map(|member| member.risk.runs).sum();
        let losses: u64 = cell.members.iter().map(|member| member.risk.losses).sum();
        let values = [
            format!("{} Hz", cell.rate_hz),
            units::binary_bytes(cell.buffer_bytes),
            units::count(runs),
            units::count(losses),
        ];
        (values, probability(cell))
    });
    let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
    let mut widths = WIDTHS;
    for (values, _) in &rows {
        for (width, value) in widths.iter_mut().zip(values) {
            *width = (*width).max(value.chars().count() + 2);
        }
    }
    for (values, last) in rows {
        let values = values.iter().zip(widths);
        let values: String = values
            .map(|(value, width)| format!("{value:<width$}"))
            .collect();
        let _ = writeln!(out, "    {values}{last}");
    }
}

/// Returns the table as Markdown.
pub fn markdown(answer: &Answer) -> String {
    let about = answer
        .about
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let about = match about.is_empty() {
        true => about,
        false => format!("{about}\n\n"),
    };
    let mut out = format!(
        "{about}Mode {}, {}, recordings of {}, samples of {} B, 95 % confidence.\n\n\
         | card | board | policy | rate | buffer | recordings that lose samples |\n|---|---|---|---|---|---|\n",
        answer.mode,
        tasks(answer.tasks),
        duration(answer.run_s as f64),
        answer.sample_bytes
    );
    for cell in &answer.cells {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} Hz | {} | {} |",
            cell.card,
            cell.board,
            cell.policy,
            cell.rate_hz,
            units::binary_bytes(cell.buffer_bytes),
            probability(cell)
        );
    }
    out
}

/// Formats a number of tasks.
pub(crate) fn tasks(tasks: u64) -> String {
    let word = if tasks == 1 { "task" } else { "tasks" };
    format!("{} {word}", units::count(tasks))
}

/// Returns the cells of each card, board and policy.
pub(crate) fn blocks(cells: &[Cell]) -> impl Iterator<Item = &[Cell]> {
    cells.chunk_by(|a, b| a.card == b.card && a.board == b.board && a.policy == b.policy)
}

pub(crate) fn title(cell: &Cell) -> String {
    format!("sim:{}@{} · policy {}", cell.card, cell.board, cell.policy)
}

/// Formats a probability with its interval; for an ensemble, with the range over its members.
pub(crate) fn probability(cell: &Cell) -> String {
    let (low, high) = cell.range();
    let value = match cell.median {
        Some(median) => units::percent(median),
        None if !cell.has_losses() => return format!("fewer than {}", units::percent(high)),
        None => String::from("none by the median member"),
    };
    let members = match (cell.member_low, cell.member_high) {
        (Some(low), Some(high)) => {
            let percent = |value: Option<f64>| value.map_or(String::from("none"), units::percent);
            format!("; members {} to {}", percent(low), percent(high))
        }
        _ => String::new(),
    };
    // A member without losses has an upper bound only.
    let interval = match low > 0.0 {
        true => format!("{} to {}", units::percent(low), units::percent(high)),
        false => format!("up to {}", units::percent(high)),
    };
    format!("{value} ({interval}{members})")
}

/// Returns a paragraph for each comparison.
pub(crate) fn notes(checked: Option<&Checked>, plan: Option<&[PlanDifference]>) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(checked) = checked {
        notes.push(format!(
            "Repeated in mode recorder: {} recordings, {} with the same answer.",
            units::count(checked.runs),
            units::count(checked.agreeing)
        ));
        notes.extend(checked.disagreements.iter().map(|at| {
            format!(
                "Differs: {} at {} Hz, buffer {}, seed {}: mode card {} (backlog up to {}), mode recorder lost {} samples \
                 (buffer filled up to {}).",
                at.target,
                at.rate_hz,
                units::binary_bytes(at.buffer_bytes),
                at.seed,
                if at.card_lost { "loses samples" } else { "loses none" },
                units::bytes(at.card_peak_backlog_bytes as f64),
                units::count(at.recorder_lost_samples),
                units::bytes(at.recorder_peak_bytes as f64)
            )
        }));
    }
    match plan {
        None => (),
        Some([]) => notes.push("`plan` agrees with every interval.".to_string()),
        Some(differences) => notes.extend(differences.iter().map(|at| {
            format!(
                "`plan` differs: {} at {} Hz, buffer {}: {} to {} here, {} to {} by `plan`.",
                at.target,
                at.rate_hz,
                units::binary_bytes(at.buffer_bytes),
                units::percent(at.sweep_low),
                units::percent(at.sweep_high),
                units::percent(at.plan_low),
                units::percent(at.plan_high)
            )
        })),
    }
    notes
}

/// Formats a time in s: seconds to thousands of years, with up to three digits.
pub fn duration(s: f64) -> String {
    const HOUR_S: f64 = 3600.0;
    const DAY_S: f64 = 24.0 * HOUR_S;
    const YEAR_S: f64 = 365.25 * DAY_S;
    let (value, unit) = match s {
        ..120.0 => (s, "s"),
        ..7200.0 => (s / 60.0, "min"),
        ..DAY_S => (s / HOUR_S, "h"),
        ..YEAR_S => (s / DAY_S, "days"),
        _ => (s / YEAR_S, "years"),
    };
    let digits = if value < 10.0 { 1 } else { 0 };
    let text = format!("{value:.digits$}");
    let text = match text.strip_suffix(".0") {
        Some(whole) => whole.to_string(),
        None => text,
    };
    let unit = unit
        .strip_suffix('s')
        .filter(|one| !one.is_empty() && text == "1")
        .unwrap_or(unit);
    format!("{text} {unit}")
}

#[cfg(test)]
mod tests {
    use super::duration;

    #[test]
    fn durations_have_the_unit_that_people_use() {
        for (s, expected) in [
            (1.0, "1 s"),
            (60.0, "60 s"),
            (600.0, "10 min"),
            (86_400.0, "1 day"),
            (43_200.0, "12 h"),
            (2_592_000.0, "30 days"),
            (157_788_000.0, "5 years"),
            (3.2e10, "1014 years"),
        ] {
            assert_eq!(duration(s), expected);
        }
    }
}
