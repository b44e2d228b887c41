//! Plan for a simulated card, which adds what a trace cannot provide: energy and wear.

use crate::figures::{Plan, Wear};
use crate::long::LongStream;
use crate::plan::{Logger, Longer, Source, plan_with, sizes};
use crate::risk::PEAKS_MAX;
use crate::stream::{BLOCK_BYTES, StreamError, stream};
use cardiograph_sim_card::{Board, Profile};
use cardiograph_timing::tail::busy_periods;

/// Payload written over the simulated bus, to measure the time that bus and driver take per block.
const WIRE_BYTES: u64 = 4 << 20;
/// Payload written to measure sustained rates and stalls: takes 70 MB of the host's memory.
const BYTES: u64 = 4 << 30;
/// Payloads of further, longer runs, tried in turn until a distribution fits the longest stalls:
/// wear-levelling moves are rare.
const LONGER_BYTES: [u64; 2] = [16 << 30, 64 << 30];
/// Limits of the stream written at the logger's rate to measure energy and wear: payload in bytes, and
/// duration in ns.
const PACED_BYTES_MAX: u64 = 256 << 20;
const PACED_NS_MAX: f64 = 1e18;

/// Seed of the card.
const SEED: u64 = 1;

const DAY_S: f64 = 86_400.0;
const DAYS_PER_YEAR: f64 = 365.25;

/// Plans a logger for a card on a board; `target` is the name of this combination.
///
/// # Errors
/// [`StreamError`] if the recorder's driver cannot write to the card.
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
    // The card is not busy before most blocks, so the median contains no busy time.
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
        if plan.is_sustained() && plan.tail.is_none() {
            plan = planned(Some(longer(&long, logger, bytes)))?;
        }
    }
    if plan.is_sustained() {
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
        periods: busy_periods(
            &longer,
            logger.rate_bytes_per_s(),
            PEAKS_MAX,
            &sizes(logger),
        ),
        bytes,
    }
}

fn add_energy_and_wear(plan: &mut Plan, long: &LongStream) {
    let period_ns = BLOCK_BYTES as f64 * 1e9 / plan.rate_bytes_per_s;
    let paced = LongStream {
        blocks: (PACED_BYTES_MAX / BLOCK_BYTES).min((PACED_NS_MAX / period_ns) as u64),
        period_ns: Some(period_ns),
        ..*long
    };
    let consumed = paced.consumption();
    let days = consumed.elapsed_ns as f64 / 1e9 / DAY_S;
    plan.energy_j_per_day = Some(consumed.energy_pj as f64 / 1e12 / days);
    let flash = &long.profile.flash;
    let cycles_left = flash.endurance_cycles.saturating_sub(flash.cycles_used);
    let erases_left = f64::from(cycles_left) * long.profile.blocks() as f64;
    let erases_per_day = consumed.erases as f64 / days;
    plan.wear = (erases_per_day > 0.0).then(|| Wear {
        erases_per_day,
        lifetime_years: erases_left / erases_per_day / DAYS_PER_YEAR,
    });
}
