//! Comparison of all policies.

use super::args::{PolicyArg, Record};
use super::samples::Source;
use super::simulated::Simulated;
use super::text::{at_risk, lost};
use crate::failure::{BAD, Failure};
use crate::interrupt::Interrupt;
use cardiograph_compare::Figures;
use cardiograph_report::units;

const POLICIES: [PolicyArg; 4] = [
    PolicyArg::Naive,
    PolicyArg::KeepOpen,
    PolicyArg::AfterSession,
    PolicyArg::Stream,
];

/// Records with each policy in turn, on cards with the same seed and with the same buffer size.
pub fn run(
    card: &Simulated,
    args: &Record,
    source: &Source,
    interrupt: &Interrupt,
) -> Result<Vec<Figures>, Failure> {
    let mut all = Vec::new();
    for policy in POLICIES {
        if interrupt.is_raised() {
            break;
        }
        all.push(card.record(args, policy, source, interrupt)?);
    }
    Ok(all)
}

const HEADS: [&str; 5] = [
    "",
    "samples lost",
    "buffer peak",
    "worst-case write",
    "power cut loses",
];

/// Index of the column with the samples lost.
const LOST: usize = 1;

/// Formats the comparison as a table, followed by a summary in one sentence.
pub fn text(args: &Record, all: &[Figures]) -> String {
    let mut rows = vec![HEADS.map(str::to_string)];
    rows.extend(all.iter().map(cells));
    let is_lossy = |row: usize| row > 0 && all[row - 1].samples_lost > 0;
    let widths: [usize; HEADS.len()] = std::array::from_fn(|column| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut out = format!(
        "{}\n\n{} · buffer {} · seed {}\n\n",
        sentence(all),
        args.target,
        units::binary_bytes(args.buffer),
        args.seed
    );
    for (index, row) in rows.iter().enumerate() {
        let mut cells: Vec<String> = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:<width$}"))
            .collect();
        if is_lossy(index) {
            cells[LOST] = format!("{BAD}{}{BAD:#}", cells[LOST]);
        }
        let line = cells.join("  ");
        out.push_str(&format!("  {}\n", line.trim_end()));
    }
    out
}

fn cells(figures: &Figures) -> [String; HEADS.len()] {
    [
        figures.policy.clone(),
        lost(figures),
        format!(
            "{} ({})",
            units::bytes(figures.buffer_peak_bytes as f64),
            units::percent(figures.buffer_peak_bytes as f64 / figures.buffer_bytes as f64)
        ),
        match figures.worst_case_write_us {
            0.0 => "non-blocking".to_string(),
            us => units::time(us),
        },
        at_risk(figures),
    ]
}

/// Summarises the comparison in one sentence.
fn sentence(all: &[Figures]) -> String {
    let names = |is_lossless: bool| {
        let names = all
            .iter()
            .filter(|one| (one.samples_lost == 0) == is_lossless);
        let names: Vec<&str> = names.map(|one| one.policy.as_str()).collect();
        match names.split_last() {
            Some((last, others @ [_, ..])) => format!("{} and {last}", others.join(", ")),
            _ => names.concat(),
        }
    };
    let losses = match (names(true), names(false)) {
        (lossless, lossy) if lossy.is_empty() => format!("No samples lost with {lossless}."),
        (lossless, lossy) if lossless.is_empty() => {
            format!("The rate is too high for this card and buffer: {lossy} lose samples.")
        }
        (lossless, lossy) => format!("No samples lost with {lossless}; samples lost with {lossy}."),
    };
    let least = all
        .iter()
        .filter(|one| one.samples_lost == 0)
        .min_by_key(|one| one.at_risk_max_us);
    match least {
        Some(least) => format!(
            "{losses} Of the policies without loss, {} has the least data at risk in a power cut: {}.",
            least.policy,
            at_risk(least)
        ),
        None => losses,
    }
}
