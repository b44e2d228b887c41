//! Measures how often the bootstrap's 95 % intervals contain the true percentiles: 1000 seeds for each kind of trace.
//!
//! ```sh
//! cargo run --release -p cardiograph-plan --example bootstrap
//! ```

#[path = "../tests/ensemble/mod.rs"]
mod ensemble;

use ensemble::{KINDS, cover};

fn main() {
    let last = std::env::args().nth(1).and_then(|seeds| seeds.parse().ok());
    let seeds = 1..last.unwrap_or(1000) + 1;
    println!(
        "seeds {} to {}; median and p99 each\n\n\
         | trace | writes | has an interval | which contains the truth | mean width | equal traces called different |\n\
         |---|---|---|---|---|---|",
        seeds.start,
        seeds.end - 1
    );
    let runs = seeds.end - seeds.start;
    for kind in &KINDS {
        let found = cover(kind, seeds.clone());
        let percent = |count: f64, of: u32| match of {
            0 => "–".to_string(),
            _ => format!("{:.1} %", count * 100.0 / f64::from(of)),
        };
        let both = |of: &dyn Fn(usize) -> String| [of(0), of(1)].join(", ");
        println!(
            "| {} | {} | {} | {} | {} | {} |",
            kind.name,
            kind.writes,
            both(&|i| percent(found.decided[i].into(), runs as u32)),
            both(&|i| percent(found.inside[i].into(), found.decided[i])),
            both(&|i| percent(found.width[i], found.decided[i])),
            both(&|i| percent(found.different[i].into(), found.pairs[i])),
        );
    }
}
