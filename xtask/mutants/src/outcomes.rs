//! Known outcomes of mutants, and the report about them.

use crate::accepted::Accepted;
use crate::list::Mutant;
use crate::{at, root};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::PathBuf;

/// The outcome of a mutant.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end, or was aborted.
    TimedOut,
    /// Tests that take this time in total passed, in s; all tests, if it is infinite.
    Missed(f64),
    /// No test that ran reaches the mutant.
    Unreached,
    /// The mutant is in a constant, or does not compile as a branch.
    Unplanted,
}

/// Outcomes in a file to which each new one is appended.
pub struct Outcomes {
    path: PathBuf,
    /// Outcome of each mutant, and the test that decided it.
    by_key: BTreeMap<String, (Outcome, String)>,
}

impl Outcomes {
    pub fn open(path: PathBuf) -> Outcomes {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let by_key = text.lines().filter_map(parsed).collect();
        Outcomes { path, by_key }
    }

    pub fn get(&self, mutant: &Mutant) -> Option<&Outcome> {
        self.by_key.get(&mutant.key).map(|(outcome, _)| outcome)
    }

    /// Returns the test that detected a mutant.
    pub fn test_of(&self, mutant: &Mutant) -> Option<&str> {
        let (_, test) = self.by_key.get(&mutant.key)?;
        (!test.is_empty()).then_some(test)
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
        let line = format!("{word}\t{}\t{}\t{test}\n", mutant.key, mutant.name);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(at(&self.path))?;
        self.by_key
            .insert(mutant.key.clone(), (outcome, test.to_string()));
        Ok(())
    }

    /// Prints the counts and the survivors. Survivors that are not accepted are an error.
    pub fn report(&self, mutants: &[Mutant]) -> Result<(), String> {
        let count = |is: fn(&Outcome) -> bool| {
            let outcomes = mutants.iter().filter_map(|mutant| self.get(mutant));
            outcomes.filter(|outcome| is(outcome)).count()
        };
        let mut accepted = Accepted::read(&root())?;
        let mut survivors = Vec::new();
        let mut accepted_count = 0;
        for mutant in mutants {
            match self.get(mutant) {
                Some(Outcome::Missed(_) | Outcome::Unreached) => {
                    match accepted.take(&mutant.name) {
                        true => accepted_count += 1,
                        false => survivors.push(&mutant.name),
                    }
                }
                Some(_) => (),
                // It is not known whether it survives.
                None => {
                    accepted.take(&mutant.name);
                }
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
        accepted.check()?;
        match survivors.len() {
            0 => Ok(()),
            count => Err(format!(
                "{count} mutants survive; write tests, or list them in xtask/mutants.txt"
            )),
        }
    }
}

fn parsed(line: &str) -> Option<(String, (Outcome, String))> {
    let mut fields = line.split('\t');
    let (word, key, _, test) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let outcome = match word.split_once(' ').unwrap_or((word, "")) {
        ("caught", _) => Outcome::Caught,
        ("timed-out", _) => Outcome::TimedOut,
        ("missed", limit) => Outcome::Missed(limit.parse().ok()?),
        ("unreached", _) => Outcome::Unreached,
        ("unplanted", _) => Outcome::Unplanted,
        _ => return None,
    };
    Some((key.to_string(), (outcome, test.to_string())))
}
