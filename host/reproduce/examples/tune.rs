//! Tuning of the card profiles: a search over a card's physical values that brings rows with the role `fit`
//! close to the published numbers. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example tune CARD [TRIALS] [SEED]`

use cardiograph_reproduce::{
    Experiment, Query, Recording, Role, Row, STUDIES, evaluate, in_unit, search, study,
};
use cardiograph_sim_card::{Profile, Seed};
use std::collections::BTreeMap;

/// Seeds of the card in each trial.
const SEEDS: [u64; 3] = [1, 2, 3];

/// The fit rows of a card, with recordings of their experiments.
struct Rows {
    card: String,
    rows: Vec<Row>,
    recordings: BTreeMap<Experiment, Recording>,
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let card = args.first().ok_or("usage: tune CARD [TRIALS] [SEED]")?;
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text}: not a number"))
        })
    };
    let (trials, seed) = (number(1, 2000)?, number(2, 1)?);
    let start = Profile::named(card).map_err(|error| error.to_string())?;
    let rows_of_card = Rows::of(card)?;
    rows_of_card.show(&start);
    let mut random = Seed::new(seed.into()).stream("tune");
    let (best, loss) = search::minimise(&start, trials, &mut random, |profile| {
        rows_of_card.loss(profile)
    });
    println!("loss {loss:.4}");
    rows_of_card.show(&best);
    println!("flash.program_us = {:?}", best.flash.program_us);
    for knob in &search::KNOBS {
        println!("{} = {}", knob.name, knob.value(&best));
    }
    Ok(())
}

impl Rows {
    /// Collects the published rows that the given card may be tuned to.
    fn of(card: &str) -> Result<Rows, String> {
        let mut rows = Vec::new();
        for name in STUDIES {
            rows.extend(study(name)?.rows);
        }
        rows.retain(|row| row.role == Role::Fit && row.query.experiment.card == card);
        let mut recordings = BTreeMap::new();
        for query in rows
            .iter()
            .flat_map(|row| std::iter::once(&row.query).chain(&row.over))
        {
            let experiment = &query.experiment;
            if !recordings.contains_key(experiment) {
                let recording = Recording::of(experiment, 1).map_err(|error| error.to_string())?;
                recordings.insert(experiment.clone(), recording);
            }
        }
        Ok(Rows {
            card: card.to_string(),
            rows,
            recordings,
        })
    }

    /// Returns the ratio of the simulated to the published number for each row.
    fn ratios(&self, profile: &Profile) -> Vec<f64> {
        let mut numbers = vec![Vec::new(); self.rows.len()];
        for seed in SEEDS {
            let mut runs = BTreeMap::new();
            let mut number = |query: &Query| {
                let experiment = &query.experiment;
                let run = runs.entry(experiment.clone()).or_insert_with(|| {
                    let recording = &self.recordings[experiment];
                    match experiment.card == self.card {
                        true => recording.on(profile, seed),
                        false => recording.operations().clone(),
                    }
                });
                evaluate(query, run)
            };
            for (row, numbers) in self.rows.iter().zip(&mut numbers) {
                let value = number(&row.query);
                let ratio = match &row.over {
                    Some(over) => value.zip(number(over)).map(|(value, over)| value / over),
                    None => value.map(|value| in_unit(value, &row.unit)),
                };
                // A row without a simulated result counts as a large deviation.
                numbers.push(ratio.map_or(0.1, |ratio| ratio / row.published.unwrap_or(ratio)));
            }
        }
        let median = |mut numbers: Vec<f64>| {
            numbers.sort_by(f64::total_cmp);
            numbers[numbers.len() / 2]
        };
        numbers.into_iter().map(median).collect()
    }

    fn loss(&self, profile: &Profile) -> f64 {
        let squares = self
            .ratios(profile)
            .into_iter()
            .map(|ratio| ratio.ln().powi(2));
        squares.sum()
    }

    fn show(&self, profile: &Profile) {
        for (row, ratio) in self.rows.iter().zip(self.ratios(profile)) {
            println!("  {ratio:>6.3}  {:<24} {}", row.figure, row.quantity);
        }
    }
}
