//! Random search for the physical values of a card that match measurements best.
//!
//! Each trial changes a few values of the best profile so far, by large steps at first and smaller ones
//! later, and replaces the profile if it is better. Values stay within the ranges of real chips.

use cardiograph_sim_card::{Profile, Random};
use std::ops::RangeInclusive;

/// A value that the search varies.
pub struct Knob {
    /// Path of the value in a profile.
    pub name: &'static str,
    get: fn(&Profile) -> u32,
    set: fn(&mut Profile, u32),
    allowed: RangeInclusive<u32>,
    /// True if the value must be a power of two.
    is_power: bool,
}

impl Knob {
    /// Returns the value in a profile.
    pub fn value(&self, profile: &Profile) -> u32 {
        (self.get)(profile)
    }

    /// Changes the value by `share`, from -1 to 1, of the largest step.
    fn change(&self, profile: &mut Profile, share: f64) {
        let value = f64::from(self.value(profile)).max(0.5);
        let changed = match self.is_power {
            true => value * 2f64.powi((share * 2.0).round() as i32),
            false => (value * (share * 1.2).exp() + share.signum() * 0.5).round(),
        };
        let (least, most) = (*self.allowed.start(), *self.allowed.end());
        (self.set)(profile, (changed as u32).clamp(least, most));
    }
}

macro_rules! knob {
    ($($path:ident).+, $allowed:expr, $is_power:expr) => {
        Knob {
            name: stringify!($($path).+),
            get: |profile| profile.$($path).+,
            set: |profile, value| profile.$($path).+ = value,
            allowed: $allowed,
            is_power: $is_power,
        }
    };
}

/// Returns the mean time to program a page. [`set_program_us`] keeps the ratios between pages that share
/// cells: with two pages per cell, the upper takes 2.5 times as long as the lower; with three, the last
/// takes 8 times as long as the first.
fn program_us(profile: &Profile) -> u32 {
    let times = &profile.flash.program_us;
    times.iter().sum::<u32>() / times.len().max(1) as u32
}

fn set_program_us(profile: &mut Profile, mean_us: u32) {
    profile.flash.program_us = match profile.flash.program_us.len() {
        1 => vec![mean_us],
        2 => vec![mean_us * 4 / 7, mean_us * 10 / 7],
        _ => vec![mean_us / 4, mean_us * 3 / 4, mean_us * 2],
    };
}

/// Values that latencies can reveal.
pub const KNOBS: [Knob; 15] = [
    knob!(flash.page_bytes, 2048..=16_384, true),
    knob!(flash.pages_per_block, 32..=512, true),
    knob!(flash.read_us, 25..=150, false),
    Knob {
        name: "flash.program_us",
        get: program_us,
        set: set_program_us,
        allowed: 200..=3000,
        is_power: false,
    },
    knob!(flash.log_program_us, 200..=4000, false),
    knob!(flash.erase_us, 1000..=10_000, false),
    knob!(flash.spread_percent, 2..=40, false),
    knob!(controller.command_us, 20..=3000, false),
    knob!(controller.open_units, 0..=8, false),
    knob!(controller.ram_pages, 1..=8, false),
    knob!(controller.log_blocks, 1..=256, false),
    knob!(controller.gc_log_blocks, 1..=256, false),
    knob!(controller.fast_zone_units, 0..=16, false),
    knob!(controller.stall_limit_us, 5_000..=1_000_000, false),
    knob!(controller.wear_levelling_erases, 10..=1000, false),
];

/// Searches for the profile with the lowest `loss` in the given number of trials; returns the profile and
/// its loss.
pub fn minimise(
    start: &Profile,
    trials: u32,
    random: &mut Random,
    mut loss: impl FnMut(&Profile) -> f64,
) -> (Profile, f64) {
    let mut best = (start.clone(), loss(start));
    for trial in 0..trials {
        let mut changed = best.0.clone();
        let reach = 1.0 - 0.9 * f64::from(trial) / f64::from(trials);
        for _ in 0..=random.below(3) {
            let knob = &KNOBS[random.below(KNOBS.len() as u64) as usize];
            let unit = random.below(1 << 20) as f64 / f64::from(1 << 19) - 1.0;
            knob.change(&mut changed, unit * reach);
        }
        if changed == best.0 || changed.check("trial").is_err() {
            continue;
        }
        let loss = loss(&changed);
        if loss < best.1 {
            best = (changed, loss);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::Seed;

    #[test]
    fn the_search_approaches_a_hidden_profile() {
        let start = Profile::named("class10-16g").unwrap();
        let mut hidden = start.clone();
        hidden.flash.erase_us = 7000;
        hidden.controller.log_blocks = 9;
        let distance = |profile: &Profile| {
            let of = |knob: &Knob| {
                let ratio =
                    f64::from(knob.value(profile).max(1)) / f64::from(knob.value(&hidden).max(1));
                ratio.ln().powi(2)
            };
            KNOBS.iter().map(of).sum::<f64>()
        };
        let mut random = Seed::new(1).stream("search");
        let (found, loss) = minimise(&start, 3000, &mut random, distance);
        assert!(loss < 0.01 * distance(&start), "{loss}");
        assert!(found.flash.erase_us.abs_diff(7000) < 300);
        assert!(found.controller.log_blocks.abs_diff(9) <= 1);
    }
}
