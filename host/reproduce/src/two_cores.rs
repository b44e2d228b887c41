//! Study 1's load on two cores, run on the host: the only experiment without a card.
//!
//! The load is a fixed amount of integer and floating-point arithmetic in a thread pinned to a core. It runs
//! alone, on two cores at the same time, and twice on one core.

use crate::measure::Measure;
use cardiograph_system::{allowed_cores, pin_to_core};
use std::hint::black_box;
use std::time::Instant;

/// Rounds of the load, as in the study. The load is repeated, because a PC takes only milliseconds for these rounds.
const ROUNDS: u32 = 1000 * 999;
const REPEATS: u32 = 40;
/// Number of measurements; rows show their median.
const MEASUREMENTS: usize = 5;

/// Returns the ratio of the two times for each measurement; empty if the process may not use two cores.
pub(crate) fn measure(measure: Measure) -> Vec<f64> {
    let Some([first, second]) = two_cores() else {
        return Vec::new();
    };
    let ratio = || {
        let alone_s = seconds(&[first]);
        let both_s = match measure {
            Measure::OneCoreTwice => seconds(&[first, first]),
            _ => seconds(&[first, second]),
        };
        both_s / alone_s
    };
    (0..MEASUREMENTS).map(|_| ratio()).collect()
}

fn two_cores() -> Option<[usize; 2]> {
    let mut cores = allowed_cores().into_iter();
    Some([cores.next()?, cores.next()?])
}

/// Returns the time in s until a thread on each of the given cores has completed the load.
fn seconds(cores: &[usize]) -> f64 {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for &core in cores {
            scope.spawn(move || {
                pin_to_core(core);
                for _ in 0..REPEATS {
                    black_box(load(black_box(ROUNDS)));
                }
            });
        }
    });
    begin.elapsed().as_secs_f64()
}

fn load(rounds: u32) -> f32 {
    let (mut whole, mut float) = (1_u32, 1.0_f32);
    for round in 0..rounds {
        whole = whole.wrapping_mul(1_664_525).wrapping_add(round);
        float = (float + (whole & 0xFF) as f32) * 0.5;
    }
    float
}
