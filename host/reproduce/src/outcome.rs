//! Runs the experiments of rows and compares the results with the published numbers.

use crate::experiment::{Experiment, ExperimentError, Operations};
use crate::measure;
use crate::recording::Recording;
use crate::row::{Query, Row};
use crate::{stand_in, two_cores};
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
    /// Results of all members and seeds in the row's unit, in ascending order. If the row has a second set of
    /// assumptions, these are the results with both. If the number is a spread, they are divided by the lowest of the
    /// member.
    pub simulated: Vec<f64>,
    /// Median over the seeds of each member of the card's ensemble, in ascending order; one for each set of assumptions.
    /// If the number is a spread, the highest result instead.
    pub members: Vec<f64>,
    /// Number of times the driver timed out on a busy card or reader and was called again, in the run of the first member
    /// and seed, including the denominator and the second set of assumptions.
    pub driver_timeouts: u64,
}

impl Outcome {
    /// Returns the median of the members, each of which is a median over the seeds, or `None` if no run has a
    /// result.
    pub fn median(&self) -> Option<f64> {
        median_of(&self.members)
    }

    /// Returns the lowest and the highest member of an ensemble; `None` for a single card.
    pub fn range(&self) -> Option<[f64; 2]> {
        let is_ensemble = self.members.len() > 1;
        is_ensemble.then_some([*self.members.first()?, *self.members.last()?])
    }

    /// Returns true if the published number is within the range of the ensemble. A published range or upper bound must
    /// overlap with it.
    pub fn is_in_range(&self) -> bool {
        let overlap = |[least, most]: [f64; 2], [low, high]: [f64; 2]| low <= most && least <= high;
        let published = self.row.agreeing().zip(self.range());
        published.is_some_and(|(agreeing, range)| overlap(agreeing, range))
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
    /// at least 1. It is 1 within a published range and below a published upper bound.
    pub fn factor(&self) -> Option<f64> {
        let deviation = self.row.deviation(self.median()?)?;
        Some(deviation.max(1.0 / deviation))
    }
}

/// Returns the median of numbers in ascending order.
fn median_of(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (
        sorted.get((sorted.len().max(1) - 1) / 2)?,
        sorted.get(sorted.len() / 2)?,
    );
    Some(f64::midpoint(*low, *high))
}

/// An experiment with the queries of all rows that need it.
struct Job<'a> {
    experiment: &'a Experiment,
    queries: Vec<(QueryId, &'a Query)>,
    seeds: u64,
}

/// Part of a row that a query evaluates.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Value,
    Denominator,
    /// The value with the second set of assumptions.
    Other,
}

/// Number of the row, and the part of it.
type QueryId = (usize, Part);

/// Results of a query.
#[derive(Clone, Default)]
struct QueryResult {
    /// Values of each member of the card's ensemble, in order of the seeds.
    of_members: Vec<Vec<Option<f64>>>,
    driver_timeouts: u64,
}

impl QueryResult {
    /// Returns the values of a member. An ensemble over a single card, or over fewer members, starts with the first
    /// again.
    fn of_member(&self, member: usize) -> &[Option<f64>] {
        let at = member % self.of_members.len().max(1);
        self.of_members.get(at).map_or(&[], Vec::as_slice)
    }
}

type Results = BTreeMap<QueryId, QueryResult>;

/// Number of members of an ensemble that are simulated unless more are requested.
pub const MEMBERS: u16 = 3;

/// Runs the experiments of the given rows on `threads` threads, which call `progress` with the numbers of finished and
/// of all experiments. Of each card's ensemble, the first `members` are simulated.
///
/// The first seed of each experiment and member is simulated in full, from file to bus; each member has processor times of its
/// own. The card commands are then replayed on cards with the other seeds: see [`Recording`]. An experiment that cannot be replayed is
/// simulated in full for each seed.
///
/// # Errors
/// The error of the first experiment that fails, in the order of the experiments.
pub fn reproduce(
    rows: &[Row],
    threads: usize,
    members: usize,
    progress: impl Fn(u64, u64) + Sync,
) -> Result<Vec<Outcome>, ExperimentError> {
    let jobs = jobs_of(rows);
    let results: Vec<_> = jobs
        .iter()
        .map(|_| Mutex::new(Ok(Measured::default())))
        .collect();
    let (next, finished) = (AtomicUsize::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let at = jobs.partition_point(|other| other.experiment < job.experiment);
                    let result = run(job, members);
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
        let measured = result
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)?;
        for (at, (id, _)) in job.queries.iter().enumerate() {
            let of_query = |of_seeds: &OfSeeds| of_seeds.iter().map(|values| values[at]).collect();
            let result = QueryResult {
                of_members: measured.of_members.iter().map(of_query).collect(),
                driver_timeouts: measured.driver_timeouts[at],
            };
            by_query.insert(*id, result);
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
        let queries = [
            (Part::Value, Some(&row.query)),
            (Part::Denominator, row.over.as_ref()),
            (Part::Other, row.other.as_ref()),
        ];
        for (part, query) in queries {
            let Some(query) = query else { continue };
            if !query.needs_card() {
                continue;
            }
            let job = jobs.entry(&query.experiment).or_insert_with(|| Job {
                experiment: &query.experiment,
                queries: Vec::new(),
                seeds: SEEDS,
            });
            job.queries.push(((at, part), query));
            if query.measure.is_maximum() {
                job.seeds = SEEDS_OF_MAXIMUM;
            }
        }
    }
    jobs.into_values().collect()
}

/// Results of all queries of a job, for each seed.
type OfSeeds = Vec<Vec<Option<f64>>>;

/// Results of a job.
#[derive(Default)]
struct Measured {
    of_members: Vec<OfSeeds>,
    /// Time-outs of the driver in the run of the first member and seed, for each query.
    driver_timeouts: Vec<u64>,
}

/// Returns the results of each query, for each member and seed. An experiment that cannot be replayed runs on the first
/// member only.
fn run(job: &Job, members: usize) -> Result<Measured, ExperimentError> {
    let (_, profile, _) = job.experiment.set_up()?;
    let seeds = FIRST_SEED..FIRST_SEED + job.seeds;
    let evaluated = |operations: &Operations| {
        let queries = job.queries.iter();
        queries
            .map(|(_, query)| measure::evaluate(query, operations))
            .collect::<Vec<_>>()
    };
    let timeouts = |operations: &Operations| {
        let phases = job.queries.iter().map(|(_, query)| query.phase);
        phases
            .map(|phase| operations.driver_timeouts_in(phase))
            .collect()
    };
    let mut measured = Measured::default();
    if !job.experiment.can_be_replayed() {
        let mut of_seeds = OfSeeds::new();
        for seed in seeds {
            let operations = job.experiment.run(seed)?;
            of_seeds.push(evaluated(&operations));
            if seed == FIRST_SEED {
                measured.driver_timeouts = timeouts(&operations);
            }
        }
        measured.of_members.push(of_seeds);
        return Ok(measured);
    }
    let all = profile.members(&job.experiment.card);
    let all = all.map_err(|error| ExperimentError::new(error.to_string()))?;
    for (number, member) in all.iter().take(members.max(1)).enumerate() {
        let experiment = Experiment {
            host: number as u16,
            ..job.experiment.clone()
        };
        let recording = Recording::on_card(&experiment, member, FIRST_SEED)?;
        if number == 0 {
            measured.driver_timeouts = timeouts(recording.operations());
        }
        let on = |seed| match seed {
            FIRST_SEED => evaluated(recording.operations()),
            _ => evaluated(&recording.on(member, seed)),
        };
        measured.of_members.push(seeds.clone().map(on).collect());
    }
    Ok(measured)
}

fn outcome_of(at: usize, row: &Row, by_query: &Results) -> Outcome {
    let of = |part| by_query.get(&(at, part)).cloned().unwrap_or_default();
    let (value, denominator, other) = (of(Part::Value), of(Part::Denominator), of(Part::Other));
    let driver_timeouts = [&value, &denominator, &other]
        .map(|result| result.driver_timeouts)
        .iter()
        .sum();
    let (mut simulated, mut members) = (Vec::new(), Vec::new());
    if row.query.measure.runs_on_host() {
        simulated = two_cores::measure(row.query.measure);
        simulated.sort_by(f64::total_cmp);
        members.extend(median_of(&simulated));
    }
    if let Some(trace) = &row.query.trace {
        simulated.extend(of_trace(trace, row));
        members.extend(&simulated);
    }
    for (member, values) in value.of_members.iter().enumerate() {
        let values: &[Option<f64>] = values;
        let in_unit = |value: &f64| in_unit(*value, &row.unit);
        let converted = |values: &[Option<f64>]| values.iter().flatten().map(in_unit).collect();
        let of_runs: Vec<Vec<f64>> = match &row.over {
            Some(_) => {
                let pairs = values.iter().zip(denominator.of_member(member));
                let ratios = pairs.filter_map(|(value, over)| Some((*value)? / (*over)?));
                vec![ratios.collect()]
            }
            None if row.is_spread => vec![over_lowest(values)],
            None => vec![converted(values), converted(other.of_member(member))],
        };
        for mut results in of_runs {
            results.sort_by(f64::total_cmp);
            members.extend(match row.is_spread {
                true => results.last().copied(),
                false => median_of(&results),
            });
            simulated.extend(results);
        }
    }
    simulated.sort_by(f64::total_cmp);
    members.sort_by(f64::total_cmp);
    Outcome {
        row: row.clone(),
        simulated,
        members,
        driver_timeouts,
    }
}

/// Evaluates the trace of a stand-in; `None` if the trace cannot be read, which a test excludes.
fn of_trace(trace: &str, row: &Row) -> Option<f64> {
    let operations = stand_in::operations(trace).ok()?;
    let value = measure::evaluate(&row.query, &operations)?;
    Some(in_unit(value, &row.unit))
}

/// Returns the results of several runs, divided by the lowest.
fn over_lowest(values: &[Option<f64>]) -> Vec<f64> {
    let lowest = values.iter().flatten().copied().min_by(f64::total_cmp);
    let of_lowest = |lowest| values.iter().flatten().map(move |value| value / lowest);
    lowest.map(of_lowest).into_iter().flatten().collect()
}

/// Converts a result in ns, bytes or B/s to the unit of a row.
pub fn in_unit(value: f64, unit: &str) -> f64 {
    value
        / match unit {
            "s" => 1e9,
            "ms" | "MB/s" => 1e6,
            "kB" | "kB/s" => 1e3,
            "MiB/s" => 1_048_576.0,
            _ => 1.0,
        }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::study;

    fn row(quantity: &str) -> Row {
        let rows = study("magod2").unwrap().rows;
        rows.into_iter()
            .find(|row| row.quantity == quantity)
            .unwrap()
    }

    /// Returns the outcome for results of each member and seed, in ns.
    fn outcome(row: &Row, values: &[&[f64]], over: &[&[f64]]) -> Outcome {
        let all = |values: &[&[f64]]| {
            let of_member = |seeds: &&[f64]| seeds.iter().map(|value| Some(*value)).collect();
            QueryResult {
                of_members: values.iter().map(of_member).collect(),
                driver_timeouts: 0,
            }
        };
        let results = Results::from([
            ((0, Part::Value), all(values)),
            ((0, Part::Denominator), all(over)),
        ]);
        outcome_of(0, row, &results)
    }

    #[test]
    fn an_ensemble_has_the_median_and_the_range_of_its_members_medians() {
        let row = row("highest peak, open/close");
        let found = outcome(
            &row,
            &[&[1e6, 2e6, 90e6], &[5e6, 5e6, 5e6], &[300e6, 9e6, 1e6]],
            &[],
        );
        assert_eq!(found.members, [2.0, 5.0, 9.0]);
        assert_eq!(
            (found.median(), found.range()),
            (Some(5.0), Some([2.0, 9.0]))
        );
        assert_eq!(found.interval(), Some([1.0, 300.0]));
        // Published: 100 ms.
        assert!(!found.is_in_range());
        assert!(outcome(&row, &[&[90e6], &[110e6]], &[]).is_in_range());
    }

    /// The stand-in waits for 2 ms and 40 ms; the board's calls and its clock of 4 us add less than 60 us.
    #[test]
    fn a_stand_in_is_evaluated_from_its_trace_and_never_fitted_to() {
        let rows = study("arduino-bytes").unwrap().rows.into_iter();
        let rows: Vec<Row> = rows.filter(|row| row.query.trace.is_some()).collect();
        assert_eq!(rows.len(), 2);
        let outcomes = reproduce(&rows, 1, 1, |_, _| ()).unwrap();
        for (outcome, wait_ms) in outcomes.iter().zip([2.0, 40.0]) {
            let found_ms = outcome.median().unwrap();
            assert!((wait_ms..wait_ms + 0.06).contains(&found_ms), "{found_ms}");
            assert_eq!(outcome.row.published, None);
            assert_ne!(outcome.row.role, crate::Role::Fit);
            assert!(!outcome.row.is_counted());
            assert_eq!(outcome.verdict(), "not a card");
        }
    }

    #[test]
    fn a_single_card_has_no_range() {
        let row = row("highest peak, open/close");
        let found = outcome(&row, &[&[90e6, 100e6, 130e6]], &[]);
        assert_eq!((found.median(), found.range()), (Some(100.0), None));
        assert!(!found.is_in_range());
    }

    #[test]
    fn ratios_pair_members_and_seeds() {
        let row = row("ratio of slow / fast writes, kept open");
        let found = outcome(
            &row,
            &[&[10.0, 20.0], &[30.0, 60.0]],
            &[&[1.0, 2.0], &[3.0, 2.0]],
        );
        assert_eq!(found.members, [10.0, 20.0]);
        // The denominator is a single card.
        let found = outcome(&row, &[&[10.0, 20.0], &[30.0, 60.0]], &[&[1.0, 2.0]]);
        assert_eq!(found.members, [10.0, 30.0]);
    }

    #[test]
    fn a_second_set_of_assumptions_forms_a_range() {
        let row = row("highest peak, open/close");
        let one = |value_ns: f64, driver_timeouts| QueryResult {
            of_members: vec![vec![Some(value_ns)]],
            driver_timeouts,
        };
        let results = Results::from([
            ((0, Part::Value), one(90e6, 2)),
            ((0, Part::Other), one(30e6, 1)),
        ]);
        let found = outcome_of(0, &row, &results);
        assert_eq!(
            (found.interval(), found.median(), found.driver_timeouts),
            (Some([30.0, 90.0]), Some(60.0), 3)
        );
        assert_eq!(found.range(), Some([30.0, 90.0]));
    }

    /// Returns the factor by which two members' results, in ms, are off, and true if the published number is in their range.
    fn judged(row: &Row, members_ms: [f64; 2]) -> (Option<f64>, bool) {
        let [low, high] = members_ms.map(|ms| [ms * 1e6]);
        let found = outcome(row, &[&low, &high], &[]);
        (found.factor(), found.is_in_range())
    }

    #[test]
    fn a_number_below_an_upper_bound_is_exact() {
        let bound = Row {
            published: Some(20.0),
            is_upper_bound: true,
            ..row("highest peak, open/close")
        };
        let found = |members| judged(&bound, members);
        assert_eq!(found([5.0, 15.0]), (Some(1.0), true));
        assert_eq!(found([18.0, 26.0]), (Some(1.1), true));
        assert_eq!(found([30.0, 50.0]), (Some(2.0), false));
        assert_eq!(found([0.0, 0.0]), (Some(1.0), true));
    }

    #[test]
    fn a_number_within_a_published_range_is_exact() {
        let row = Row {
            published: Some(6.0),
            published_range: Some([4.5, 7.5]),
            ..row("highest peak, open/close")
        };
        let found = |members| judged(&row, members);
        assert_eq!(found([5.0, 6.0]), (Some(1.0), true));
        assert_eq!(found([7.0, 11.0]), (Some(1.2), true));
        assert_eq!(found([8.0, 10.0]), (Some(1.2), false));
        assert_eq!(found([2.0, 2.5]), (Some(2.0), false));
    }

    #[test]
    fn the_spread_of_a_card_is_its_highest_result_over_its_lowest() {
        let row = Row {
            is_spread: true,
            unit: "1".to_string(),
            ..row("highest peak, open/close")
        };
        let found = outcome(
            &row,
            &[&[20e6, 30e6, 10e6], &[40e6, 40e6, 44e6], &[5e6, 5e6, 5e6]],
            &[],
        );
        assert_eq!(found.members, [1.0, 1.1, 3.0]);
        assert_eq!(found.interval(), Some([1.0, 3.0]));
    }
}
