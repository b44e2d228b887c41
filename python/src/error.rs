//! Exceptions.

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde::Serialize;
use std::fmt::Display;

create_exception!(
    cardiograph,
    CardiographError,
    PyValueError,
    "An input that cannot be used: the sentence that the command prints, with field or file and remedy."
);

/// Creates the exception with a sentence.
pub fn error(message: impl Display) -> PyErr {
    CardiographError::new_err(message.to_string())
}

/// Serialises figures for `json.loads`.
pub fn json(figures: &impl Serialize) -> PyResult<String> {
    serde_json::to_string(figures).map_err(error)
}
