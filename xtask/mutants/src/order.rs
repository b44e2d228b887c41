//! The order in which tests run with a mutant: those first that are most likely to detect it per second.

use crate::list::Mutant;
use std::collections::BTreeMap;

/// Time that starting a program takes, in s.
const START_S: f64 = 0.01;

#[derive(Clone, Copy, Default)]
struct Counts {
    runs: f64,
    detected: f64,
}

impl Counts {
    /// Share of detected mutants, if `prior` was seen `weight` times before.
    fn share(self, prior: f64, weight: f64) -> f64 {
        (self.detected + prior * weight) / (self.runs + weight)
    }
}

/// Counts of earlier runs of each test, by function, by file, and of all mutants.
#[derive(Default)]
pub struct Order {
    by_scope: BTreeMap<(String, String), Counts>,
}

impl Order {
    pub fn note(&mut self, mutant: &Mutant, test: &str, is_detected: bool) {
        for scope in scopes(mutant) {
            let counts = self.by_scope.entry((scope, test.to_string())).or_default();
            counts.runs += 1.0;
            counts.detected += f64::from(u8::from(is_detected));
        }
    }

    /// Likelihood that a test detects a mutant, per second.
    pub fn score(&self, mutant: &Mutant, test: &str, time_s: f64) -> f64 {
        let mut share = 0.1;
        for scope in scopes(mutant) {
            let counts = self.by_scope.get(&(scope, test.to_string()));
            share = counts.copied().unwrap_or_default().share(share, 2.0);
        }
        share / (time_s + START_S)
    }
}

/// From wide to narrow.
fn scopes(mutant: &Mutant) -> [String; 3] {
    let function = format!("{} {}", mutant.file, mutant.function);
    [String::new(), mutant.file.clone(), function]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::Genre;

    fn mutant(file: &str, function: &str) -> Mutant {
        Mutant {
            id: 1,
            name: String::new(),
            file: file.to_string(),
            function: function.to_string(),
            lines: None,
            key: String::new(),
            line: 1,
            column: 1,
            genre: Genre::FnValue,
            replacement: String::new(),
        }
    }

    #[test]
    fn tests_that_detected_mutants_nearby_come_first_and_slow_ones_later() {
        let mut order = Order::default();
        order.note(&mutant("a", "f"), "good", true);
        order.note(&mutant("a", "f"), "useless", false);
        let score = |function, test, time_s| order.score(&mutant("a", function), test, time_s);
        assert!(score("f", "good", 0.1) > score("g", "good", 0.1));
        assert!(score("g", "good", 0.1) > score("g", "new", 0.1));
        assert!(score("g", "new", 0.1) > score("g", "useless", 0.1));
        assert!(score("f", "good", 1.0) < score("f", "new", 0.05));
    }
}
