//! Ages a card until its next stall is 2 to 6 MB of streaming away, and saves its state.
//!
//! ```sh
//! cargo run --release -p cardiograph-sim-card --bin age -- PROFILE CAPACITY_BYTES SEED STATE_FILE
//! ```

use cardiograph_sim_card::{BLOCK_BYTES, Card, Profile, Seed};
use std::error::Error;
use std::process::ExitCode;

/// Shortest busy time that counts as a stall, in ns.
const STALL_NS: u64 = 50_000_000;
/// Time between the blocks of a stream, in ns: 2 MB/s.
const BLOCK_NS: u64 = 256_000;
/// Distance of the next stall, in blocks: 2 to 6 MB.
const DISTANCE: std::ops::Range<u64> =
    2_000_000 / BLOCK_BYTES as u64..6_000_000 / BLOCK_BYTES as u64;
/// Data after which the search gives up, in blocks.
const BLOCKS_MAX: u64 = (4 << 30) / BLOCK_BYTES as u64;

fn main() -> ExitCode {
    match run(&std::env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("age: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> Result<(), Box<dyn Error>> {
    let [profile, capacity_bytes, seed, file] = args else {
        return Err("usage: age PROFILE CAPACITY_BYTES SEED STATE_FILE".into());
    };
    let mut profile = Profile::named(profile)?;
    profile.capacity_bytes = capacity_bytes.parse()?;
    profile.check("the card")?;
    let mut stream = Stream {
        card: Card::new(&profile, Seed::new(seed.parse()?)),
        now_ns: 0,
        block: 0,
    };
    for _ in 0..BLOCKS_MAX / DISTANCE.start {
        let distance = stream.clone().blocks_to_stall(DISTANCE.end)?;
        if DISTANCE.contains(&distance) {
            println!("next stall after {} B", distance * BLOCK_BYTES as u64);
            std::fs::write(file, stream.card.to_state(&profile, stream.now_ns)?)?;
            return Ok(());
        }
        // Past a stall that is too near, or one step towards one that is too far.
        stream.blocks_to_stall(DISTANCE.start)?;
    }
    Err("this card has no stall when it is written sequentially; use another profile".into())
}

/// A sequential write that begins again at the end of the card. Blocks of zeros take no memory.
#[derive(Clone)]
struct Stream {
    card: Card,
    now_ns: u64,
    block: u64,
}

impl Stream {
    /// Writes until a stall, or `blocks_max` blocks; returns the number of blocks written.
    fn blocks_to_stall(&mut self, blocks_max: u64) -> Result<u64, Box<dyn Error>> {
        for written in 1..=blocks_max {
            let block = self.block % self.card.blocks();
            let busy_ns = self
                .card
                .stream_write(self.now_ns, block, &[0; BLOCK_BYTES])?;
            self.now_ns += busy_ns + BLOCK_NS;
            self.block += 1;
            if busy_ns >= STALL_NS {
                return Ok(written);
            }
        }
        Ok(blocks_max)
    }
}
