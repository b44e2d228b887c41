//! Figures of traces and plans, as the JSON of the command.

use crate::error::{error, json};
use crate::progress::Callback;
use crate::set_up::simulated;
use crate::table::{load, options};
use cardiograph_plan::{Logger, Source, comparison, plan as plan_of, plan_simulated};
use cardiograph_report::{Report, figures_of};
use cardiograph_trace::{Loaded, ReadOptions};
use pyo3::prelude::*;
use std::path::{Path, PathBuf};

/// Analyses a file; returns the figures of `cardiograph analyze --json`.
#[pyfunction]
#[pyo3(signature = (path, stall_threshold_ns, block_bytes, time_unit, time_column, latency_column, progress))]
#[allow(clippy::too_many_arguments, reason = "Python passes them by position")]
pub fn analyze(
    py: Python<'_>,
    path: PathBuf,
    stall_threshold_ns: Option<u64>,
    block_bytes: u64,
    time_unit: Option<&str>,
    time_column: Option<String>,
    latency_column: Option<String>,
    progress: Callback,
) -> PyResult<String> {
    let options = options(block_bytes, time_unit, time_column, latency_column)?;
    py.detach(|| {
        let report = figures_of(load(&path, &options, &progress)?, stall_threshold_ns);
        json(&report.summary_with_warnings())
    })
}

/// Compares files; returns the figures of `cardiograph compare --json`.
#[pyfunction]
pub fn compare(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    block_bytes: u64,
    progress: Callback,
) -> PyResult<String> {
    if paths.len() < 2 {
        return Err(error(
            "compare needs at least two traces; pass another path",
        ));
    }
    let options = options(block_bytes, None, None, None)?;
    py.detach(|| {
        let reports = paths.iter().map(|path| report(path, &options, &progress));
        let reports = reports.collect::<PyResult<Vec<_>>>()?;
        json(&comparison::compare(&reports).map_err(error)?)
    })
}

fn report(path: &Path, options: &ReadOptions, progress: &Callback) -> PyResult<Report> {
    let mut report = figures_of(load(path, options, progress)?, None);
    report.summary.target = path.display().to_string();
    Ok(report)
}

/// Plans a logger; returns the figures of a plan.
#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "Python passes them by position")]
pub fn plan(
    py: Python<'_>,
    source: String,
    rate_hz: f64,
    sample_bytes: u64,
    run_s: f64,
    buffer_bytes: u64,
    block_bytes: u64,
    progress: Callback,
) -> PyResult<String> {
    let within =
        |name: &str, value: f64, least: f64, most: f64| match (least..=most).contains(&value) {
            true => Ok(()),
            false => Err(error(format!(
                "{name} is {value}; it must be {least} to {most}"
            ))),
        };
    within("rate_hz", rate_hz, 1e-3, 1e9)?;
    within("sample_bytes", sample_bytes as f64, 1.0, (1 << 20) as f64)?;
    within("run_s", run_s, 1.0, 1.8e10)?;
    within(
        "buffer_bytes",
        buffer_bytes as f64,
        1.0,
        (1_u64 << 40) as f64,
    )?;
    let logger = Logger {
        sample_rate_hz: rate_hz,
        sample_bytes,
        run_s,
        buffer_bytes,
    };
    let options = options(block_bytes, None, None, None)?;
    let set_up = simulated(&source)?;
    py.detach(|| {
        if let Some((profile, board)) = set_up {
            let plan = plan_simulated(&source, (&profile, &board), &logger);
            return json(&plan.map_err(|failed| error(format!("{source}: {failed}")))?);
        }
        let Loaded::Trace(trace) = load(Path::new(&source), &options, &progress)? else {
            return Err(error(format!(
                "{source}: contains no individual writes; use a trace of writes, such as one from `cardiograph bench \
                 --trace`"
            )));
        };
        let plan = plan_of(&trace, Source::Trace, &logger);
        let mut plan = plan.map_err(|failed| error(format!("{source}: {failed}")))?;
        plan.target = source;
        json(&plan)
    })
}
