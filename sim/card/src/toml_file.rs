//! Profiles and boards as TOML, and their error messages.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::ops::RangeInclusive;

/// Returns the names and the texts of profiles.
macro_rules! profiles {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),*]
    };
}

/// Bundled cards: name and TOML.
pub const CARDS: &[(&str, &str)] = profiles![
    "generic-16g-class10",
    "generic-8g-class4",
    "generic-8g-third",
    "team-8g",
    "sandisk-edge-8g-class4",
    "kingston-8g-class10",
    "toshiba-8g-class4",
    "panasonic-1g",
    "apacer-1g",
    "sandisk-industrial-8g-mlc",
    "sandisk-extreme-ii-2g",
    "sandisk-1g-2008",
    "kingston-2g-2010",
    "kioxia-16g-tlc",
];

/// Cards with `model = 1`: fixtures of tests and of published benchmarks, which no list offers.
pub const FIXTURES: &[(&str, &str)] = profiles![
    "class10-16g",
    "team-8g-class10",
    "sandisk-edge-8g",
    "kingston-8g",
    "toshiba-8g",
    "panasonic-1g-slc",
    "apacer-1g-slc",
    "sandisk-industrial-8g",
];

/// Returns the text of the bundled card or fixture of this name; see [`CARDS`] and [`FIXTURES`].
pub fn card_text(name: &str) -> Option<&'static str> {
    let mut all = CARDS.iter().chain(FIXTURES);
    all.find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Bundled boards: name and TOML.
pub const BOARDS: &[(&str, &str)] = &[
    ("esp32", include_str!("../boards/esp32.toml")),
    ("esp32-26m", include_str!("../boards/esp32-26m.toml")),
    ("esp32-s3-spi", include_str!("../boards/esp32-s3-spi.toml")),
    (
        "esp32-s3-sdfat",
        include_str!("../boards/esp32-s3-sdfat.toml"),
    ),
    ("esp32-s3-sd4", include_str!("../boards/esp32-s3-sd4.toml")),
    ("mega2560", include_str!("../boards/mega2560.toml")),
    ("mega2560-hw", include_str!("../boards/mega2560-hw.toml")),
    ("lpc43xx", include_str!("../boards/lpc43xx.toml")),
    ("linux-reader", include_str!("../boards/linux-reader.toml")),
    (
        "linux-reader-hangs",
        include_str!("../boards/linux-reader-hangs.toml"),
    ),
];

/// Error in a profile or board: one sentence with location and remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TomlError(String);

impl std::error::Error for TomlError {}

impl fmt::Display for TomlError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TomlError {
    pub(crate) fn value(name: &str, field: &str, allowed: &str) -> TomlError {
        TomlError(format!("{name}: `{field}` must be {allowed}"))
    }

    /// Adds the end of a sentence.
    pub(crate) fn with(self, end: &str) -> TomlError {
        TomlError(self.0 + end)
    }

    pub(crate) fn of_value(
        name: &str,
        field: &str,
        value: &dyn fmt::Display,
        allowed: &str,
    ) -> TomlError {
        TomlError(format!(
            "{name}: `{field}` is {value}; it must be {allowed}"
        ))
    }
}

/// A number with its allowed range.
pub(crate) struct Range {
    field: &'static str,
    value: u32,
    allowed: RangeInclusive<u32>,
}

impl Range {
    pub(crate) fn new(field: &'static str, value: u32, allowed: RangeInclusive<u32>) -> Range {
        Range {
            field,
            value,
            allowed,
        }
    }
}

pub(crate) fn check_ranges(name: &str, ranges: &[Range]) -> Result<(), TomlError> {
    for Range {
        field,
        value,
        allowed,
    } in ranges
    {
        if !allowed.contains(value) {
            let (least, most) = (allowed.start(), allowed.end());
            return Err(TomlError(format!(
                "{name}: `{field}` is {value}; it must be {least} to {most}"
            )));
        }
    }
    Ok(())
}

pub(crate) fn find(
    name: &str,
    all: &[(&str, &'static str)],
    kind: &str,
    content: &str,
) -> Result<&'static str, TomlError> {
    let found = all.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text).ok_or_else(|| {
        let known: Vec<_> = all.iter().map(|(name, _)| *name).collect();
        TomlError(format!(
            "there is no {kind} named \"{name}\"; choose one of: {}; or pass a TOML file with a {content}",
            known.join(", ")
        ))
    })
}

/// Serialises a value as TOML.
pub(crate) fn write<T: Serialize>(value: &T) -> Result<String, TomlError> {
    toml::to_string(value).map_err(|error| TomlError(error.to_string()))
}

/// Parses TOML; error messages start with `name`.
///
/// # Errors
/// If the text is not TOML or does not match `T`: one sentence with the line.
pub fn parse<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, TomlError> {
    toml::from_str(text).map_err(|error| {
        let location = error.span().map(|span| {
            let line = 1 + text[..span.start].matches('\n').count();
            format!(", line {line}")
        });
        let message = in_words(error.message()).replace('\n', ", ");
        TomlError(format!("{name}{}: {message}", location.unwrap_or_default()))
    })
}

/// Replaces the names of Rust's types in a message about a value.
fn in_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_string();
    };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number from 0",
        "i64" => "a whole number",
        "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    let found = found
        .replace(": map", ": table")
        .replace(": sequence", ": list");
    format!("{found}, expected {expected}")
}
