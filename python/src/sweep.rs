//! Sweeps, on this computer or in parts on a cluster.

use crate::arguments::{optional, whole};
use crate::error::{error, json};
use crate::progress::{Callback, Watch};
use cardiograph_sweep::{
    Answer, Figures, Finished, ResultFolder, Sweep as Specified, html, run as run_sweep,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// A sweep that has been checked.
#[pyclass(frozen, module = "cardiograph")]
pub struct Sweep(Specified);

#[pymethods]
impl Sweep {
    /// Parses TOML text; `name` begins messages.
    #[new]
    fn new(name: &str, text: &str, folder: PathBuf) -> PyResult<Sweep> {
        Specified::from_toml(name, text, &folder)
            .map(Sweep)
            .map_err(error)
    }

    #[getter]
    fn tasks(&self) -> u64 {
        self.0.tasks()
    }

    #[getter]
    fn parts(&self) -> u64 {
        self.0.parts()
    }

    #[getter]
    fn cost_s(&self) -> f64 {
        self.0.cost_s()
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn tasks_of_part(&self, part: u64) -> PyResult<u64> {
        check_part(&self.0, part)?;
        let tasks = self.0.tasks_of_part(part);
        Ok(tasks.end - tasks.start)
    }

    /// Opens or creates the folder of the results.
    fn open(&self, path: PathBuf) -> PyResult<Folder> {
        ResultFolder::open(&path, &self.0)
            .map(Folder)
            .map_err(error)
    }

    /// Runs all missing parts on `threads` threads.
    fn run(
        &self,
        py: Python<'_>,
        folder: &Folder,
        threads: &Bound<'_, PyAny>,
        progress: Callback,
    ) -> PyResult<()> {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get());
        let threads = optional(threads, |threads| whole("threads", threads, 1..=1024))?;
        let threads = threads.map_or_else(cores, |threads| threads as usize);
        py.detach(|| {
            let mut watch = Watch::new(&progress, self.0.tasks());
            let finished = run_sweep(&self.0, &folder.0, threads, &mut |now| watch.show(now.done));
            watch.end(match finished.map_err(error) {
                Ok(Finished::Complete) => Ok(()),
                Ok(Finished::Stopped(_)) => {
                    Err(error("the sweep was stopped; call sweep again to continue"))
                }
                Err(failed) => Err(failed),
            })
        })
    }

    /// Returns the answer as the only result of `cardiograph sweep --json`, once all results are there.
    fn answer(&self, py: Python<'_>, folder: &Folder) -> PyResult<String> {
        py.detach(|| {
            json(&Figures {
                answer: &self.read(folder)?,
                check: None,
                plan_differences: None,
            })
        })
    }

    /// Returns the page of the answer.
    fn html(&self, py: Python<'_>, folder: &Folder) -> PyResult<String> {
        py.detach(|| Ok(html(&self.read(folder)?, None, None)))
    }
}

impl Sweep {
    fn read(&self, folder: &Folder) -> PyResult<Answer> {
        Answer::read(&self.0, &folder.0).map_err(error)
    }
}

/// The folder of a sweep's results, locked against other processes until `unlock`.
#[pyclass(frozen, module = "cardiograph")]
pub struct Folder(ResultFolder);

#[pymethods]
impl Folder {
    #[getter]
    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Unlocks the folder, which is not used any more.
    fn unlock(&self) {
        self.0.unlock();
    }

    /// Returns the parts without results.
    fn missing(&self, sweep: &Sweep) -> Vec<u64> {
        self.0.missing(&sweep.0)
    }

    /// Writes the results of a part.
    fn write(&self, sweep: &Sweep, part: u64, file: &[u8]) -> PyResult<()> {
        check_part(&sweep.0, part)?;
        self.0.write(&sweep.0, part, file).map_err(error)
    }
}

fn check_part(sweep: &Specified, part: u64) -> PyResult<()> {
    match part < sweep.parts() {
        true => Ok(()),
        false => Err(error(format!(
            "part is {part}; it must be below {}",
            sweep.parts()
        ))),
    }
}

/// Runs a part of a sweep that is given as JSON; returns its Parquet file. A pure function.
#[pyfunction]
pub fn run_part<'py>(py: Python<'py>, sweep: &str, part: u64) -> PyResult<Bound<'py, PyBytes>> {
    let sweep = Specified::from_json(sweep).map_err(error)?;
    check_part(&sweep, part)?;
    let bytes = py.detach(|| {
        let none: Callback = None;
        let watch = RefCell::new(Watch::new(&none, 0));
        let look = || watch.borrow_mut().show(0).is_break();
        let bytes = sweep.run_part(part, &look, &mut || ());
        let stopped = || error("the part was stopped; run it again");
        let bytes = bytes.map_err(error);
        watch
            .into_inner()
            .end(bytes.and_then(|bytes| bytes.ok_or_else(stopped)))
    })?;
    Ok(PyBytes::new(py, &bytes))
}
