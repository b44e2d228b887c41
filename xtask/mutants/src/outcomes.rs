//! Known outcomes of mutants, and the report about them.

use crate::list::Mutant;
use crate::{at, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// File that lists reviewed surviving mutants, each with the reason why it changes nothing.
const ACCEPTED: &str = "xtask/mutants.txt";

/// The outcome of a mutant.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end, or was aborted.
    TimedOut,
    /// All tests that take at most this time passed, in s.
    Missed(f64),
    /// No test that ran reaches the mutant.
    Unreached,
    /// The mutant is in a constant, or does not compile as a branch.
    Unplanted,
}

/// Outcomes in a file to which each new one is appended.
pub struct Outcomes {
    path: PathBuf,
    by_name: BTreeMap<String, Outcome>,
}

impl Outcomes {
    pub fn open(path: PathBuf) -> Result<Outcomes, String> {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let parsed = text.lines().filter_map(|line| {
            let (outcome, rest) = line.split_once('\t')?;
            let (name, _) = rest.split_once('\t')?;
            let outcome = match outcome.split_once(' ').unwrap_or((outcome, "")) {
                ("caught", _) => Outcome::Caught,
                ("timed-out", _) => Outcome::TimedOut,
                ("missed", limit) => Outcome::Missed(limit.parse().ok()?),
                ("unreached", _) => Outcome::Unreached,
                ("unplanted", _) => Outcome::Unplanted,
                _ => return None,
            };
            Some((name.to_string(), outcome))
        });
        let by_name = parsed.collect();
        Ok(Outcomes { path, by_name })
    }

    pub fn get(&self, mutant: &Mutant) -> Option<&Outcome> {
        self.by_name.get(&mutant.name)
    }

    /// Adds an outcome, with the test that decided it.
    pub fn add(&mut self, mutant: &Mutant, outcome: Outcome, test: &str) -> Result<(), String> {
        let word = match outcome {
            Outcome::Caught => "caught".to_string(),
            Outcome::TimedOut => "timed-out".to_string(),
            Outcome::Missed(limit) => format!("missed {limit}"),
            Outcome::Unreached => "unreached".to_string(),
            Outcome::Unplanted => "unplanted".to_string(),
        };
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        let line = format!("{word}\t{}\t{test}\n", mutant.name);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(at(&self.path))?;
        self.by_name.insert(mutant.name.clone(), outcome);
        Ok(())
    }

    /// Prints the counts and the survivors. Survivors that are not accepted are an error.
    pub fn report(&self, mutants: &[Mutant]) -> Result<(), String> {
        let count = |is: fn(&Outcome) -> bool| {
            let outcomes = mutants.iter().filter_map(|mutant| self.get(mutant));
            outcomes.filter(|outcome| is(outcome)).count()
        };
        let mut accepted = accepted(&root().join(ACCEPTED))?;
        let mut survivors = Vec::new();
        let mut accepted_count = 0;
        for mutant in mutants {
            if !matches!(
                self.get(mutant),
                Some(Outcome::Missed(_) | Outcome::Unreached)
            ) {
                continue;
            }
            match accepted
                .iter()
                .position(|it| *it == without_position(&mutant.name))
            {
                Some(at) => {
                    accepted.swap_remove(at);
                    accepted_count += 1;
                }
                None => survivors.push(&mutant.name),
            }
        }
        let mut text = format!(
            "{} mutants: {} caught, {} timed out, {} survive ({} of them reached by no test that ran, {accepted_count} accepted), \
             {} cannot be planted, {} not tested.\n",
            mutants.len(),
            count(|it| *it == Outcome::Caught),
            count(|it| *it == Outcome::TimedOut),
            count(|it| matches!(it, Outcome::Missed(_) | Outcome::Unreached)),
            count(|it| *it == Outcome::Unreached),
            count(|it| *it == Outcome::Unplanted),
            mutants
                .iter()
                .filter(|mutant| self.get(mutant).is_none())
                .count(),
        );
        for name in &survivors {
            let _ = writeln!(text, "- survives: `{name}`");
        }
        println!("{text}");
        match survivors.len() {
            0 => Ok(()),
            count => Err(format!(
                "{count} mutants survive; write tests, or list them in {ACCEPTED}"
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

/// Returns the names of accepted surviving mutants. A name that is listed twice accepts two mutants.
fn accepted(path: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path).map_err(at(path))?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|(number, line)| match line.split_once(" -- ") {
            Some((name, reason)) if !reason.is_empty() => Ok(name.to_string()),
            _ => Err(format!(
                "{ACCEPTED}, line {}: missing ` -- ` and a reason",
                number + 1
            )),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_line_and_column() {
        let name = "core/card/src/crc.rs:12:5: replace crc7 -> u8 with 0";
        assert_eq!(
            without_position(name),
            "core/card/src/crc.rs: replace crc7 -> u8 with 0"
        );
    }
}
