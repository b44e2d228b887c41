//! Writes a year of 860 lines of 100 B per second to a simulated card without data, in files in rotation, with one
//! stop per second; prints how long the simulation took, and the card's figures.
//!
//! ```sh
//! cargo run --release -p cardiograph-sim-card --example year [BYTES]
//! ```

use cardiograph_sim_card::{BLOCK_BYTES, Controller, Profile, Seed};
use std::error::Error;
use std::process::ExitCode;
use std::time::Instant;

/// Bytes of a year of 860 Hz x 100 B.
const YEAR_BYTES: u64 = 86_000 * 86_400 * 365;
/// Blocks between two stops: a second.
const STOP_BLOCKS: u64 = 168;
/// Stops per file: an hour. A new file writes a block of the FAT and one of its folder.
const FILE_STOPS: u64 = 3600;
/// Blocks before the first file: FAT and root folder.
const FIRST_BLOCK: u64 = 65_536;
const SECOND_NS: u64 = 1_000_000_000;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let bytes = std::env::args()
        .nth(1)
        .map_or(Ok(YEAR_BYTES), |text| text.parse())?;
    let mut profile = Profile::named("class10-16g")?;
    profile.model = 2;
    profile.check("class10-16g")?;
    let mut card = Controller::new(&profile, Seed::new(1));
    let end = profile.capacity_bytes / BLOCK_BYTES as u64 - STOP_BLOCKS;
    let (mut block, mut now_ns, mut longest_ns) = (FIRST_BLOCK, 0, 0);
    let started = Instant::now();
    for stop in 0..bytes / (STOP_BLOCKS * BLOCK_BYTES as u64) {
        if stop % FILE_STOPS == 0 {
            for place in [stop / FILE_STOPS % 1000, 32_768 + stop / FILE_STOPS % 16] {
                now_ns += card.write_by_command(now_ns, place, 1).total_ns;
            }
        }
        let busy_ns = card.write_by_command(now_ns, block, STOP_BLOCKS).total_ns;
        longest_ns = longest_ns.max(busy_ns);
        now_ns = (now_ns + busy_ns).next_multiple_of(SECOND_NS);
        block += STOP_BLOCKS;
        if block > end {
            block = FIRST_BLOCK;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{:.3} TB in {:.0} days of virtual time took {seconds:.1} s; longest write {:.0} ms; {} erases, {} to {} per \
         block; {:.2} pages programmed per page written",
        bytes as f64 / 1e12,
        now_ns as f64 / 86_400e9,
        longest_ns as f64 / 1e6,
        card.erases(),
        card.cycles().start(),
        card.cycles().end(),
        card.pages_programmed().unwrap_or_default() as f64 * 4096.0 / bytes as f64,
    );
    Ok(())
}
