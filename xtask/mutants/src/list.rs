//! The mutants that cargo-mutants proposes.

use crate::hash;
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
    pub function: String,
    /// First and last line of the function, if the mutant is in one.
    pub lines: Option<(usize, usize)>,
    /// Identifies the mutant until its function changes.
    pub key: String,
    /// Line and column, from 1, of the replaced text.
    pub line: usize,
    pub column: usize,
    pub genre: Genre,
    pub replacement: String,
}

impl Mutant {
    /// Sets the key: a hash of the function without its comments, the function, the place in it, and the change. The rest
    /// of the file, its tests for example, may change.
    pub fn identify(&mut self, source: &str) {
        let (first, last) = self.lines.unwrap_or((1, usize::MAX));
        let lines = source.split_inclusive('\n');
        let lines = lines.skip(first - 1).take(last - (first - 1));
        let code = lines.filter(|line| !line.trim_ascii_start().starts_with("//"));
        let hash = hash(code.flat_map(str::bytes));
        let change = self.name.splitn(4, ':').nth(3).unwrap_or(&self.name);
        self.key = format!(
            "{hash:016x} {}:{}:{}:{}:{change}",
            self.file,
            self.function,
            self.line - first,
            self.column
        );
    }
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
    let function = &value["function"];
    let line = |at: &str| Some(function["span"][at]["line"].as_u64()? as usize);
    Some(Mutant {
        id,
        name: text("name")?,
        file: text("file")?,
        function: function["function_name"].as_str().unwrap_or("").to_string(),
        lines: line("start").zip(line("end")),
        key: String::new(),
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

#[cfg(test)]
mod tests {
    use super::*;

    fn key(source: &str, line: usize) -> String {
        let mut mutant = Mutant {
            id: 1,
            name: format!("a.rs:{line}:5: replace f with ()"),
            file: "a.rs".to_string(),
            function: "f".to_string(),
            lines: Some((line - 1, line + 1)),
            key: String::new(),
            line,
            column: 5,
            genre: Genre::FnValue,
            replacement: "()".to_string(),
        };
        mutant.identify(source);
        mutant.key
    }

    #[test]
    fn a_key_changes_only_with_the_function() {
        let own = key("fn f() {\n    g();\n}\n", 2);
        assert_eq!(own, key("\n\nfn f() {\n    g();\n}\n// more\n", 4));
        assert_ne!(own, key("fn f() {\n    h();\n}\n", 2));
    }
}
