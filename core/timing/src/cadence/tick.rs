//! Tick of a clock whose times are written more finely, such as 1/32768 s in whole ns.

use super::round;

/// Error of a step from its two rounded times, in units of the greatest common divisor.
const ROUNDING_UNITS: f64 = 2.0;

/// A tick is at least this many times the rounding error.
const ERRORS_MIN: f64 = 100.0;

/// Returns the tick of the clock in ns, from steps in order of length and their greatest common divisor.
pub(super) fn tick_ns(sorted: &[u64], unit_ns: u64) -> f64 {
    let unit = unit_ns as f64;
    let error = ROUNDING_UNITS * unit;
    let mut steps = sorted.iter().map(|&ns| ns as f64);
    let Some(mut tick) = steps.next() else {
        return unit;
    };
    // Number of ticks in the longest step so far, which determines the tick best.
    let mut ticks_max = 1.0;
    for step in steps {
        let ticks = round(step / tick) as f64;
        let rest = (step - ticks * tick).abs();
        if rest <= error * (1.0 + ticks / ticks_max) {
            if ticks > ticks_max {
                (tick, ticks_max) = (step / ticks, ticks);
            }
            continue;
        }
        tick = common(tick, rest, error);
        ticks_max = 1.0;
    }
    if tick < ERRORS_MIN * error {
        unit
    } else {
        tick
    }
}

/// Returns the common divisor of two lengths with an error.
fn common(mut a: f64, mut b: f64, error: f64) -> f64 {
    while b > 2.0 * error {
        let rest = (a - round(a / b) as f64 * b).abs();
        (a, b) = (b, rest);
    }
    a
}
