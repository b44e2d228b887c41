//! Fits an ensemble to a card's rows with the role `fit`: several searches from different random starts within the
//! bounds of `bounds.rs`. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example ensemble -- CARD [MEMBERS] [TRIALS]`

use cardiograph_reproduce::{
    Experiment, Query, Recording, Role, Row, STUDIES, evaluate, fitting, in_unit, study,
};
use cardiograph_sim_card::{Profile, Seed};
use std::collections::BTreeMap;

/// Seeds of the card in each trial.
const SEEDS: [u64; 2] = [1, 2];

/// The fit rows of a card, with recordings of their experiments.
struct Rows {
    card: String,
    rows: Vec<Row>,
    recordings: BTreeMap<Experiment, Recording>,
}

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let card = args
        .first()
        .ok_or("usage: ensemble CARD [MEMBERS] [TRIALS]")?;
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text}: not a number"))
        })
    };
    let (members, trials) = (number(1, 8)?, number(2, 300)?);
    let like = Profile::named(card).map_err(|error| error.to_string())?;
    let template = fitting::template(&like);
    let rows = Rows::of(card)?;
    for member in 1..=members {
        let mut random = Seed::new(member.into()).stream("ensemble");
        let (best, loss) =
            fitting::fit(&template, trials, &mut random, |profile| rows.loss(profile));
        let ratios: Vec<String> = rows
            .ratios(&best)
            .iter()
            .map(|r| format!("{r:.2}"))
            .collect();
        println!(
            "# loss {loss:.4}; simulated / published: {}",
            ratios.join(", ")
        );
        println!("[[member]]");
        println!("{}\n", fitting::lines(&best).join("\n"));
    }
    Ok(())
}

impl Rows {
    /// Collects the published rows that the given card may be fitted to.
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

    /// Returns the ratio of the simulated to the published number for each row: the geometric mean over the seeds.
    fn ratios(&self, profile: &Profile) -> Vec<f64> {
        let mut sums = vec![0.0; self.rows.len()];
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
            for (row, sum) in self.rows.iter().zip(&mut sums) {
                let value = number(&row.query);
                let ratio = match &row.over {
                    Some(over) => value.zip(number(over)).map(|(value, over)| value / over),
                    None => value.map(|value| in_unit(value, &row.unit)),
                };
                // A row without a simulated result counts as a large deviation.
                *sum += ratio
                    .map_or(0.1, |ratio| ratio / row.published.unwrap_or(ratio))
                    .ln();
            }
        }
        sums.into_iter()
            .map(|sum| (sum / SEEDS.len() as f64).exp())
            .collect()
    }

    fn loss(&self, profile: &Profile) -> f64 {
        self.ratios(profile)
            .into_iter()
            .map(|ratio| ratio.ln().powi(2))
            .sum()
    }
}
