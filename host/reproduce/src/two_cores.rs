//! The study's load on two cores, on this computer: the one experiment that needs no card.
//!
//! A fixed amount of arithmetic, floats and whole numbers, in a thread that is pinned to a core: alone, on
//! two cores at once, and twice on one core.

use crate::measure::Measure;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::hint::black_box;
use std::time::Instant;

/// Rounds of the study; these take milliseconds here, so that they are gone through several times.
const ROUNDS: u32 = 1000 * 999;
const REPEATS: u32 = 40;
/// Measurements, of which rows have the median.
const TIMES: usize = 5;

/// What each measurement gives; nothing if there are no two cores to use.
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
    (0..TIMES).map(|_| ratio()).collect()
}

fn two_cores() -> Option<[usize; 2]> {
    let allowed = sched_getaffinity(None).ok()?;
    let mut cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
    Some([cores.next()?, cores.next()?])
}

/// Time until a thread on each of these cores is done with the load.
fn seconds(cores: &[usize]) -> f64 {
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for &core in cores {
            scope.spawn(move || {
                let mut set = CpuSet::new();
                set.set(core);
                // A system that does not let us runs the load where it likes.
                let _ = sched_setaffinity(None, &set);
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
