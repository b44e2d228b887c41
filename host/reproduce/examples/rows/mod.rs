//! The published rows that a card may be fitted to, for the example `ensemble`.

use cardiograph_reproduce::{
    Experiment, Query, Recording, Role, Row, STUDIES, evaluate, in_unit, study,
};
use cardiograph_sim_card::{Operation, Profile, TimedOperation as Call};
use std::collections::BTreeMap;

/// The fit rows of a card, with recordings of their experiments.
pub struct Rows {
    card: String,
    /// The rows.
    pub rows: Vec<Row>,
    recordings: BTreeMap<Experiment, Recording>,
    /// Cards that rows compare with this one.
    others: BTreeMap<String, Profile>,
}

impl Rows {
    /// Collects the published rows with the role `fit` of the given card, on boards with the processor times of a member. Rows
    /// of downloads fit the web server, not the card. A card with `ftl.receive_pages` must have the smallest pages
    /// ([`cardiograph_reproduce::Recording`]).
    pub fn of(card: &str, member: u16) -> Result<Rows, String> {
        let mut rows = Vec::new();
        for name in STUDIES {
            rows.extend(study(name)?.rows);
        }
        rows.retain(|row| row.role == Role::Fit && row.query.experiment.card == card);
        rows.retain(|row| row.query.experiment.server.is_none());
        let (mut recordings, mut others) = (BTreeMap::new(), BTreeMap::new());
        for row in &mut rows {
            for query in std::iter::once(&mut row.query).chain(&mut row.over) {
                let experiment = &mut query.experiment;
                experiment.host = member;
                if !recordings.contains_key(experiment) {
                    let recording = Recording::of(experiment, 1).map_err(|e| e.to_string())?;
                    recordings.insert(experiment.clone(), recording);
                }
                let other = &experiment.card;
                if other != card {
                    let profile = Profile::named(other).map_err(|e| e.to_string())?;
                    let members = profile.members(other).map_err(|e| e.to_string())?;
                    let at = usize::from(member) % members.len();
                    others.insert(other.clone(), members[at].clone());
                }
            }
        }
        Ok(Rows {
            card: card.to_string(),
            rows,
            recordings,
            others,
        })
    }

    /// Returns the ratio of the simulated to the published number for each row, in runs with one seed.
    pub fn ratios(&self, profile: &Profile, seed: u64) -> Vec<f64> {
        let mut runs = BTreeMap::new();
        let mut number = |query: &Query| {
            let experiment = &query.experiment;
            let run = runs.entry(experiment.clone()).or_insert_with(|| {
                let recording = &self.recordings[experiment];
                let card = match experiment.card == self.card {
                    true => profile,
                    false => &self.others[&experiment.card],
                };
                recording.on(card, seed)
            });
            evaluate(query, run)
        };
        let ratio = |row: &Row| {
            let value = number(&row.query);
            let simulated = match &row.over {
                Some(over) => value.zip(number(over)).map(|(value, over)| value / over),
                None => value.map(|value| in_unit(value, &row.unit)),
            };
            // A row without a simulated result counts as a large deviation.
            simulated.map_or(0.1, |simulated| row.deviation(simulated).unwrap_or(1.0))
        };
        self.rows.iter().map(ratio).collect()
    }

    /// Returns the median ratio of each row over several seeds.
    pub fn medians(&self, profile: &Profile, seeds: impl IntoIterator<Item = u64>) -> Vec<f64> {
        let runs = seeds.into_iter().map(|seed| self.ratios(profile, seed));
        let runs: Vec<Vec<f64>> = runs.collect();
        let median = |at: usize| {
            let mut ratios: Vec<f64> = runs.iter().map(|run| run[at]).collect();
            ratios.sort_by(f64::total_cmp);
            ratios[ratios.len() / 2]
        };
        (0..self.rows.len()).map(median).collect()
    }

    /// Returns the number of runs whose median is compared, each on a card in a state of its own. One garbage collection decides
    /// a short run, so that it takes more of them.
    pub fn states(&self) -> usize {
        let is_write = |call: &&Call| matches!(call.operation, Operation::Write { .. });
        let writes = |recording: &Recording| recording.calls().iter().filter(is_write).count();
        match self.recordings.values().map(writes).max() {
            Some(most) if most >= WRITES_OF_SHORT_RUNS => 3,
            _ => 15,
        }
    }
}

/// Number of writes to the card below which runs are short.
const WRITES_OF_SHORT_RUNS: usize = 100;

/// Deviation, as a natural logarithm, beyond which a row counts less and less: 25 %.
const SCALE: f64 = 0.223;

/// Returns the sum of the squared logarithms, with the weights of a Cauchy distribution (Huber and Ronchetti, Robust
/// Statistics, 2009): a row that no card within the bounds explains does not spoil the others.
pub fn loss(ratios: &[f64]) -> f64 {
    let of = |ratio: &f64| (ratio.ln() / SCALE).powi(2).ln_1p();
    SCALE.powi(2) * ratios.iter().map(of).sum::<f64>()
}

/// Returns the sum of the squared excesses of deviations over 25 %: 0 if all rows are within it.
pub fn distance(ratios: &[f64]) -> f64 {
    let of = |ratio: &f64| (ratio.ln().abs() / SCALE - 1.0).max(0.0).powi(2);
    ratios.iter().map(of).sum()
}
