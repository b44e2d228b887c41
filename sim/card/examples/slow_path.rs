//! Writes blocks one after the other to a card without data, in order or at random, and prints the card's figures; a
//! program such as `time` says how long it takes.
//!
//! ```sh
//! cargo run --release -p cardiograph-sim-card --example slow_path -- PROFILE.toml sequential|random|pages WRITES
//! ```

use cardiograph_sim_card::{Controller, Profile, Seed};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [file, order, writes] = &args[..] else {
        return Err("usage: slow_path PROFILE.toml sequential|random|pages WRITES".into());
    };
    let profile = Profile::from_toml(file, &std::fs::read_to_string(file)?)?;
    let mut card = Controller::new(&profile, Seed::new(1));
    let mut random = Seed::new(1).stream("places");
    let blocks = profile.capacity_bytes / 512;
    let mut now_ns = 0;
    for write in 0..writes.parse()? {
        let (block, count) = match order.as_str() {
            "random" => (random.below(blocks), 1),
            "pages" => (write * 8 % blocks, 8),
            _ => (write % blocks, 1),
        };
        now_ns += card.write_by_command(now_ns, block, count).total_ns;
    }
    println!("{now_ns} ns, {} erases", card.erases());
    Ok(())
}
