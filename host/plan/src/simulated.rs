//! A plan for a simulated card, which tells what a trace cannot: energy and wear.

use crate::long::{Pace, long_stream};
use crate::plan::{Logger, Plan, Source, Wear, plan};
use crate::stream::{BLOCK_BYTES, StreamError, stream};
use cardiograph_sim_card::{Board, Profile};

/// What goes over the wire, to find out what it and the driver take for a block.
const WIRE_BYTES: u64 = 4 << 20;
/// What is written to find out how high stalls are. Tens of seconds to fill for a fast card, and 70 MB of
/// the computer's memory.
const BYTES_MAX: u64 = 4 << 30;
/// What is written at the logger's rate to find out about energy and wear, and for how long in ns.
const PACED_BYTES_MAX: u64 = 256 << 20;
const PACED_NS_MAX: f64 = 1e18;

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
    (profile, board): (&Profile, &Board),
    logger: &Logger,
) -> Result<Plan, StreamError> {
    let streamed = stream((profile, board), SEED, WIRE_BYTES)?;
    let mut times_ns: Vec<u64> = streamed
        .trace
        .operations()
        .map(|block| block.end_ns - block.start_ns)
        .collect();
    // Most blocks find the card not busy.
    let middle = times_ns.len() / 2;
    let (_, &mut block_ns, _) = times_ns.select_nth_unstable(middle);
    let pace = Pace {
        start: streamed.start,
        block_ns,
        period_ns: None,
    };
    let blocks = (BYTES_MAX / BLOCK_BYTES).min(profile.capacity_bytes / BLOCK_BYTES / 2);
    let mut long = long_stream(profile, SEED, &pace, blocks);
    long.trace.about.target = target.to_string();
    let Ok(mut plan) = plan(&long.trace, Source::Stream, logger) else {
        return Err(StreamError::TooSmall);
    };
    if plan.is_carried() {
        add_energy_and_wear(&mut plan, profile, &pace);
    }
    Ok(plan)
}

fn add_energy_and_wear(plan: &mut Plan, profile: &Profile, pace: &Pace) {
    let period_ns = BLOCK_BYTES as f64 * 1e9 / plan.rate_Bps;
    let paced = Pace {
        period_ns: Some(period_ns),
        ..*pace
    };
    let blocks = (PACED_BYTES_MAX / BLOCK_BYTES)
        .min(profile.capacity_bytes / BLOCK_BYTES / 2)
        .min((PACED_NS_MAX / period_ns) as u64);
    let paced = long_stream(profile, SEED, &paced, blocks);
    let days = paced.elapsed_ns as f64 / 1e9 / DAY_S;
    plan.energy_J_per_day = Some(paced.energy_pj as f64 / 1e12 / days);
    let flash = &profile.flash;
    let cycles_left = flash.endurance_cycles.saturating_sub(flash.cycles_used);
    let erases_left = f64::from(cycles_left) * profile.blocks() as f64;
    let erases_per_day = paced.erases as f64 / days;
    plan.wear = (erases_per_day > 0.0).then(|| Wear {
        erases_per_day,
        years: erases_left / erases_per_day / DAYS_PER_YEAR,
    });
}
