//! Reviewed surviving mutants, each with the reason why no test can detect it.

use crate::at;
use std::path::Path;

/// Their file. Each line is the name of a mutant without line and column, ` -- `, and the reason. A name that is listed
/// twice accepts two mutants. A name in which `...` stands for any text is a rule: it accepts all mutants that it matches.
const PATH: &str = "xtask/mutants.txt";
const ANY: &str = "...";

struct Entry {
    name: String,
    line: usize,
    is_used: bool,
}

/// The entries of the file.
pub struct Accepted {
    entries: Vec<Entry>,
}

impl Accepted {
    pub fn read(root: &Path) -> Result<Accepted, String> {
        let path = root.join(PATH);
        Accepted::parse(&std::fs::read_to_string(&path).map_err(at(&path))?)
    }

    fn parse(text: &str) -> Result<Accepted, String> {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let entries = lines.map(|(number, line)| match line.split_once(" -- ") {
            Some((name, reason)) if !reason.trim().is_empty() => Ok(Entry {
                name: name.to_string(),
                line: number,
                is_used: false,
            }),
            _ => Err(format!(
                "{PATH}, line {number}: missing ` -- ` and a reason"
            )),
        });
        Ok(Accepted {
            entries: entries.collect::<Result<_, _>>()?,
        })
    }

    /// Returns true if an entry accepts this mutant. Only a rule accepts several.
    pub fn take(&mut self, name: &str) -> bool {
        let name = without_position(name);
        let accepts = |entry: &&mut Entry| match entry.name.contains(ANY) {
            true => matches(&entry.name, &name),
            false => !entry.is_used && entry.name == name,
        };
        let entry = self.entries.iter_mut().find(accepts);
        entry.map(|entry| entry.is_used = true).is_some()
    }

    /// Returns an error if an entry accepted no mutant: a test detects it now, or the code has changed.
    pub fn check(&self) -> Result<(), String> {
        match self.entries.iter().find(|entry| !entry.is_used) {
            None => Ok(()),
            Some(entry) => Err(format!(
                "{PATH}, line {}: no surviving mutant is called `{}`; remove the line",
                entry.line, entry.name
            )),
        }
    }
}

/// Returns the name of a mutant without line and column, which change too often.
fn without_position(name: &str) -> String {
    let mut parts = name.splitn(4, ':');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(file), Some(_), Some(_), Some(change)) => format!("{file}:{change}"),
        _ => name.to_string(),
    }
}

/// Returns true if a name fits a pattern in which `...` stands for any text.
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once(ANY) {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            let mut ends = (0..=name.len()).filter(|at| name.is_char_boundary(*at));
            ends.any(|at| matches(rest, &name[at..]))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "core/card/src/crc.rs:12:5: replace crc7 -> u8 with 0";

    #[test]
    fn names_are_compared_without_line_and_column() {
        let line = "core/card/src/crc.rs: replace crc7 -> u8 with 0 -- it is never called\n";
        let mut accepted = Accepted::parse(line).expect("it is valid");
        assert!(accepted.check().is_err());
        assert!(accepted.take(NAME));
        assert!(!accepted.take(NAME), "one line accepts one mutant");
        assert_eq!(accepted.check(), Ok(()));
    }

    #[test]
    fn a_rule_accepts_every_mutant_that_it_matches() {
        let line = "core/card/src/...: replace crc7 ... with ... -- it is never called\n";
        let mut accepted = Accepted::parse(line).expect("it is valid");
        assert!(!accepted.take("core/card/src/crc.rs:1:1: replace crc16 -> u8 with 0"));
        assert!(accepted.check().is_err());
        assert!(accepted.take(NAME) && accepted.take(NAME));
        assert_eq!(accepted.check(), Ok(()));
    }

    #[test]
    fn an_entry_needs_a_reason() {
        for line in ["core/card/src/crc.rs: replace", "a: b -- ", "a: b --"] {
            assert!(Accepted::parse(line).is_err(), "{line}");
        }
    }
}
