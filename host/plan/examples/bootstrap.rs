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
         | trace | writes | interval contains the truth | mean width of the interval | equal traces called different |\n\
         |---|---|---|---|---|",
        seeds.start,
        seeds.end - 1
    );
    let runs = (seeds.end - seeds.start) as f64;
    for kind in &KINDS {
        let found = cover(kind, seeds.clone());
        let percent = |count: u32| f64::from(count) * 100.0 / runs;
        println!(
            "| {} | {} | {:.1} %, {:.1} % | {:.1} %, {:.1} % | {:.1} %, {:.1} % |",
            kind.name,
            kind.writes,
            percent(found.inside[0]),
            percent(found.inside[1]),
            found.width[0] * 100.0 / runs,
            found.width[1] * 100.0 / runs,
            percent(found.different[0]),
            percent(found.different[1]),
        );
    }
}
