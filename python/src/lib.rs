//! The native part of the Python package `cardiograph`.
//!
//! ```text
//!   cardiograph/*.py ── keyword arguments, dicts, plots, Dask
//!         │ strings, numbers, JSON
//!   this crate ── releases the GIL ──> host/trace, plan, compare, store, sweep
//!         │ Arrow C stream (PyCapsule)
//!   pyarrow, polars, DuckDB
//! ```
//!
//! Long calls release the GIL. Every 50 ms they take it, look for signals and report progress; Ctrl-C ends them with
//! `KeyboardInterrupt`.

mod arguments;
mod columns;
mod error;
mod figures;
mod measure;
mod progress;
mod record;
mod set_up;
mod sweep;
mod table;

use pyo3::prelude::*;

#[pymodule]
fn cardiograph_native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add(
        "CardiographError",
        module.py().get_type::<error::CardiographError>(),
    )?;
    module.add_class::<table::Trace>()?;
    module.add_function(wrap_pyfunction!(table::read, module)?)?;
    module.add_function(wrap_pyfunction!(table::trace_of_columns, module)?)?;
    module.add_function(wrap_pyfunction!(figures::analyze, module)?)?;
    module.add_function(wrap_pyfunction!(figures::compare, module)?)?;
    module.add_function(wrap_pyfunction!(figures::plan, module)?)?;
    module.add_function(wrap_pyfunction!(measure::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(measure::bench, module)?)?;
    module.add_function(wrap_pyfunction!(record::record, module)?)?;
    module.add_class::<sweep::Sweep>()?;
    module.add_class::<sweep::Folder>()?;
    module.add_function(wrap_pyfunction!(sweep::run_part, module)?)?;
    Ok(())
}
