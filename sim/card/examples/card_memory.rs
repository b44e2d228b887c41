//! Memory that the simulation of a 16 GB card takes: ten million random writes, without storing data.
//!
//! `cargo xtask bench card` runs it under GNU time.

use cardiograph_sim_card::{Controller, Profile, Seed};

fn main() {
    let profile = Profile::named("class10-16g").expect("class10-16g is a bundled card");
    let mut controller = Controller::new(&profile, Seed::new(1));
    let mut random = Seed::new(1).stream("places");
    let mut now_ns = 0;
    for _ in 0..10_000_000 {
        let block = random.below(profile.capacity_bytes / 512);
        now_ns += controller.write_by_command(now_ns, block, 1).total_ns;
    }
    println!("{}", controller.erases());
}
