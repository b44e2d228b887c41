//! Fits an ensemble to a card's rows with the role `fit`, and prints it as a profile: several searches from different
//! random starts within the bounds of `bounds.rs`. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example ensemble -- CARD [MEMBERS] [TRIALS] [SEEDS]`

mod document;
#[path = "../rows/mod.rs"]
mod rows;

use cardiograph_reproduce::fitting::{self, Search};
use cardiograph_sim_card::{Profile, Seed};
use document::{Fitted, document};
use rows::{Rows, loss};

/// Deviation of each row at which a search ends: published numbers are not more exact.
const ENOUGH: f64 = 0.05;

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let card = args
        .first()
        .ok_or("usage: ensemble CARD [MEMBERS] [TRIALS] [SEEDS]")?;
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text}: not a number"))
        })
    };
    let (members, trials) = (number(1, 8)?, number(2, 300)?);
    // Seeds of the card in each trial.
    let seeds: Vec<u64> = (1..=number(3, 2)?.into()).collect();
    let like = Profile::named(card).map_err(|error| error.to_string())?;
    let template = fitting::template(&like);
    let rows = Rows::of(card)?;
    let ratios = |profile: &Profile| rows.ratios(profile, &seeds, geometric_mean);
    let search = Search {
        trials,
        enough: ENOUGH.powi(2) * rows.rows.len() as f64,
    };
    let fitted = (1..=members).map(|member| {
        let mut random = Seed::new(member.into()).stream("ensemble");
        let of = |profile: &Profile| loss(&ratios(profile));
        let (profile, loss) = fitting::fit(&template, search, &mut random, of);
        let ratios = ratios(&profile);
        eprintln!("{card}, member {member}: loss {loss:.4}, {ratios:.2?}");
        Fitted {
            profile,
            loss,
            ratios,
        }
    });
    let mut fitted: Vec<Fitted> = fitted.collect();
    fitted.sort_by(|a, b| a.loss.total_cmp(&b.loss));
    print!("{}", document(card, &rows.rows, &args[1..], &fitted));
    Ok(())
}

fn geometric_mean(ratios: Vec<f64>) -> f64 {
    let count = ratios.len() as f64;
    let sum: f64 = ratios.into_iter().map(f64::ln).sum();
    (sum / count).exp()
}
