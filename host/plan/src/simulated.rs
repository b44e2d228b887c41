//! A plan for a simulated card, which tells what a trace cannot: energy and wear.

use crate::plan::{Logger, Plan, Source, Wear, plan};
use crate::stream::{BLOCK_BYTES, StreamError, stream};
use cardiograph_sim_card::{Board, Profile};

/// What is written to find out how long writes take.
const BYTES_MAX: u64 = 256 << 20;
/// What is written at the logger's rate to find out about energy and wear.
const PACED_BYTES_MAX: u64 = 64 << 20;

/// Seed of the card.
const SEED: u64 = 1;

const DAY_S: f64 = 86_400.0;
const DAYS_PER_YEAR: f64 = 365.25;

/// What this logger needs on this card and board; `target` is what they are called.
///
/// # Errors
/// [`StreamError`] if the card cannot be written to as the recorder does it.
pub fn plan_simulated(
    target: &str,
    set_up: (&Profile, &Board),
    logger: &Logger,
) -> Result<Plan, StreamError> {
    let mut streamed = stream(set_up, SEED, BYTES_MAX, None)?;
    streamed.trace.about.target = target.to_string();
    let Ok(mut plan) = plan(&streamed.trace, Source::Stream, logger) else {
        return Err(StreamError::TooSmall);
    };
    if plan.is_carried() {
        add_energy_and_wear(&mut plan, set_up, logger)?;
    }
    Ok(plan)
}

fn add_energy_and_wear(
    plan: &mut Plan,
    (profile, board): (&Profile, &Board),
    logger: &Logger,
) -> Result<(), StreamError> {
    let period_ns = BLOCK_BYTES as f64 * 1e9 / logger.rate_Bps();
    let paced = stream((profile, board), SEED, PACED_BYTES_MAX, Some(period_ns))?;
    let days = paced.elapsed_ns as f64 / 1e9 / DAY_S;
    plan.energy_J_per_day = Some(paced.energy_pj as f64 / 1e12 / days);
    let erases_per_day = paced.erases as f64 / days;
    let left = profile.flash.endurance_cycles.saturating_sub(profile.flash.cycles_used);
    let erases_left = f64::from(left) * profile.blocks() as f64;
    plan.wear = Some(Wear {
        erases_per_day,
        years: erases_left / erases_per_day / DAYS_PER_YEAR,
    });
    Ok(())
}
