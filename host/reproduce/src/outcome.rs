//! Running the experiments of rows, and what comes out beside what was published.

use crate::experiment::{Experiment, ExperimentError, Operations};
use crate::measure;
use crate::recording::Recording;
use crate::row::{Row, Take};
use crate::two_cores;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const FIRST_SEED: u64 = 1;
/// Seeds of an experiment that a longest time is taken from: enough for an interval.
pub const SEEDS_OF_MAXIMUM: u64 = 20;
/// Seeds of the others, whose numbers hardly depend on it.
pub const SEEDS: u64 = 5;

/// A row and what came out.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The row.
    pub row: Row,
    /// The number of each seed, in the row's unit, least first.
    pub simulated: Vec<f64>,
}

impl Outcome {
    /// Median over the seeds; nothing if no run gave a number.
    pub fn median(&self) -> Option<f64> {
        let sorted = &self.simulated;
        let (low, high) = (
            sorted.get((sorted.len().max(1) - 1) / 2)?,
            sorted.get(sorted.len() / 2)?,
        );
        Some(f64::midpoint(*low, *high))
    }

    /// Least and greatest number over the seeds.
    pub fn interval(&self) -> Option<[f64; 2]> {
        Some([*self.simulated.first()?, *self.simulated.last()?])
    }

    /// Simulated over published.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.median()? / self.row.published?)
    }

    /// How far off it is either way, as a factor of at least 1.
    pub fn factor(&self) -> Option<f64> {
        self.ratio().map(|ratio| ratio.max(1.0 / ratio))
    }
}

/// An experiment with the takes of the rows that need it.
struct Job<'a> {
    experiment: &'a Experiment,
    takes: Vec<(Place, &'a Take)>,
    seeds: u64,
}

/// Number of the row, and whether the take is what the row is a ratio to.
type Place = (usize, bool);

/// Numbers of each take, in order of the seeds.
type Numbers = BTreeMap<Place, Vec<Option<f64>>>;

/// Runs the experiments of these rows on so many threads.
///
/// The first seed of each runs from file to wire. What it asked of the card is then asked of cards with
/// the other seeds: see [`Recording`]. One that cannot be replayed runs in full for each seed.
///
/// # Errors
/// The first experiment that fails, in the order of the rows.
pub fn reproduce(rows: &[Row], threads: usize) -> Result<Vec<Outcome>, ExperimentError> {
    let jobs = jobs_of(rows);
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(Ok(Vec::new()))).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = jobs.partition_point(|other| other.experiment < job.experiment);
                    let result = run(job);
                    if let Ok(mut place) = results[at].lock() {
                        *place = result;
                    }
                }
            });
        }
    });
    let mut numbers: Numbers = BTreeMap::new();
    for (job, result) in jobs.iter().zip(results) {
        let of_seeds = result
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)?;
        for values in of_seeds {
            for ((place, _), value) in job.takes.iter().zip(values) {
                numbers.entry(*place).or_default().push(value);
            }
        }
    }
    let rows = rows.iter().enumerate();
    Ok(rows
        .map(|(at, row)| outcome_of(at, row, &numbers))
        .collect())
}

fn jobs_of(rows: &[Row]) -> Vec<Job<'_>> {
    let mut jobs: BTreeMap<&Experiment, Job> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let takes = [(false, Some(&row.take)), (true, row.over.as_ref())];
        for (over, take) in takes {
            let Some(take) = take else { continue };
            if take.measure.is_of_this_computer() {
                continue;
            }
            let job = jobs.entry(&take.experiment).or_insert_with(|| Job {
                experiment: &take.experiment,
                takes: Vec::new(),
                seeds: SEEDS,
            });
            job.takes.push(((at, over), take));
            if take.measure.is_maximum() {
                job.seeds = SEEDS_OF_MAXIMUM;
            }
        }
    }
    jobs.into_values().collect()
}

/// Numbers of each take, for each seed.
fn run(job: &Job) -> Result<Vec<Vec<Option<f64>>>, ExperimentError> {
    let (_, profile, _) = job.experiment.set_up()?;
    let seeds = FIRST_SEED..FIRST_SEED + job.seeds;
    let measured = |operations: &Operations| {
        let takes = job.takes.iter();
        takes
            .map(|(_, take)| measure::take(take, operations))
            .collect::<Vec<_>>()
    };
    if !job.experiment.can_be_replayed() {
        let runs = seeds.map(|seed| Ok(measured(&job.experiment.run(seed)?)));
        return runs.collect();
    }
    let recording = Recording::of(job.experiment, FIRST_SEED)?;
    let mut of_seeds = vec![measured(recording.operations())];
    for seed in seeds.skip(1) {
        of_seeds.push(measured(&recording.on(&profile, seed)));
    }
    Ok(of_seeds)
}

fn outcome_of(at: usize, row: &Row, numbers: &Numbers) -> Outcome {
    if row.take.measure.is_of_this_computer() {
        let mut simulated = two_cores::measure(row.take.measure);
        simulated.sort_by(f64::total_cmp);
        return Outcome {
            row: row.clone(),
            simulated,
        };
    }
    let of = |over| numbers.get(&(at, over)).cloned().unwrap_or_default();
    let values = of(false).into_iter();
    let mut simulated: Vec<f64> = match &row.over {
        Some(_) => values
            .zip(of(true))
            .filter_map(|(value, over)| Some(value? / over?))
            .collect(),
        None => values
            .flatten()
            .map(|value| in_unit(value, &row.unit))
            .collect(),
    };
    simulated.sort_by(f64::total_cmp);
    Outcome {
        row: row.clone(),
        simulated,
    }
}

/// A number of a measure, in ns, bytes or B/s, in the unit of a row.
pub fn in_unit(value: f64, unit: &str) -> f64 {
    value
        / match unit {
            "ms" | "MB/s" => 1e6,
            "kB" | "kB/s" => 1e3,
            "MiB/s" => 1_048_576.0,
            _ => 1.0,
        }
}
