//! Tuning of the card profiles: a search over a card's physical values that brings rows with the role `fit`
//! close to the published numbers. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example tune CARD [TRIALS] [SEED]`

mod rows;

use cardiograph_reproduce::search;
use cardiograph_sim_card::{Profile, Seed};
use rows::{Rows, loss};

/// Seeds of the card in each trial.
const SEEDS: [u64; 3] = [1, 2, 3];

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let card = args.first().ok_or("usage: tune CARD [TRIALS] [SEED]")?;
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text}: not a number"))
        })
    };
    let (trials, seed) = (number(1, 2000)?, number(2, 1)?);
    let start = Profile::named(card).map_err(|error| error.to_string())?;
    let rows = Rows::of(card)?;
    let ratios = |profile: &Profile| rows.ratios(profile, &SEEDS, median);
    show(&rows, ratios(&start));
    let mut random = Seed::new(seed.into()).stream("tune");
    let (best, loss) = search::minimise(&start, trials, &mut random, |profile| {
        loss(&ratios(profile))
    });
    println!("loss {loss:.4}");
    show(&rows, ratios(&best));
    println!("flash.program_us = {:?}", best.flash.program_us);
    for knob in &search::KNOBS {
        println!("{} = {}", knob.name, knob.value(&best));
    }
    Ok(())
}

fn median(mut ratios: Vec<f64>) -> f64 {
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

fn show(rows: &Rows, ratios: Vec<f64>) {
    for (row, ratio) in rows.rows.iter().zip(ratios) {
        println!("  {ratio:>6.3}  {:<24} {}", row.figure, row.quantity);
    }
}
