//! Runs the experiments of rows and compares the results with the published numbers.

use crate::experiment::{Experiment, ExperimentError, Operations};
use crate::measure;
use crate::recording::Recording;
use crate::row::{Query, Row};
use crate::two_cores;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

const FIRST_SEED: u64 = 1;
/// Number of seeds for experiments evaluated for a maximum: enough for an interval.
pub const SEEDS_OF_MAXIMUM: u64 = 20;
/// Number of seeds for all other experiments, whose results hardly depend on the seed.
pub const SEEDS: u64 = 5;

/// A row and its simulated results.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The published row.
    pub row: Row,
    /// Results of all seeds in the row's unit, in ascending order.
    pub simulated: Vec<f64>,
}

impl Outcome {
    /// Returns the median over the seeds, or `None` if no run has a result.
    pub fn median(&self) -> Option<f64> {
        let sorted = &self.simulated;
        let (low, high) = (
            sorted.get((sorted.len().max(1) - 1) / 2)?,
            sorted.get(sorted.len() / 2)?,
        );
        Some(f64::midpoint(*low, *high))
    }

    /// Returns the lowest and the highest result over the seeds.
    pub fn interval(&self) -> Option<[f64; 2]> {
        Some([*self.simulated.first()?, *self.simulated.last()?])
    }

    /// Returns the simulated median divided by the published number.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.median()? / self.row.published?)
    }

    /// Returns the deviation of the simulated from the published number in either direction, as a factor of
    /// at least 1.
    pub fn factor(&self) -> Option<f64> {
        self.ratio().map(|ratio| ratio.max(1.0 / ratio))
    }
}

/// An experiment with the queries of all rows that need it.
struct Job<'a> {
    experiment: &'a Experiment,
    queries: Vec<(QueryId, &'a Query)>,
    seeds: u64,
}

/// Number of the row, and true if the query is the row's denominator.
type QueryId = (usize, bool);

/// Results of each query, in order of the seeds.
type Results = BTreeMap<QueryId, Vec<Option<f64>>>;

/// Runs the experiments of the given rows on `threads` threads, which call `progress` with the numbers of finished and
/// of all experiments.
///
/// The first seed of each experiment is simulated in full, from file to bus. Its card commands are then
/// replayed on cards with the other seeds: see [`Recording`]. An experiment that cannot be replayed is
/// simulated in full for each seed.
///
/// # Errors
/// The error of the first experiment that fails, in the order of the experiments.
pub fn reproduce(
    rows: &[Row],
    threads: usize,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Vec<Outcome>, ExperimentError> {
    let jobs = jobs_of(rows);
    let results: Vec<_> = jobs.iter().map(|_| Mutex::new(Ok(Vec::new()))).collect();
    let (next, finished) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = jobs.partition_point(|other| other.experiment < job.experiment);
                    let result = run(job);
                    progress(
                        finished.fetch_add(1, Ordering::Relaxed) + 1,
                        jobs.len() as u64,
                    );
                    if let Ok(mut slot) = results[at].lock() {
                        *slot = result;
                    }
                }
            });
        }
    });
    let mut by_query: Results = BTreeMap::new();
    for (job, result) in jobs.iter().zip(results) {
        let of_seeds = result
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)?;
        for values in of_seeds {
            for ((id, _), value) in job.queries.iter().zip(values) {
                by_query.entry(*id).or_default().push(value);
            }
        }
    }
    let rows = rows.iter().enumerate();
    Ok(rows
        .map(|(at, row)| outcome_of(at, row, &by_query))
        .collect())
}

fn jobs_of(rows: &[Row]) -> Vec<Job<'_>> {
    let mut jobs: BTreeMap<&Experiment, Job> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        let queries = [(false, Some(&row.query)), (true, row.over.as_ref())];
        for (over, query) in queries {
            let Some(query) = query else { continue };
            if query.measure.runs_on_host() {
                continue;
            }
            let job = jobs.entry(&query.experiment).or_insert_with(|| Job {
                experiment: &query.experiment,
                queries: Vec::new(),
                seeds: SEEDS,
            });
            job.queries.push(((at, over), query));
            if query.measure.is_maximum() {
                job.seeds = SEEDS_OF_MAXIMUM;
            }
        }
    }
    jobs.into_values().collect()
}

/// Returns the results of each query, for each seed.
fn run(job: &Job) -> Result<Vec<Vec<Option<f64>>>, ExperimentError> {
    let (_, profile, _) = job.experiment.set_up()?;
    let seeds = FIRST_SEED..FIRST_SEED + job.seeds;
    let measured = |operations: &Operations| {
        let queries = job.queries.iter();
        queries
            .map(|(_, query)| measure::evaluate(query, operations))
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

fn outcome_of(at: usize, row: &Row, by_query: &Results) -> Outcome {
    if row.query.measure.runs_on_host() {
        let mut simulated = two_cores::measure(row.query.measure);
        simulated.sort_by(f64::total_cmp);
        return Outcome {
            row: row.clone(),
            simulated,
        };
    }
    let of = |over| by_query.get(&(at, over)).cloned().unwrap_or_default();
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

/// Converts a result in ns, bytes or B/s to the unit of a row.
pub fn in_unit(value: f64, unit: &str) -> f64 {
    value
        / match unit {
            "ms" | "MB/s" => 1e6,
            "kB" | "kB/s" => 1e3,
            "MiB/s" => 1_048_576.0,
            _ => 1.0,
        }
}
