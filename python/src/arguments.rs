//! Arguments from Python. Errors name the argument, its value and the permitted range.

use crate::error::error;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat};
use std::fmt::Display;
use std::ops::RangeInclusive;

/// Longest value in a message, in characters.
const SHOWN_MAX: usize = 40;

/// Returns a whole number in a range.
pub fn whole(name: &str, value: &Bound<PyAny>, range: RangeInclusive<u64>) -> PyResult<u64> {
    let number = value.extract::<u64>().ok().filter(|_| !is_bool(value));
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| outside(name, value, "whole number", &range))
}

/// Returns a number in a range.
pub fn real(name: &str, value: &Bound<PyAny>, range: RangeInclusive<f64>) -> PyResult<f64> {
    let number = value.extract::<f64>().ok().filter(|_| !is_bool(value));
    let number = number.filter(|number| range.contains(number));
    number.ok_or_else(|| outside(name, value, "number", &range))
}

/// Returns a text.
pub fn text(name: &str, value: &Bound<PyAny>) -> PyResult<String> {
    let text = value.extract::<String>();
    text.map_err(|_| error(format!("{name} is {}; use a text", shown(value))))
}

/// Returns the name of a column, or its number as a text.
pub fn column(name: &str, value: &Bound<PyAny>) -> PyResult<String> {
    let number = value.extract::<u64>().ok().filter(|_| !is_bool(value));
    match number {
        Some(number) if number > 0 => Ok(number.to_string()),
        _ => text(name, value).map_err(|_| {
            error(format!(
                "{name} is {}; use the name of a column, or its number: columns are counted from 1",
                shown(value)
            ))
        }),
    }
}

/// Returns a truth value.
pub fn flag(name: &str, value: &Bound<PyAny>) -> PyResult<bool> {
    let flag = value.extract::<bool>();
    flag.map_err(|_| error(format!("{name} is {}; use True or False", shown(value))))
}

/// Parses a value that may be `None`.
pub fn optional<'py, T>(
    value: &Bound<'py, PyAny>,
    parse: impl FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
) -> PyResult<Option<T>> {
    match value.is_none() {
        true => Ok(None),
        false => parse(value).map(Some),
    }
}

/// Python's `bool` is a subtype of `int`.
fn is_bool(value: &Bound<PyAny>) -> bool {
    value.is_instance_of::<PyBool>()
}

fn outside<T: Display>(
    name: &str,
    value: &Bound<PyAny>,
    kind: &str,
    range: &RangeInclusive<T>,
) -> PyErr {
    error(format!(
        "{name} is {}; use a {kind} from {} to {}",
        shown(value),
        range.start(),
        range.end()
    ))
}

/// Formats a value as Python does, on one line; shortens long ones.
pub fn shown(value: &Bound<PyAny>) -> String {
    let Ok(repr) = value.repr().map(|repr| repr.to_string()) else {
        // Python refuses to format whole numbers of more than 4300 digits, for example.
        let kind = value.get_type().name();
        return kind.map_or("an object".to_string(), |kind| {
            format!("a value of type {kind}")
        });
    };
    if value.is_instance_of::<PyFloat>() {
        return repr.replace("e+", "e");
    }
    let line = repr.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.chars().count() > SHOWN_MAX {
        true => line.chars().take(SHOWN_MAX).chain("...".chars()).collect(),
        false => line,
    }
}
