//! Long runs on the emulated Pico: rates near the bound of aged cards, and many power cuts.

use super::{STALLS, Setup, cut_power, prepare, record_stalls};
use crate::run::{cargo, output_of};
use std::fmt::Write;

/// Bus clock of the firmware: the fastest of the RP2040 up to 25 MHz.
const CLOCK_HZ: u32 = 20_833_333;
/// Share of the bound at which samples are recorded.
const SHARE: f64 = 0.95;
/// Length for which the rate is chosen first, in bytes: the first stall of the aged cards is within 6 MB.
const FIRST_BYTES: u64 = 10_000_000;
/// Number of aged states of each card.
const STATES: u32 = 3;
const CUTS: usize = 50;
/// Recordings of one aged card until one is near enough to its bound.
const RECORDINGS_MAX: u32 = 4;
/// Length of a sample, in bytes.
const SAMPLE_BYTES: f64 = 100.0;
/// Payload of a block of 512 B in a binary file (docs/formats.md).
const PAYLOAD: f64 = 472.0 / 512.0;

/// A card with its ring. A smaller ring makes the stalls, rather than the processor, determine the bound.
struct Case {
    profile: &'static str,
    card_blocks: usize,
    ring_kib: u32,
}

const CASES: [Case; 2] = [
    Case {
        profile: "team-8g-class10",
        card_blocks: 1 << 18,
        ring_kib: 64,
    },
    Case {
        profile: "kingston-8g",
        card_blocks: 1 << 19,
        ring_kib: 128,
    },
];

/// Runs everything and saves a dated report.
pub fn long() -> Result<(), String> {
    let setup = prepare()?;
    let mut text = String::from(
        "The bound is that of the same card, natively, for a stream of the same length.\n\n\
         | card | state | ring, KiB | files, MB | bound, kB/s | samples/s | of bound | samples | stalls | lost |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|---:|---:|\n",
    );
    for case in &CASES {
        for seed in 1..=STATES {
            let row = near_bound(&Setup {
                profile: case.profile,
                seed,
                card_blocks: case.card_blocks,
                ring_kib: case.ring_kib,
                ..setup.clone()
            })?;
            text.push_str(&row);
        }
    }
    setup.age_card()?;
    let cuts = cut_power(&setup, CUTS)?;
    let _ = write!(
        text,
        "\n{cuts} power cuts: everything older than the durability window is there, and fsck.fat finds no error.\n"
    );
    crate::bench::save("boards", &text)
}

/// Records near the bound of an aged card; returns a row of the report.
///
/// The bound depends on the length of the recording, and the length on the rate. If the bound for the recorded length
/// turns out higher than expected, another recording is made at a higher rate.
fn near_bound(setup: &Setup) -> Result<String, String> {
    setup.age_card()?;
    let bound = bound_of(setup, FIRST_BYTES)?;
    // Each file has a header, and half a block is empty at each checkpoint.
    let extra = 2.0 / 1024.0 + 256.0 / bound;
    let mut rate_hz = (bound * SHARE * (1.0 - extra) * PAYLOAD / SAMPLE_BYTES).ceil() as u32;
    for _ in 0..RECORDINGS_MAX {
        let setup = Setup {
            rate_hz,
            ..setup.clone()
        };
        let (bytes, samples) = record_stalls(&setup)?;
        let bound = bound_of(&setup, bytes)?;
        let share = bytes as f64 * f64::from(rate_hz) / f64::from(samples) / bound;
        if share >= SHARE {
            let row = format!(
                "| {} | {} | {} | {:.1} | {:.0} | {rate_hz} | {:.1} % | {samples} | {STALLS} | 0 |\n",
                setup.profile,
                setup.seed,
                setup.ring_kib,
                bytes as f64 / 1e6,
                bound / 1e3,
                share * 100.0
            );
            print!("{row}");
            return Ok(row);
        }
        println!(
            "{rate_hz} samples/s are {:.1} % of the bound",
            share * 100.0
        );
        rate_hz = (f64::from(rate_hz) * SHARE / share).ceil() as u32 + 1;
    }
    Err(format!(
        "{} {}: no recording at {} % of the bound in {RECORDINGS_MAX}",
        setup.profile,
        setup.seed,
        SHARE * 100.0
    ))
}

/// Returns the rate in B/s that the aged card sustains natively, for a stream of this length.
fn bound_of(setup: &Setup, bytes: u64) -> Result<f64, String> {
    let mut bound = cargo(&["run", "--quiet", "--release", "--package"]);
    bound.args(["cardiograph-compare", "--example", "board_bound", "--"]);
    bound.args([setup.profile, &setup.capacity_bytes()]);
    bound.arg(setup.state()).arg(CLOCK_HZ.to_string());
    let ring_bytes = setup.ring_kib * 1024;
    let text = output_of(bound.args([ring_bytes.to_string(), bytes.to_string()]))?;
    let rate = text.split(' ').next().and_then(|rate| rate.parse().ok());
    rate.ok_or_else(|| format!("expected a rate, found {text}"))
}
