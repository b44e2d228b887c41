//! Figures of traces and plans, as the JSON of the command.

use crate::arguments::{optional, real, whole};
use crate::error::{error, json};
use crate::progress::{Callback, Job, Watch, in_background};
use crate::set_up::simulated;
use crate::table::{block_options, load, options, size};
use cardiograph_plan::{
    Logger, Plan, Ranking, comparison, plan_file, plan_simulated_with_progress,
};
use cardiograph_report::{Report, figures_of};
use cardiograph_sim_card::{Board, Profile};
use cardiograph_trace::ReadOptions;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// Analyses a file; returns the figures of `cardiograph analyze --json`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes them by position")]
pub fn analyze(
    py: Python<'_>,
    path: PathBuf,
    stall_threshold_us: &Bound<'_, PyAny>,
    block_bytes: &Bound<'_, PyAny>,
    time_unit: &Bound<'_, PyAny>,
    time_column: &Bound<'_, PyAny>,
    latency_column: &Bound<'_, PyAny>,
    progress: Callback,
) -> PyResult<String> {
    let stall_threshold_ns = threshold_ns(stall_threshold_us)?;
    let options = options(block_bytes, time_unit, time_column, latency_column)?;
    py.detach(|| {
        let watch = Watch::new(&progress, size(&path));
        in_background(watch, move |job| {
            let report = figures_of(load(&path, &options, job)?, stall_threshold_ns);
            json(&report.summary_with_warnings())
        })
    })
}

/// Parses a stall threshold in us.
pub fn threshold_ns(value: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let us = optional(value, |us| real("stall_threshold_us", us, 0.001..=1e15))?;
    Ok(us.map(|us| (us * 1000.0).round() as u64))
}

/// Compares files; returns the figures of `cardiograph compare --json`.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    block_bytes: &Bound<'_, PyAny>,
    progress: Callback,
) -> PyResult<String> {
    if paths.len() < 2 {
        return Err(error(
            "compare needs at least two traces; pass another path",
        ));
    }
    let options = block_options(block_bytes)?;
    py.detach(|| {
        let total = paths.iter().map(|path| size(path)).sum();
        in_background(Watch::new(&progress, total), move |job| {
            let reports = paths.iter().map(|path| report(path, &options, job));
            let reports = reports.collect::<PyResult<Vec<_>>>()?;
            json(&comparison::compare(&reports, &comparison::Need::default()).map_err(error)?)
        })
    })
}

fn report(path: &Path, options: &ReadOptions, job: &Job) -> PyResult<Report> {
    let mut report = figures_of(load(path, options, job)?, None);
    report.summary.target = path.display().to_string();
    Ok(report)
}

/// Plans a logger; returns the only result of `cardiograph plan --json`.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes them by position")]
pub fn plan(
    py: Python<'_>,
    source: PathBuf,
    rate_hz: &Bound<'_, PyAny>,
    sample_bytes: &Bound<'_, PyAny>,
    run_s: &Bound<'_, PyAny>,
    buffer_bytes: &Bound<'_, PyAny>,
    block_bytes: &Bound<'_, PyAny>,
    progress: Callback,
) -> PyResult<String> {
    let logger = Logger {
        sample_rate_hz: real("rate_hz", rate_hz, 1e-3..=1e9)?,
        sample_bytes: whole("sample_bytes", sample_bytes, 1..=1 << 20)?,
        run_s: real("run_s", run_s, 1.0..=1.8e10)?,
        buffer_bytes: whole("buffer_bytes", buffer_bytes, 1..=1 << 40)?,
    };
    let options = block_options(block_bytes)?;
    let name = source.display().to_string();
    let set_up = simulated(&name)?;
    py.detach(|| {
        let planned = match &set_up {
            Some(set_up) => (plan_card(&name, set_up, &logger, &progress)?, true),
            None => {
                let watch = Watch::new(&progress, size(&source));
                in_background(watch, move |job| {
                    let loaded = load(&source, &options, job)?;
                    plan_file(&name, &loaded, &logger).map_err(error)
                })?
            }
        };
        let ranking = Ranking::of(vec![planned], logger.buffer_bytes);
        json(&ranking.cards.first())
    })
}

/// Plans for a simulated card; steps are members of its ensemble.
fn plan_card(
    source: &str,
    (profile, board): &(Profile, Board),
    logger: &Logger,
    progress: &Callback,
) -> PyResult<Plan> {
    let members = profile.members(source).map_err(error)?.len();
    let mut watch = Watch::new(progress, members as u64);
    let plan = plan_simulated_with_progress(source, (profile, board), logger, &mut |planned| {
        watch.show(planned as u64)
    });
    watch.end(plan.map_err(|failed| error(format!("{source}: {failed}"))))
}
