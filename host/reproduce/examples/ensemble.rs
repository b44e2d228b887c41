//! Fits an ensemble to a card's rows with the role `fit`: several searches from different random starts within the
//! bounds of `bounds.rs`. Predictions are ignored.
//!
//! `cargo run --release -p cardiograph-reproduce --example ensemble -- CARD [MEMBERS] [TRIALS]`

mod rows;

use cardiograph_reproduce::fitting;
use cardiograph_sim_card::{Profile, Seed};
use rows::{Rows, loss};

/// Seeds of the card in each trial.
const SEEDS: [u64; 2] = [1, 2];

fn main() -> Result<(), String> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let card = args
        .first()
        .ok_or("usage: ensemble CARD [MEMBERS] [TRIALS]")?;
    let number = |at: usize, default: u32| -> Result<u32, String> {
        let text = args.get(at);
        text.map_or(Ok(default), |text| {
            text.parse().map_err(|_| format!("{text}: not a number"))
        })
    };
    let (members, trials) = (number(1, 8)?, number(2, 300)?);
    let like = Profile::named(card).map_err(|error| error.to_string())?;
    let template = fitting::template(&like);
    let rows = Rows::of(card)?;
    let ratios = |profile: &Profile| rows.ratios(profile, &SEEDS, geometric_mean);
    for member in 1..=members {
        let mut random = Seed::new(member.into()).stream("ensemble");
        let (best, loss) = fitting::fit(&template, trials, &mut random, |profile| {
            loss(ratios(profile))
        });
        let ratios: Vec<String> = ratios(&best).iter().map(|r| format!("{r:.2}")).collect();
        println!(
            "# loss {loss:.4}; simulated / published: {}",
            ratios.join(", ")
        );
        println!("[[member]]");
        println!("{}\n", fitting::lines(&best).join("\n"));
    }
    Ok(())
}

fn geometric_mean(ratios: Vec<f64>) -> f64 {
    let count = ratios.len() as f64;
    let sum: f64 = ratios.into_iter().map(f64::ln).sum();
    (sum / count).exp()
}
