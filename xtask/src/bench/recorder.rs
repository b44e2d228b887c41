//! Rates of the recorder on the cards of study 5, compared with the rates that the cards sustain.

use super::report::{save, timed};
use crate::run::target;

/// Payload per card in MB, and number of seeds.
const ARGUMENTS: [&str; 2] = ["600", "3"];
/// Promises of the recorder to test, each with a heading for its table.
const PROMISES: [(&str, &str); 4] = [
    (
        "sustained",
        "One to four binary streams at 95 % of the bound, in encoded file bytes.",
    ),
    (
        "below",
        "At 79 % of the bound, with a durability window of 1 s.",
    ),
    (
        "readers",
        "Text at half the bound, while one reader reads 8 KiB at a time without pause.",
    ),
    (
        "rotate",
        "Text at a quarter of the bound, with a new file requested every second for 10 minutes.",
    ),
];

pub fn run() -> Result<(), String> {
    let [megabytes, seeds] = ARGUMENTS;
    let rates = timed(&target().join("release/examples/sustained"), &ARGUMENTS)?;
    let mut text = format!(
        "The seven cards of study 5, simulated, over SPI at 25 MHz; {megabytes} MB on each, {seeds} seeds, a \
         buffer of 64 KiB, samples of 100 B. Rates are in kB/s. The columns `naive 512` to `stream 2048` show \
         the throughput that the study published as guaranteed for the real card: the payload of \
         a write divided by its worst-case latency. The bound is the highest rate that the buffer sustains with a plain CMD25 loop.\n\n{}",
        rates.stdout
    );
    for (promise, about) in PROMISES {
        let program = target().join("release/examples/promises");
        let measured = timed(&program, &[promise, megabytes, seeds])?;
        text.push_str(&format!("\n## {promise}\n\n{about}\n\n{}", measured.stdout));
    }
    save("recorder", &text)
}
