//! Computes the rate that a saved card sustains on a board's bus, for a stream of a given length.
//!
//! ```sh
//! cargo run --release -p cardiograph-compare --example board_bound -- PROFILE CAPACITY_BYTES STATE_FILE CLOCK_HZ BUFFER_BYTES BYTES
//! ```
//!
//! Prints the rate in B/s, and the number of stalls. `age` of `sim/card` saves such cards.

use cardiograph_compare::{plain_stream, sustained_rate_bytes_per_s};
use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile};
use std::error::Error;

/// Shortest time of a block that counts as a stall, in ns.
const STALL_NS: u64 = 50_000_000;
/// First block of the stream: at 4 MiB, past the file system's own blocks.
const START_BLOCK: u32 = 8192;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [profile, capacity, state, clock_hz, buffer, bytes] = &args[..] else {
        return Err(
            "usage: board_bound PROFILE CAPACITY_BYTES STATE_FILE CLOCK_HZ BUFFER_BYTES BYTES"
                .into(),
        );
    };
    let mut profile = Profile::named(profile)?;
    profile.capacity_bytes = capacity.parse()?;
    let card = Card::from_state(&profile, &std::fs::read(state)?)?;
    let blocks = bytes.parse::<u32>()? / BLOCK_BYTES as u32;
    let (times, _) = plain_stream(card, clock_hz.parse()?, START_BLOCK, blocks, |_, _| {})?;
    let stalls = times
        .iter()
        .filter(|(start_ns, end_ns)| end_ns - start_ns >= STALL_NS)
        .count();
    let rate = sustained_rate_bytes_per_s(&times, buffer.parse()?);
    println!("{rate:.0} {stalls}");
    Ok(())
}
