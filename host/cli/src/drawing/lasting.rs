//! How long a card lasts and what it takes, by arithmetic alone.

use super::theory::{BLOCK, Derived, Times, unit_bytes};
use cardiograph_report::units;
use cardiograph_sim_card::Profile;

/// What it bears.
pub fn life(profile: &Profile) -> Vec<Derived> {
    let flash = &profile.flash;
    let left = f64::from(flash.endurance_cycles.saturating_sub(flash.cycles_used));
    let capacity = profile.capacity_bytes as f64;
    let erases = capacity / unit_bytes(profile) as f64 * left;
    let (in_order, formula) = match profile.controller.open_units {
        0 => (
            capacity * left / 2.0,
            "capacity × erases a block has left / 2, as all goes through the log; spares not counted",
        ),
        _ => (
            capacity * left,
            "capacity × erases a block has left, spares not counted",
        ),
    };
    let each = 1.0 + 1.0 / f64::from(flash.pages_per_block);
    vec![
        Derived::new("Endurance, written in order", terabytes(in_order), formula),
        Derived::new(
            "Endurance, 512 B each in another unit",
            terabytes(erases / each * BLOCK),
            "units × erases left × 512 B / (1 + 1 / pages)",
        ),
    ]
}

/// Bytes that may be more than GB say well.
fn terabytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e12 => units::bytes(bytes),
        bytes => units::bytes(bytes / 1e3).replace("GB", "TB"),
    }
}

/// What it takes from the supply.
pub fn energies(profile: &Profile, times: &Times) -> Vec<Derived> {
    let (flash, power) = (&profile.flash, profile.power);
    let planes = f64::from(flash.planes);
    let working_mw = f64::from(power.working_ua) * f64::from(power.supply_mv) / 1e6;
    let uj = |us: f64, nj: f64| units::energy(working_mw * us / 1e3 + planes * nj / 1e3);
    let energy = power.flash;
    let nj = |nj: u32| f64::from(nj);
    let copy_nj = f64::from(flash.pages_per_block) * (nj(energy.read_nj) + nj(energy.program_nj));
    let erases = 1.0 + f64::from(profile.controller.gc_log_blocks);
    vec![
        Derived::new(
            "Energy of a small write",
            uj(
                times.small_us,
                nj(energy.read_nj) + nj(energy.log_program_nj),
            ),
            "its time × working current × supply + what flash takes",
        ),
        Derived::new(
            "Energy of a peak",
            uj(times.peak_us, copy_nj + erases * nj(energy.erase_nj)),
            "the same of a peak",
        ),
    ]
}
