//! The published rows that a card may be fitted to, for the example `ensemble`.

use cardiograph_reproduce::{
    Experiment, Query, Recording, Role, Row, STUDIES, evaluate, in_unit, study,
};
use cardiograph_sim_card::Profile;
use std::collections::BTreeMap;

/// The fit rows of a card, with recordings of their experiments.
pub struct Rows {
    card: String,
    /// The rows.
    pub rows: Vec<Row>,
    recordings: BTreeMap<Experiment, Recording>,
}

impl Rows {
    /// Collects the published rows with the role `fit` of the given card. Rows of downloads fit the web server, not the card.
    pub fn of(card: &str) -> Result<Rows, String> {
        let mut rows = Vec::new();
        for name in STUDIES {
            rows.extend(study(name)?.rows);
        }
        rows.retain(|row| row.role == Role::Fit && row.query.experiment.card == card);
        rows.retain(|row| row.query.experiment.server.is_none());
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

    /// Returns an average, over the given seeds of the card, of the ratio of the simulated to the published number, for
    /// each row.
    pub fn ratios(
        &self,
        profile: &Profile,
        seeds: &[u64],
        average: fn(Vec<f64>) -> f64,
    ) -> Vec<f64> {
        let mut ratios = vec![Vec::new(); self.rows.len()];
        for seed in seeds {
            let mut runs = BTreeMap::new();
            let mut number = |query: &Query| {
                let experiment = &query.experiment;
                let run = runs.entry(experiment.clone()).or_insert_with(|| {
                    let recording = &self.recordings[experiment];
                    match experiment.card == self.card {
                        true => recording.on(profile, *seed),
                        false => recording.operations().clone(),
                    }
                });
                evaluate(query, run)
            };
            for (row, ratios) in self.rows.iter().zip(&mut ratios) {
                let value = number(&row.query);
                let ratio = match &row.over {
                    Some(over) => value.zip(number(over)).map(|(value, over)| value / over),
                    None => value.map(|value| in_unit(value, &row.unit)),
                };
                // A row without a simulated result counts as a large deviation.
                ratios.push(ratio.map_or(0.1, |ratio| ratio / row.published.unwrap_or(ratio)));
            }
        }
        ratios.into_iter().map(average).collect()
    }
}

/// Deviation, as a natural logarithm, beyond which a row counts less and less: 25 %.
const SCALE: f64 = 0.223;

/// Returns the sum of the squared logarithms, with the weights of a Cauchy distribution (Huber and Ronchetti, Robust
/// Statistics, 2009): a row that no card within the bounds explains does not spoil the others.
pub fn loss(ratios: &[f64]) -> f64 {
    let of = |ratio: &f64| (ratio.ln() / SCALE).powi(2).ln_1p();
    SCALE.powi(2) * ratios.iter().map(of).sum::<f64>()
}
