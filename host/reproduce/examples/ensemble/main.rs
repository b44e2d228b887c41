//! Fits an ensemble to a card's rows with the role `fit`, and prints it as a profile. The first member is the closest card that a
//! search finds, or stays as it is; each other member is one of the cards that explain the rows, from a random walk of its own,
//! on a board with times of its own; or the closest, if a walk finds none. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example ensemble -- CARD MEMBERS [TRIALS | keep]`

mod document;
#[path = "../rows/mod.rs"]
mod rows;

use cardiograph_reproduce::bounds;
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

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: ensemble CARD MEMBERS [TRIALS | keep]";
    let (Some(card), Some(members)) = (args.first(), args.get(1)) else {
        return Err(usage.to_string());
    };
    let number = |text: &String| text.parse::<u32>().map_err(|_| usage.to_string());
    let members = number(members)?;
    let like = Profile::named(card).map_err(|error| error.to_string())?;
    let mut fitted = Vec::new();
    for member in 0..members as u16 {
        let rows = Rows::of(card, member)?;
        let mut random = Seed::new(member.into()).stream("ensemble");
        let profile = match (member, args.get(2).map(String::as_str)) {
            (0, Some("keep")) => like.members(card).map_err(|e| e.to_string())?.remove(0),
            (0, Some(_)) => closest(&rows, &like, number(&args[2])?, &mut random),
            _ => end_of_walk(&rows, &like, &mut random)
                .unwrap_or_else(|| closest(&rows, &like, WALK.approach, &mut random)),
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

fn closest(rows: &Rows, like: &Profile, trials: u32, random: &mut Random) -> Profile {
    let search = Search {
        trials,
        enough: ENOUGH.powi(2) * rows.rows.len() as f64,
    };
    let template = fitting::template(like);
    let bounds = bounds::of_card(&template);
    let of = |profile: &Profile| loss(&rows.medians(profile, 1..=rows.states() as u64));
    fitting::fit(&template, &bounds, search, random, of).0
}

/// Returns the card at which a walk ends; `None` if it found none that explains the rows.
fn end_of_walk(rows: &Rows, like: &Profile, random: &mut Random) -> Option<Profile> {
    let mut states = Seed::new(random.below(1 << 32)).stream("states");
    let far = |profile: &Profile| {
        let seeds = std::iter::repeat_with(|| states.below(1 << 32)).take(rows.states());
        distance(&rows.medians(profile, seeds))
    };
    let template = fitting::template(like);
    let bounds = bounds::of_members(&template);
    fitting::walk(&template, &bounds, WALK, random, far)
}
