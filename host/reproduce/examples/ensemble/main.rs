//! Fits an ensemble to a card's rows with the role `fit`, and prints it as a profile. The first member is the closest card that a
//! search finds, or stays as it is; each other member is one of the cards that explain the rows, from a random walk of its own,
//! on a board with times of its own; or the closest, if a walk finds none. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example ensemble -- CARD MEMBERS TRIALS|keep`

mod document;
#[path = "../rows/mod.rs"]
mod rows;

use cardiograph_reproduce::bounds::{self, Bound};
use cardiograph_reproduce::fitting::{self, Search, Walk};
use cardiograph_sim_card::{Profile, Random, Seed};
use document::{Fitted, document};
use rows::{Rows, distance, loss};

/// Deviation of each row at which a search ends: published numbers are not more exact.
const ENOUGH: f64 = 0.05;
/// Number of states of a card in the ratios that are printed.
const STATES: usize = 5;
const WALK: Walk = Walk {
    approach: 1500,
    steps: 300,
};

/// First member of an ensemble.
enum First {
    /// The closest card of this many trials.
    Search(u32),
    /// The first member of the present ensemble.
    Keep,
}

fn main() -> Result<(), String> {
    let usage = || "usage: ensemble CARD MEMBERS TRIALS|keep".to_string();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [card, members, first] = &args[..] else {
        return Err(usage());
    };
    let members: u16 = members.parse().map_err(|_| usage())?;
    let first = match first.as_str() {
        "keep" => First::Keep,
        trials => First::Search(trials.parse().map_err(|_| usage())?),
    };
    let like = Profile::named(card).map_err(|error| error.to_string())?;
    let present = like.members(card).map_err(|error| error.to_string())?;
    let template = fitting::template(&like);
    let mut fitted = Vec::new();
    for member in 0..members {
        let rows = Rows::of(card, member)?;
        let mut random = Seed::new(member.into()).stream("ensemble");
        let closest = |bounds: &[Bound], trials, random: &mut Random| {
            closest(&rows, &template, bounds, trials, random)
        };
        let profile = match (member, &first) {
            (0, First::Keep) => present[0].clone(),
            (0, First::Search(trials)) => {
                closest(&bounds::of_card(&template), *trials, &mut random)
            }
            _ => {
                let bounds = bounds::of_members(&template);
                end_of_walk(&rows, &template, &bounds, &mut random)
                    .unwrap_or_else(|| closest(&bounds, WALK.approach, &mut random))
            }
        };
        let ratios = rows.medians(&profile, 1..=STATES as u64);
        eprintln!(
            "{card}, member {}: loss {:.4}, {ratios:.2?}",
            member + 1,
            loss(&ratios)
        );
        fitted.push(Fitted { profile, ratios });
    }
    print!(
        "{}",
        document(card, &Rows::of(card, 0)?.rows, &args[1..], &fitted)
    );
    Ok(())
}

fn closest(
    rows: &Rows,
    template: &Profile,
    bounds: &[Bound],
    trials: u32,
    random: &mut Random,
) -> Profile {
    let search = Search {
        trials,
        enough: ENOUGH.powi(2) * rows.rows.len() as f64,
    };
    let of = |profile: &Profile| loss(&rows.medians(profile, 1..=rows.states() as u64));
    fitting::fit(template, bounds, search, random, of).0
}

/// Returns the card at which a walk ends; `None` if it found none that explains the rows.
fn end_of_walk(
    rows: &Rows,
    template: &Profile,
    bounds: &[Bound],
    random: &mut Random,
) -> Option<Profile> {
    let mut states = Seed::new(random.below(1 << 32)).stream("states");
    let far = |profile: &Profile| {
        let seeds = std::iter::repeat_with(|| states.below(1 << 32)).take(rows.states());
        distance(&rows.medians(profile, seeds))
    };
    fitting::walk(template, bounds, WALK, random, far)
}
