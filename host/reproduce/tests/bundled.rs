//! The bundled cards: what was fitted, and what was not.

use cardiograph_reproduce::bounds;
use cardiograph_sim_card::{CARDS, Profile};
use std::collections::BTreeSet;

/// Fewest members of a bundled ensemble.
const MEMBERS_MIN: usize = 8;

/// Returns the value at a path of a profile; of a list, the mean.
fn value(profile: &toml::Table, path: &str) -> f64 {
    let (table, key) = path.split_once('.').unwrap();
    match &profile[table][key] {
        toml::Value::Array(list) => {
            let sum: i64 = list.iter().filter_map(toml::Value::as_integer).sum();
            sum as f64 / list.len() as f64
        }
        value => value.as_integer().unwrap() as f64,
    }
}

fn members() -> impl Iterator<Item = (&'static str, Vec<Profile>)> {
    CARDS.iter().map(|(name, _)| {
        let members = Profile::named(name).unwrap().members(name).unwrap();
        (*name, members)
    })
}

#[test]
fn every_card_is_an_ensemble_within_the_bounds() {
    for (name, members) in members() {
        assert!(members.len() >= MEMBERS_MIN, "{name}: {}", members.len());
        for member in &members {
            let table: toml::Table = toml::from_str(&member.to_toml().unwrap()).unwrap();
            for bound in bounds::of(member) {
                let mut value = value(&table, bound.path);
                if bound.path == "flash.spare_blocks" {
                    // The fit adds the blocks in work.
                    value -= f64::from(member.reserved_blocks() + 1);
                }
                let [low, high] = [*bound.allowed.start(), *bound.allowed.end()].map(f64::from);
                // The mean of several whole times is a little lower than the fitted one.
                assert!(
                    (low - 3.0..=high).contains(&value),
                    "{name}: {} is {value}",
                    bound.path
                );
            }
        }
    }
}

/// A value that only one card has, and that no measurement of it was fitted to, would be a result put in by hand.
#[test]
fn values_that_are_not_fitted_are_the_same_on_all_cards() {
    let limits: BTreeSet<[u32; 3]> = members()
        .flat_map(|(_, members)| members)
        .map(|member| {
            let controller = member.controller;
            [
                controller.stall_limit_us,
                controller.log_used_pages,
                controller.log_blocks,
            ]
        })
        .collect();
    assert_eq!(limits, BTreeSet::from([[250_000, 0, 1024]]));
}
