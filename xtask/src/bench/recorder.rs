//! What the recorder gets onto the cards of study 5, beside what they bear without loss at all.

use super::report::{keep, timed};
use crate::run::target;

/// Payload on each card in MB, and seeds.
const ARGUMENTS: [&str; 2] = ["600", "3"];

pub fn run() -> Result<(), String> {
    let example = target().join("release/examples/lossless");
    let taken = timed(&example, &ARGUMENTS)?;
    let [megabytes, seeds] = ARGUMENTS;
    keep(
        "recorder",
        &format!(
            "The seven cards of study 5, simulated, over SPI at 25 MHz; {megabytes} MB on each, {seeds} seeds. \
             Rates in kB/s of payload. Under `naive 512` to `stream 2048` is what the study published as \
             guaranteed on the real card: payload of a write over the longest write. `64 KiB` is the highest \
             rate that this RAM carries through a plain stream of blocks without loss; the recorder is \
             given 95 % of it.\n\n{}",
            taken.stdout
        ),
    )
}
