//! A plan for a simulated card, which tells what a trace cannot: energy and wear.

use crate::figures::{Plan, Wear};
use crate::long::LongStream;
use crate::plan::{Logger, Longer, Source, plan_with, sizes};
use crate::risk::HEIGHTS_MAX;
use crate::stream::{BLOCK_BYTES, StreamError, stream};
use cardiograph_sim_card::{Board, Profile};
use cardiograph_timing::tail::busy_periods;

/// What goes over the wire, to find out what it and the driver take for a block.
const WIRE_BYTES: u64 = 4 << 20;
/// What is written to find out what rates are carried and how high stalls are: 70 MB of this computer's
/// memory.
const BYTES: u64 = 4 << 30;
/// What is written, one after the other, until the highest stalls follow a law: blocks that are moved to
/// level wear are few.
const LONGER_BYTES: [u64; 2] = [16 << 30, 64 << 30];
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
    let times_ns = streamed.trace.operations();
    let mut times_ns: Vec<u64> = times_ns
        .map(|block| block.end_ns - block.start_ns)
        .collect();
    // Most blocks find the card not busy.
    let middle = times_ns.len() / 2;
    let (_, &mut block_ns, _) = times_ns.select_nth_unstable(middle);
    let long = LongStream {
        profile,
        seed: SEED,
        start: streamed.start,
        blocks: BYTES / BLOCK_BYTES,
        block_ns,
        period_ns: None,
    };
    let mut trace = long.trace();
    trace.about.target = target.to_string();
    let planned = |longer| {
        let plan = plan_with(&trace, Source::Stream, logger, longer);
        plan.map_err(|_| StreamError::TooSmall)
    };
    let mut plan = planned(None)?;
    for bytes in LONGER_BYTES {
        if plan.is_carried() && plan.tail.is_none() {
            plan = planned(Some(longer(&long, logger, bytes)))?;
        }
    }
    if plan.is_carried() {
        add_energy_and_wear(&mut plan, &long);
    }
    Ok(plan)
}

fn longer(long: &LongStream, logger: &Logger, bytes: u64) -> Longer {
    let longer = LongStream {
        blocks: bytes / BLOCK_BYTES,
        ..*long
    };
    Longer {
        periods: busy_periods(&longer, logger.rate_Bps(), HEIGHTS_MAX, &sizes(logger)),
        bytes,
    }
}

fn add_energy_and_wear(plan: &mut Plan, long: &LongStream) {
    let period_ns = BLOCK_BYTES as f64 * 1e9 / plan.rate_Bps;
    let paced = LongStream {
        blocks: (PACED_BYTES_MAX / BLOCK_BYTES).min((PACED_NS_MAX / period_ns) as u64),
        period_ns: Some(period_ns),
        ..*long
    };
    let taken = paced.taken();
    let days = taken.elapsed_ns as f64 / 1e9 / DAY_S;
    plan.energy_J_per_day = Some(taken.energy_pj as f64 / 1e12 / days);
    let flash = &long.profile.flash;
    let cycles_left = flash.endurance_cycles.saturating_sub(flash.cycles_used);
    let erases_left = f64::from(cycles_left) * long.profile.blocks() as f64;
    let erases_per_day = taken.erases as f64 / days;
    plan.wear = (erases_per_day > 0.0).then(|| Wear {
        erases_per_day,
        years: erases_left / erases_per_day / DAYS_PER_YEAR,
    });
}
