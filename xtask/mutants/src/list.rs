//! The mutants that cargo-mutants proposes.

use serde_json::Value;

/// The kind of a mutant, in the words of cargo-mutants.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Genre {
    FnValue,
    BinaryOperator,
    UnaryOperator,
    MatchArm,
    MatchArmGuard,
    StructField,
}

/// A small bug.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// Number from 1.
    pub id: u32,
    /// File, position and change.
    pub name: String,
    pub file: String,
    /// Line and column, from 1, of the replaced text.
    pub line: usize,
    pub column: usize,
    pub genre: Genre,
    pub replacement: String,
}

/// Parses the output of `cargo mutants --list --json`.
pub fn parse(json: &str) -> Result<Vec<Mutant>, String> {
    let all: Value = serde_json::from_str(json).map_err(|error| error.to_string())?;
    let all = all.as_array().ok_or("cargo-mutants lists no array")?;
    all.iter()
        .zip(1..)
        .map(|(value, id)| {
            mutant(value, id).ok_or_else(|| format!("unknown kind of mutant: {value}"))
        })
        .collect()
}

fn mutant(value: &Value, id: u32) -> Option<Mutant> {
    let text = |key: &str| value[key].as_str().map(str::to_string);
    let start = &value["span"]["start"];
    Some(Mutant {
        id,
        name: text("name")?,
        file: text("file")?,
        line: start["line"].as_u64()? as usize,
        column: start["column"].as_u64()? as usize,
        genre: match value["genre"].as_str()? {
            "FnValue" => Genre::FnValue,
            "BinaryOperator" => Genre::BinaryOperator,
            "UnaryOperator" => Genre::UnaryOperator,
            "MatchArm" => Genre::MatchArm,
            "MatchArmGuard" => Genre::MatchArmGuard,
            "StructField" => Genre::StructField,
            _ => return None,
        },
        replacement: text("replacement")?,
    })
}
