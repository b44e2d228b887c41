//! Rates of the recorder on the cards of study 5, compared with the rates that the cards sustain.

use super::report::{save, timed};
use crate::run::target;

/// Payload per card in MB, and number of seeds.
const ARGUMENTS: [&str; 2] = ["600", "3"];

pub fn run() -> Result<(), String> {
    let example = target().join("release/examples/sustained");
    let taken = timed(&example, &ARGUMENTS)?;
    let [megabytes, seeds] = ARGUMENTS;
    save(
        "recorder",
        &format!(
            "The seven cards of study 5, simulated, over SPI at 25 MHz; {megabytes} MB on each, {seeds} seeds. \
             Rates are payload in kB/s. The columns `naive 512` to `stream 2048` show the throughput that the \
             study published as guaranteed for the real card: payload of a write over the worst-case latency. \
             `64 KiB` is the highest rate that a buffer of this size sustains with a plain stream of blocks; \
             the recorder runs at 95 % of it.\n\n{}",
            taken.stdout
        ),
    )
}
