//! Feeds random sequences of events to the real recorder. The events are those of the planner's model checker
//! (`plan/search.rs`).
//!
//! ```text
//!   seed ──> Path: events and pauses ──> producers, Control, ReadDesk ──> Recorder ──> FatVolume
//!                  │                                                        │  ^           │
//!                  └──> Slot: cards fail, slow down, vanish, change <───────│──┴───────────┘
//!                                                                           v
//!   judge: files of all cards, read independently             watch: every decision and outcome
//! ```
//!
//! The model checker proves properties of the planner within a model of its environment. Here, the same events and
//! limits drive the real shell, encoders and file system, and the judge checks the same properties on the resulting
//! files:
//!
//! - each pushed sample is written, lost or pending, and each lost sample is in exactly one gap;
//! - the durable index never decreases;
//! - a flush is reported durable only if its samples are in the files;
//! - after a power cut, nothing that was reported durable and nothing older than the window is missing;
//! - every recording ends.

mod card;
#[path = "../../tests/fat_rig/check.rs"]
#[allow(dead_code, reason = "shared with the tests of the file system")]
mod check;
mod found;
mod judge;
mod path;
mod run;
mod volume;
mod watch;

use card::Disk;
use cardiograph_sim_world::Seed;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::println;
use std::string::{String, ToString};
use std::vec::Vec;
pub(crate) use volume::mounted;
pub(crate) use watch::{applied, decided};

/// Seed of all paths; every other seed has to pass as well.
const SEED: u64 = 1;
/// Number of paths that contain every action with every outcome.
const PATHS: u64 = 10_000;

#[test]
fn random_paths_keep_the_promises() {
    let number = |name: &str, or: u64| match std::env::var(name) {
        Ok(number) => number.parse().expect("REPLAY_* variables must be numbers"),
        Err(_) => or,
    };
    let seed = number("REPLAY_SEED", SEED);
    let paths = number("REPLAY_PATHS", cardiograph_effort::REPLAYED_PATHS.now());
    let only = number("REPLAY_ONLY", u64::MAX);
    println!("seed {seed}, {paths} paths; REPLAY_SEED={seed} REPLAY_ONLY=n repeats path n");
    let cards = volume::cards();
    let mut totals = run::Totals::default();
    let mut failures: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for number in 0..paths {
        if only != u64::MAX && only != number {
            continue;
        }
        let path = path::path(Seed::new(seed), number, cards.len());
        if only == number {
            println!("{path:#?}");
        }
        watch::WATCH.with_borrow_mut(|watch| watch.is_traced = only == number);
        let random = Seed::new(seed).child("card").nth(number);
        let replayed = catch_unwind(AssertUnwindSafe(|| {
            run::replay(&path, &cards, random, &mut totals)
        }));
        let why = match replayed {
            Ok(Ok(())) => continue,
            Ok(Err(why)) => why,
            Err(_) => "a panic, printed above".to_string(),
        };
        // Group failures by their text without numbers, which differ from path to path.
        let kind = why.replace(|at: char| at.is_ascii_digit(), "");
        println!("path {number}: {why}");
        failures.entry(kind).or_default().push(number);
    }
    for (why, paths) in &failures {
        println!(
            "{} paths failed, first path {}: {why}",
            paths.len(),
            paths[0]
        );
    }
    println!("{totals:?}");
    watch::WATCH.with_borrow_mut(|watch| {
        watch.is_on = false;
        watch.counts.print();
        assert!(failures.is_empty(), "{} kinds of failures", failures.len());
        // Fewer paths need not contain every action.
        if only == u64::MAX && paths >= PATHS {
            assert_eq!(
                watch.counts.missing(),
                None,
                "an action and outcome that must occur never did"
            );
        }
    });
}
