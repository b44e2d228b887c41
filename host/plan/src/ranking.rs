//! Several cards, ranked for a logger.

use crate::figures::Plan;
use crate::text::is_any_sustained;
use crate::text::{answer, duration, is_unknown, share, share_of_members};
use cardiograph_report::units;
use serde::Serialize;
use std::fmt::Write;

/// Plans of several cards for one logger: those with a known risk, best card first, and then the others.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// Buffer size for which the cards are ranked.
    pub buffer_bytes: u64,
    /// The cards in ascending order of the upper limit of their risk; equal cards by the buffer that they need. Cards with an
    /// unknown risk follow, in the order given.
    pub cards: Vec<Ranked>,
}

/// A card in a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// Rank, from 1; null if the risk is not known.
    pub rank: Option<u64>,
    /// True if the card is simulated: a model, not a card that was measured.
    pub simulated: bool,
    /// True if the intervals of its risk and that of the first card overlap, so that their order is not certain.
    pub overlaps_first: bool,
    /// Buffer size for which the cards are ranked.
    pub buffer_bytes: u64,
    /// The answer for this buffer as a sentence.
    pub answer: String,
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
}

impl Ranking {
    /// Ranks plans for the same logger; the flag of each plan is true if its card is simulated.
    pub fn of(plans: Vec<(Plan, bool)>, buffer_bytes: u64) -> Ranking {
        let (mut plans, unknown): (Vec<_>, Vec<_>) = plans
            .into_iter()
            .partition(|(plan, _)| is_known(plan, buffer_bytes));
        let risk = |plan: &Plan| risk_high(plan, buffer_bytes);
        let needed = |plan: &Plan| needed_bytes(plan).unwrap_or(u64::MAX);
        let sustained = |plan: &Plan| sustained_bytes_per_s(plan, buffer_bytes).unwrap_or(0.0);
        plans.sort_by(|(a, _), (b, _)| {
            risk(a)
                .total_cmp(&risk(b))
                .then(needed(a).cmp(&needed(b)))
                .then(sustained(b).total_cmp(&sustained(a)))
        });
        let first_high = plans.first().map_or(1.0, |(plan, _)| risk(plan));
        let low = |plan: &Plan| plan.buffer(buffer_bytes).map_or(0.0, |row| row.risk.low);
        let ranked = |(plan, simulated): (Plan, bool), rank: Option<u64>| Ranked {
            rank,
            simulated,
            overlaps_first: rank.is_some_and(|rank| rank > 1) && low(&plan) <= first_high,
            buffer_bytes,
            answer: answer(&plan, buffer_bytes),
            plan,
        };
        let cards = plans.into_iter().zip(1..);
        let cards = cards.map(|(plan, rank)| ranked(plan, Some(rank)));
        let cards = cards.chain(unknown.into_iter().map(|plan| ranked(plan, None)));
        Ranking {
            buffer_bytes,
            cards: cards.collect(),
        }
    }

    /// Returns the ranking as a table for a terminal.
    pub fn text(&self) -> String {
        let Some(first) = self.cards.first() else {
            return String::new();
        };
        let plan = &first.plan;
        let run = duration(plan.run_s);
        let mut out = format!(
            "{}\n\nplan · {} samples/s of {} B = {} for {run} · buffer {}\n",
            self.conclusion(),
            plan.sample_rate_hz,
            plan.sample_bytes,
            units::rate(plan.rate_bytes_per_s),
            units::binary_bytes(self.buffer_bytes),
        );
        for card in &self.cards {
            for warning in &card.plan.warnings {
                let _ = writeln!(out, "warning: {}: {warning}", card.name());
            }
        }
        let heads = [
            "",
            "card",
            "sustained rate",
            "runs that lose samples",
            "buffer by risk",
        ];
        let rows = self.cards.iter().map(|card| card.cells(self.buffer_bytes));
        let rows: Vec<_> = std::iter::once(heads.map(str::to_string))
            .chain(rows)
            .collect();
        let widths: [usize; 5] = std::array::from_fn(|column| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0)
        });
        out.push('\n');
        let ranked = self.ranked().count();
        for (row, number) in rows.iter().zip(0..) {
            if number == ranked + 1 {
                out.push_str("\n  Not ranked, because the measurement is too short for this run\n");
            }
            let cells = row.iter().zip(widths);
            let cells: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
        }
        out.push_str(
            "\n  note: Ranked by the upper limit of the risk (95 % confidence), which is also high if a measurement is short.\n",
        );
        out
    }

    fn ranked(&self) -> impl Iterator<Item = &Ranked> {
        self.cards.iter().filter(|card| card.rank.is_some())
    }

    /// Returns the card to take as a sentence.
    fn conclusion(&self) -> String {
        let buffer = units::binary_bytes(self.buffer_bytes);
        let names = |cards: Vec<&Ranked>| {
            let names: Vec<_> = cards.into_iter().map(Ranked::name).collect();
            names.join(", ")
        };
        let sustained = || self.ranked().filter(|card| card.plan.is_sustained());
        let Some(first) = sustained().next() else {
            let why = match self.ranked().count() < self.cards.len() {
                true => "the measurements are too short; measure for longer",
                false => "none sustains this rate; lower it",
            };
            return format!("No card can be chosen for a buffer of {buffer}: {why}.");
        };
        let risk = units::percent(risk_high(&first.plan, self.buffer_bytes));
        let head = format!(
            "Take {}: with a buffer of {buffer}, at most {risk} of runs of {} lose samples.",
            first.name(),
            duration(first.plan.run_s)
        );
        match names(sustained().filter(|card| card.overlaps_first).collect()) {
            names if names.is_empty() => head,
            names => format!(
                "{head} {names} may be as good: the intervals overlap; measure for longer to tell them apart."
            ),
        }
    }
}

/// Returns true if the risk of a card with a buffer is known: it has a bound, or no buffer is enough.
fn is_known(plan: &Plan, buffer_bytes: u64) -> bool {
    let of_members = plan
        .ensemble
        .as_ref()
        .and_then(|all| all.buffer(buffer_bytes));
    let has_bound = of_members.is_some_and(|row| row.risk_high.median < 0.5);
    let row = plan.buffer(buffer_bytes);
    !is_any_sustained(plan) || has_bound || row.is_some_and(|row| !is_unknown(&row.risk))
}

/// Upper limit of the risk; of an ensemble, the median of its members.
fn risk_high(plan: &Plan, buffer_bytes: u64) -> f64 {
    match &plan.ensemble {
        Some(all) => all
            .buffer(buffer_bytes)
            .map_or(1.0, |row| row.risk_high.median),
        None => plan.buffer(buffer_bytes).map_or(1.0, |row| row.risk.high),
    }
}

/// Rate that the buffer sustained; of an ensemble, the median of its members.
fn sustained_bytes_per_s(plan: &Plan, buffer_bytes: u64) -> Option<f64> {
    match &plan.ensemble {
        Some(all) => Some(all.buffer(buffer_bytes)?.sustained_bytes_per_s.median),
        None => Some(plan.buffer(buffer_bytes)?.sustained_bytes_per_s),
    }
}

/// Recommended buffer; of an ensemble, the median of its members.
fn needed_bytes(plan: &Plan) -> Option<u64> {
    match &plan.ensemble {
        Some(all) => all.recommended_buffer_bytes,
        None => plan.recommended_buffer_bytes,
    }
}

impl Ranked {
    fn name(&self) -> String {
        match self.simulated {
            true => format!("{} (simulated)", self.plan.target),
            false => self.plan.target.clone(),
        }
    }

    fn cells(&self, buffer_bytes: u64) -> [String; 5] {
        let plan = &self.plan;
        let sustained = sustained_bytes_per_s(plan, buffer_bytes).filter(|&rate| rate > 0.0);
        let of_members = plan
            .ensemble
            .as_ref()
            .and_then(|all| all.buffer(buffer_bytes));
        let lossy = match (of_members, plan.buffer(buffer_bytes)) {
            _ if !is_any_sustained(plan) => "all, with any buffer".to_string(),
            (Some(row), _) => share_of_members(row),
            (None, Some(row)) => share(&row.risk),
            (None, None) => String::new(),
        };
        let needed = needed_bytes(plan);
        [
            self.rank.map_or(String::new(), |rank| format!("{rank}.")),
            self.name(),
            sustained.map_or("none".to_string(), units::rate),
            lossy,
            needed.map_or("not known".to_string(), units::binary_bytes),
        ]
    }
}
