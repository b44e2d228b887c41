//! Several cards, ranked for a logger.

use crate::figures::Plan;
use crate::text::is_any_sustained;
use crate::text::{duration, is_unknown, share, share_of_members};
use cardiograph_report::units;
use serde::Serialize;
use std::fmt::Write;

/// Plans of several cards for one logger, best card first.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// Buffer size for which the cards are ranked.
    pub buffer_bytes: u64,
    /// The cards in ascending order of the upper limit of their risk; equal cards by the buffer that they need.
    pub cards: Vec<Ranked>,
}

/// A card in a ranking.
#[derive(Clone, Debug, Serialize)]
pub struct Ranked {
    /// Rank, from 1.
    pub rank: u64,
    /// True if the card is simulated: a model, not a card that was measured.
    pub simulated: bool,
    /// True if the intervals of its risk and that of the first card overlap, so that their order is not certain.
    pub overlaps_first: bool,
    /// Buffer size for which the cards are ranked.
    pub buffer_bytes: u64,
    /// The plan.
    #[serde(flatten)]
    pub plan: Plan,
}

impl Ranking {
    /// Ranks plans for the same logger; the flag of each plan is true if its card is simulated.
    pub fn of(plans: Vec<(Plan, bool)>, buffer_bytes: u64) -> Ranking {
        let mut plans = plans;
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
        let cards = plans
            .into_iter()
            .zip(1..)
            .map(|((plan, simulated), rank)| Ranked {
                rank,
                simulated,
                overlaps_first: rank > 1 && low(&plan) <= first_high,
                buffer_bytes,
                plan,
            });
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
            "plan · {} samples/s of {} B = {} for {run} · buffer {}\n",
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
            "buffer needed",
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
        for row in &rows {
            let cells = row.iter().zip(widths);
            let cells: Vec<_> = cells
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            let _ = writeln!(out, "  {}", cells.join("  ").trim_end());
        }
        let _ = writeln!(out, "\n{}", self.conclusion());
        out
    }

    fn conclusion(&self) -> String {
        let basis = "Ranked by the upper limit of the risk (95 % confidence), which is also high if a measurement is short.";
        let Some((first, others)) = self.cards.split_first() else {
            return basis.to_string();
        };
        if !first.plan.is_sustained() {
            return format!("{basis} No card sustains this rate.");
        }
        let is_unknown = |card: &&Ranked| {
            let row = card.plan.buffer(self.buffer_bytes);
            row.is_none_or(|row| is_unknown(&row.risk))
        };
        let names = |cards: Vec<&Ranked>| {
            let names: Vec<_> = cards.into_iter().map(Ranked::name).collect();
            names.join(", ")
        };
        let sustained = || self.cards.iter().filter(|card| card.plan.is_sustained());
        let unknown = names(sustained().filter(is_unknown).collect());
        if !unknown.is_empty() {
            return format!(
                "{basis} The risk of {unknown} cannot be predicted; measure for longer."
            );
        }
        let overlapping = others
            .iter()
            .filter(|card| card.overlaps_first && card.plan.is_sustained());
        match names(overlapping.collect()) {
            names if names.is_empty() => basis.to_string(),
            names => format!(
                "{basis} The order of {} and {names} is not certain: their intervals overlap. Measure for longer to tell \
                 them apart.",
                first.name(),
            ),
        }
    }
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
            format!("{}.", self.rank),
            self.name(),
            sustained.map_or("none".to_string(), units::rate),
            lossy,
            needed.map_or("unknown".to_string(), units::binary_bytes),
        ]
    }
}
