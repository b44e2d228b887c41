//! Endurance and energy of a card, calculated from its profile.

use super::theory::{BLOCK, Derived, Times, unit_bytes};
use cardiograph_report::units;
use cardiograph_sim_card::Profile;

/// Returns the endurance figures.
pub fn endurance(profile: &Profile) -> Vec<Derived> {
    let flash = &profile.flash;
    let left = f64::from(flash.endurance_cycles.saturating_sub(flash.cycles_used));
    let capacity = profile.capacity_bytes as f64;
    let erases = capacity / unit_bytes(profile) as f64 * left;
    let (in_order, formula) = match profile.controller.open_units {
        0 => (
            capacity * left / 2.0,
            "capacity × remaining erases per block / 2, because all data pass through log blocks; \
             spares not counted",
        ),
        _ => (
            capacity * left,
            "capacity × remaining erases per block; spares not counted",
        ),
    };
    let each = 1.0 + 1.0 / f64::from(flash.pages_per_block);
    vec![
        Derived::new("Endurance, sequential writes", terabytes(in_order), formula),
        Derived::new(
            "Endurance, scattered 512 B writes",
            terabytes(erases / each * BLOCK),
            "units × remaining erases × 512 B / (1 + 1 / pages)",
        ),
    ]
}

/// Formats bytes, with TB for large values.
fn terabytes(bytes: f64) -> String {
    match bytes {
        bytes if bytes < 1e12 => units::bytes(bytes),
        bytes => units::bytes(bytes / 1e3).replace("GB", "TB"),
    }
}

/// Returns the energy figures.
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
            "write latency × working current × supply voltage + flash energy",
        ),
        Derived::new(
            "Energy of a stall",
            uj(times.stall_us, copy_nj + erases * nj(energy.erase_nj)),
            "stall latency × working current × supply voltage + flash energy",
        ),
    ]
}
